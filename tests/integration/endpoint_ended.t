#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A handler ends the transaction, and then something else fails, or the time of its batch is up: an error of its own, a
# deadlock, the server's trouble, the end of the connection. Whatever hides it, its message goes to the error queue, and
# everybody else is handled, and what they send is sent.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

my $has_mysql = Endpoint::has_mysql();
Endpoint::under_servers('pgsql', $has_mysql ? 'mariadb' : ());

# What the bad one does, why it is given up, and whether it is known at once who it was: then its neighbours are handled
# once. An error packet of MySQL does not say what became of the transaction, and who hides the rest hides it well.
my $ended = qr/ended the transaction/;
my $raise = sub { "sql do \$\$ begin raise exception using errcode = '$_[0]', message = 'as asked'; end \$\$" };
my $signal = sub { "again signal sqlstate 'HY000' set mysql_errno = $_[0], message_text = 'as asked'" };
my @hide = ("sql set session_track_system_variables = ''", 'again set session_track_transaction_info = off', 'again commit and chain');
my %cases = (
    pgsql => {
        fails => [ [ 'sql commit; begin', 'fail retry no such customer' ], $ended, 1 ],
        'meets-a-lock' => [ [ 'sql commit; begin', $raise->('55P03') ], $ended, 1 ],
        deadlocks => [ [ 'sql commit; begin', $raise->('40P01') ], $ended, 1 ],
        'is-terminated' => [ [ 'sql commit; begin', 'sql select pg_terminate_backend(pg_backend_pid())' ], $ended, 1 ],
        'is-slow' => [ [ 'sql commit; begin', 'sleep 700' ], $ended, 1 ],
        'rolls-back-and-is-slow' => [ [ 'sql rollback; begin', 'sleep 700' ], $ended, 1 ],
    },
    mysql => {
        fails => [ [ 'sql commit', 'again begin', 'fail retry no such customer' ], $ended, 1 ],
        'meets-a-lock-after-ddl' => [ [ 'sql create table if not exists made_here (a int)', 'again start transaction', $signal->(1205) ], $ended, 1 ],
        'fails-in-a-procedure' => [ ['sql call commits_and_fails(1644)'], qr/as asked/, 0 ],
        'deadlocks-in-a-procedure' => [ ['sql call commits_and_fails(1213)'], qr/as asked/, 0 ],
        'is-killed' => [ [ 'sql commit', 'again kill connection_id()' ], $ended, 1 ],
        'hides-and-is-slow' => [ [ @hide, 'sleep 700' ], $ended, 0 ],
    },
);

sub ids_not { my ($count, $is_wrong) = @_; return [ grep { $is_wrong->($count->{$_} || 0) } sort keys %$count ] }

sub check {
    my ($e, $case, $do, $reason, $is_known) = @_;
    my $what = "$e->{pair}: one that $case";
    my $before = () = -e $e->{log} ? split /\n/, Endpoint::read_file($e->{log}) : ();
    my @good = map { "$case-$_" } 1 .. 80;
    my @messages = map { { id => $_, do => "send sink T.Out $_" } } @good;
    splice @messages, 60, 0, { id => "bad-$case", do => $do };
    $e->send('orders', @messages);
    $e->start;
    my ($failed) = $e->collect('error', 1, "one that $case is in the error queue");
    is $failed->{id}, "bad-$case", "$what, and nobody else";
    like $failed->{header}{'NServiceBus.ExceptionInfo.Message'}, $reason, "$what: with the reason";
    $e->wait_for('all is handled and sent', sub { $e->depth('orders') == 0 && $e->pending == 0 });
    my %effects = map { $_ => $e->effects($_) } @good;
    my %sent = map { $_ => 0 } @good;
    $sent{ $_->{body} }++ for $e->read('sink');
    is_deeply ids_not(\%effects, sub { !$_[0] }), [], "$what: its neighbours are handled";
    is_deeply ids_not(\%effects, sub { $_[0] > 1 }), [], "$what: once" if $is_known;
    is_deeply ids_not(\%sent, sub { $_[0] != 1 }), [], "$what: what they send is sent, once";
    is $e->stop, 0, "$what: stops cleanly";
    my @lines = split /\n/, Endpoint::read_file($e->{log});
    is_deeply [ grep { /may be lost/ } @lines[ $before .. $#lines ] ], [], "$what: no message may be lost";
}

for my $store ('pgsql', $has_mysql ? 'mysql' : ()) {
    my $e = Endpoint->new("sqlite+$store", batch_max => 10, batch_time => '300ms', retries => 1,
        outbox => 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";');
    $e->install;
    $e->sql("delimiter //\ncreate or replace procedure commits_and_fails(code int) begin commit; start transaction; "
            . "signal sqlstate 'HY000' set mysql_errno = code, message_text = 'as asked'; end //\ndelimiter ;") if $store eq 'mysql';
    check($e, $_, @{ $cases{$store}{$_} }) for sort keys %{ $cases{$store} };
}
done_testing;
