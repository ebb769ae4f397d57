#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# RabbitMQ and PostgreSQL away, in every order (Outages.pm).
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Outages;

package Pair;
our @ISA = ('Endpoint::Amqp');
sub address { return $_[1] }
sub put { my ($self, @messages) = @_; return $self->send($self->{name}, @messages) }
sub rename_table {
    my ($self, @names) = @_;
    my ($from, $to) = map { $_ eq 'before' ? 'orders_pending' : 'orders_elsewhere' } @names;
    $self->sql(qq(alter table "$from" rename to "$to"));
}

package main;

Servers::start('pgsql', 'rabbitmq');
my $e = Endpoint::new('Pair', 'amqp+pgsql', concurrency => 4, with => 'start = "wait";',
    transport => 'connect_timeout = "3s";', store => 'connect_timeout = "3s";',
    outbox => 'enabled = true; cleanup_interval = "2s"; sweep_after = "1s";');    # marks may be lost with the server
$e->install;
Outages::all($e, 'rabbitmq', 'pgsql', @ARGV ? @ARGV
    : qw(database broker hangd bdbd fails bddb hangb dbbd stopd dbdb stopb startbd startdb));
done_testing;
