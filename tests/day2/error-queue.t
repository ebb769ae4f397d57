#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What contrib/examples/replay.c sends back: a message as it came, whatever it lacks, that expires no more. Then the page
# doc/day2/error-queue.md, followed.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/day2";
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Page;

Endpoint::under_servers(qw(rabbitmq pgsql));
my $span = 3;    # seconds that one of them may lie in a queue; longer where that is not enough to handle it once
my $module = Endpoint::work_dir() . '/replay.so';
system('cc', '-shared', '-fPIC', "-I$Endpoint::source/include", "$Endpoint::source/contrib/examples/replay.c", '-o', $module) == 0 or die "cc: $?\n";

sub messages {
    my ($e, $round) = @_;
    my $sent = POSIX::strftime('%Y-%m-%d %H:%M:%S:000000 Z', gmtime(time + 1));    # no part of the span is gone
    my $do = "once $e->{dir}/";
    my @fails = ('fail unrecoverable no');
    return (
        { id => "bare-$round", do => [ "${do}bare-$round", @fails ] },
        { id => "brief-$round", do => [ "${do}brief-$round", @fails ], headers => [
            [ 'NServiceBus.TimeToBeReceived' => sprintf('00:00:%02d', $span) ], [ 'NServiceBus.TimeSent' => $sent ],
            [ 'NServiceBus.ReplyToAddress' => 'asker' ], [ 'NServiceBus.OriginatingEndpoint' => 'asker' ], [ 'Shop.User' => 'ada' ] ] });
}

sub run_with { my ($e, $conf, $verb) = @_; local $e->{conf} = $conf; return ($e->run($verb))[0] }

# Both into the error queue. A machine that does nothing else for as long lets one expire: again, with more time.
sub fail {
    my ($e, $round) = @_;
    my @messages;
    for (;;) {
        @messages = messages($e, $round);
        $e->send('tried', @messages);
        my $since = time;
        Endpoint::pause($since) until $e->depth('error') == 2 || time > $since + $span + 2;
        last if $e->depth('error') == 2 || $span > 40;
        $e->read('error');
        unlink map { "$e->{dir}/$_->{id}" } @messages;
        $span *= 2;
    }
    is $e->depth('error'), 2, "$e->{pair}: round $round: both fail";
    return @messages;
}

# ... and, when the time to be received of one is long over, back.
sub fail_and_replay {
    my ($e, $round) = @_;
    $e->start;
    my @messages = fail($e, $round);
    is $e->stop, 0, "$e->{pair}: round $round: stops";
    $e->{processes} = [];
    sleep $span + 1.5;
    my $conf = "$e->{dir}/replay.conf";
    Endpoint::write_file($conf, qq(endpoints = ( { name = "error"; handlers = ["$module"]; concurrency = 1; @{[ $e->transport_text ]}
        recoverability = { error_queue = "error.kept"; delayed_retries = 0; }; } );\n));
    is run_with($e, $conf, 'install'), 0, "$e->{pair}: round $round: replay is installed";
    my $pid = $e->spawn("$e->{dir}/replay.log", 'run', '-c', $conf);
    $e->wait_for("round $round: both are back", sub { $e->depth('tried') == 2 });
    kill 'TERM', $pid;
    is $e->await_exit($pid), 0, "$e->{pair}: round $round: replay stops";
    return @messages;
}

sub headers_of_both {
    my ($e, $got, $sent) = @_;
    my %had = map { @$_ } @{ Endpoint::headers_of($sent) };
    delete $had{'NServiceBus.TimeToBeReceived'};
    my %has = %{ $got->{header} };
    delete $has{'NServiceBus.MessageId'};    # the error queue's copy has one
    delete $has{'NServiceBus.ContentType'} if $e->{pair} =~ /amqp/ && $has{'NServiceBus.ContentType'} eq 'application/octet-stream';    # a property, when nobody says another
    return (\%has, \%had);
}

for my $e (map { Endpoint->new($_, name => 'tried', retries => 0) } 'sqlite+sqlite', 'amqp+pgsql') {
    $e->install;
    fail_and_replay($e, 1);
    $e->start;
    $e->wait_for('what came back is handled, whatever its time', sub { $e->effects('bare-1') == 1 && $e->effects('brief-1') == 1 });
    is $e->stop, 0, "$e->{pair}: stops";
    $e->{processes} = [];

    my %sent = map { $_->{id} => $_ } fail_and_replay($e, 2);
    my @got = $e->read('tried');
    is_deeply [ sort map { $_->{id} } @got ], [ sort keys %sent ], "$e->{pair}: under the ids they had";
    for my $got (@got) {
        my ($has, $had) = headers_of_both($e, $got, $sent{ $got->{id} });
        is_deeply $has, $had, "$e->{pair}: $got->{id} has the headers it had, and no others";
    }
}

Page::follow('error-queue', qw(rabbitmq pgsql));
