#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Attempts that fail in a row limit the endpoint to one at a time, with a wait between two; the first message that
# is handled ends that.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq));

my $began = qr/level=warning msg="attempts fail in a row: one is made at a time from now on"/;
my $ended = qr/level=info msg="a message was handled: attempts are limited no longer"/;
my $count = 0;

sub all_attempts { my ($e, @ids) = @_; my $all = 0; $all += () = $e->attempts($_) for @ids; return $all }

sub limited {
    my ($pair, $after, %more) = @_;
    return Endpoint->new($pair, name => "rate$count", concurrency => 3, batch_max => 1, retries => 1000,
        recover => qq(delayed_retries = 0; rate_limit_after = $after; rate_limit_wait = "400ms";), %more);
}

# Twelve that fail until something is there.
sub fail_together {
    my ($e) = @_;
    my $thing = "$e->{dir}/$e->{name}.thing";
    my @ids = map { "$e->{name}-$_" } 1 .. 12;
    unlink $thing, $e->{trace};
    $e->install;
    $e->send($e->{name}, map { { id => $_, do => "unless $thing retry it is not there" } } @ids);
    $e->start;
    return ($thing, @ids);
}

sub check_limit {
    my ($e) = @_;
    my ($thing, @ids) = fail_together($e);
    $e->wait_for("attempts are limited", sub { $e->log_lines($began) });
    my ($before, $since) = (all_attempts($e, @ids), time);
    sleep 4;
    my ($made, $spent) = (all_attempts($e, @ids) - $before, time - $since);
    # those that were under way when it began, three workers', are among the first
    cmp_ok $made, '<=', 2 * 3 + $spent / 0.4 + 1, "$e->{pair}: there is a wait between two";
    cmp_ok $made, '>=', 3, "$e->{pair}: and they go on";
    Endpoint::write_file($thing, '');
    $e->wait_for("all are handled", sub { !$e->not_once(@ids) && $e->depth($e->{name}) == 0 });
    is scalar(@{ [ $e->log_lines($ended) ] }), 1, "$e->{pair}: the first one ends it";
    is scalar(@{ [ $e->log_lines($began) ] }), 1, "$e->{pair}: each has one line";
    is $e->not_once(@ids), 0, "$e->{pair}: one effect each";
    is $e->stop, 0, "$e->{pair}: it stops cleanly";
}

# A stop waits for no turn; what is in hand goes back.
sub check_stop {
    my ($e) = @_;
    my ($thing, @ids) = fail_together($e);
    $e->wait_for("attempts are limited for a minute", sub { $e->log_lines($began) });
    sleep 1;
    my $since = time;
    is $e->stop, 0, "$e->{pair}: it stops";
    cmp_ok time - $since, '<', 10, "$e->{pair}: soon";
    Endpoint::write_file($thing, '');
    $e->start;
    $e->wait_for("another process handles all", sub { !$e->not_once(@ids) && $e->depth($e->{name}) == 0 });
    is $e->not_once(@ids), 0, "$e->{pair}: once";
    is $e->stop, 0, "$e->{pair}: it stops cleanly";
}

sub check_threshold {
    my ($e) = @_;
    my ($thing, @ids) = fail_together($e);
    $e->wait_for("a hundred attempts fail", sub { all_attempts($e, @ids) >= 100 });
    Endpoint::write_file($thing, '');
    $e->wait_for("all are handled", sub { !$e->not_once(@ids) && $e->depth($e->{name}) == 0 });
    is scalar(@{ [ $e->log_lines($began) ] }), 0, "$e->{pair}: fewer than it takes limit nothing";
    is $e->stop, 0, "$e->{pair}: it stops cleanly";
}

for my $pair (qw(sqlite amqp+pgsql)) {
    check_limit(limited($pair, 5)), $count++;
    check_stop(limited($pair, 5, recover => 'delayed_retries = 0; rate_limit_after = 5; rate_limit_wait = "1min";')), $count++;
}
check_threshold(limited('sqlite', 1_000_000));
done_testing;
