# SPDX-License-Identifier: Apache-2.0
#
# The table of kinds: messages that mean harm, and what must become of each.
#
#   my @kinds = Kinds::of($peer);
#   { name, expect, messages => [ { id, type, do, headers, reply, body, ... } ] }
#
# expect: handled   each message has one effect
#         error     each is in the error queue, and had no effect
#         either    one or the other: nobody promises which
#         nowhere   each is in the error queue; it had its effect, but what it asked for cannot go
#                   there (with the outbox it stays pending)
#         absent    neither: the broker never hands it out, or it cannot be read and is rejected
#         [ E, N ]  E effects and N messages in the error queue, from all of the kind's messages
#
# apart: it wants an endpoint of its own.
#
# A message's fields are those of Endpoint.pm: id, type (undef: none), do, headers, body, key, and
# reply: the address to reply to, as the transport carries it; far: sent last of all; stays: it lies in
# the queue for ever. What only one transport can
# express: properties (AMQP), value, codec, timestamp (Kafka), row and blob (SQLite). A header
# "!kind" or a body that begins with "kind NAME" tells whose a message in the error queue is.
package Kinds;
use strict;
use warnings;
use Amqp;
use Endpoint;

our $types = $Endpoint::types;
my $message_id = 'NServiceBus.MessageId';
my $exception = 'NServiceBus.ExceptionInfo';
my $forged    = "x\n2020-01-01T00:00:00.000Z level=error msg=\"forged\" endpoint=other\r\e[2J";
my $body_max  = 1 << 20;    # of the endpoint under test

my ($peer, @kinds);

