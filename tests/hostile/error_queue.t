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

# Each bad one is in the error queue, which has room again as soon as it is read, or in the outbox.
sub all_found {
    my ($e, $what, @bad) = @_;
    my %moved;
    $e->wait_for($what, sub { my $place = places($e, \%moved, map { $_->{id} } @bad); ($place->{moved} || 0) + ($e->{outbox} ? $place->{pending} || 0 : 0) == @bad }, 60);
    is scalar(grep { $_ > 1 } values %moved), 0, "$e->{name}: nobody is there twice";
}

sub is_left_well {
    my ($e, $what) = @_;
    $e->stops($what, 10);
    is $e->left, 0, "$what: the input queue is empty";
}

sub bad { my ($e, $count, %m) = @_; return map { { id => "$e->{name}-bad-$_", type => 'Hostile.Nobody', body => 'bad', %m } } 1 .. $count }

# Each scenario is a list of steps; all of them take a step before one takes the next, so that
# they wait side by side.
sub refusing_error_queue {
    my ($outbox) = @_;
    my $what = $outbox ? 'full error queue' : 'full error queue, no outbox';
    my $e = endpoint($outbox ? 'full' : 'full-plain', $outbox);
    my @good = $e->some_good(60);
    my @bad = bad($e, 4);
    return (
        sub {
            $e->limit($e->{error_queue}, 2);
            $e->inject($e->{name}, map { ($bad[$_], @good[ 15 * $_ .. 15 * $_ + 14 ]) } 0 .. 3);
            $e->start;
        },
        sub { $e->is_all_good($what, 60, @good); $e->is_well($what, 64, 60) },
        sub { all_found($e, "$what: each is in the error queue, or waits in the outbox for room", @bad) },
        sub { is_left_well($e, $what) },
    );
}

sub deleted_error_queue {
    my ($outbox) = @_;
    my $what = $outbox ? 'deleted error queue' : 'deleted error queue, no outbox';
    my $e = endpoint($outbox ? 'gone' : 'gone-plain', $outbox);
    my @good = $e->some_good(60);
    my @bad = bad($e, 6);
    return (
        sub { $e->start; $e->inject($e->{name}, @good[ 0 .. 9 ]); $e->is_all_good("$what: before", 20, @good[ 0 .. 9 ]) },
        sub {
            $e->amqp->delete($e->{error_queue});
            $e->amqp->delete_exchange($e->{error_queue});
            $e->inject($e->{name}, map { ($bad[$_], @good[ 10 + 5 * $_ .. 14 + 5 * $_ ]) } 0 .. 5);
            $e->inject($e->{name}, @good[ 40 .. 59 ]);
            $e->is_all_good($what, 30, @good[ 10 .. 59 ]);
        },
        sub {
            $e->is_well($what, 64, 60);
            $e->make_queue($e->{error_queue});
            all_found($e, "$what: made again, it gets them, or they wait in the outbox", @bad);
        },
        sub { is_left_well($e, $what) },
    );
}

# A handler sends to a queue that is full.
sub refusing_destination {
    my ($outbox) = @_;
    my $what = $outbox ? 'full destination' : 'full destination, no outbox';
    my $e = endpoint($outbox ? 'busy' : 'busy-plain', $outbox, retries => 1);
    my $full = "$e->{name}.full";
    my @good = $e->some_good(60);
    my @bad = bad($e, 2, type => 'Test.Do', do => "send $full Hostile.Sent x");
    my %moved;
    return (
        sub {
            $e->make_queue($full);
            $e->limit($full, 1);
            # It says no a moment after it is full.
            $e->wait_for("$what: it is", sub { !eval { $e->amqp->publish('', $full, {}, 'there is no room'); 1 } });
            $e->inject($e->{name}, map { ($bad[$_], @good[ 30 * $_ .. 30 * $_ + 29 ]) } 0, 1);
            $e->start;
        },
        sub { $e->is_all_good($what, 60, @good) },
        sub {
            $e->wait_for("$what: who sent there is in the error queue", sub { (places($e, \%moved, map { $_->{id} } @bad)->{moved} || 0) == @bad }, 60);
            is_deeply [ sort keys %moved ], [ map { $_->{id} } @bad ], "$what: and nobody else";
            is_deeply [ $e->not_once(map { $_->{id} } @bad) ], [], "$what: with one effect each" if $outbox;
            cmp_ok scalar(my @calls = $e->attempts($_->{id})), '<=', 2, "$what: $_->{id} was called as often as it may be" for @bad;
            $e->is_well($what, 64, 100);
        },
        sub { is_left_well($e, $what) },
    );
}

my @scenarios = map { my $outbox = $_; map { [ $_->($outbox) ] } \&refusing_error_queue, \&deleted_error_queue, \&refusing_destination } 'enabled = true;', '';
for my $step (0 .. 3) { $_->[$step]->() for @scenarios }
done_testing;
