#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A system that moves to the outbox, endpoint by endpoint, with messages in flight and processes that are
# killed: shop sends to store, which sends to sink. The guide's table of senders and receivers, row by row.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq));
my $messages = 40;
my $n = 'NServiceBus';
my $on = 'enabled = true; sweep_after = "1s"; cleanup_interval = "1s";';

# One that takes shop some milliseconds.
sub message {
    my ($body) = @_;
    return { id => "in-$body", do => [ 'sleep 4', "header do send sink T.Out $body", "send store Test.Do $body" ] };
}

sub stream {
    my ($e, $name) = @_;
    $e->send('shop', map { message("$name-$_") } 1 .. $messages);
}

# Some of it has come all the way, and by far not all.
sub in_flight {
    my ($e, $name) = @_;
    $e->wait_for("$name: the first arrive", sub { take($e); grep { /^$name-/ } keys %{ $e->{out} } });
}

# What arrived: body => id of what caused it => times.
sub take { my ($e) = @_; $e->{out}{ $_->{body} }{ $_->{header}{"$n.RelatedTo"} }++ for $e->read('sink') }

sub turn {
    my ($e, $outbox, $signal) = @_;
    $e->stop($signal);
    $e->configure(outbox => $outbox) if defined $outbox;
    $e->install;
    $e->start;
}

# Nothing is lost. Of each message how often shop and store had an effect, and how many messages shop made of it.
sub check_arrived {
    my ($e, $name, %once) = @_;
    my @bodies = map { "$name-$_" } 1 .. $messages;
    $e->wait_for("$name: all of it arrives", sub { take($e); !grep { !$e->{out}{$_} } @bodies }, 60);
    is_deeply [ grep { $e->effects("in-$_") < 1 } @bodies ], [], "$e->{pair}: $name: no message without its effect";
    is_deeply [ grep { $e->effects("in-$_") != 1 } @bodies ], [], "$e->{pair}: $name: one effect at the sender" if $once{sender};
    is_deeply [ grep { keys %{ $e->{out}{$_} } != 1 } @bodies ], [], "$e->{pair}: $name: one message to the receiver, however often it was sent";
    is_deeply [ grep { my $body = $_; grep { $e->effects($_) != 1 } keys %{ $e->{out}{$body} } } @bodies ], [], "$e->{pair}: $name: one effect at the receiver" if $once{receiver};
}

sub check_pair {
    my ($pair) = @_;
    my $shop = Endpoint->new($pair, name => 'shop', outbox => '');
    my $store = Endpoint->new($pair, name => 'store', outbox => '');
    $_->install for $shop, $store;
    $_->start for $shop, $store;

    stream($shop, 'neither');
    in_flight($shop, 'neither');
    turn($store, $on);    # receivers first
    check_arrived($shop, 'neither');

    stream($shop, 'receiver');
    in_flight($shop, 'receiver');
    turn($_, undef, 'KILL') for $shop, $store;
    check_arrived($shop, 'receiver', receiver => 1);

    stream($shop, 'moving');
    in_flight($shop, 'moving');
    turn($shop, $on);
    check_arrived($shop, 'moving', receiver => 1);

    stream($shop, 'both');
    in_flight($shop, 'both');
    turn($_, undef, 'KILL') for $shop, $store;
    check_arrived($shop, 'both', sender => 1, receiver => 1);

    stream($shop, 'back');
    in_flight($shop, 'back');
    turn($store, '');    # the third row of the table, and the way back
    turn($shop, undef, 'KILL');
    check_arrived($shop, 'back', sender => 1);

    is_deeply [ map { $_->depth('error') } $shop ], [0], "$pair: nothing is in the error queue";
    $shop->wait_for('nothing stays pending', sub { !$shop->pending && !$store->pending });
    is $_->stop, 0, "$pair: $_->{name} stops cleanly" for $shop, $store;
    take($shop);
    is scalar(keys %{ $shop->{out} }), 5 * $messages, "$pair: nothing arrived that was not sent";
}

check_pair($_) for 'sqlite+sqlite', 'amqp+pgsql';
done_testing;
