#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A batch of a message that nobody handles, one whose statement fails at the commit, and good ones, in
# each transaction mode: the good ones are handled once, the two are in the error queue.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Peer;

my $outbox = 'enabled = true;';
my @modes = (
    [ 'amqp+pgsql', 'none', '' ], [ 'amqp+pgsql', 'receive_only', '' ], [ 'amqp+pgsql', 'receive_only', $outbox ],
    [ 'kafka+pgsql', 'sends_atomic_with_receive', '' ], [ 'kafka+pgsql', 'receive_only', $outbox ], [ 'kafka+pgsql', 'receive_only', '' ], [ 'kafka+pgsql', 'none', '' ],
    [ 'sqlite+pgsql', 'sends_atomic_with_receive', '' ], [ 'sqlite+sqlite', 'sends_atomic_with_receive', '' ], [ 'sqlite+sqlite', 'transaction_scope', '' ],
    [ 'sqlite+pgsql', 'receive_only', $outbox ], [ 'sqlite+sqlite', 'none', '' ], [ 'sqlite+sqlite', 'receive_only', '' ],
);
Endpoint::under_servers(Peer::servers_of(map { $_->[0] } @modes));
my $number = 0;

for (@modes) {
    my ($pair, $mode, $with) = @$_;
    next if @ARGV && "$pair $mode" !~ /$ARGV[0]/;
    my $what = $with ? "$mode with outbox" : $mode;
    my $name = 'company-' . ++$number;
    my $e = Peer->new($pair, name => $name, error_queue => "$name.error", mode => $mode, outbox => $with, retries => $mode eq 'none' ? 0 : 2, concurrency => 1);
    $e->install;
    my @good = $e->some_good(60);
    my $sink = $e->address('sink');
    my @nobody = map { { id => "nobody-$_", type => 'Hostile.Nobody', body => 'nobody' } } 1 .. 3;
    my @failing = map { { id => "failing-$_", do => "send $sink Hostile.Failed x\ndefer insert into nowhere values (1)", body => 'failing' } } 1 .. 3;
    # first in the batch, amid it, and last
    $e->inject($e->{name}, $nobody[0], $failing[0], @good[ 0 .. 29 ], $failing[1], $nobody[1], @good[ 30 .. 59 ], $nobody[2], $failing[2]);
    $e->start;
    # A message that nobody acknowledges is tried once: those of its batch may be lost with it.
    $e->is_all_good($what, 30, @good);
    my %moved;
    $e->wait_for("$what: the bad ones are in the error queue", sub { $moved{ $_->{id} }++ for $e->error; keys %moved >= 6 }, 20);
    is_deeply \%moved, { map { ($_->{id} => 1) } @nobody, @failing }, "$pair: $what: once each, and nobody else";
    is_deeply [ map { $e->effects($_->{id}) } @nobody, @failing ], [ (0) x 6 ], "$pair: $what: they have no effect";
    is_deeply [ grep { $_->{header}{$Endpoint::types} eq 'Hostile.Failed' } $e->read($sink) ], [], "$pair: $what: and sent nothing";
    $e->is_well($what, 112, 60);
    $e->stops($what, 10);
    is $e->left, 0, "$pair: $what: nothing is left";
}
done_testing;
