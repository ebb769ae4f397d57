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
    is_deeply [ map { scalar $e->attempts($_->{id}) } @good[ 0 .. 4, 65 .. 69 ] ], [ (1) x 10 ], "$what: nobody was called again for its sake"
        if !$outbox;
    is scalar $e->error, 0, "$what: and nobody else is in the error queue";
    $e->is_well($what, 64, 100);
    $e->stops($what, 10);
    is $e->left, 0, "$what: nothing is left";
}
done_testing;
