#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Endpoints without outbox: each mode does what it promises.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq));
my $exception = 'NServiceBus.ExceptionInfo';

# Each row: pair, mode, whether there is a persistence, and in the file of the queues.
my @endpoints = (
    [ 'amqp+pgsql',    'receive_only', 1 ], [ 'amqp+pgsql',    'receive_only', 0 ], [ 'amqp+pgsql',    'none', 1 ], [ 'amqp+pgsql', 'none', 0 ],
    [ 'sqlite+sqlite', 'receive_only', 1 ], [ 'sqlite+sqlite', 'receive_only', 0 ], [ 'sqlite+sqlite', 'none', 1 ], [ 'sqlite+sqlite', 'none', 0 ],
    [ 'sqlite+sqlite', 'receive_only', 1, 1 ], [ 'sqlite+sqlite', 'none', 1, 1 ],
    [ 'sqlite+sqlite', 'sends_atomic_with_receive', 1 ], [ 'sqlite+sqlite', 'sends_atomic_with_receive', 0 ], [ 'sqlite+sqlite', 'transaction_scope', 1 ],
);

sub handled { my ($e, $id) = @_; return $e->{persistence} ? $e->effects($id) : scalar $e->attempts($id) }

# Sends and effects of good messages, nothing of a failing one, however often it is tried.
sub check_effects {
    my ($e, $what, $attempts) = @_;
    my @good = map { "good-$_" } 1 .. 10;
    my @messages = map { { id => $_, do => "send sink T.Good $_" } } @good;
    my $together = $e->{mode} =~ /atomic|scope/;
    my $locked = $together || $e->{one_file};    # the file is, while handlers run
    splice @messages, 4, 0, { id => 'bad', do => "send sink T.Bad x\n@{[ $locked ? '' : 'now sink T.Now x' ]}\nfail retry busy" };
    splice @messages, 8, 0, { id => 'lost', do => "send sink T.Lost x\nsend nowhere T.Lost x" } if $together;
    splice @messages, 8, 0, { id => 'now', do => 'now sink T.Now x' } if $locked;
    $e->send($e->{name}, @messages);
    $e->start;
    my %failed = map { $_->{id} => $_->{header} } $e->collect('error', @messages - @good, "$what: failing messages are in the error queue");
    is $failed{bad}{"$exception.Message"}, 'busy', "$what: with the reason";
    is_deeply [ $e->attempts('bad') ], [ 1 .. $attempts ], "$what: after $attempts attempts";
    my $now = $locked ? 0 : $attempts;
    my @out = $e->collect('sink', @good + $now, "$what: sends arrive");
    is_deeply [ sort map { $_->{body} } grep { $_->{header}{$Endpoint::types} eq 'T.Good' } @out ], [ sort @good ], "$what: each once";
    is scalar(grep { $_->{header}{$Endpoint::types} eq 'T.Now' } @out), $now, "$what: immediate ones of each attempt";
    is scalar(@out), @good + $now, "$what: and nothing else of the failing one";
    if ($locked) {
        like $failed{now}{"$exception.Message"}, qr/cannot send to "sink": nothing can be sent at once/, "$what: an immediate send is refused";
        my $calls = () = $e->attempts('now');    # once more if it did not run first in its transaction
        ok $calls == 1 || $calls == 2, "$what: without waiting for oneself" or diag $calls;
    }
    if ($together) {
        like $failed{lost}{"$exception.Message"}, qr/nowhere/, "$what: a send to nobody fails its message";
        is $e->effects('lost'), 0, "$what: which leaves no effect" if $e->{persistence};
    }
    return unless $e->{persistence};
    $e->wait_for("$what: effects", sub { !$e->not_once(@good) });
    is $e->effects('bad'), 0, "$what: and none of the failing one";
}

# The process dies in the handler: the message comes back, or with mode none never.
sub check_kill {
    my ($e, $what) = @_;
    my $gate = "$e->{dir}/$e->{name}.gate";
    $e->send($e->{name}, { id => 'killed', do => "wait $gate" });
    $e->wait_for("$what: in the handler", sub { $e->attempts('killed') });
    $e->stop('KILL');
    Endpoint::write_file($gate, '');
    $e->start;
    $e->send($e->{name}, { id => 'next' });
    my @wanted = $e->{mode} eq 'none' ? 'next' : qw(next killed);
    $e->wait_for("$what: at work again", sub { !grep { handled($e, $_) < 1 } @wanted });
    $e->wait_for("$what: the queue is empty", sub { $e->depth($e->{name}) == 0 });
    is scalar($e->attempts('killed')), $e->{mode} eq 'none' ? 1 : 2, "$what: calls for the message whose handler was killed";
}

# A clean stop loses nothing, in no mode: what was received is handled, the rest stays.
sub check_stop {
    my ($e, $what) = @_;
    my @ids = map { "s$_" } 1 .. 12;
    $e->send($e->{name}, map { { id => $_, do => 'sleep 30' } } @ids);
    $e->wait_for("$what: at work", sub { $e->attempts('s1') });
    is $e->stop, 0, "$what: stops cleanly";
    my @left = map { $_->{id} } $e->read($e->{name});
    my %left = map { $_ => 1 } @left;
    is_deeply [ grep { handled($e, $_) + ($left{$_} || 0) != 1 } @ids ], [], "$what: every message was handled, or is in the queue";
    cmp_ok scalar(@left), '<', 12, "$what: some were handled";
    is $e->depth($_), 0, "$what: nothing more in queue $_" for qw(error sink);
}

my $number = 0;
for (@endpoints) {
    my ($pair, $mode, $persistence, $one_file) = @$_;
    my $what = "$mode, " . ($one_file ? 'one file' : $persistence ? 'no outbox' : 'no persistence');
    my $retries = $mode eq 'none' ? 0 : 2;
    my $e = Endpoint->new($pair, name => 'mode' . ++$number, mode => $mode, persistence => $persistence, outbox => '', retries => $retries, one_file => $one_file);
    $e->install;
    $e->sql('delete from effects') if $persistence;
    check_effects($e, $what, $retries + 1);
    check_kill($e, $what);
    check_stop($e, $what);
}
done_testing;
