#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Several messages that end the process: each is in the error queue once, after no more starts than each takes alone,
# and those beside them are handled once.
#
#   perl endpoint_killers.t kafka+mysql plain     # only this pair, or without outbox (19 starts each)
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(time);
use Peer;

my %killers = ('sqlite+sqlite' => 3);
my $outbox = 1;
my @pairs = grep { $_ ne 'plain' || ($outbox = 0) } @ARGV;
@pairs = ('sqlite+sqlite', 'amqp+pgsql') if !@pairs;
Endpoint::under_servers(Peer::servers_of(@pairs));

# Three deliveries make a suspect, three attempts by itself are written down; or deliveries alone decide.
my $each = $outbox ? 6 : 19;
my $moved = qr/msg="message moved to the error queue"/;

sub waiting { my ($e) = @_; return $e->can('waiting') ? $e->waiting : $e->depth('killers') }

sub send_all {
    my ($e, @messages) = @_;
    my $number = 0;
    $_->{partition} = $number++ % 3 for @messages;
    return $e->can('inject') ? $e->inject($e->{name}, @messages) : $e->send('killers', @messages);
}

# The exit code, or nothing when all is done.
sub next_end {
    my ($e, $pid, $count) = @_;
    my ($end, $code) = (time + 60);
    until (defined($code = $e->await_exit($pid, 0.05)) || ($e->log_lines($moved) >= $count && !waiting($e))) {
        die "neither ended nor done in a minute\n" if time > $end;
    }
    $e->{processes} = [] if defined $code;
    return $code;
}

for my $pair (@pairs) {
    my $count = $killers{$pair} || 2;
    my $class = $pair =~ /kafka/ ? 'Peer' : 'Endpoint';
    my $e = $class->new($pair, name => 'killers', concurrency => 3, retries => 1, $outbox ? () : (outbox => ''));
    my @killers = map { "killer-$_" } 1 .. $count;
    my @good = map { "good-$_" } 1 .. 20;
    $e->install;
    send_all($e, (map { { id => $_, do => 'misdo abort' } } @killers), map { { id => $_ } } @good);
    my ($starts, $code, %codes) = (1);
    while (defined($code = next_end($e, $e->start, $count))) {
        $codes{$code}++;
        last if $code ne 'signal 6' || ++$starts > 2 * $each * $count;
    }
    is_deeply [ keys %codes ], ['signal 6'], "$pair: each time by abort()" or diag explain \%codes;
    cmp_ok $starts, '<=', $each * $count + 1, "$pair: $count of them take no more starts than each alone";
    is_deeply [ sort map { $_->{id} } $e->read($e->{error_queue} || 'error') ], \@killers, "$pair: each is in the error queue once";
    is_deeply [ sort map { /message_id=(\S+)/ } $e->log_lines($moved) ], \@killers, "$pair: a line each";
    $e->wait_for('the others are handled' . ($outbox && ', once'), sub { $outbox ? !$e->not_once(@good) : !grep { !$e->effects($_) } @good });
    is $e->stop, 0, "$pair: it stops";
    diag "$pair: $starts starts";
}
done_testing;
