#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Two endpoints in one process. Handlers of the one end the process each time; the messages of the
# other are in handlers meanwhile, and are not blamed: all are handled, the killers end in the error
# queue.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(sleep time);
use Peer;

my @pairs = ('amqp+pgsql', 'sqlite+sqlite');
my $restarts_max = 30;
Endpoint::under_servers(Peer::servers_of(@pairs));

for my $pair (@pairs) {
    my ($killer, $innocent) = map { Peer->new($pair, name => $_, error_queue => "$_.error", concurrency => 2, batch_max => 10) } qw(killer innocent);
    $_->install for $killer, $innocent;
    Peer::together($killer, $innocent);
    # Some take longer than the killers' lives, so that they are in a handler whenever the process dies.
    my @innocents = map { { id => "innocent-$_", do => "sleep @{[ $_ < 5 ? 900 : 20 ]}\nsend sink Hostile.Sent innocent-$_" } } 1 .. 40;
    my @beside = map { { id => "beside-$_", do => "sleep 10\nsend sink Hostile.Sent beside-$_" } } 1 .. 20;
    $innocent->inject('innocent', @innocents);
    $killer->inject('killer', @beside[ 0 .. 9 ], { id => 'killer-1', do => "sleep 250\nkill" }, @beside[ 10 .. 19 ], { id => 'killer-2', do => "sleep 400\nkill" });
    my (@failed, $deaths);
    my $end = time + 100;
    my $done = sub {
        push @failed, $killer->error, $innocent->error;
        return (grep { $_->{id} eq 'killer-1' } @failed) && (grep { $_->{id} eq 'killer-2' } @failed) && !$killer->not_once(map { $_->{id} } @beside) && !$innocent->not_once(map { $_->{id} } @innocents);
    };
    for ($deaths = 0; $deaths < $restarts_max && time < $end; $deaths++) {
        $killer->{processes} = [];
        $killer->start;
        my $lived;
        while ($killer->is_alive && time < $end) { last if $lived = $done->(); sleep 0.05 }
        last if $lived;
    }
    note "$pair: $deaths deaths";
    cmp_ok $deaths, '<', 24, "$pair: after less than a dozen deaths each the killers are known";
    my %failed = map { $_->{id} => 1 } @failed;    # a death between the move and its acknowledgement repeats it
    is_deeply [ sort keys %failed ], [ 'killer-1', 'killer-2' ], "$pair: they alone are in an error queue";
    is_deeply [ $killer->not_once(map { $_->{id} } @innocents, @beside) ], [], "$pair: all others were handled once";
    is_deeply [ map { $killer->effects($_) } 'killer-1', 'killer-2' ], [ 0, 0 ], "$pair: they have no effect";
    is $killer->stop, 0, "$pair: stops cleanly";
    is_deeply [ $killer->left, $innocent->left ], [ 0, 0 ], "$pair: nothing is left in either queue";
}
done_testing;
