#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What an operator of PostgreSQL sets for a database: other isolation levels, time limits. Nothing is
# lost, nothing happens twice; what exceeds a limit fails like any message, with the limit in its
# reason, and its neighbours do not.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers('pgsql');
my $exception = 'NServiceBus.ExceptionInfo';
my $round = 0;
my $e;

sub start_with {
    my ($what, $settings, %changes) = @_;
    $round++;
    $e = Endpoint->new('sqlite+pgsql', name => "orders$round", batch_max => 10, concurrency => 3, retries => 2,
        outbox => 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s"; retention = "1h";', %changes);
    $e->install;
    $e->sql(qq(alter database "$ENV{PGDATABASE}" set $_)) for @$settings;
    $e->start;
    $e->wait_for("$what: it starts", sub { $e->log_lines(qr/endpoint starts.*orders$round/) });
}

sub stop_and_reset {
    my ($what) = @_;
    is $e->stop, 0, "$what: it stops cleanly";
    $e->sql(qq(alter database "$ENV{PGDATABASE}" reset all));
}

sub own_lines { return grep { /orders$round/ } $e->log_lines($_[0]) }

sub messages {
    my ($count, $do) = @_;
    return map { { id => "r$round-$_", do => "$do\nsend sink T.Out r$round-$_" } } 1 .. $count;
}

sub complete {
    my ($what, $seconds, @messages) = @_;
    my @ids = map { $_->{id} } @messages;
    $e->wait_for("$what: every message has its effect", sub { !$e->not_once(@ids) }, $seconds);
    $e->wait_for("$what: all is sent", sub { $e->pending == 0 && $e->depth($e->{name}) == 0 }, 20);
    my %out;
    $out{ $_->{body} }{ $_->{id} } = 1 for $e->read('sink');
    is_deeply [ grep { keys %{ $out{$_} || {} } != 1 } @ids ], [], "$what: its message is out, under one id";
    is_deeply [ $e->not_once(@ids) ], [], "$what: and one effect only";
}

# Everybody writes the same row and looks at what the others wrote; some come twice.
sub with_isolation {
    my ($what, $prepare, @settings) = @_;
    $what .= $prepare ? '' : ', nothing prepared';
    start_with($what, \@settings, store => 'prepare = ' . ($prepare ? 'true;' : 'false;'));
    my @messages = messages(200, 'sql update tally set n = n + 1, seen = (select count(*) from effects)');
    my ($before) = map { $_->[0] } $e->sql('select n from tally');
    $e->send($e->{name}, @messages, @messages[ 0 .. 40 ]);
    complete($what, 40, @messages);
    is(($e->sql('select n from tally'))[0][0], $before + 200, "$what: each has counted once");
    is $e->depth('error'), 0, "$what: nothing is in the error queue";
    is_deeply [ own_lines(qr/level=error/) ], [], "$what: nothing to complain of";
    sleep 1.5;    # a round of sweep and clean-up
    is_deeply [ own_lines(qr/level=(?:error|warning)/) ], [], "$what: nor when it is idle";
    stop_and_reset($what);
}

# Bad ones among good ones; good ones go on coming until the bad ones have had all their attempts.
sub with_limit {
    my ($what, $setting, $do, $reason, %changes) = @_;
    start_with($what, [$setting], %changes);
    my @good = messages(30, 'sql select 1');
    my @bad = map { { id => "bad$round-$_", do => "send sink T.Out bad\n$do" } } 1 .. 2;
    $e->send($e->{name}, @good[ 0 .. 9 ], $bad[0], @good[ 10 .. 19 ], $bad[1], @good[ 20 .. 29 ]);
    my (@failed, $sent);
    $e->wait_for("$what: what exceeds it is in the error queue", sub {
        if (!$sent || time > $sent + 0.3) {
            $sent = time;
            push @good, { id => "more$round-" . @good, do => "send sink T.Out more$round-" . @good };
            $e->send($e->{name}, $good[-1]);
        }
        push @failed, $e->read('error');
        return @failed >= 2;
    }, 120);
    is_deeply [ sort map { $_->{id} } @failed ], [ map { $_->{id} } @bad ], "$what: and nobody else";
    like $_->{header}{"$exception.Message"}, $reason, "$what: with the reason" for @failed;
    is $e->effects($_->{id}), 0, "$what: without effect" for @bad;
    complete($what, 20, @good);
    ok scalar(own_lines($reason)), "$what: the log says so, too";
    ok $e->is_alive, "$what: the endpoint lives";
    stop_and_reset($what);
}

# Idle longer than a session may be.
sub idle_sessions {
    my $what = 'idle_session_timeout';
    start_with($what, ["idle_session_timeout = '300ms'"]);
    sleep 1.5;
    my @messages = messages(30, 'sql select 1');
    $e->send($e->{name}, @messages);
    complete($what, 20, @messages);
    is $e->depth('error'), 0, "$what: nothing is in the error queue";
    stop_and_reset($what);
}

# A neighbour holds a row for longer than it is waited for: nobody's attempt, and it is handled in the end.
sub locks {
    my ($what, $setting, $store, $waits) = @_;
    start_with($what, [$setting], store => $store);
    my @messages = messages(20, 'sql update tally set n = n + 1');
    my $holder = fork // die "fork: $!\n";
    if (!$holder) {
        exec 'psql', qw(-X -q -o /dev/null -c), 'begin; select from tally for update; select pg_sleep(3); commit' or POSIX::_exit(99);
    }
    $e->wait_for("$what: a neighbour holds the row", sub { ($e->sql(q(select count(*) from pg_stat_activity where wait_event = 'PgSleep')))[0][0] });
    $e->send($e->{name}, @messages);
    complete($what, 40, @messages);
    waitpid $holder, 0;
    is $e->depth('error'), 0, "$what: nothing is in the error queue";
    is scalar(() = own_lines(qr/lock timeout/)) > 0, $waits, "$what: " . ($waits ? 'a line says what is awaited' : 'the option counts, not the setting');
    stop_and_reset($what);
}

($e = Endpoint->new('sqlite+pgsql'))->sql('create table tally (n int, seen int); insert into tally values (0, 0)');
for my $prepare (1, 0) {
    with_isolation($_, $prepare, "default_transaction_isolation = '$_'") for 'serializable', 'repeatable read';
}
with_limit('idle_in_transaction_session_timeout', "idle_in_transaction_session_timeout = '300ms'", "sql select 1\nsleep 900", qr/idle-in-transaction timeout/);
with_limit('statement_timeout', "statement_timeout = '300ms'", 'sql select pg_sleep(3)', qr/statement timeout.*57014/);
with_limit('statement_timeout, deferred', "statement_timeout = '300ms'", 'defer select pg_sleep(3)', qr/statement timeout.*57014/);
my ($version) = map { $_->[0] } $e->sql('show server_version_num');
idle_sessions() if $version >= 140000;
with_limit('transaction_timeout', "transaction_timeout = '500ms'", "sql select 1\nsleep 900", qr/transaction timeout/) if $version >= 170000;
locks('lock_timeout of the option', 'work_mem = 4096', q(lock_timeout = "200ms";), 1);
locks('lock_timeout of the operator', "lock_timeout = '200ms'", '', '');
done_testing;
