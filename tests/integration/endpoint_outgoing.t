#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What handlers and the command line send: where it goes, when it leaves, its id and headers.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq));
my $n = 'NServiceBus';

sub one { my ($e, $queue, $what) = @_; my ($got) = $e->collect($queue, 1, $what); return $got || { header => {} } }

sub check_headers {
    my ($e) = @_;
    $e->send('orders', { id => 'first', do => 'send sink T.First x' });
    my $got = one($e, 'sink', 'a send arrives');
    my $h = $got->{header};
    is $h->{$Endpoint::types}, 'T.First', "$e->{pair}: its type";
    is_deeply [ @$h{ map { "$n.$_" } qw(MessageId MessageIntent RelatedTo CorrelationId ConversationId ReplyToAddress OriginatingEndpoint ContentType) } ],
        [ $got->{id}, 'Send', 'first', 'first', $got->{id}, 'orders', 'orders', 'application/json' ], "$e->{pair}: the headers of a first message";
    like $h->{"$n.TimeSent"}, qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z$/, "$e->{pair}: TimeSent";
    like $got->{id}, qr/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, "$e->{pair}: a derived id";
    is_deeply [ @$got{qw(type content_type reply_to correlation_id delivery_mode)} ], [ 'T.First', 'application/json', 'orders', 'first', 2 ],
        'amqp: the properties' if $e->{pair} =~ /amqp/;

    $e->send('orders', { id => 'second', do => [ "header $n.ContentType text/plain", 'header mine a b', 'id chosen', 'memory sink T.Second x' ],
        headers => [ [ "$n.ConversationId" => 'talk' ], [ "$n.CorrelationId" => 'cause' ] ] });
    $got = one($e, 'sink', 'another send arrives');
    is_deeply [ $got->{id}, @{ $got->{header} }{ "$n.ConversationId", "$n.CorrelationId", "$n.RelatedTo", "$n.ContentType", 'mine' } ],
        [ qw(chosen talk cause second text/plain), 'a b' ], "$e->{pair}: what it carries on, and what the handler chose";
    is scalar(grep { $_->[0] eq "$n.ContentType" } @{ $got->{headers} }), 1, "$e->{pair}: a header of the handler's replaces ours";
    is $got->{delivery_mode}, 1, 'amqp: a non-persistent message' if $e->{pair} =~ /amqp/;
}

sub check_destinations {
    my ($e, $other) = @_;
    $e->send('orders', { id => 'ask', do => 'reply T.Answer yes', headers => [ [ "$n.ReplyToAddress" => 'sink' ] ] });
    my $got = one($e, 'sink', 'a reply goes to the reply address');
    is_deeply [ $got->{body}, @{ $got->{header} }{ "$n.MessageIntent", "$n.CorrelationId" } ], [ 'yes', 'Reply', 'ask' ], "$e->{pair}: as a reply";

    $e->send('orders', { id => 'tell', do => 'publish Test.Also news' });
    $got = one($e, 'billing', 'an event reaches another subscriber');
    is_deeply [ $got->{body}, $got->{header}{"$n.MessageIntent"}, $got->{header}{$Endpoint::types} ], [ 'news', 'Publish', 'Test.Also' ], "$e->{pair}: as an event";
    $e->wait_for('and the publisher itself', sub { $e->effects($got->{id}) == 1 });
    $e->send('orders', { id => 'alone', do => 'publish T.Unheard news' });
    $e->wait_for('an event nobody subscribed to is no error', sub { $e->effects('alone') == 1 && $e->pending == 0 });
}

# Immediate sends leave with the attempt, all others with the commit; every attempt derives
# the same ids.
sub check_attempts {
    my ($e) = @_;
    $e->send('orders', { id => 'try', do => [ 'send sink T.Early x', 'now sink T.Now x', 'until 3 retry busy', 'send sink T.Late x' ] });
    my %ids;
    push @{ $ids{ $_->{header}{$Endpoint::types} } }, $_->{id} for $e->collect('sink', 5, 'sends of three attempts');
    is_deeply { map { $_ => scalar @{ $ids{$_} } } keys %ids }, { 'T.Early' => 1, 'T.Now' => 3, 'T.Late' => 1 }, "$e->{pair}: immediate ones each time, others once";
    is_deeply [ grep { $_ ne $ids{'T.Now'}[0] } @{ $ids{'T.Now'} } ], [], "$e->{pair}: with the same id";
    is scalar(keys %{ { map { $_->[0] => 1 } values %ids } }), 3, "$e->{pair}: different sends have different ids";

    $e->send('orders', { id => 'fails', do => [ 'now sink T.Now x', 'send sink T.Never x', 'fail unrecoverable no' ] });
    my $got = one($e, 'sink', 'an immediate send leaves although the handler fails');
    is $got->{header}{$Endpoint::types}, 'T.Now', "$e->{pair}: and nothing else does";
    one($e, 'error', 'the message is in the error queue');
    $e->send('orders', { id => 'now', do => 'now nowhere T.Now x' });
    $got = one($e, 'error', 'an immediate send to nobody fails its message');
    like $got->{header}{"$n.ExceptionInfo.Message"}, qr/cannot send to "nowhere"/, "$e->{pair}: with the reason";
    is_deeply [ $e->results('now') ], [ 3 ], "$e->{pair}: and the handler is told";
    is $e->depth('sink'), 0, "$e->{pair}: no more was sent";
}

