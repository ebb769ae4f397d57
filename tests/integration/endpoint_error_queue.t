#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Bad input: what cannot be handled lies in the error queue, byte for byte, with the reason,
# and its neighbours were handled once.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq));
my $exception = 'NServiceBus.ExceptionInfo';
my @failure_headers = sort 'NServiceBus.FailedQ', 'NServiceBus.TimeOfFailure', "$exception.ExceptionType", "$exception.Message",
    "$exception.Source", "$exception.StackTrace", 'NServiceBus.ProcessingMachine', 'NServiceBus.ProcessingEndpoint',
    '$.diagnostics.hostid', '$.diagnostics.hostdisplayname';
my $failure = join '|', map { quotemeta } @failure_headers;
$failure = qr/^(?:$failure)$/;
my $odd_id = join '', "\0", map { chr } 1 .. 254;

# Headers of a bad message: whatever is legal. RabbitMQ 4 leaves one of each name.
sub unusual_headers {
    my ($e) = @_;
    my @twice = $e->{pair} =~ /amqp/ ? () : ([ twice => 'a' ], [ twice => 'b' ]);
    return [ [ "Grüße \x{e2}\x{82}\x{ac}" => "\x{f0}\x{9f}\x{93}\x{ac} \x{ff}\x{fe}" ], [ empty => '' ], @twice,
        [ "a name\n with\tblanks" => "line\r\n\0line" ], [ 'n' x 255 => 'v' x 30_000 ], [ 'NServiceBus.ConversationId' => 'c-1' ] ];
}

sub bad_messages {
    my ($e) = @_;
    my $full = [ [ first => '1' ], map { [ "h$_" => "v$_" ] } 1 .. 253 ];    # 256 with type and script
    my @bad = (
        { id => 'no-handler', type => 'Test.Nobody', headers => unusual_headers($e), body => "\0\1\2\xff", kind => 'NoHandler', reason => qr/no handler for "Test\.Nobody"/ },
        { id => 'no-type', type => undef, body => 'x', kind => 'NoHandler', reason => qr/names no type/ },
        { id => 'empty', type => 'Test.Nobody', body => '', kind => 'NoHandler', reason => qr/no handler/ },
        { id => $odd_id, do => 'fail unrecoverable no such customer: "x"', body => 'order', headers => unusual_headers($e), calls => [ 1 ], final => 1,
            kind => 'Unrecoverable', reason => qr/^no such customer: "x"$/ },
        { id => 'r', do => 'fail retry busy', headers => $full, body => 'order', calls => [ 1 .. 6 ], kind => 'HandlerFailed', reason => qr/^busy$/ },
        { id => 'leave', do => 'leave 4711', calls => [ 1 .. 6 ], kind => 'HandlerFailed', reason => qr/the handler of Test\.Do returned 4711/ },
        { id => 'headers', type => 'Test.Do', headers => [ map { [ "h$_" => $_ ] } 1 .. 257 ], kind => 'MessageTooLarge', reason => qr/257 headers, more than 256/ },
        { id => 'too-large', do => 'sql select 1', body => 'x' x 1_048_577, kind => 'MessageTooLarge', reason => qr/1048577 bytes, over body_max = 1048576/ },
        { id => 'again', type => 'Test.Nobody', headers => [ [ 'NServiceBus.FailedQ' => 'old' ], [ "$exception.Message" => 'old' ], [ 'NServiceBus.Retries' => 3 ] ],
            stays => [ [ $Endpoint::types => 'Test.Nobody' ] ], kind => 'NoHandler', reason => qr/no handler/ },
    );
    push @bad, { id => undef, do => 'sql select 1', body => 'anonymous', kind => 'NoMessageId', reason => qr/has no id/ };
    push @bad, { id => 'garbage', blob => "\xff\xff\xff\xff", stays => [], kind => 'UnreadableMessage', reason => qr/headers/ } if $e->{pair} =~ /sqlite/;
    return @bad;
}

