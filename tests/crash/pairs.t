#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The outbox on every pair of transport and persistence: copies of a message, a crash after
# the commit, a crash after the dispatch. `make check-crash` asks much more.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/crash";
use Crash;
use Jobs;
use Oracle;
use Pair;

sub run_trial {
    my ($spec) = @_;
    my $trial = Crash->new(pair => Pair->named($spec->{pair}, $spec->{space}), name => "pairs-$spec->{shape}",
        messages => 20, batch_max => 8, duplicates => $spec->{crash} ? 10 : 100);
    $trial->inject;
    if ($spec->{crash}) {
        $trial->start(WAYBILL_CRASH => "$spec->{crash}:2");
        $trial->await_crash or push @{ $trial->{log} }, 'the crash point was not reached';
        $trial->look_after_crash;
    }
    $trial->finish;
    return $trial;
}

my %crashes = (copies => undef, committed => 'after_commit', dispatched => 'after_dispatch');
my @specs;
my @pairs = map { my $transport = $_; map { "$transport+$_" } qw(pgsql mysql sqlite) } qw(amqp kafka sqlite);
for my $pair (@pairs, 'sqlite+pgbouncer') {
    push @specs, map { { pair => $pair, point => 'outbox', shape => $_, nth => 1, crash => $crashes{$_} } } sort keys %crashes;
}
my @kinds = Jobs::kinds(grep { Pair::is_built($_->{pair}) } @specs);
if (@kinds && !$ENV{WB_SERVERS_READY}) {    # skipped, not failed, where a server is not installed
    $ENV{WB_SERVERS_READY} = 1;
    exec "$Crash::source/tests/support/with-servers", @kinds, '--', $^X, $0, @ARGV or die "exec: $!\n";
}
Jobs::main(\@specs, \&run_trial);