sub check_program {
    my ($e) = @_;
    my ($code, $text) = $e->run('send', '--to', 'sink', '--type', 'T.Cli', '--id', 'c1', '--header', 'a=b=c', '--body', 'hello');
    is "$code $text", "0 1 sent\n", "$e->{pair}: waybill send";
    my $got = one($e, 'sink', 'its message arrives');
    is_deeply [ @$got{qw(id body)}, $got->{header}{a}, $got->{header}{$Endpoint::types} ], [ 'c1', 'hello', 'b=c', 'T.Cli' ], "$e->{pair}: complete";
    Endpoint::write_file("$e->{dir}/lines", qq({"id": "l1", "body": {"n": 1}}\n{"body": "text", "headers": {"gr\xc3\xbc\xc3\x9fe": "\xe2\x82\xac"}}\n));
    is(($e->run('send', '--to', 'sink', '--type', 'T.Cli', '--json-lines', "$e->{dir}/lines"))[0], 0, "$e->{pair}: waybill send --json-lines");
    my @got = $e->collect('sink', 2);
    is_deeply [ map { $_->{body} } @got ], [ '{"n":1}', 'text' ], "$e->{pair}: their bodies";
    is $got[1]{header}{"gr\xc3\xbc\xc3\x9fe"}, "\xe2\x82\xac", "$e->{pair}: a unicode header";
    # a line that is wrong: what stands before it is sent, nothing of it and of what follows is
    for (['{"id": 42, "body": "x"}', qr/field "id" is a number/], ['{"headers": {"n": 1}}', qr/field "headers\.n" is a number/],
        ['{"id": "' . 'i' x 256 . '"}', qr/id is longer than 255/], ['{"to": "sink"}', qr/field "to" is unknown/], ['{', qr/not a JSON object/]) {
        my ($line, $problem) = @$_;
        Endpoint::write_file("$e->{dir}/lines", qq({"id": "before", "body": "1"}\n\n$line\n{"id": "behind", "body": "2"}\n));
        ($code, $text) = $e->run('send', '--to', 'sink', '--type', 'T.Cli', '--json-lines', "$e->{dir}/lines");
        is $code, 65, "$e->{pair}: a line like " . substr($line, 0, 20) . ' is refused';
        like $text, qr/^waybill: \Q$e->{dir}\E\/lines:3: .*$problem/m, "$e->{pair}: with its number and the field";
        like $text, qr/^1 sent$/m, "$e->{pair}: what was sent is counted";
        is one($e, 'sink', 'what stands before it is sent')->{id}, 'before', "$e->{pair}: under its id";
        is $e->depth('sink'), 0, "$e->{pair}: and nothing else";
    }
    is(($e->run('publish', '--type', 'Test.Also', '--body', 'cli'))[0], 0, "$e->{pair}: waybill publish");
    is one($e, 'billing', 'its event arrives')->{body}, 'cli', "$e->{pair}: complete";
    ($code, $text) = $e->run('send', '--to', 'nowhere', '--type', 'T.Cli');
    is $code, 65, "$e->{pair}: waybill send to nobody is an error";
    Endpoint::write_file("$e->{dir}/lines", qq({"id": "n1"}\n\n{"id": "n2"}\n));
    my ($lines_code, $lines_text) = $e->run('send', '--to', 'nowhere', '--type', 'T.Cli', '--json-lines', "$e->{dir}/lines");
    is $lines_code, 65, "$e->{pair}: nor from a file";
    is_deeply [ $lines_text =~ /^waybill: \Q$e->{dir}\E\/lines(?::(\d+): message "n\d" was refused: .*|: all other lines up to (\d+) were sent: go on behind it)$/mg ], [ 1, undef, 3, undef, undef, 3 ], "$e->{pair}: each is named, and where to go on" or diag $lines_text;
    like $lines_text, qr/^0 sent$/m, "$e->{pair}: and counted";
    like $text, qr/^waybill: .*nowhere/m, "$e->{pair}: with the reason";
}

for my $pair ('amqp+pgsql', 'sqlite+sqlite') {
    my $e = Endpoint->new($pair);
    my $other = Endpoint->new($pair, name => 'billing');
    $_->install for $e, $other;
    $e->start;
    check_headers($e);
    check_destinations($e, $other);
    check_attempts($e);
    check_program($e);
    is $e->stop, 0, "$pair: stops cleanly";
}
done_testing;
