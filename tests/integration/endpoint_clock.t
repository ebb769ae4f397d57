#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The host's clock jumps by an hour, ahead and back, while delayed messages and delayed retries wait:
# where the database or the broker counts, nobody notices; where the host's clock is the store's
# (SQLite), what waits comes when that says so. Nothing is lost, nothing runs in circles.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq mariadb));
use constant { HOUR => 3600, DELAY => 4, COUNT => 5, TICKS => 100 };

my $clock = Endpoint::work_dir() . '/clock';
{
    no warnings 'redefine';
    my $environment = \&Endpoint::environment;
    *Endpoint::environment = sub { return ($environment->(@_), LD_PRELOAD => "$ENV{top_builddir}/tests/integration/.libs/wall_clock.so", WB_CLOCK => $clock) };
}

sub set_clock {
    my ($seconds) = @_;
    Endpoint::write_file("$clock.new", pack 'q', $seconds);
    rename "$clock.new", $clock or die "$clock: $!\n";
}

# What the process has worked, in seconds.
sub worked {
    my ($pid) = @_;
    my @fields = split / /, Endpoint::read_file("/proc/$pid/stat") =~ s/^.*\) //sr;
    return ($fields[11] + $fields[12]) / TICKS;
}

# Five sends of a handler and five retries wait for some seconds; the clock jumps meanwhile.
my $round = 0;

sub jump {
    my ($e, $pid, $label, $seconds, $is_hosts) = @_;
    ++$round;
    my @names = map { "$e->{name}-$round-$_" } 1 .. COUNT;    # others have these tables, too
    my $since = time;
    $e->send($e->{name}, map { ({ id => "sends-$_", do => [ 'delay ' . 1000 * DELAY, "send sink T.Later later-$_" ] },
        { id => "retries-$_", do => [ 'after 1 ' . 1000 * DELAY . ' later', "send sink T.Done done-$_" ] }) } @names);
    $e->wait_for("$label: all have been tried", sub { !grep { !$e->attempts("sends-$_") || !$e->attempts("retries-$_") } @names });
    set_clock($seconds);
    my $before = worked($pid);
    if ($is_hosts && $seconds < 0) {
        sleep DELAY + 1;
        is $e->depth('sink'), 0, "$e->{pair}: $label: what is due by a clock that is behind waits";
        set_clock(0);
    }
    my %got = map { $_->{body} => 1 } $e->collect('sink', 2 * COUNT, "$label: all arrive");
    my $took = time - $since;
    is_deeply [ sort keys %got ], [ sort map { ("later-$_", "done-$_") } @names ], "$e->{pair}: $label: each";
    cmp_ok $took, '>=', DELAY - 0.05, "$e->{pair}: $label: not early" unless $is_hosts;
    cmp_ok $took, '<', DELAY + 10, "$e->{pair}: $label: nor an hour late";
    sleep 2;
    cmp_ok worked($pid) - $before, '<', 0.5 * (time - $since), "$e->{pair}: $label: it did not run in circles";
    is $e->effects("retries-$_"), 1, "$e->{pair}: $label: one effect of $_" for @names;
}

sub check {
    my ($e, $label, $is_hosts) = @_;
    set_clock(0);
    $e->install;
    unlink $e->{trace};
    my $pid = $e->start;
    jump($e, $pid, "$label, an hour ahead", HOUR, $is_hosts);
    if ($is_hosts) {
        is $e->stop, 0, "$e->{pair}: $label: it stops cleanly, too";
        set_clock(0);
        $pid = $e->start;
    } else {
        jump($e, $pid, "$label, and back", 0);
    }
    jump($e, $pid, "$label, an hour back", -HOUR, $is_hosts);
    jump($e, $pid, "$label, and ahead", 0) unless $is_hosts;
    is $e->depth('error'), 0, "$e->{pair}: $label: nothing is in the error queue";
    is $e->stop, 0, "$e->{pair}: $label: it stops cleanly";
}

my %retried = (recover => 'delayed_retries = 2;');
my $by_store = 'delayed_delivery = { by = "store"; };';
check(Endpoint->new('amqp+pgsql', %retried, with => $by_store), 'by the store');
check(Endpoint->new('sqlite+mysql', %retried, batch_max => 1), 'by the store');
check(Endpoint->new('amqp+pgsql', %retried, name => 'native'), 'by the broker');
check(Endpoint->new('sqlite', %retried, files => 'clock-'), 'by the host', 1);
done_testing;
