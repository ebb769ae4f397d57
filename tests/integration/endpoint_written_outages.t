#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Programs write in SQL while the broker is away, while it dies, while an instance of the endpoint is killed: every
# message comes, of each key in the order of the commits, and what comes twice is the same.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;
use Servers;
use Written;

Written::need();
Servers::start('pgsql', 'rabbitmq');
my $started = time;
my $e = Endpoint->new('amqp+pgsql', name => 'desk', outbox => 'enabled = true;', retries => 0, with => 'start = "wait";',
    transport => 'connect_timeout = "3s";');
my ($code, $text) = $e->run('install', '--sql-api');
die "install --sql-api: $code: $text" if $code;
$e->prepare;
$e->start for 1, 2;
my @programs = map { Written->new($e) } 1, 2;

sub rows { return ($e->sql('select count(*) from ' . Written::table($e)))[0][0] }

# RabbitMQ writes the state of its quorum queues each five seconds: killed sooner it may come back with queues that
# never find a leader.
sub broker_dies {
    my $left = $started + 6 - time;
    sleep $left if $left > 0;
    $e->forget_broker;
    is Servers::server('crash', 'rabbitmq'), 0, 'the broker dies';
}
sub broker_comes { is Servers::server('restart', 'rabbitmq'), 0, 'the broker is back'; $started = time }

sub instance_is_killed {
    kill 'KILL', my $pid = shift @{ $e->{processes} };
    is $e->await_exit($pid), 'signal 9', 'an instance is killed';
    $e->start;
}

# Both programs write so many, each under keys of its own and under such as the other has, too, and without.
sub write_both { my ($round, $count) = @_; $programs[$_]->tell('keyed', $count, 'sink', 'Test.Written', "$round.$_") for 0, 1 }
sub heard { my ($what) = @_; is $_->hear, 'ok', "$what: a program has committed all" for @programs }

my @got;
# What came of a round, the first copy of each.
sub firsts {
    my ($round) = @_;
    my %seen;
    return grep { $_->{body} =~ /^\Q$round\E\./ && !$seen{ $_->{body} }++ } @got;
}
sub await {
    my ($what, $round, $count) = @_;
    $e->wait_for("$what: every message comes", sub { push @got, eval { $e->read('sink') }; firsts($round) >= 2 * $count && rows() == 0 }, 90);
    push @got, $e->read('sink');
    is scalar(firsts($round)), 2 * $count, "$what: and no other";
}

# By key: the bodies.
sub of_keys { my %of; push @{ $of{ $_->[0] } }, $_->[1] for @_; return \%of }
sub arrived { my ($round) = @_; return of_keys(map { my $k = $_->{header}{key}; $k ? [ $k, $_->{body} ] : () } firsts($round)) }

sub same_copies {
    my ($what) = @_;
    my %ids;
    $ids{ $_->{body} }{ $_->{id} } = 1 for @got;
    is_deeply [ grep { keys %{ $ids{$_} } != 1 } sort keys %ids ], [], "$what: each has one id";
}

# ---- it is away while they write ----------------------------------------------------------
sub written_while_away {
    my $count = 200;
    $programs[0]->say('send', 'sink', 'Test.Written', 'before');
    $programs[0]->say('commit');
    $e->wait_for('a message comes', sub { push @got, $e->read('sink'); @got && rows() == 0 });
    @got = ();
    broker_dies();
    write_both('away', $count);
    heard('away');
    $e->wait_for('away: it is missed', sub { $e->log_lines('the broker is away') });
    is rows(), 2 * $count, 'away: what was written waits';
    my $written = of_keys($e->sql(q(select key, convert_from(body, 'UTF8') from ) . Written::table($e) . ' where key is not null order by number'));
    broker_comes();
    await('away', 'away', $count);
    is scalar(@got), 2 * $count, 'away: once';
    is_deeply arrived('away'), $written, 'away: of each key in the order of the commits';
    same_copies('away');
}

# ---- it dies while they write, and so do instances --------------------------------------------
# Of a key that one program writes the order is its own.
sub own_keys_ascend {
    my ($what, $round) = @_;
    my $of = arrived($round);
    is_deeply [ grep { my $key = $_; my @n = map { /(\d+)$/ } @{ $of->{$key} }; "@n" ne join ' ', sort { $a <=> $b } @n } grep { /\./ } sort keys %$of ], [],
        "$what: of each key in the order of the commits";
}

sub dies_while_they_write {
    my ($count) = 600;
    @got = ();
    write_both('dies', $count);
    $e->wait_for('dies: some came', sub { push @got, $e->read('sink'); firsts('dies') > 50 });
    instance_is_killed();
    broker_dies();
    instance_is_killed();
    broker_comes();
    instance_is_killed();
    heard('dies');
    await('dies', 'dies', $count);
    own_keys_ascend('dies', 'dies');
    same_copies('dies');
    diag sprintf '%d messages came, %d of them once more', 2 * $count, @got - 2 * $count;
}

written_while_away();
dies_while_they_write();
is $_->end, 0, 'a program ends' for @programs;
is $e->stop, 0, 'the endpoint stops';
done_testing;
