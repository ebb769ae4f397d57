#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Kafka and MariaDB away, in either order (Outages.pm).
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Outages;
use Peer;

package Peer::Store::Mysql;
no strict 'refs';
our @ISA = ('Peer::Store');
*$_ = Endpoint::SqliteMysql->can($_) for qw(persistence_text sql pending script);
sub quietly { return '' }

package main;

plan skip_all => 'the mysql plugin is not built' unless Endpoint::has_mysql();
Servers::start('mariadb', 'kafka');
$ENV{KAFKA_PREFIX} = 'outages';
my $e = Peer->new('kafka+mysql', concurrency => 4, with => 'start = "wait";',
    transport => 'connect_timeout = "3s"; confirm_timeout = "5s";', store => 'connect_timeout = "3s";',
    outbox => 'enabled = true; cleanup_interval = "2s"; sweep_after = "1s";');
$e->install;
{
    no strict 'refs';
    *{ ref($e) . '::put' } = sub { my ($self, @messages) = @_; $self->inject($self->{name}, @messages) };
    *{ ref($e) . '::rename_table' } = sub {
        my ($self, @names) = @_;
        my ($from, $to) = map { $_ eq 'before' ? "$self->{name}_pending" : "$self->{name}_elsewhere" } @names;
        $self->sql("rename table `$from` to `$to`");
    };
}
Outages::all($e, 'kafka', 'mariadb', @ARGV ? @ARGV : qw(database bddb dbbd hangd hangb stopd startbd startdb fails));
done_testing;