# Unless told otherwise a message replies to the sink, when somebody handles it.
sub message {
    my ($name, %m) = @_;
    my $sink = $peer->address('sink');
    my %message = (id => "kind-$name", do => "reply Hostile.Sent kind $name", reply => $sink, body => "kind $name", %m);
    $message{headers} = [ $m{untold} ? () : [ '!kind' => $name ], @{ $m{headers} || [] } ];
    return \%message;
}
sub kind { my ($expect, $name, @messages) = @_; push @kinds, { name => $name, expect => $expect, messages => [ map { message($name, %$_) } @messages ] } }
sub handled { my ($name, %m) = @_; kind('handled', $name, \%m) }
sub error   { my ($name, %m) = @_; kind('error',   $name, \%m) }
sub either  { my ($name, %m) = @_; kind('either',  $name, \%m) }
# What harms the kinds beside it by its nature gets an endpoint of its own.
sub apart { my ($make) = @_; my $from = @kinds; $make->(); $_->{apart} = 1 for @kinds[ $from .. $#kinds ] }
sub nowhere { my ($name, %m) = @_; kind('nowhere', $name, \%m) }
# Both as what is handled and, under another id, as what nobody handles: then the copy carries it on.
sub both {
    my ($name, %m) = @_;
    handled($name, %m);
    $m{id} = length $m{id} < 128 ? $m{id} x 2 : 'm' . substr $m{id}, 1 if defined $m{id};
    error("$name-moved", %m, type => 'Hostile.Nobody');
}

sub of {
    ($peer) = @_;
    @kinds = ();
    ids();
    types();
    bodies();
    headers();
    replies();
    claims();
    amqp()   if $peer->{pair} =~ /^amqp/;
    kafka()  if $peer->{pair} =~ /^kafka/;
    sqlite() if $peer->{pair} =~ /^sqlite/;
    return @kinds;
}

# ---- what every transport can express ---------------------------------------------------
sub ids {
    my $outbox = $peer->{outbox};
    error('id-none', id => undef);
    error('id-empty', id => '');
    both('id-255', id => 'i' x 255);
    error('id-256', id => 'i' x 256);
    error('id-4096', id => 'i' x 4096);
    both('id-nul', id => "kind\0nul");
    both('id-only-nul', id => "\0");
    both('id-no-text', id => "\xff\xfe");
    both('id-quotes', id => q(';--"`drop table effects\\));
    both('id-lines', id => "kind\n$forged");
    handled('id-as-its-type', id => 'Test.Do');
    kind('handled', 'id-case', { id => 'kind-CASE' }, { id => 'KIND-case' });
    kind($outbox ? [ 1, 0 ] : [ 2, 0 ], 'id-twice', { id => 'kind-twice', body => 'kind id-twice one' }, { id => 'kind-twice', body => 'kind id-twice two' });
    kind($outbox ? [ 1, 0 ] : [ 2, 0 ], 'id-twice-far-apart', { id => 'kind-far', body => 'kind id-twice-far-apart one' },
        { id => 'kind-far', body => 'kind id-twice-far-apart two', far => 1 });
    kind([ 0, 2 ], 'id-twice-failing', map { { id => 'kind-twice-failing', do => 'fail unrecoverable no', body => "kind id-twice-failing $_" } } 1, 2);
    kind([ 0, 2 ], 'id-twice-nobody', map { { id => 'kind-twice-nobody', type => 'Hostile.Nobody', body => "kind id-twice-nobody $_" } } 1, 2);
}

sub types {
    error('type-none', type => undef);
    error('type-empty', type => '');
    error('type-unknown', type => 'Hostile.Nobody');
    error('type-10k', type => 'T' x 10_000);
    error('type-no-text', type => "\xff\xfe");
    error('type-lines', type => $forged);
    error('type-separators', type => ';,;; ,;' x 100);
    error('type-blanks', type => ' ' x 1000);
    error('type-ten-thousand', type => join(';', map { "T$_" } 1 .. 10_000));
    handled('type-last-of-many', type => join(';', (map { "T$_" } 1 .. 5_000), 'Test.Do'));
    either('type-nul', type => "Test.Do\0Hostile");
    either('type-twice', type => undef, headers => [ [ $types => 'Hostile.Nobody' ], [ $types => 'Test.Do' ] ]);
}

sub bodies {
    both('body-empty', body => '');
    both('body-binary', body => join '', map { chr } 0 .. 255);
    handled('body-limit', body => 'b' x $body_max);
    error('body-over', body => 'b' x ($body_max + 1));
    error('body-10x', body => 'b' x (10 * $body_max)) unless $peer->{pair} =~ /^kafka/;
    kind('error', 'body-over-in-a-row', map { { id => "kind-row-$_", body => 'b' x (1.5 * $body_max) } } 1 .. 6);
}

sub many { my ($count, $name, $value) = @_; return [ map { [ "$name$_" => $value ] } 1 .. $count ] }
sub headers {
    handled('headers-256', headers => many(254, 'h', 'v'));    # with the tag and the script
    error('headers-257', headers => many(257, 'h', 'v'));
    error('headers-5000-platform', headers => many(5_000, 'NServiceBus.', ''));
    error('headers-9000-empty', headers => many(9_000, '', ''));
    error('header-100k', headers => [ [ large => 'v' x 100_000 ] ]);
    error('header-100k-moved', headers => [ [ large => 'v' x 100_000 ] ], type => 'Hostile.Nobody');
    both('header-60k', headers => [ [ large => 'v' x 60_000 ] ]);
    both('header-name-empty', headers => [ [ '' => 'v' ] ]);
    both('header-name-255', headers => [ [ 'n' x 255 => 'v' ] ]);
    both('header-name-nul', headers => [ [ "a\0b" => 'v' ] ]);
    both('header-name-no-text', headers => [ [ "\xff\xfe" => "\xff\xfe" ] ]);
    both('header-name-lines', headers => [ [ $forged => $forged ] ]);
    both('header-twice', headers => [ [ twice => 'a' ], [ twice => 'b' ], [ Twice => 'c' ] ]);
    both('header-empty', headers => [ [ empty => '' ] ]);
}

sub replies {
    error('reply-none', reply => undef);
    error('reply-empty', reply => '');
    error('reply-no-text', reply => "\xff\xfe");
    error('reply-nul', reply => $peer->address('sink') . "\0x");
    error('reply-lines', reply => $forged);
    nowhere('reply-255', reply => 'r' x 255);
    error('reply-256', reply => 'r' x 256);
    error('reply-10k', reply => 'r' x 10_000);
    nowhere('reply-missing', reply => $peer->address('nowhere'));
    nowhere('reply-blank', reply => ' ');
    nowhere('reply-path', reply => '../../etc/passwd');
    nowhere('reply-quotes', reply => q(';drop table effects--));
    kind([ 1, 1 ], 'reply-to-itself', { reply => $peer->{name}, do => 'reply Hostile.Nobody kind reply-to-itself' });
    kind([ 1, 1 ], 'reply-to-error', { reply => $peer->{error_queue} });
    error('reply-type-10k', do => 'reply ' . 'T' x 10_000 . ' kind');
    error('publish-type-no-text', do => "publish \xff\xfe x");
    error('send-no-text', do => "send \xff\xfe T.T x");
}

# Headers of the platform that say what is not so.
sub claims {
    both('correlation-10k', headers => [ [ 'NServiceBus.CorrelationId' => 'c' x 10_000 ] ]);
    both('correlation-no-text', headers => [ [ 'NServiceBus.CorrelationId' => "\xff\0\xfe\n" ] ]);
    both('conversation-30k', headers => [ [ 'NServiceBus.ConversationId' => 'c' x 30_000 ] ]);
    both('content-type-10k', headers => [ [ 'NServiceBus.ContentType' => 'c' x 10_000 ] ]);
    both('intent', headers => [ [ 'NServiceBus.MessageIntent' => 'Harm' ] ]);
    both('times', headers => [ [ 'NServiceBus.TimeSent' => 'yesterday' ], [ 'NServiceBus.TimeToBeReceived' => '99:99:99' ] ]);
    both('failed-before', headers => [ [ 'NServiceBus.FailedQ' => 'x' x 1000 ], [ 'NServiceBus.Retries' => 'many' ], [ 'NServiceBus.FLRetries' => '-1' ],
        [ 'NServiceBus.TimeOfFailure' => 'never' ], [ "$exception.Message" => $forged ], [ "$exception.StackTrace" => 's' x 20_000 ] ]);
    both('trimmed-before', headers => [ [ 'Waybill.Trimmed' => 'everything' ] ]);
    both('key-60k', headers => [ [ 'Waybill.Key' => 'k' x 60_000 ] ]);
    both('key-no-text', headers => [ [ 'Waybill.Key' => "\xff\0\xfe" ] ]);
}

# ---- AMQP ----------------------------------------------------------------------------
sub nested {    # tables or lists in each other
    my ($kind, $depth) = @_;
    my $value = $kind eq 'F' ? Amqp::table() : Amqp::long('');
    $value = $kind eq 'F' ? Amqp::table([ a => [ F => $value ] ]) : Amqp::long("A$value") for 2 .. $depth;
    return [ $kind => $value ];
}
# From 0.14 on the client library decodes no more than 100 levels: what is deeper is rejected.
my $decodes_all = `pkg-config --modversion librabbitmq` =~ /^0\.(\d+)/ && $1 < 14;
sub deep {
    my ($name, $depth, %m) = @_;
    return both($name, %m) if $decodes_all || $depth <= 100;
    kind('absent', $name, \%m);
    kind('absent', "$name-moved", { %m, type => 'Hostile.Nobody' });
}
sub list { my ($count, $kind, $value) = @_; return [ A => Amqp::long("$kind$value" x $count) ] }

sub amqp {
    error('amqp-header-130k', headers => [ [ large => 'v' x 130_000 ] ]);
    error('amqp-header-130k-moved', headers => [ [ large => 'v' x 130_000 ] ], type => 'Hostile.Nobody');
    error('amqp-list-timestamps', headers => [ [ list => list(5_000, 'T', pack 'Q>', 1_700_000_000) ] ]);
    error('amqp-list-timestamps-moved', headers => [ [ list => list(5_000, 'T', pack 'Q>', 1_700_000_000) ] ], type => 'Hostile.Nobody');
    error('amqp-list-reals', headers => [ [ list => list(10_000, 'd', pack 'd>', -1.7976931348623157e308) ] ]);
    both('amqp-list-void', headers => [ [ list => list(20_000, 'V', '') ] ]);
    for my $depth (10, 100, 1000) {
        deep("amqp-tables-$depth", $depth, headers => [ [ deep => nested('F', $depth) ] ]);
        deep("amqp-lists-$depth",  $depth, headers => [ [ deep => nested('A', $depth) ] ]);
    }
    amqp_values();
    amqp_properties();
}

sub amqp_values {
    my %values = (
        'void' => [ V => '' ], 'true' => [ t => "\2" ], 'i8' => [ b => "\x80" ], 'u8' => [ B => "\xff" ], 'i16' => [ s => "\x80\0" ],
        'u16' => [ u => "\xff\xff" ], 'i32' => [ I => "\x80\0\0\0" ], 'u32' => [ i => "\xff" x 4 ], 'i64' => [ l => "\x80" . "\0" x 7 ],
        'u64' => [ L => "\xff" x 8 ], 'f32-nan' => [ f => "\x7f\xc0\0\0" ], 'f64-inf' => [ d => "\xff\xf0" . "\0" x 6 ],
        'f64-tiny' => [ d => "\0" x 7 . "\1" ], 'decimal' => [ D => "\xff\xff\xff\xff\xff" ], 'time-max' => [ T => "\xff" x 8 ],
        'time-past' => [ T => "\x80" . "\0" x 7 ], 'time-year-292e9' => [ T => "\x7f" . "\xff" x 7 ], 'bytes' => [ x => Amqp::long("\0\xff\n") ],
    );
    both("amqp-value-$_", headers => [ [ value => $values{$_} ] ]) for sort keys %values;
    # The platform's own headers as what they are not.
    error("amqp-type-as-$_", type => undef, headers => [ [ $types => $values{$_} ] ]) for qw(void i64 bytes);
    error('amqp-id-as-number', id => undef, headers => [ [ $message_id => $values{i64} ] ]);
    handled('amqp-type-as-list', type => undef, headers => [ [ $types => list(3, 'S', Amqp::long('Test.Do')) ] ]);
}

sub amqp_properties {
    my $sink = $peer->address('sink');
    nowhere("amqp-reply-$_->[0]", reply => $_->[1]) for [ topic => 'amq.topic' ], [ direct => 'amq.rabbitmq.reply-to' ], [ none => 'amq.nothing' ];
    handled('amqp-reply-header', reply => $sink, headers => [ [ 'NServiceBus.ReplyToAddress' => 'nowhere' ] ]);
    handled('amqp-id-header', headers => [ [ $message_id => 'another' ] ]);
    both('amqp-correlation-255', properties => { correlation_id => "\xff" x 255 });
    both('amqp-priority', properties => { priority => 255 });
    both("amqp-delivery-mode-$_", properties => { delivery_mode => $_ }) for 0, 255;
    both('amqp-encoding', properties => { content_encoding => 'gzip' });
    both('amqp-content-type', properties => { content_type => "\xff" x 255 });
    both("amqp-timestamp-$_->[0]", properties => { timestamp => $_->[1] }) for [ 0, 0 ], [ max => ~0 ], [ negative => 1 << 63 ];
    both('amqp-app', properties => { app => "\xff" x 255, cluster => 'c' x 255 });
    handled('amqp-type-property', type => undef, properties => { type => 'Test.Do' });
    error('amqp-type-property-no-text', type => undef, properties => { type => "\xff" x 255 });
    either('amqp-user', properties => { user => 'root' });
    either("amqp-expiration-$_", properties => { expiration => $_ }) for 'soon', '-1', '1e9', "\xff";
    amqp_routes();
    amqp_doubles();
    amqp_bookkeeping();
}

# Headers that the broker reads as routes, and that stand in what it delivers: the copy for the error queue
# goes nowhere else.
sub amqp_routes {
    my $own = Amqp::long($peer->{name});
    either("amqp-copy-to", headers => [ [ CC => 'error' ] ]);
    for my $header (qw(CC BCC)) {
        both("amqp-copy-to-itself-$header", headers => [ [ $header => list(1, 'S', $own) ] ]);
        both("amqp-copy-to-itself-$header-twice", headers => [ map { [ $header => list(2, 'S', $own) ] } 1, 2 ]);
    }
}

# A property stands for each header of a name, however many there are.
sub amqp_doubles {
    my %names = (correlation_id => 'NServiceBus.CorrelationId', content_type => 'NServiceBus.ContentType', app => 'Waybill.AppId');
    for my $property (sort keys %names) {
        my %m = (properties => { $property => 'd' x 255 });
        both("amqp-doubles-$property", %m, headers => [ map { [ $names{$property} => '' ] } 1 .. 40 ]);
        error("amqp-doubles-$property-many", %m, headers => [ map { [ $names{$property} => '' ] } 1 .. 200 ], type => 'Hostile.Nobody');
    }
}

# What brokers add to messages, on first deliveries.
sub amqp_bookkeeping {
    my %counts = (huge => [ l => "\x7f" . "\xff" x 7 ], negative => [ l => "\xff" x 8 ], i8 => [ b => "\xff" ], large => [ I => pack 'N', 1000 ],
        text => 'often', table => [ F => Amqp::table([ a => 'b' ]) ]);
    handled("amqp-delivered-$_", headers => [ [ 'x-delivery-count' => $counts{$_} ] ]) for sort keys %counts;
    error('amqp-delivered-huge-moved', headers => [ [ 'x-delivery-count' => $counts{huge} ] ], type => 'Hostile.Nobody');
    both('amqp-death-text', headers => [ [ 'x-death' => 'by chocolate' ], [ 'x-first-death-queue' => "\xff" ] ]);
    both('amqp-death-list', headers => [ [ 'x-death' => list(100, 'F', Amqp::table([ count => [ l => "\xff" x 8 ] ], [ queue => 'q' ])) ] ]);
    both('amqp-delay', headers => [ [ 'NServiceBus.Transport.RabbitMQ.DelayInSeconds' => [ l => "\xff" x 8 ] ],
        [ 'NServiceBus.Transport.RabbitMQ.ConfirmationId' => 'x' x 1000 ], [ 'NServiceBus.Transport.RabbitMQ.UseNonPersistentDelivery' => 'maybe' ] ]);
}

# ---- Kafka -----------------------------------------------------------------------------
sub kafka {
    my $i = 0;
    my %codecs = map { $_ => $i++ } qw(none gzip snappy lz4 zstd committed aborted);
    both('kafka-tombstone', value => undef, key => 'k');
    error('kafka-bare', id => undef, type => undef, do => undef, reply => undef, untold => 1, body => 'kind kafka-bare');
    both('kafka-key-empty', key => '');
    both('kafka-key-60k', key => 'k' x 60_000);
    error('kafka-key-1m', key => 'k' x 1_000_000);
    both('kafka-key-binary', key => "\0\xff\n");
    both('kafka-header-null', headers => [ [ null => undef ] ]);
    error('kafka-type-null', type => undef, headers => [ [ $types => undef ] ]);
    error('kafka-id-null', id => undef, headers => [ [ $message_id => undef ] ]);
    error('kafka-header-1m', headers => [ [ large => 'v' x 1_000_000 ] ]);
    error('kafka-header-1m-moved', headers => [ [ large => 'v' x 1_000_000 ] ], type => 'Hostile.Nobody');
    error('kafka-headers-60000', headers => many(60_000, '', ''));
    both('kafka-name-60k', headers => [ [ 'n' x 60_000 => 'v' ] ]);
    both("kafka-time-$_->[0]", timestamp => $_->[1], risky => 1) for [ none => -1 ], [ first => 1 ], [ far => 253_402_300_799_000 ];
    both("kafka-codec-$_", codec => $codecs{$_}) for qw(gzip snappy lz4 zstd);
    both('kafka-committed', codec => $codecs{committed});
    kind('absent', 'kafka-aborted', { codec => $codecs{aborted} });
    kind('absent', 'kafka-aborted-failing', { codec => $codecs{aborted}, type => 'Hostile.Nobody' });
    nowhere('kafka-topic-of-offsets', reply => '__consumer_offsets');
    nowhere("kafka-reply-$_->[0]", reply => $_->[1]) for [ dots => '..' ], [ 250 => 't' x 250 ], [ slash => 'a/b' ];
}

# ---- rows --------------------------------------------------------------------------------
sub damaged { my ($name, %row) = @_; error("row-$name", row => \%row) }
sub sqlite {
    my $headers = pack 'V V/a x V/a x', 1, '!kind', 'x';
    either('row-id-integer', id => '4711', row => { id => '4711' });
    either('row-id-real', id => '1.5', row => { id => '1.5' });
    either('row-id-text', row => { id => "'kind-row-id-text'" });
    either('row-body-text', row => { body => "'kind row-body-text'" });
    either('row-body-integer', row => { body => '-1' });
    either('row-key-real', row => { key => '-1e308' });
    damaged('headers-integer', headers => '42');
    damaged('headers-text', headers => "'NServiceBus.EnclosedMessageTypes: Test.Do'");
    damaged('headers-empty', headers => "x''");
    damaged('headers-cut', headers => "x'" . unpack('H*', substr $headers, 0, -3) . "'");
    damaged('headers-tail', headers => "x'" . unpack('H*', "${headers}more") . "'");
    damaged('headers-count-more', headers => "x'" . unpack('H*', pack('V', 2) . substr $headers, 4) . "'");
    damaged('headers-count-less', headers => "x'" . unpack('H*', pack('V', 0) . substr $headers, 4) . "'");
    damaged('headers-count-lies', headers => "x'" . unpack('H*', pack('V', 0xffffffff) . substr $headers, 4) . "'");
    damaged('headers-size-lies', headers => "x'" . unpack('H*', pack('V V', 1, 0xffffffff) . 'a') . "'");
    damaged('headers-zeros', headers => 'zeroblob(1000000)');
    error('row-headers-20m', row => { headers => 'randomblob(20000000)' });
    error('row-body-20m', row => { body => 'zeroblob(20000000)' });
    error('row-id-1m', row => { id => 'zeroblob(1000000)' });
    either('row-key-1m', row => { key => 'zeroblob(1000000)' });
    both('row-seq-gap', row => { seq => "(select max(seq) + 100000 from waybill_message_@{[ $peer->number($peer->{name}) ]} where seq < 1000000000)" });
    # Numbers begin with 1: nobody looks below.
    kind('absent', 'row-seq-zero', { row => { seq => '0' }, stays => 1 });
    kind('absent', 'row-seq-least', { row => { seq => '-9223372036854775808' }, stays => 1 });
    handled('row-seq-far', row => { seq => '9000000000000000000' });
    # Nothing can be sent to this queue while that row is there.
    apart(sub { handled('row-seq-most', row => { seq => '9223372036854775807' }) });
}

1;
