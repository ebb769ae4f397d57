#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Messages of Kafka known by their positions, with each persistence: processes that come and go while
# messages arrive, a group that begins anew from the start, a topic that is made anew.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Peer;

my @pairs = ('kafka+pgsql', 'kafka+sqlite', Endpoint::has_mysql() ? 'kafka+mysql' : ());
Endpoint::under_servers(Peer::servers_of(@pairs));

sub table {
    my ($e, $suffix) = @_;
    my $name = $e->{pair} =~ /sqlite/ ? "waybill_$e->{name}_$suffix" : "$e->{name}_$suffix";
    return $e->{pair} =~ /mysql/ ? "`$name`" : qq("$name");
}
sub count { my ($e, $suffix) = @_; return ($e->sql('select count(*) from ' . table($e, $suffix)))[0][0] }

# Who has left the group, and who was only stopped, is a member until its session has timed out; who was stopped while it
# waited to be let in begins that session when another one's is over.
sub await_nobody {
    my ($e) = @_;
    $e->wait_for('nobody is in the group any more', sub { my (undef, @members) = $e->tool('', 'crash/sink-kafka', 'members', $e->{name}, $e->{name}); !@members }, 150);
}

sub counts_effects {
    my ($e, $what, $wanted) = @_;
    my @twice = $e->sql('select id, count(*) from effects group by id having count(*) > 1');
    is_deeply \@twice, [], "$e->{pair}: $what: nothing has two effects";
    is $e->effects, $wanted, "$e->{pair}: $what: $wanted effects";
}

for my $pair (@pairs) {
    my $e = Peer->new($pair, name => "positions_@{[ $pair =~ /(\w+)$/ ]}", concurrency => 2, retries => 1, batch_max => 8,
        outbox => 'enabled = true; sweep_after = "1s"; cleanup_interval = "2s"; deduplication = { by = ["position"]; };');
    $e->install;

    # partitions move while messages arrive, one that fails among them
    $e->start for 1 .. 2;
    my @good;
    for my $round (1 .. 3) {
        my @some = $e->some_good(40);
        $_->{partition} = int rand 3 for @some;
        my $failing = { id => "$e->{name}-bad-$round", partition => int rand 3, do => 'fail unrecoverable no' };
        $e->inject($e->{name}, @some[ 0 .. 19 ], $failing, @some[ 20 .. 39 ]);
        push @good, @some;
        my $third = $e->start;
        $e->wait_for("round $round: some are handled", sub { $e->effects >= 40 * $round - 20 }, 60);
        kill $round % 2 ? 'KILL' : 'TERM', $third;
        $e->await_exit($third);
        $e->{processes} = [ grep { $_ != $third } @{ $e->{processes} } ];
    }
    # a process that is killed may have sent what another sends again
    $e->wait_for('while partitions move: all are handled', sub { $e->effects >= @good }, 60);
    my %out;
    $e->wait_for('while partitions move: their messages are out',
        sub { $out{ $_->{body} // '' } = 1 for $e->read($e->address('sink')); !grep { !$out{ $_->{id} } } @good }, 60);
    counts_effects($e, 'while partitions move', 120);
    my %failed;
    $e->wait_for('what failed is in the error queue', sub { $failed{ $_->{id} }++ for grep { index($_->{id}, "$e->{name}-") == 0 } $e->error; keys %failed == 3 });
    is $e->stop, 0, "$pair: stops cleanly";
    is count($e, 'dedup'), 0, "$pair: no record for any message";
    cmp_ok count($e, 'positions'), '<=', 3, "$pair: and a row for each partition at most";

    # the group forgets where it was: all of it comes again
    await_nobody($e);
    $e->tool('', 'crash/sink-kafka', 'rewind', $e->{name}, $e->{name});
    cmp_ok $e->waiting, '>', 100, "$pair: all messages wait again";
    $e->start;
    $e->wait_for('they are acknowledged', sub { $e->waiting == 0 }, 60);
    counts_effects($e, 'when all come again', 120);
    is $e->stop, 0, "$pair: stops cleanly";

    # the topic is made anew, and its offsets begin with 0
    await_nobody($e);
    $e->tool('', 'crash/sink-kafka', 'delete', '-', $e->{name});
    $e->install;
    $e->tool('', 'crash/sink-kafka', 'rewind', $e->{name}, $e->{name});    # as guide.md has it
    my @anew = map { { %$_, partition => 0 } } $e->some_good(3);
    $e->inject($e->{name}, @anew);
    my $pid = $e->spawn($e->{log}, 'run', '-c', $e->{conf});
    my $code = $e->await_exit($pid) // 'none';
    isnt $code, 0, "$pair: it refuses to run ($code)";
    ok $e->log_lines('was made anew.*waybill install --reset-positions'), "$pair: and says why, and what to do"
        or diag join "\n", ($e->lines)[ -3 .. -1 ];
    counts_effects($e, 'before somebody says so', 120);
    my ($reset, $text) = $e->run('install', '--reset-positions', '--sql-api');    # which has a table of its own
    is $reset, 0, "$pair: the positions are reset";
    is count($e, $_), 0, "$pair: and nothing is in the table $_" for qw(positions written);
    like $text, qr/positions of [1-3] partitions forgotten/, "$pair: which is said";
    $e->start;
    $e->is_all_good('when positions were reset', 60, @anew);
    is $e->stop, 0, "$pair: stops cleanly";
}
done_testing;
