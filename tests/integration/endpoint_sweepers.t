#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Two processes sweep the pending rows of one endpoint. What cannot be dispatched is parked by
# one of them: it stays one row, however often both try it, and is sent when it can be.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq), Endpoint::has_mysql() ? 'mariadb' : ());
my $count = 10;

for my $pair ('sqlite+pgsql', 'sqlite+sqlite', 'amqp+pgsql', Endpoint::has_mysql() ? 'sqlite+mysql' : ()) {
    my $e = Endpoint->new($pair, batch_max => 1, retries => 0, outbox => 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";');
    $e->install;
    $e->send('orders', map { { id => "bad-$pair-$_", do => "send nowhere T.Out out-$_" } } 1 .. $count);
    $e->start for 1 .. 2;
    $e->wait_for('all are in the error queue', sub { $e->depth('error') == $count });
    my $end = time + 20;
    my $most = 0;
    while (time < $end) { my $rows = $e->pending; $most = $rows if $rows > $most; sleep 0.2 }
    my @rows = $e->pending;
    is_deeply [ map { my $out = "out-$_"; scalar grep { /\Q$out\E(?!\d)/ } @rows } 1 .. $count ], [ (1) x $count ], "$pair: each operation is in one row";
    cmp_ok $most, '<=', 2 * $count, "$pair: or, for a moment, in two";
    $e->make_queue('nowhere');
    my %out;
    $end = time + 60;
    do { sleep 0.5; $out{ $_->{body} }{ $_->{id} }++ for $e->read('nowhere') } while $e->pending && time < $end;
    is scalar($e->pending), 0, "$pair: none is left when there is a destination";
    is_deeply { map { $_ => scalar keys %{ $out{$_} } } keys %out }, { map { ("out-$_" => 1) } 1 .. $count }, "$pair: which has them all, each with its id";
    is_deeply [ grep { my ($times) = values %{ $out{$_} }; $times > 2 } keys %out ], [], "$pair: once, or twice when both sent";
    is $e->stop, 0, "$pair: both stop cleanly";
}
done_testing;
