#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Endpoint.pm sends no signal to a number that is no process of its own any more: numbers come again within
# minutes where much is built and tried, and whoever had it next would end for no reason.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep);
use Endpoint;

my $e = Endpoint->new('sqlite+sqlite', name => 'brief');
sub begin { my ($verb) = @_; my $pid = $e->spawn("$e->{dir}/output", $verb); $e->{processes} = [$pid]; return $pid }

my $pid = begin('version');
$e->wait_for('it ends by itself', sub { !$e->is_alive });
is_deeply [ Endpoint::living() ], [], 'who has seen it end sends it nothing at the end';
is $e->stop, 0, 'nor when it is to stop, and how it ended is known';
is $e->await_exit($pid, 0.1), undef, 'once';

begin('nonsense');
is $e->await_exit($e->{processes}[0]), 64, 'another one is waited for';
ok !$e->is_alive, 'and is gone';
is_deeply [ Endpoint::living() ], [], 'for good';

$e->{processes} = [];
$e->install;
$e->start;
my $child = fork // die "fork: $!\n";
exit 0 if !$child;    # with what is done at the end, which is not its own
waitpid $child, 0;
$e->wait_for('it runs', sub { $e->log_lines(qr/endpoint starts/) });
ok $e->is_alive, 'who forks ends nothing of those before';
is $e->stop, 0, 'it stops';
done_testing;
