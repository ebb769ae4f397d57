#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Messages with a time to be received: gone when nobody received them in it, settled, counted, in no queue and no audit; and
# what was received once stays, in retries and in the error queue.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(sleep);
use Peer;

my $has_kafka = -e "$Endpoint::build/tests/hostile/kafka-peer" && Endpoint::has_mysql();
my @pairs = ('sqlite+sqlite', 'amqp+pgsql', $has_kafka ? 'kafka+mysql' : ());
Endpoint::under_servers(Peer::servers_of(@pairs));
my $asked = 'NServiceBus.TimeToBeReceived';

sub endpoint {
    my ($pair, $name, %more) = @_;
    my $audit = ($pair =~ /^kafka/ ? 'Peer::Kafka' : 'Peer')->address("$name-audit");
    my $e = Peer->new($pair, name => $name, short => $name, with => qq(audit = { queue = "$audit"; };), audit => $audit, %more);
    $e->install;
    return $e;
}

# Into the endpoint's own queue; the handler does nothing more than it does for each.
sub submit {
    my ($e, $id, @more) = @_;
    my ($code, $text) = $e->run('send', '--to', $e->{name}, '--type', 'Test.Do', '--id', $id, @more);
    is $code, 0, "$e->{pair}: $id is sent" or diag $text;
}

sub effects { my ($e, @ids) = @_; return join ' ', map { "$_=" . $e->effects($_) } @ids }
sub sum_of_counts { my ($e) = @_; my ($last) = reverse $e->log_lines('messages expired before they were received'); return ($last // '') =~ /count=(\d+)/ ? $1 : 0 }

# Nobody receives while they lie there.
sub check_expired {
    my ($e, $what) = @_;
    my @ids = map { "$what-$_" } qw(brief other-brief long plain);
    my @key = ('--key', 'k');    # in one partition, and the last one expires
    submit($e, $ids[0], @key, '--expires', '300ms');
    submit($e, $ids[2], @key, '--expires', '1h');
    submit($e, $ids[3], @key);
    submit($e, $ids[1], @key, '--expires', '300ms');
    sleep 1;
    $e->start;
    $e->wait_for("$what: what does not expire is handled", sub { $e->effects($ids[2]) && $e->effects($ids[3]) });
    $e->wait_for("$what: the queue is empty", sub { $e->waiting == 0 });
    is effects($e, @ids), "$ids[0]=0 $ids[1]=0 $ids[2]=1 $ids[3]=1", "$e->{pair}: $what: what expired is not handled";
    is_deeply [ grep { /^$what-/ } map { $_->{id} } $e->read($e->{error_queue}) ], [], "$e->{pair}: $what: nor in the error queue";
    is_deeply [ sort map { $_->{id} } $e->collect($e->{audit}, 2, "$what: copies in the audit queue") ], [ @ids[ 2, 3 ] ], "$e->{pair}: $what: nor in the audit queue";
    is $e->stop, 0, "$e->{pair}: $what: stops cleanly";
    is sum_of_counts($e), $e->{pair} =~ /amqp/ ? 0 : 2, "$e->{pair}: $what: counted, but by a broker that does it itself";
    ok scalar($e->log_lines('messages expired')) <= 2, "$e->{pair}: $what: in few lines";
}

# Nothing else comes that would take it along.
sub check_alone {
    my ($e, $what) = @_;
    submit($e, "$what-alone", '--expires', '300ms');
    is $e->waiting, 1, "$e->{pair}: $what: it waits";
    sleep 1;
    $e->start;
    $e->wait_for("$what: alone it is settled, too", sub { $e->waiting == 0 });
    is $e->stop, 0, "$e->{pair}: $what: stops cleanly";
    is effects($e, "$what-alone"), "$what-alone=0", "$e->{pair}: $what: and not handled";
    my ($last) = reverse $e->log_lines('messages expired');
    like $last // '', qr/count=1$/, "$e->{pair}: $what: and counted";
}

# From a handler, through the outbox; what stands in the queue tells how it travels.
sub check_outgoing {
    my ($e) = @_;
    my $sink = $e->address('sink');
    $e->inject($e->{name}, { id => 'asks', do => "expires 3600000\nsend $sink T.T hour\nexpires 1000\ndelay 1000\nsend $sink T.T both" });
    $e->start;
    my ($failed) = $e->collect($e->{error_queue}, 1, 'with a delay as well it is refused');
    like $failed->{header}{'NServiceBus.ExceptionInfo.Message'}, qr/both a delay and a time to be received/, "$e->{pair}: with the reason";
    $e->inject($e->{name}, { id => 'asks-again', do => "expires 3600000\nsend $sink T.T hour" });
    my ($sent) = $e->collect($sink, 1, 'alone it is sent');
    is $sent->{header}{$asked}, '01:00:00', "$e->{pair}: with the header of .NET";
    is $sent->{expiration}, '3600000', "$e->{pair}: and the broker knows" if $e->{pair} =~ /amqp/;
    $e->wait_for('the queue is empty', sub { $e->waiting == 0 });
}

# F1: When_message_with_TimeToBeReceived_fails.
sub check_failed {
    my ($e) = @_;
    submit($e, 'fails', '--expires', '1500ms', '--header', 'do=fail unrecoverable no');
    submit($e, 'waits', '--expires', '1500ms', '--header', 'do=later 1 retry not yet');
    $e->wait_for('a message that is retried later than it would have expired is handled', sub { $e->effects('waits') == 1 });
    sleep 2;
    my ($copy) = $e->collect($e->{error_queue}, 1, 'the error copy');
    is $copy->{id}, 'fails', "$e->{pair}: outlives the time to be received";
    is $copy->{header}{$asked}, '00:00:01.5000000', "$e->{pair}: whose header it keeps";
    is $copy->{expiration}, undef, "$e->{pair}: and which the broker does not know" if $e->{pair} =~ /amqp/;
    my ($audited) = grep { $_->{id} eq 'waits' } $e->collect($e->{audit}, 1, 'the audit copy');
    is $audited->{expiration}, undef, "$e->{pair}: as that of the audit copy" if $e->{pair} =~ /amqp/;
    is $e->stop, 0, "$e->{pair}: stops cleanly";
}

sub check_usage {
    my ($e) = @_;
    for my $case ([ '--expires', 'soon' ], [ '--expires', '0s' ], [ '--expires', '50d' ], [ '--expires', '1s', '--delay', '1s' ], [ '--expires', '1s', '--at', '2036-12-31T08:00:00Z' ]) {
        my ($code, $text) = $e->run('send', '--to', 'sink', '--type', 'T.T', @$case);
        is $code, 64, "@$case is refused";
    }
}

for my $pair (@pairs) {
    my $e = endpoint($pair, 'orders', recover => 'delayed_retries = 1; delay_increment = "2s";');
    check_usage($e) if $pair =~ /sqlite/;
    check_expired($e, 'receive_only');
    check_alone($e, 'receive_only') if $pair !~ /amqp/;
    check_outgoing($e);
    check_failed($e);
}

my %modes = ('sqlite+sqlite' => [qw(none sends_atomic_with_receive transaction_scope)], 'amqp+pgsql' => ['none'], 'kafka+mysql' => [qw(none sends_atomic_with_receive)]);
for my $pair (@pairs) {
    for my $mode (@{ $modes{$pair} }) {
        my $e = endpoint($pair, $mode =~ s/_/-/gr, mode => $mode, outbox => '', retries => $mode eq 'none' ? 0 : 5);
        check_expired($e, $mode);
        check_alone($e, $mode) if $pair !~ /amqp/;
    }
}
done_testing;
