#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What fails at COMMIT, in PostgreSQL: a constraint trigger that is deferred to it raises an error
# of each class, or ends the session. Its message goes to the error queue, with the reason, after
# its retries; the others are handled once; the endpoint stays up. The same for errors of classes
# that sound like a lost connection, in a handler's own statements.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(time);
use Endpoint;

Endpoint::under_servers('pgsql');
my $exception = 'NServiceBus.ExceptionInfo';
my $e = Endpoint->new('sqlite+pgsql', batch_max => 10, retries => 2);
my $case = 0;

sub count_lines { return scalar split /\n/, Endpoint::read_file($e->{log}) }
sub new_lines { my ($from) = @_; return (split /\n/, Endpoint::read_file($e->{log}))[ $from .. count_lines() - 1 ] }

# Bad messages, each among good ones: what the bad ones do, by name, and the pattern of the reason. Good
# ones go on coming: whose a server's trouble is, is only known by what happens to others.
sub run_among {
    my ($what, $seconds, %bad) = @_;
    my (@good, @messages, @failed);
    my $sent = 0;
    $case++;
    my $send_another = sub {
        return if time < $sent + 0.3;
        $sent = time;
        push @good, "good-$case-" . @good;
        $e->send('orders', { id => $good[-1], do => "send sink T.Out $good[-1]" });
    };
    for my $name (sort keys %bad) {
        my @around = map { { id => "good-$case-$name-$_", do => "send sink T.Out good-$case-$name-$_" } } 1 .. 8;
        push @good, map { $_->{id} } @around;
        push @messages, @around[ 0 .. 3 ], { id => "bad-$case-$name", do => "send sink T.Out bad\n$bad{$name}[0]" }, @around[ 4 .. 7 ];
    }
    my $lines = count_lines();
    $e->send('orders', @messages);
    $e->wait_for("$what: the good ones are handled", sub { !$e->not_once(@good) }, $seconds);
    $e->wait_for("$what: the bad ones are in the error queue", sub { $send_another->(); push @failed, $e->read('error'); @failed >= keys %bad }, $seconds);
    is scalar @failed, keys %bad, "$what: and nobody else";
    for my $failed (@failed) {
        my ($name) = $failed->{id} =~ /^bad-$case-(.*)/ or fail("$failed->{id} is in the error queue"), next;
        like $failed->{header}{"$exception.Message"}, $bad{$name}[1], "$what, $name: with the reason";
        is $e->effects($failed->{id}), 0, "$what, $name: without effect";
    }
    $e->wait_for("$what: all is handled and sent", sub { !$e->not_once(@good) && $e->pending == 0 });
    my %out;
    $out{ $_->{body} }{ $_->{id} } = 1 for $e->read('sink');
    is_deeply [ sort keys %out ], [ sort @good ], "$what: what the good ones sent is out, and nothing else";
    is_deeply [ grep { keys %{ $out{$_} } != 1 } keys %out ], [], "$what: under one id";
    is_deeply [ $e->not_once(@good) ], [], "$what: nobody was handled again";
    ok $e->is_alive, "$what: the endpoint lives";
    return $lines;
}

sub at_commit { my ($code) = @_; return [ "defer insert into later values ('$code')", qr/could not commit: as asked \(SQLSTATE $code\)/ ] }

$e->install;
$e->sql(<<'END');
create function fail(code text) returns void language plpgsql as $$ begin
    if code = 'end' then perform pg_terminate_backend(pg_backend_pid()); end if;
    raise exception using errcode = code, message = 'as asked'; end $$;
create function fail_later() returns trigger language plpgsql as $$ begin perform fail(new.code); return null; end $$;
create table later (code text);
create constraint trigger later after insert on later deferrable initially deferred for each row execute function fail_later();
END
$e->start;

# Everybody's attempts are counted, none is the connection's.
my $lines = run_among('at COMMIT', 40, map { $_ => at_commit($_) } qw(08006 0A000 22012 23505 25006 26000 28000 3D000 42501 42P01 54000 P0001 WB001 XX000));
is_deeply [ grep { /is (?:away|back)/ } new_lines($lines) ], [], 'at COMMIT: no session was given up';
my %calls = map { $_ => 1 } $e->attempts('bad-1-22012');
is_deeply [ sort keys %calls ], [ 1, 2, 3 ], 'at COMMIT: after its retries';

# Nobody's: it runs again without an attempt, until that is its own fault.
run_among('an abort that never ends', 40, map { $_ => at_commit($_) } qw(40001 40003 40P01));

# The server's, as its code says, until the same message meets it alone while others get through.
run_among("the server's trouble", 90, map { $_ => at_commit($_) } qw(53100 55P03 57014 58030));

# In doubt each time; the record says that it was not done.
run_among('the end of the session', 90, end => [ "defer insert into later values ('end')", qr/57P01|terminat/ ]);

$lines = run_among("in a handler's statement", 40, map { ("plain-$_" => [ "sql select fail('$_')", qr/SQLSTATE $_/ ], "deferred-$_" => [ "defer select fail('$_')", qr/SQLSTATE $_/ ]) }
    qw(08001 08006 08P01 0A000 25006));
is_deeply [ grep { /is (?:away|back)/ } new_lines($lines) ], [], "in a handler's statement: no session was given up";

is $e->stop, 0, 'it stops cleanly';
done_testing;
