#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What a peer sends costs it more than us: bodies far over the limit, thousands of headers,
# thousands of messages that nobody handles. Memory stays what prefetch and body_max allow, and
# one over-limit message at a time.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(time);
use Amqp;
use Peer;

my @pairs = ('amqp+pgsql', 'sqlite+sqlite', 'kafka+sqlite');
Endpoint::under_servers(Peer::servers_of(@pairs));

sub finish {
    my ($e, $what, $memory, $lines) = @_;
    $e->is_well($what, $memory, $lines);
    $e->stops($what, 10);
    is $e->left, 0, "$e->{pair}: $what: nothing is left";
}

# Six bodies of many times body_max in a row.
sub large_bodies {
    my ($pair, $size, $memory) = @_;
    my $what = sprintf 'bodies of %d MiB', $size >> 20;
    my $e = Peer->new($pair, name => 'large', error_queue => 'large.error', concurrency => 2, body_max => '1MiB');
    $e->install;
    my $body = "\0" x $size;
    my $row = $pair =~ /sqlite\+/ ? { body => "zeroblob($size)" } : undef;
    my @good = $e->some_good(30);
    $e->inject($e->{name}, map { ({ id => "large-$_", row => $row, body => $row ? '' : $body }, splice @{ [ @good ] }, 5 * ($_ - 1), 5) } 1 .. 6);
    undef $body;
    $e->start;
    $e->is_all_good($what, 60, @good);
    $e->wait_for("$what: all six are in the error queue", sub { $e->depth($e->{error_queue}) == 6 }, 60);
    is $e->attempts('large-1'), 0, "$pair: $what: no handler saw them";
    finish($e, $what, $memory, 60);
    $e->amqp->delete($e->{error_queue}) if $pair =~ /amqp/;    # the broker has others to serve
}

# 9,000 empty headers are 45 KB on the wire, and five times that as pairs of strings.
sub empty_headers {
    my $e = Peer->new('amqp+pgsql', name => 'empty', error_queue => 'empty.error', concurrency => 2);
    my $headers = Amqp::short($Endpoint::types) . 'S' . Amqp::long('Test.Do') . join '', map { Amqp::short(sprintf '%03x', $_ % 4096) . 'V' } 1 .. 9_000;
    $e->install;
    my @good = $e->some_good(50);
    for my $part (0 .. 9) {
        $e->amqp->publish_all('', $e->{name}, map { [ { id => "empty-$part-$_", headers => $headers }, 'x' ] } 1 .. 200);
        $e->inject($e->{name}, @good[ 5 * $part .. 5 * $part + 4 ]);
    }
    $e->start;
    $e->is_all_good('9,000 headers', 60, @good);
    $e->wait_for('2,000 messages of 9,000 headers: all are in the error queue', sub { $e->depth($e->{error_queue}) == 2_000 }, 60);
    finish($e, '9,000 headers', 64, 2_100);
}

sub nobodys {
    my ($pair, $memory) = @_;
    my $e = Peer->new($pair, name => 'nobodys', error_queue => 'nobodys.error', concurrency => 2, transport => $pair =~ /kafka/ ? 'fetch_buffer = "8MiB";' : '');
    $e->install;
    my @good = $e->some_good(20);
    $e->inject($e->{name}, @good[ 0 .. 9 ], (map { { id => "nobody-$_", type => 'Hostile.Nobody', body => 'b' x 10_000, good => 1, partition => $_ % 3 } } 1 .. 10_000), @good[ 10 .. 19 ]);
    my $started = time;
    $e->start;
    my $moved = 0;
    my $count = $pair =~ /kafka/ ? sub { $moved += $e->error } : sub { $e->depth($e->{error_queue}) };
    $e->wait_for('10,000 that nobody handles: all are in the error queue', sub { $count->() >= 10_000 }, 120);
    note sprintf '%s: %.1f s', $pair, time - $started;
    is $count->(), 10_000, "$pair: each once";
    $e->is_all_good('10,000 that nobody handles', 20, @good);
    finish($e, '10,000 that nobody handles', $memory, 10_100);
}

my @tests = ([ large_bodies => 'amqp+pgsql', 64 << 20, 112 ], [ large_bodies => 'sqlite+sqlite', 32 << 20, 112 ], [ 'empty_headers' ],
    [ nobodys => 'amqp+pgsql', 64 ], [ nobodys => 'sqlite+sqlite', 64 ], [ nobodys => 'kafka+sqlite', 80 ]);
for (@tests) {
    my ($name, @arguments) = @$_;
    next if @ARGV && "@ARGV" !~ /$name/;
    no strict 'refs';
    &$name(@arguments);
}
done_testing;
