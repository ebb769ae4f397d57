#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A system on its way to the outbox: one endpoint sends to another, each with or without, both are killed
# time and again. What the guide's table promises of each of them holds ("Moving to the outbox").
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep);
use Endpoint;

Endpoint::under_servers('pgsql', 'rabbitmq');
my $count = 150;
my $round = 0;

sub outbox { return $_[0] ? 'enabled = true; sweep_after = "1s";' : '' }
sub said { return $_[0] ? 'with' : 'without' }

# Effects of the receiver, by id: its messages have ids of Waybill's making.
sub received {
    my ($e) = @_;
    return { map { ($_->[0] => $_->[1]) } $e->sql("select id, count(*) from effects where id not like '@{[ unpack 'H*', 'm' ]}%' group by id") };
}

sub run_mixed {
    my ($pair, $sender_has, $receiver_has) = @_;
    my $what = said($sender_has) . ' to ' . said($receiver_has);
    my %same = (concurrency => 2, batch_max => 5, retries => 200, files => "$round-");
    my ($from, $to) = map { "$_->[0]@{[ ++$round ]}" } ['from'], ['to'];
    my $sender   = Endpoint->new($pair, name => $from, outbox => outbox($sender_has), %same);
    my $receiver = Endpoint->new($pair, name => $to, outbox => outbox($receiver_has), %same);
    my @ids = map { "m$round-$_" } 1 .. $count;
    $_->install, $_->start for $receiver, $sender;
    $sender->sql('delete from effects');
    $sender->send($from, map { { id => $_, do => "sleep 2\nsend $to Test.Do x" } } @ids);
    for my $i (1 .. 14) {
        sleep 0.12;
        my $e = $i % 2 ? $sender : $receiver;
        $e->stop('KILL');
        $e->start;
    }
    $sender->wait_for("$what: all is handled", sub { $sender->depth($from) + $sender->depth($to) == 0 && $count == keys %{ received($receiver) } }, 60);
    sleep 1.5;    # what is swept
    my $received = received($receiver);
    is scalar keys %$received, $count, "$what: nothing is lost, and nothing was invented";
    is_deeply [ $sender->not_once(@ids) ], [], "$what: one effect of each at the sender" if $sender_has;
    is_deeply [ grep { $_ != 1 } values %$received ], [], "$what: one effect of each at the receiver" if $receiver_has;
    is $_->stop, 0, "$what: it stops cleanly" for $sender, $receiver;
    is scalar($sender->read('error')), 0, "$what: nothing is in the error queue";
}

for my $pair ('sqlite+sqlite', 'amqp+pgsql') {
    run_mixed($pair, @$_) for [ 0, 1 ], [ 1, 0 ], [ 1, 1 ];
}
done_testing;
