#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Headers nested as deep as a frame allows, while the system gives threads little stack: the
# process lives, and every message is handled once, theirs too unless the client library
# refuses to decode it (rabbitmq-c from 0.14 on): then one line says that it was rejected.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq));

sub arrays { my ($n) = @_; return [ A => join 'A',   map { pack 'N', 5 * ($n - $_) } 1 .. $n ] }
sub tables { my ($n) = @_; return [ F => join "\0F", map { pack 'N', 6 * ($n - $_) } 1 .. $n ] }

my $e = Endpoint->new('amqp+pgsql', stack => 512);
my @good = map { { id => "good-$_", do => 'sql select 1' } } 1 .. 20;
my @deep = ({ id => 'arrays', do => 'sql select 1', headers => [ [ deep => arrays(25_000) ] ] },
    { id => 'tables', do => 'sql select 1', headers => [ [ deep => tables(21_000) ] ] });
my @ids = map { $_->{id} } @good, @deep;
$e->install;
$e->send('orders', @good[ 0 .. 9 ], @deep, @good[ 10 .. 19 ]);
$e->start;
$e->wait_for('all are handled or refused', sub { @ids - $e->not_once(@ids) + $e->log_lines(qr/refuses to decode/) == @ids });
is_deeply [ $e->not_once(map { $_->{id} } @good) ], [], 'every flat one once';
ok $e->is_alive, 'the process lives';
is $e->stop, 0, 'and ends in order';
is $e->depth('orders'), 0, 'nothing is left';
done_testing;
