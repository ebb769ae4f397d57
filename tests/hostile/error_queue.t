#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# An error queue that refuses, or is deleted while the endpoint runs; a destination that refuses.
# Good messages go on; each bad one is in the error queue, in the outbox, or still in the input
# queue; the log says so in few lines; when the queue takes again, they come.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(sleep time);
use Amqp;
use Peer;

Endpoint::under_servers(Peer::servers_of('amqp+pgsql'));

sub endpoint {
    my ($name, $outbox, %more) = @_;
    my $e = Peer->new('amqp+pgsql', name => $name, error_queue => "$name.error", concurrency => 2, outbox => $outbox, shutdown_timeout => '5s', %more);
    $e->install;
    return $e;
}

# Where each of these is: the error queue (read, so that there is room again), the outbox, the input.
sub places {
    my ($e, $moved, @ids) = @_;
    $moved->{ $_->{id} }++ for $e->error;
    my @pending = $e->{outbox} ? $e->pending : ();
    my %place;
    for my $id (@ids) { $place{ $moved->{$id} ? 'moved' : (grep { index($_, $id) >= 0 } @pending) ? 'pending' : 'elsewhere' }++ }
    return \%place;
}

sub refusing_error_queue {
    my ($outbox) = @_;
    my $what = $outbox ? 'full error queue' : 'full error queue, no outbox';
    my $e = endpoint($outbox ? 'full' : 'full-plain', $outbox);
    $e->limit($e->{error_queue}, 2);
    my @good = $e->some_good(60);
    my @bad = map { { id => sprintf('bad-%02d', $_), type => 'Hostile.Nobody', body => 'bad' } } 1 .. 12;
    $e->inject($e->{name}, map { ($bad[$_], @good[ 5 * $_ .. 5 * $_ + 4 ]) } 0 .. 11);
    $e->start;
    $e->is_all_good($what, 30, @good);
    sleep 3;
    $e->is_well($what, 64, 60);
    my %moved;
    my $all = sub { my $place = places($e, \%moved, map { $_->{id} } @bad); ($place->{moved} || 0) + ($outbox ? $place->{pending} || 0 : 0) == @bad };
    $e->wait_for("$what: each is in the error queue, or waits in the outbox for room", $all, 60);
    is scalar(grep { $_ > 1 } values %moved), 0, "$what: nobody twice";
    $e->stops($what, 10);
    is $e->left, 0, "$what: the input queue is empty";
}

sub deleted_error_queue {
    my ($outbox) = @_;
    my $what = $outbox ? 'deleted error queue' : 'deleted error queue, no outbox';
    my $e = endpoint($outbox ? 'gone' : 'gone-plain', $outbox);
    my @good = $e->some_good(60);
    my @bad = map { { id => sprintf('bad-%02d', $_), type => 'Hostile.Nobody', body => 'bad' } } 1 .. 6;
    $e->start;
    $e->inject($e->{name}, @good[ 0 .. 9 ]);
    $e->is_all_good("$what: before", 20, @good[ 0 .. 9 ]);
    $e->amqp->delete($e->{error_queue});
    $e->amqp->delete_exchange($e->{error_queue});
    $e->inject($e->{name}, map { ($bad[$_], @good[ 10 + 5 * $_ .. 14 + 5 * $_ ]) } 0 .. 5);
    $e->inject($e->{name}, @good[ 40 .. 59 ]);
    $e->is_all_good($what, 30, @good[ 10 .. 59 ]);
    sleep 3;
    $e->is_well($what, 64, 60);
    $e->make_queue($e->{error_queue});
    my %moved;
    my $all = sub { my $place = places($e, \%moved, map { $_->{id} } @bad); ($place->{moved} || 0) + ($outbox ? $place->{pending} || 0 : 0) == @bad };
    $e->wait_for("$what: made again, it gets them, or they wait in the outbox", $all, 60);
    $e->stops($what, 10);
    is $e->left, 0, "$what: the input queue is empty";
}

# A handler sends to a queue that is full.
sub refusing_destination {
    my ($outbox) = @_;
    my $what = $outbox ? 'full destination' : 'full destination, no outbox';
    my $e = endpoint($outbox ? 'busy' : 'busy-plain', $outbox, retries => 2);
    $e->make_queue("$e->{name}.full");
    $e->limit("$e->{name}.full", 1);
    my @good = $e->some_good(60);
    my @bad = map { { id => sprintf('bad-%02d', $_), do => "send $e->{name}.full Hostile.Sent x", body => 'bad' } } 1 .. 6;
    # It says no a moment after it is full.
    $e->wait_for("$what: it is", sub { !eval { $e->amqp->publish('', "$e->{name}.full", {}, 'there is no room'); 1 } });
    $e->inject($e->{name}, map { ($bad[$_], @good[ 10 * $_ .. 10 * $_ + 9 ]) } 0 .. 5);
    $e->start;
    $e->is_all_good($what, 40, @good);
    my %moved;
    $e->wait_for("$what: who sent there is in the error queue", sub { (places($e, \%moved, map { $_->{id} } @bad)->{moved} || 0) == @bad }, 60);
    is_deeply [ sort grep { !/^bad/ } keys %moved ], [], "$what: and nobody else";
    is_deeply [ $e->not_once(map { $_->{id} } @bad) ], [], "$what: with one effect each" if $outbox;
    cmp_ok scalar($e->attempts($_->{id})), '<=', 3, "$what: $_->{id} was called as often as it may be" for @bad;
    $e->is_well($what, 64, 100);
    $e->stops($what, 10);
    is $e->left, 0, "$what: the input queue is empty";
}

for my $outbox ('enabled = true;', '') {
    refusing_error_queue($outbox) if !@ARGV || "@ARGV" =~ /full/;
    deleted_error_queue($outbox) if !@ARGV || "@ARGV" =~ /gone/;
    refusing_destination($outbox) if !@ARGV || "@ARGV" =~ /busy/;
}
done_testing;