sub check_failed {
    my ($e, $sent, $got) = @_;
    my $name = "$e->{pair}: " . (defined $sent->{id} ? length $sent->{id} > 20 ? 'an id of 255 bytes' : $sent->{id} : 'no id');
    return fail "$name: in the error queue" unless $got;
    my $header = $got->{header};
    my $original = $sent->{stays} || Endpoint::headers_of($sent);
    ok $got->{body} eq ($sent->{body} // ''), "$name: the body" or diag length $got->{body};
    my @headers = grep { $_->[0] !~ $failure && $_->[0] ne 'NServiceBus.MessageId' } @{ $got->{headers} };
    my @ids = map { $_->[1] } grep { $_->[0] eq 'NServiceBus.MessageId' } @{ $got->{headers} };
    ok @ids == 1 && (defined $sent->{id} ? $ids[0] eq $sent->{id} : $ids[0] =~ /^[0-9a-f-]{36}$/), "$name: and one with its id";
    is_deeply [ $e->ordered(@headers) ], [ $e->ordered(@$original) ], "$name: the headers";
    my @added = sort map { $_->[0] } grep { $_->[0] =~ $failure } @{ $got->{headers} };
    is_deeply \@added, \@failure_headers, "$name: each failure header once";
    is $header->{'NServiceBus.FailedQ'}, 'orders', "$name: FailedQ";
    is $header->{'NServiceBus.ProcessingEndpoint'}, 'orders', "$name: ProcessingEndpoint";
    like $header->{'NServiceBus.TimeOfFailure'}, qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z$/, "$name: TimeOfFailure";
    is $header->{"$exception.ExceptionType"}, "Waybill.$sent->{kind}", "$name: ExceptionType";
    like $header->{"$exception.Message"}, $sent->{reason}, "$name: Message";
    my @calls = defined $sent->{id} ? $e->attempts($sent->{id}) : ();
    # a final word counts from a handler that ran first in its transaction: behind others it runs once more
    pop @calls if $sent->{final} && @calls == 2;
    is_deeply \@calls, $sent->{calls} || [], "$name: calls of the handler" if defined $sent->{id};
    is $e->effects($sent->{id}), 0, "$name: no effect" if defined $sent->{id};
}

for my $pair ('amqp+pgsql', 'sqlite+sqlite') {
    my $e = Endpoint->new($pair, body_max => "1MiB");
    my @bad  = bad_messages($e);
    my @good = map { { id => "good-$_", do => 'send sink T.Done done' } } 1 .. 3 * @bad;
    $good[0]{headers} = [ map { [ "large-$_" => 'v' x 32_500 ] } 1, 2 ];    # received: 64 KiB, more than a handler may give
    $e->install;
    $e->send('orders', map { ($_, splice @good, 0, 3) } @bad);
    @good = map { "good-$_" } 1 .. 3 * @bad;
    $e->start;
    my %got = map { $_->{id} // '' => $_ } $e->collect('error', scalar @bad);
    $e->wait_for('the good ones are handled', sub { !$e->not_once(@good) });
    check_failed($e, $_, $got{ $_->{id} // '' }) for @bad;
    is scalar($e->collect('sink', scalar @good)), scalar @good, "$pair: the neighbours' messages are out, once";

    # The reason is gone: sent again as it lies in the error queue, it is handled.
    my $again = $got{r};
    my @headers = grep { $_->[0] ne 'do' } @{ $again->{headers} };
    $e->send('orders', { id => 'r', type => undef, headers => \@headers, body => $again->{body} });
    $e->wait_for('sent again, the message is handled', sub { $e->effects('r') == 1 });
    is $e->stop, 0, "$pair: stops cleanly";
    is $e->depth('orders'), 0, "$pair: the queue is empty";
    is scalar($e->read('error')), 0, "$pair: so is the error queue";
}

# The real limits: 16 MiB exactly, one byte more, no byte at all; ids of any bytes.
for my $pair ('amqp+pgsql', 'sqlite+sqlite') {
    my $e = Endpoint->new($pair, name => 'large');
    my $largest = "\0largest\xff" . 'y' x ((16 << 20) - 9);
    my @headers = ([ first => '1' ], map { [ "h$_" => "w\x{c3}\x{bc}$_" ] } 1 .. 253);
    $e->install;
    $e->send('large', { id => $odd_id, do => 'echo sink T.Echo', body => $largest, headers => \@headers });
    $e->send('large', { id => "\xfe", do => 'echo sink T.Echo', body => '' });
    $e->send('large', { id => 'over', do => 'echo sink T.Echo', body => $largest . 'x' });
    $e->start;
    my %got = map { length $_->{body} => $_ } $e->collect('sink', 2, 'large and empty are handled');
    ok $got{ 16 << 20 } && $got{ 16 << 20 }{body} eq $largest, "$pair: 16 MiB in, through the outbox, and out";
    ok $got{0}, "$pair: so is an empty body";
    my %out = map { ("$_->[0]=$_->[1]" => 1) } @{ ($got{ 16 << 20 } || {})->{headers} };
    is_deeply [ grep { !$out{"$_->[0]=$_->[1]"} } @headers ], [], "$pair: and all of its headers";
    is $got{ 16 << 20 }{header}{'NServiceBus.RelatedTo'}, $odd_id, "$pair: an id of 255 bytes is related to";
    is_deeply [ map { $e->effects($_) } $odd_id, "\xfe" ], [ 1, 1 ], "$pair: ids of 255 bytes and of one, any byte";
    my ($over) = $e->collect('error', 1, 'one byte more is in the error queue');
    ok $over->{body} eq $largest . 'x', "$pair: complete";
    is $over->{header}{"$exception.ExceptionType"}, 'Waybill.MessageTooLarge', "$pair: with the reason";
    is $e->stop, 0, "$pair: stops cleanly";
}
# Header values that are no strings, and tables in tables: legal in AMQP, handled as text.
my $e = Endpoint->new('amqp+pgsql', name => 'kinds');
my %kinds = (t => [ "\1", 'True' ], b => [ "\xff", '-1' ], u => [ "\xff\xfe", '65534' ], I => [ "\xff\xff\xff\xfe", '-2' ],
    l => [ "\xff" x 8, '-1' ], d => [ pack('d>', 1.5), '1.5' ], T => [ pack('Q>', 1_700_000_000), '2023-11-14 22:13:20:000000 Z' ],
    V => [ '', '' ], x => [ Amqp::long("by\0te"), "by\0te" ], F => [ Amqp::table([ a => 'b' ]), 'a=b' ],
    A => [ Amqp::long('S' . Amqp::long('x') . 'S' . Amqp::long('y')), 'x;y' ]);
my $deep = Amqp::table();
$deep = Amqp::table([ a => [ F => $deep ] ]) for 1 .. 3000;
$e->install;
$e->send('kinds', map { { id => $_, do => 'fail unrecoverable no', headers => [ [ kind => [ $_, $kinds{$_}[0] ] ] ] } } sort keys %kinds);
$e->send('kinds', { id => 'deep', do => 'sql select 1', headers => [ [ kind => [ F => $deep ] ] ] }, { id => 'after' });
$e->start;
is_deeply { map { $_->{id} => $_->{header}{kind} } $e->collect('error', scalar keys %kinds) }, { map { $_ => $kinds{$_}[1] } keys %kinds },
    'amqp: values of all kinds';
# The library decodes it, or (0.14 and later) it is rejected, with a line that says so.
$e->wait_for('a table 3000 levels deep stops nothing', sub { !$e->not_once('after') && ($e->log_lines(qr/refuses to decode/) || !$e->not_once('deep')) });
is $e->effects('deep') + (() = $e->log_lines(qr/refuses to decode the headers/)), 1, 'handled, or a line says that it was rejected';
# Removed while it runs: the line has the remedy, and nothing is lost.
$e->amqp->delete('error');
$e->send('kinds', { id => 'stays', do => 'fail unrecoverable no' });
$e->wait_for('the line says who makes the queue', sub { $e->log_lines(qr/stays in hand: .*no queue is bound to \\"error\\".* remedy="waybill install makes the error queue"/) });
$e->install;
is_deeply [ map { $_->{id} } $e->collect('error', 1, 'made again it gets what stayed in hand') ], ['stays'], 'and that alone';
is $e->stop, 0, 'amqp: stops cleanly';
done_testing;
