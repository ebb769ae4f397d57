#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A handler replies to the bytes FF FE, amid 70 good messages: the broker closes a connection that
# asks for such a name. It is not asked; nobody else's messages wait, or are handled again.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Peer;

Endpoint::under_servers(Peer::servers_of('amqp+pgsql'));

# A batch that fails is rolled back whole and its messages run again one by one, once (core/pipeline/isolate.c):
# those of the poison's were called before it. A connection that breaks takes what came after it along, too.
sub called_again_besides_company {
    my ($e) = @_;
    my (%calls, $poisoned, %before);
    for (split /\n/, Endpoint::read_file($e->{trace})) {
        my ($id) = /^call ([0-9a-f]+) / or next;
        $id = pack 'H*', $id;
        $poisoned ||= $id =~ /poison/;
        $before{$id} = 1 unless $poisoned;
        $calls{$id}++;
    }
    return sort grep { !/poison/ && $calls{$_} > ($before{$_} ? 2 : 1) } keys %calls;
}

for my $outbox ('enabled = true;', '') {
    my $what = $outbox ? 'with the outbox' : 'without it';
    my $e = Peer->new('amqp+pgsql', name => $outbox ? 'kept' : 'plain', error_queue => $outbox ? 'kept.error' : 'plain.error', concurrency => 2, outbox => $outbox);
    $e->install;
    my @good = $e->some_good(70);
    my %poison = (id => "$e->{name}-poison", do => 'reply Hostile.Sent poison', reply => "\xff\xfe", body => 'poison');
    $e->inject($e->{name}, @good[ 0 .. 34 ], \%poison, @good[ 35 .. 69 ]);
    $e->start;
    $e->is_all_good($what, 20, @good);
    my ($copy) = $e->collect($e->{error_queue}, 1, "$what: the poison is in the error queue");
    is $copy->{body}, 'poison', "$what: as it was";
    like $copy->{header}{'NServiceBus.ExceptionInfo.Message'}, qr/repl|address|destination|UTF-8/i, "$what: with the reason";
    is_deeply [ called_again_besides_company($e) ], [], "$what: nobody but its batch's was called again";
    is_deeply [ grep { /session was lost|broker/ } $e->lines ], [], "$what: and the connection stayed";
    is scalar $e->error, 0, "$what: and nobody else is in the error queue";
    $e->is_well($what, 64, 100);
    $e->stops($what, 10);
    is $e->left, 0, "$what: nothing is left";
}
done_testing;
