#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Without outbox deliveries alone decide, and each death counts one for all that was in hand: messages that end the
# process after a while, and slow ones beside them in the hands of other workers, which have done nothing and are not
# to be in the error queue.
#
#   perl endpoint_innocents.t sqlite+mysql     # only this pair
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(time);
use Peer;

my @pairs = @ARGV ? @ARGV : ('sqlite+sqlite', 'sqlite+mysql');
my $deliveries = 19;
my $moved = qr/msg="message moved to the error queue"/;
Endpoint::under_servers(Peer::servers_of(@pairs));

for my $pair (@pairs) {
    my $e = Endpoint->new($pair, name => 'innocents', concurrency => 4, outbox => '');
    my @killers = ('killer-1', 'killer-2');
    my @good = map { "good-$_" } 1 .. 8;
    $e->install;
    $e->send('innocents', map { { id => $_, do => /killer/ ? "sleep 50\nkill" : 'sleep 300' } } $killers[0], @good[0, 1], $killers[1], @good[2 .. 7]);
    my ($starts, $end) = (0, time + 300);
    until ($e->log_lines($moved) >= @killers && !$e->depth('innocents')) {
        die "not done after $starts starts\n" if time > $end || $starts++ > 2 * $deliveries * @killers;
        my $pid = $e->start;
        1 until defined $e->await_exit($pid, 0.05) || ($e->log_lines($moved) >= @killers && !$e->depth('innocents')) || time > $end;
        $e->{processes} = [] if !kill 0, $pid;
    }
    is_deeply [ sort map { $_->{id} } $e->read('error') ], \@killers, "$pair: nobody else is in the error queue";
    is_deeply [ grep { !$e->effects($_) } @good ], [], "$pair: the others are handled";
    is $e->stop, 0, "$pair: it stops";
    diag "$pair: $starts starts";
}
done_testing;
