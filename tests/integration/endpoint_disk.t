#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A full disk under PostgreSQL while messages come: nothing goes to the error queue, no attempt is
# counted, one line says what is awaited, and when there is room again everything is handled.
# The business table lies on a small disk (tests/support/disk), the outbox and the log beside it.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

my $support = "$Endpoint::source/tests/support";
my $server  = Endpoint::work_dir() . '/pgsql';
my $disk    = File::Temp::tempdir('waybill-disk-XXXXXX', DIR => $ENV{TMPDIR} || '/tmp');
my $e;

sub disk { my ($verb, @account) = @_; return system("$support/disk", $verb, $disk, @account) >> 8 }

END {
    my $status = $?;
    $e->stop('KILL') if $e;
    system "$support/server", 'stop', $server if -e "$server/kind";
    disk('remove');
    $? = $status;
}

sub start_server {
    BAIL_OUT('no small disk') if disk('make', 'postgres');
    my @environment = split ' ', `$support/disk environment '$disk'`;
    my $code = system('env', @environment, "$support/server", 'start', 'pgsql', $server) >> 8;
    plan skip_all => 'PostgreSQL is not installed' if $code == 77 && !$ENV{CI};
    BAIL_OUT('PostgreSQL did not start') if $code;
    $ENV{$1} = $2 while `$support/server env '$server'` =~ /^(\w+)='(.*)';/mg;
}

my $number = 0;
sub messages { my ($count, $do) = @_; return map { { id => 'm' . ++$number, do => $do } } 1 .. $count }

sub count_lines { return scalar split /\n/, Endpoint::read_file($e->{log}) }

# What becomes of them while the disk is full, and when there is room again.
sub full_disk {
    my ($what, $do) = @_;
    my @messages = messages(500, $do);
    my @ids      = map { $_->{id} } @messages;
    disk('fill');
    my $lines = count_lines();
    $e->send('orders', @messages);
    $e->wait_for("$what: a line says what is awaited", sub { (grep { /No space left/ } (split /\n/, Endpoint::read_file($e->{log}))[ $lines .. count_lines() - 1 ]) > 0 });
    sleep 4;    # in which each message would have failed six times
    is $e->depth('error'), 0, "$what: nothing is in the error queue";
    cmp_ok count_lines() - $lines, '<=', 12, "$what: few lines in the log"
        or diag join "\n", (split /\n/, Endpoint::read_file($e->{log}))[ $lines .. $lines + 10 ];
    ok $e->is_alive, "$what: the endpoint lives";
    disk('free');
    $e->wait_for("$what: all are handled when there is room", sub { !$e->not_once(@ids) }, 60);
    is $e->depth('error'), 0, "$what: and nothing is in the error queue";
    is $e->depth('orders'), 0, "$what: nor left";
    $e->read('error');
}

start_server();
$e = Endpoint->new('sqlite+pgsql', concurrency => 2);
$e->install;
$e->sql("create tablespace small location '$disk/space/db'");
$e->sql('create table goods (n int, text text) tablespace small');
$e->start;
$e->wait_for('it runs', sub { $e->log_lines(qr/endpoint starts/) });

# 4 KB each, in rows that are not compressed away: each second one needs a new page
my $insert = q(insert into goods select 1, string_agg(md5(random()::text), '') from generate_series(1, 60));
full_disk('plain',    "sql $insert");
full_disk('deferred', "defer $insert");
full_disk('overlooked', "ignore $insert");
is $e->stop, 0, 'it stops cleanly';
done_testing;
