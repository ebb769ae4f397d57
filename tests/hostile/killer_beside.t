#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Two endpoints in one process. A handler of the one ends the process each time; the messages of
# the other are in hand meanwhile, and are not blamed: all are handled, the killer ends in the
# error queue.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(sleep time);
use Peer;

my @pairs = ('amqp+pgsql', 'sqlite+sqlite');
my $restarts_max = 25;
Endpoint::under_servers(Peer::servers_of(@pairs));

for my $pair (@pairs) {
    my ($killer, $innocent) = map { Peer->new($pair, name => $_, error_queue => "$_.error", concurrency => 2, batch_max => 10) } qw(killer innocent);
    $_->install for $killer, $innocent;
    Peer::together($killer, $innocent);
    # Each takes a while, so that some are in somebody's hands whenever the process dies.
    my @innocents = map { { id => "innocent-$_", do => "sleep 40\nsend sink Hostile.Sent innocent-$_" } } 1 .. 80;
    my @beside = map { { id => "beside-$_", do => "sleep 10\nsend sink Hostile.Sent beside-$_" } } 1 .. 20;
    $innocent->inject('innocent', @innocents);
    $killer->inject('killer', @beside[ 0 .. 9 ], { id => 'killer', do => "sleep 30\nkill", body => 'killer' }, @beside[ 10 .. 19 ]);
    my (@failed, $deaths);
    my $end = time + 100;
    my $done = sub {
        push @failed, $killer->error, $innocent->error;
        return @failed && !$killer->not_once(map { $_->{id} } @beside) && !$innocent->not_once(map { $_->{id} } @innocents);
    };
    for ($deaths = 0; $deaths < $restarts_max && time < $end; $deaths++) {
        $killer->{processes} = [];
        $killer->start;
        my $lived;
        while ($killer->is_alive && time < $end) { last if $lived = $done->(); sleep 0.05 }
        last if $lived;
    }
    note "$pair: $deaths deaths";
    cmp_ok $deaths, '<', 12, "$pair: after less than a dozen deaths the killer is known";
    is_deeply [ map { $_->{id} } @failed ], ['killer'], "$pair: the killer alone is in an error queue";
    is_deeply [ $killer->not_once(map { $_->{id} } @innocents, @beside) ], [], "$pair: all others were handled once";
    is $killer->effects('killer'), 0, "$pair: the killer has no effect";
    is $killer->stop, 0, "$pair: stops cleanly";
    is_deeply [ $killer->left, $innocent->left ], [ 0, 0 ], "$pair: nothing is left in either queue";
}
done_testing;
