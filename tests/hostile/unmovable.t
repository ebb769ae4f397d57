#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Messages that nobody handles and that no queue takes once the reasons are added: the copy is
# trimmed, and says so; what is refused even then is set aside, and nobody waits for it.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Amqp;
use Peer;

Endpoint::under_servers(Peer::servers_of('amqp+pgsql', 'kafka+sqlite'));
my $trimmed = 'Waybill.Trimmed';

# The broker's limit is a frame: 128 KiB for all headers of a message.
sub by_their_headers {
    my ($outbox) = @_;
    my $what = $outbox ? 'large headers' : 'large headers, no outbox';
    my $e = Peer->new('amqp+pgsql', name => $outbox ? 'headers' : 'headers-plain', concurrency => 2, outbox => $outbox,
        error_queue => $outbox ? 'headers.error' : 'headers-plain.error');
    my $timestamps = [ A => Amqp::long(join '', map { 'T' . pack 'Q>', 1_700_000_000 } 1 .. 5_000) ];
    my @bad = (
        { id => 'one-header', type => 'Hostile.Nobody', body => 'body one', headers => [ [ small => 'kept' ], [ large => 'v' x 130_000 ] ] },
        { id => 'timestamps', type => 'Hostile.Nobody', body => 'body two', headers => [ [ small => 'kept' ], [ list => $timestamps ] ] },
    );
    $e->install;
    my @good = $e->some_good(40);
    $e->inject($e->{name}, @bad, @good);
    $e->start;
    my %copy = map { $_->{id} => $_ } $e->collect($e->{error_queue}, 2, "$what: both are in the error queue");
    for (@bad) {
        my $copy = $copy{ $_->{id} } || {};
        is $copy->{body}, $_->{body}, "$what: $_->{id}: the body is whole";
        is $copy->{header}{small}, 'kept', "$what: $_->{id}: small headers stay";
        like $copy->{header}{'NServiceBus.FailedQ'} // '', qr/^headers/, "$what: $_->{id}: it says where from";
        # by the transport, before it took memory, or by who moves it
        like "@{[ map { $_ // '' } @{ $copy->{header} }{ $trimmed, 'NServiceBus.ExceptionInfo.Message' } ]}", qr/large|list|of \d+ headers were kept/, "$what: $_->{id}: and what was left out";
    }
    $e->is_all_good($what, 20, @good);
    $e->is_well($what, 64, 60);
    $e->stops($what, 10);
    is $e->left, 0, "$what: nothing is left";
}

# The error topic takes 20,000 bytes, the endpoint's 2 MiB.
sub by_a_small_topic {
    my $e = Peer->new('kafka+sqlite', name => 'topic', error_queue => 'topic.error', concurrency => 1, body_max => '1MiB', with => '',
        outbox => 'enabled = true; cleanup_interval = "1s"; sweep_after = "2s";');
    $e->install;
    $e->tool('', 'hostile/kafka-peer', 'config', $e->{error_queue}, 'max.message.bytes', 20_000);
    my @good = $e->some_good(60);
    my @bad = (
        { id => 'fat-headers', type => 'Hostile.Nobody', body => 'body', headers => [ [ small => 'kept' ], map { [ "large-$_" => 'v' x 9_000 ] } 1 .. 3 ] },
        { id => 'fat-body', type => 'Hostile.Nobody', body => 'b' x 100_000 },
        # 10 MiB that came as a few kilobytes
        { id => 'bomb', do => 'sql select 1', body => "\0" x (10 << 20), codec => 4 },
    );
    $e->inject($e->{name}, @good[ 0 .. 19 ], $bad[0], @good[ 20 .. 29 ], $bad[1], @good[ 30 .. 39 ], $bad[2], @good[ 40 .. 59 ]);
    $e->start;
    $e->is_all_good('a small error topic', 30, @good);
    my ($copy) = $e->collect($e->{error_queue}, 1, 'what can be trimmed is in the error queue');
    is $copy->{body}, 'body', 'its body is whole';
    is $copy->{header}{small}, 'kept', 'small headers stay';
    ok length $copy->{header}{$trimmed}, 'it says what was left out';
    for my $id ('fat-body', 'bomb') {
        $e->wait_for("$id waits in the outbox", sub { grep { index($_, $id) >= 0 } $e->pending });
        ok scalar grep({ /$id/ } $e->lines), "$id: a line says so";
    }
    $e->wait_for('nothing waits in the topic', sub { !$e->waiting });
    is_deeply [ map { scalar $e->attempts($_) } qw(fat-headers fat-body bomb) ], [ 0, 0, 0 ], 'no handler saw them';
    $e->is_well('a small error topic', 160, 100);
    $e->stops('a small error topic', 10);
    is $e->left, 0, 'nothing is left';
}

# Without the outbox there is nothing to park it in: it keeps its partition's offset, those behind it are
# handled, and when the error topic takes it all is done.
sub by_a_small_topic_without_outbox {
    my $e = Peer->new('kafka+sqlite', name => 'topic-plain', error_queue => 'topic-plain.error', concurrency => 2, body_max => '1MiB', outbox => '');
    $e->install;
    $e->tool('', 'hostile/kafka-peer', 'config', $e->{error_queue}, 'max.message.bytes', 20_000);
    my @good = $e->some_good(40);
    $e->inject($e->{name}, @good[ 0 .. 19 ], { id => 'fat-body', type => 'Hostile.Nobody', body => 'b' x 100_000 }, @good[ 20 .. 39 ]);
    $e->start;
    my $what = 'a small error topic, no outbox';
    $e->is_all_good($what, 30, @good);
    $e->wait_for("$what: a line says so", sub { grep { /fat-body/ } $e->lines });
    $e->wait_for("$what: the partition's offset waits for it", sub { $e->waiting == 21 });
    $e->tool('', 'hostile/kafka-peer', 'config', $e->{error_queue}, 'max.message.bytes', 2_000_000);
    my ($copy) = $e->collect($e->{error_queue}, 1, "$what: it is there when the topic takes it");
    is length $copy->{body}, 100_000, "$what: its body is whole";
    $e->wait_for("$what: nothing waits", sub { !$e->waiting });
    $e->is_well($what, 100, 100);
    $e->stops($what, 10);
    is $e->left, 0, "$what: nothing is left";
}

by_their_headers('enabled = true;');
by_their_headers('');
by_a_small_topic();
by_a_small_topic_without_outbox();
done_testing;
