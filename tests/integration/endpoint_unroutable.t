#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Sends that cannot be dispatched: the failure of their own message alone. Nothing is lost,
# and once there is a destination it gets what was sent to it.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq));
my $exception = 'NServiceBus.ExceptionInfo';

sub failed { my ($e, $id) = @_; my ($got) = $e->collect('error', 1, "$id is in the error queue"); return $got || { header => {}, headers => [] } }

sub check_unroutable {
    my ($e) = @_;
    my @good = map { "good-$_" } 1 .. 12;
    my @messages = map { { id => $_, do => "send sink T.Good $_" } } @good;
    splice @messages, 6, 0, { id => 'bad', do => [ 'send sink T.Bad before', 'send nowhere T.Bad lost', 'send sink T.Bad after' ] };
    $e->send('orders', @messages);
    $e->start;
    my $got = failed($e, 'bad');
    is $got->{id}, 'bad', "$e->{pair}: the message whose send failed";
    is $got->{header}{"$exception.ExceptionType"}, 'Waybill.DispatchFailed', "$e->{pair}: with the kind of failure";
    like $got->{header}{"$exception.Message"}, qr/^could not dispatch to "nowhere": .+/, "$e->{pair}: and the reason";
    is scalar($e->log_lines(qr/is retried.*message_id=bad /)), 5, "$e->{pair}: after its retries";
    my %out;
    $out{ $_->{body} }++ for $e->collect('sink', 14, 'everything else is out');
    is_deeply \%out, { map { $_ => 1 } @good, qw(before after) }, "$e->{pair}: once";
    ok !$e->not_once(@good, 'bad'), "$e->{pair}: all effects are there, the failed message's too";
    is_deeply [ $e->attempts('bad') ], [ 1 ], "$e->{pair}: which is not handled again for it";
    $e->wait_for('the others are acknowledged', sub { $e->depth('orders') == 0 });
    my @rows = $e->wait_for('one pending row remains', sub { $e->pending == 1 }) ? $e->pending : '';
    like $rows[0], qr/nowhere.*lost/s, "$e->{pair}: it holds the operation";
    unlike $rows[0], qr/before|after|good-/, "$e->{pair}: and no other";
    return $got;
}

sub check_sent_again {
    my ($e, $got) = @_;
    $e->make_queue('nowhere');
    $e->send('orders', { id => 'bad', type => undef, headers => $got->{headers}, body => $got->{body} });
    my ($lost) = $e->collect('nowhere', 1, 'once there is a destination, the message sent again dispatches it');
    is $lost->{body}, 'lost', "$e->{pair}: complete";
    is $lost->{header}{'NServiceBus.RelatedTo'}, 'bad', "$e->{pair}: with its headers";
    is $e->effects('bad'), 1, "$e->{pair}: without another effect";
    $e->wait_for('nothing is pending', sub { $e->pending == 0 && $e->depth('orders') == 0 });
}

# Nobody sends the message again: the sweeper dispatches what is pending.
sub check_sweeper {
    my ($e) = @_;
    $e->send('orders', { id => 'late', do => 'send elsewhere T.Late late' });
    failed($e, 'late');
    $e->stop;
    $e->configure(outbox => 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";');
    $e->start;
    $e->wait_for('the sweeper says what it cannot dispatch', sub { $e->log_lines(qr/operations parked: they cannot be dispatched/) });
    is scalar($e->pending), 1, "$e->{pair}: and keeps it";
    $e->make_queue('elsewhere');
    my ($late) = $e->collect('elsewhere', 1, 'once there is a destination, the sweeper dispatches it');
    is $late->{body}, 'late', "$e->{pair}: complete";
    $e->wait_for('nothing is pending', sub { $e->pending == 0 });
    is $e->depth('elsewhere'), 0, "$e->{pair}: sent once";
}

# While its message waits for a retry, what it sent is looked at, and left to it: else nobody would tell of the failure.
sub check_swept_meanwhile {
    my ($e) = @_;
    $e->stop;
    $e->configure(recover => 'delayed_retries = 1; delay_increment = "5s"; delay_jitter = 0;');
    $e->start;
    my $since = time;
    $e->send('orders', { id => 'patient', do => [ 'send beyond T.Late sent', 'send yonder T.Late patient' ] });
    $e->wait_for('it waits for its retry', sub { $e->log_lines(qr/message failed and is retried later.*message_id=patient /) });
    $e->make_queue('beyond');
    is_deeply [ map { $_->{body} } $e->collect('beyond', 1, 'what can be dispatched meanwhile is') ], ['sent'], "$e->{pair}: and no other";
    my $got = failed($e, 'patient');
    is $got->{header}{"$exception.ExceptionType"}, 'Waybill.DispatchFailed', "$e->{pair}: though what it sent was swept meanwhile";
    like $got->{header}{"$exception.Message"}, qr/^could not dispatch to "yonder": .+/, "$e->{pair}: with the reason";
    cmp_ok time - $since, '>=', 5, "$e->{pair}: after its delayed retry";
    is scalar($e->pending), 1, "$e->{pair}: and the operation waits";
    $e->make_queue('yonder');
    is_deeply [ map { $_->{body} } $e->collect('yonder', 1, 'the sweeper dispatches it') ], ['patient'], "$e->{pair}: complete";
    $e->wait_for('nothing is pending', sub { $e->pending == 0 });
    is $e->depth('yonder') + $e->depth('beyond'), 0, "$e->{pair}: once";
    $e->configure(recover => undef);
}

# What is refused when the handler asks for it: the handler learns it, one attempt.
sub check_limits {
    my ($e) = @_;
    my %refused = (
        'pad 1048577' => qr/1048577 bytes is over body_max = 1048576/, 'headers 257' => qr/more than 256 headers/,
        'header ' . 'n' x 256 . ' v' => qr/name is longer than 255/, 'header n ' . 'v' x 32769 => qr/larger than 32 KiB/,
        'id ' . 'i' x 256 => qr/id is longer than 255/,
    );
    my @ids = sort keys %refused;
    $e->send('orders', map { { id => substr("$_" =~ s/ .*//r . length, 0, 20), do => "$_\nsend sink T.Limit x" } } @ids);
    $e->send('orders', { id => 'reply', do => 'reply T.Limit x' });
    my %got = map { $_->{id} => $_->{header} } $e->collect('error', @ids + 1, 'sends over a limit');
    for (@ids) {
        my $id = substr("$_" =~ s/ .*//r . length, 0, 20);
        like $got{$id}{"$exception.Message"}, $refused{$_}, "$e->{pair}: $id";
        is_deeply [ [ $e->attempts($id) ], [ $e->results($id) ] ], [ [ 1 ], [ 3 ] ], "$e->{pair}: $id: the handler is told, once";
    }
    like $got{reply}{"$exception.Message"}, qr/no reply address/, "$e->{pair}: reply to nobody";
    is $e->depth('sink'), 0, "$e->{pair}: nothing was sent";
}

for my $pair ('amqp+pgsql', 'sqlite+sqlite') {
    my $e = Endpoint->new($pair, body_max => '1MiB');
    $e->install;
    check_sent_again($e, check_unroutable($e));
    check_sweeper($e);
    check_swept_meanwhile($e);
    check_limits($e);
    is $e->stop, 0, "$pair: stops cleanly";
}
done_testing;
