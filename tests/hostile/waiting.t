#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Slow and hanging handlers beside idle workers: who waits, waits for no one else's handler.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(sleep time);
use Peer;

# Data in a SQLite file would let one handler work at a time.
my @pairs = ('amqp+pgsql', 'sqlite+pgsql');
Endpoint::under_servers(Peer::servers_of(@pairs));

# Sixteen messages of a second each lie there when four workers come: four seconds, and not sixteen.
sub slow {
    my ($pair) = @_;
    my $name = "slow-$pair" =~ s/\W/-/gr;    # both have their data in one database
    my $e = Peer->new($pair, name => $name, concurrency => 4);
    $e->install;
    my @ids = map { "$name-$_" } 1 .. 16;
    $e->inject($name, map { { id => $_, do => 'sleep 1000' } } @ids);
    $e->start;
    $e->wait_for('the first is in its handler', sub { Endpoint::read_file($e->{trace}) =~ /^call /m });
    my $started = time;
    $e->wait_for('sixteen messages of a second are handled', sub { !$e->not_once(@ids) }, 20);
    my $took = time - $started;
    cmp_ok $took, '<', 6, "$pair: by four workers in little more than four seconds";
    note sprintf '%s: %.1f s', $pair, $took;
    is $e->stop, 0, "$pair: stops cleanly";
}

# One worker's handler does not return; the other handles what is left, but at most the hanging
# one's batch. Quick messages before it teach the workers to take many.
sub hanging {
    my ($pair, $before, $after, $stuck_max) = @_;
    my $name = "hanging-$before-$pair" =~ s/\W/-/gr;
    my $e = Peer->new($pair, name => $name, concurrency => 2, batch_max => 10);
    my $gate = "$e->{dir}/$name.gate";
    my @before = map { "$name-before-$_" } 1 .. $before;
    my @after = map { "$name-after-$_" } 1 .. $after;
    $e->install;
    $e->inject($name, (map { { id => $_, do => 'sql select 1' } } @before), { id => $name, do => "wait $gate" }, map { { id => $_, do => 'sql select 1' } } @after);
    $e->start;
    $e->wait_for('a handler hangs', sub { $e->attempts($name) });
    $e->wait_for("$before before it, $after behind: at most $stuck_max of them wait", sub { $e->not_once(@before, @after) <= $stuck_max }, 10);
    # New ones, too, when nobody asks for more.
    my @late = map { "$name-late-$_" } 1 .. 10;
    $e->inject($name, map { { id => $_, do => 'sql select 1' } } @late);
    $e->wait_for('those that come later do not', sub { !$e->not_once(@late) }, 10);
    Endpoint::write_file($gate, '');
    $e->wait_for('all are handled in the end', sub { !$e->not_once(@before, @after, @late, $name) });
    is $e->stop, 0, "$pair: stops cleanly";
    is $e->left, 0, "$pair: nothing is left";
}

for my $pair (@pairs) {
    slow($pair);
    hanging($pair, 0, 19, 0);
    hanging($pair, 300, 300, 9);
}
done_testing;
