#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The MySQL server becomes a replica while the endpoint runs: its connections end, it takes no
# writes. The endpoint waits and says so, though its account may write to such a server; when it
# takes writes again all is handled once.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

my $server = Endpoint::work_dir() . '/mariadb';
my $running;

sub server { return system("$Endpoint::source/tests/support/server", @_) >> 8 }

END { my $status = $?; server('stop', $server) if $running; $? = $status }

plan skip_all => 'the mysql plugin is not built' unless Endpoint::has_mysql();
my $code = server('start', 'mariadb', $server);
plan skip_all => 'MariaDB is not installed' if $code == 77 && !$ENV{CI};
BAIL_OUT('MariaDB did not start') if $code;
$running = 1;
$ENV{$1} = $2 while `$Endpoint::source/tests/support/server env '$server'` =~ /^(\w+)='(.*)';/mg;

my $e = Endpoint->new('sqlite+mysql');
$e->install;
$e->send('orders', { id => 'before', do => 'send sink T.Out before' });
$e->start;
$e->wait_for('one is handled before', sub { !$e->not_once('before') });

$e->sql('set global read_only = 1');
my @others = map { $_->[0] } $e->sql('select id from information_schema.processlist where db = database() and id <> connection_id()');
eval { $e->sql("kill $_") } for @others;    # one may be gone by itself
my @ids = map { "m$_" } 1 .. 50;
$e->send('orders', map { { id => $_, do => "send sink T.Out $_" } } @ids);
$e->wait_for('a line says what is awaited', sub { $e->log_lines(qr/takes no writes \(read_only\)/) });
sleep 3;
is scalar($e->not_once(@ids)), 50, 'nothing is handled meanwhile';
is $e->depth('error'), 0, 'nothing is in the error queue';
cmp_ok scalar($e->log_lines(qr/takes no writes/)), '<=', 3, 'few lines say so';
ok $e->is_alive, 'the endpoint lives';

$e->sql('set global read_only = 0');
$e->wait_for('all are handled', sub { !$e->not_once(@ids) }, 60);
$e->wait_for('a line says that it is over', sub { $e->log_lines(qr/the database is back/) });
is scalar($e->collect('sink', 51)), 51, 'their messages are out';
is $e->stop, 0, 'it stops cleanly';
is $e->depth('error'), 0, 'and nothing is in the error queue';
done_testing;
