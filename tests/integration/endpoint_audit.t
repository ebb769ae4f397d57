#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What follows from a message being handled: its copy in the audit queue, once for each message that was handled and
# never for one that was not, whatever the mode; and the answer to ServiceControl, if that sent the message back.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::Local qw(timegm);
use Peer;

my $has_kafka = -e "$Endpoint::build/tests/hostile/kafka-peer" && Endpoint::has_mysql();
my @pairs = ('sqlite+sqlite', 'amqp+pgsql', $has_kafka ? 'kafka+mysql' : ());
Endpoint::under_servers(Peer::servers_of(@pairs));
my $n     = 'NServiceBus';
my $retry = 'ServiceControl.Retry';

# Seconds since 1970 of a time in a header; nothing if it is none.
sub seconds { return ($_[0] // '') =~ /^(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d):(\d{6}) Z$/ ? timegm($6, $5, $4, $3, $2 - 1, $1) + $7 / 1e6 : undef }
sub address { my ($e, $name) = @_; return $e->address($e->{short} . "-$name") }

sub endpoint {
    my ($pair, $name, %more) = @_;
    my $audit = ($pair =~ /^kafka/ ? 'Peer::Kafka' : 'Peer')->address("$name-audit");
    my $e = Peer->new($pair, name => $name, short => $name, concurrency => 2, with => qq(audit = { queue = "$audit"; };), %more);
    $e->install;
    return $e;
}

# Collects until that many came, and looks a moment longer: no copy comes twice while nothing breaks.
sub audited {
    my ($e, $count, $what) = @_;
    my @copies = $e->collect(address($e, 'audit'), $count, "$what: copies in the audit queue");
    $e->wait_for("$what: everything is acknowledged", sub { $e->waiting == 0 });
    return (@copies, $e->read(address($e, 'audit')));
}

sub check_copies {
    my ($e) = @_;
    my $sink = $e->address('sink');
    my @good = map { sprintf 'g%02d', $_ } 1 .. 30;
    my $started = time - 1;
    $e->inject($e->{name},
        { id => 'full', do => "send $sink T.T out", body => "\0body\xff", headers => [ [ mine => 'kept' ], [ "$n.ProcessingEndpoint" => 'other' ] ] },
        { id => 'bad', do => "send $sink T.T never\nfail unrecoverable no" },
        { id => 'retried', do => "until 3 retry not yet\nsend $sink T.T out" },
        map { { id => $_, do => "send $sink T.T $_" } } @good);
    $e->start;
    my @copies = audited($e, @good + 2, "$e->{pair}");
    my %copy = map { $_->{id} => $_ } @copies;
    is_deeply [ sort map { $_->{id} } @copies ], [ sort @good, 'full', 'retried' ], "$e->{pair}: one of each that was handled, none of what failed";
    is scalar($e->collect($e->{error_queue}, 1, 'what failed is in the error queue')), 1, "$e->{pair}: alone";
    my $full = $copy{full} || { header => {}, headers => [] };
    my %header = %{ $full->{header} };
    is $full->{body}, "\0body\xff", "$e->{pair}: the body is the message's";
    is $header{mine}, 'kept', "$e->{pair}: and so are the headers";
    is_deeply [ map { $_->[1] } grep { $_->[0] eq "$n.ProcessingEndpoint" } @{ $full->{headers} } ], [ $e->{name} ], "$e->{pair}: who handled it last counts";
    my ($from, $to) = map { seconds($header{"$n.Processing$_"}) // 0 } qw(Started Ended);
    ok $started <= $from && $from <= $to && $to <= time + 1, "$e->{pair}: when it was handled: $from, $to";
    is scalar(grep { length $header{$_} } "$n.ProcessingMachine", '$.diagnostics.hostdisplayname', '$.diagnostics.hostid'), 3, "$e->{pair}: and where";
    my @out = $e->collect($sink, @good + 2, 'what handlers sent is out');
    is scalar(@out), @good + 2, "$e->{pair}: once";
}

# A duplicate is no second message.
sub check_duplicate {
    my ($e) = @_;
    $e->inject($e->{name}, { id => 'full', do => 'sql select 1' }, { id => 'after', do => 'sql select 1' });
    is_deeply [ map { $_->{id} } audited($e, 1, "$e->{pair}, a duplicate") ], ['after'], "$e->{pair}: a duplicate is not audited";
}

sub check_retry {
    my ($e) = @_;
    my $queue = address($e, 'servicecontrol');
    my @headers = ([ "$retry.UniqueMessageId" => 'unique-1' ], [ "$retry.AcknowledgementQueue" => $queue ]);
    my $started = time - 1;
    $e->make_queue($queue);
    $e->inject($e->{name}, { id => 'again', do => 'sql select 1', headers => \@headers });
    my ($told) = $e->collect($queue, 1, 'ServiceControl is told that the retry succeeded');
    my %header = %{ ($told || {})->{header} || {} };
    is_deeply [ @header{ "$retry.UniqueMessageId", "$n.ControlMessage" }, $told->{body} // '' ], [ 'unique-1', 'True', '' ], "$e->{pair}: of which, and without a body";
    ok((seconds($header{"$retry.Successful"}) // 0) >= $started, "$e->{pair}: and when it began");
    isnt $told->{id}, 'again', "$e->{pair}: as a message of its own";
    my ($copy) = audited($e, 1, "$e->{pair}, retried");
    is $copy->{header}{"$retry.AcknowledgementSent"}, 'true', "$e->{pair}: the copy says that it was told";
    $e->inject($e->{name}, { id => 'again-2', do => 'fail unrecoverable no', headers => \@headers });
    $e->collect($e->{error_queue}, 1, 'a retry that fails is in the error queue');
    is scalar($e->read($queue)), 0, "$e->{pair}: and nobody is told that it succeeded";
}

# Only where a queue can be taken away and made again without further ado.
sub check_queue_that_is_gone {
    my ($e) = @_;
    my $audit = address($e, 'audit');
    $e->amqp->delete($audit);
    $e->amqp->delete_exchange($audit);
    $e->inject($e->{name}, { id => 'early', do => 'send sink T.T early' });
    my ($failed) = $e->collect($e->{error_queue}, 1, 'without its audit queue a message fails');
    is $failed->{header}{"$n.ExceptionInfo.ExceptionType"}, 'Waybill.DispatchFailed', "$e->{pair}: as with any destination that is gone";
    like $failed->{header}{"$n.ExceptionInfo.Message"}, qr/^could not dispatch to "\Q$audit\E": /, "$e->{pair}: with its name";
    # the broker closes the channel over the exchange that is gone, so what was sent beside it may be sent once more
    my %sent = map { ("$_->{body} $_->{id}" => 1) } $e->read('sink');
    is_deeply [ $e->effects('early'), map { s/ .*//r } keys %sent ], [ 1, 'early' ], "$e->{pair}: handled it was, once, and what it sent is out";
    $e->make_queue($audit);
    my @headers = ([ "$retry.UniqueMessageId" => 'unique-2' ], [ "$retry.AcknowledgementQueue" => address($e, 'servicecontrol') ]);
    $e->inject($e->{name}, { id => 'early', type => undef, headers => [ @{ $failed->{headers} }, @headers ], body => $failed->{body} });
    my ($copy) = $e->collect($audit, 1, 'sent again, its copy arrives');
    is $copy->{id}, 'early', "$e->{pair}: the one that was stored";
    my ($told) = $e->collect(address($e, 'servicecontrol'), 1, 'ServiceControl is told, though it was a duplicate');
    is $told->{header}{"$retry.UniqueMessageId"}, 'unique-2', "$e->{pair}: of which";
    is_deeply [ $e->effects('early'), scalar $e->read('sink') ], [ 1, 0 ], "$e->{pair}: without another effect";
}

for my $pair (@pairs) {
    my $e = endpoint($pair, 'orders');
    check_copies($e);
    check_duplicate($e);
    check_retry($e);
    check_queue_that_is_gone($e) if $pair =~ /amqp/;
    $e->wait_for('nothing is pending', sub { $e->pending == 0 });
    is $e->stop, 0, "$pair: stops cleanly";
}

# Without outbox, and in the transactions of the transports.
my %modes = ('sqlite+sqlite' => [qw(receive_only none sends_atomic_with_receive transaction_scope)], 'amqp+pgsql' => [qw(receive_only none)],
    'kafka+mysql' => [qw(receive_only none sends_atomic_with_receive)]);
for my $pair (@pairs) {
    for my $mode (@{ $modes{$pair} }) {
        my $e = endpoint($pair, $mode =~ s/_/-/gr, mode => $mode, outbox => '', retries => $mode eq 'none' ? 0 : 5);
        my $sink = $e->address('sink');
        $e->inject($e->{name}, { id => 'fails', do => "send $sink T.T never\nfail unrecoverable no" }, map { { id => "m$_", do => "send $sink T.T out" } } 1 .. 20);
        $e->start;
        my @copies = audited($e, 20, "$pair, $mode");
        is_deeply [ sort map { $_->{id} } @copies ], [ sort map { "m$_" } 1 .. 20 ], "$pair, $mode: one of each that was handled";
        is $e->stop, 0, "$pair, $mode: stops cleanly";
    }
}

# What is not installed is not run; a queue that would be its own is refused.
my $e = Peer->new('sqlite+sqlite', name => 'late');
$e->install;
$e->configure(with => 'audit = { queue = "late-audit"; };');
my ($code, $text) = $e->run('run');
is $code, 72, 'an audit queue that is not there: installed it must be';
like $text, qr/no queue "late-audit" in .*: run `waybill install`/, 'with the remedy';
($code, $text) = $e->run('check');
like $text, qr/^  audit queue +late-audit$/m, 'check shows it';
for my $queue ('late', 'error') {
    $e->configure(with => qq(audit = { queue = "$queue"; };));
    ($code, $text) = $e->run('check');
    is $code, 78, "the audit queue cannot be $queue";
    like $text, qr/option "audit.queue" = "$queue" is the endpoint's own queue or its error queue, or a type's/, 'with the reason';
}
done_testing;
