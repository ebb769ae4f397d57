#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A batch hurts nobody: whatever one message does, its neighbours are handled, once.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(time sleep);
use Endpoint;

my $has_mysql = Endpoint::has_mysql();
Endpoint::under_servers(qw(pgsql rabbitmq), $has_mysql ? 'mariadb' : ());
my $exception = 'NServiceBus.ExceptionInfo';
my $case = 0;

# Put $count ordinary messages around and between the given ones, all there when the endpoint
# starts. They are handled once; returns their ids.
sub run_among {
    my ($e, $what, $count, @special) = @_;
    $case++;
    my @ids = map { "n$case-$_" } 1 .. $count;
    my @messages = map { { id => $_, type => @special && $special[0]{type} || 'Test.Do' } } @ids;
    splice @messages, 2 + 2 * $_, 0, $special[$_] for 0 .. $#special;
    $e->send('orders', @messages);
    $e->start;
    $e->wait_for("$what: the neighbours are handled once", sub { !$e->not_once(@ids) });
    return @ids;
}

sub failed {
    my ($e, $id, $pattern, $attempts) = @_;
    my ($got) = $e->collect('error', 1, "$id is in the error queue");
    is $got->{id}, $id, "$e->{pair}: $id";
    like $got->{header}{"$exception.Message"}, $pattern, "$e->{pair}: with the reason";
    is scalar($e->attempts($id)), $attempts, "$e->{pair}: after $attempts attempts" if $attempts;
    is $e->effects($id), 0, "$e->{pair}: without effect";
}

sub finish {
    my ($e, @ids) = @_;
    is_deeply [ $e->not_once(@ids) ], [], "$e->{pair}: nobody was handled again";
    is $e->stop, 0, "$e->{pair}: stops cleanly";
    is $e->depth('orders'), 0, "$e->{pair}: the queue is empty";
    is $e->depth('error'), 0, "$e->{pair}: the error queue is empty";
}

sub check_same_id {
    my ($e) = @_;
    my @ids = run_among($e, 'the same id three times', 12, map { { id => 'twin', do => 'send sink T.Twin x' } } 1 .. 3);
    finish($e, @ids, 'twin');
    is scalar($e->read('sink')), 1, "$e->{pair}: one effect, one message out";
}

# A copy of a message that fails is the same message.
sub check_same_id_failing {
    my ($e) = @_;
    my @ids = run_among($e, 'a failing message twice', 12, map { { id => 'bad-twin', do => 'fail unrecoverable no' } } 1 .. 2);
    failed($e, 'bad-twin', qr/^no$/);
    finish($e, @ids);
}

sub check_batch_handler {
    my ($e) = @_;
    my @ids = run_among($e, 'batch handler', 120, { id => 'odd', type => 'Test.Batch', do => 'fail retry odd one' });
    failed($e, 'odd', qr/^odd one$/);
    my @counts = map { /^call \S+ \d+ (\d+)/ ? $1 : () } split /\n/, Endpoint::read_file($e->{trace});
    ok((grep { $_ > 2 } @counts), "$e->{pair}: called with many messages");
    my $hex = unpack 'H*', 'odd';
    my @alone = grep { /^call $hex \d+ 1$/ } split /\n/, Endpoint::read_file($e->{trace});
    is scalar(@alone), 6, "$e->{pair}: the failing one has its attempts alone";
    finish($e, @ids);
}

# Messages with one key keep their order, also when some are collected for a batch handler.
sub check_order_of_keys {
    my ($e) = @_;
    my @mixed = map { { id => "key-$_", key => $_ % 3 ? 'k' : 'other', type => $_ % 2 ? 'Test.Do' : 'Test.Batch' } } 1 .. 18;
    my @ids = run_among($e, 'two handlers, one key', 4, @mixed);
    $e->wait_for('all are handled', sub { !$e->not_once(map { $_->{id} } @mixed) });
    my %place;
    $place{ pack 'H*', $_->[0] } = keys %place for $e->sql('select id from effects order by rowid');
    for my $key (qw(k other)) {
        my @sent = map { $_->{id} } grep { $_->{key} eq $key } @mixed;
        is_deeply [ sort { $place{$a} <=> $place{$b} } @sent ], \@sent, "$e->{pair}: order of key $key";
    }
    finish($e, @ids, map { $_->{id} } @mixed);
}

# Handlers that break the rules: what they do, and the reason that is given.
my %misuse = (
    sqlite => {
        commits => [ 'sql commit', qr/transaction/ ], 'rolls-back' => [ 'sql rollback', qr/transaction/ ],
        'rolls-back-and-begins' => [ "sql rollback\nsql begin immediate", qr/ended the transaction/ ],
    },
    pgsql => {
        commits => [ 'sql commit', qr/transaction/ ], 'rolls-back' => [ 'sql rollback', qr/transaction/ ],
        'commits-and-begins' => [ 'sql commit; begin', qr/ended the transaction/ ], 'commits-and-chains' => [ 'sql commit and chain', qr/ended the transaction/ ],
        'rolls-back-and-begins' => [ 'sql rollback; begin', qr/ended the transaction/ ],
        ignores => [ 'ignore insert into nowhere values (1)', qr/"nowhere" does not exist/ ], defers => [ 'defer select 1/0', qr/division by zero/ ],
        pipelines => [ 'pipeline', qr/pipeline mode/ ], 'reads-not' => [ 'unread select 1', qr/./ ],
        'breaks-off' => [ 'sql select pg_terminate_backend(pg_backend_pid())', qr/terminat/ ],
    },
    mysql => {
        commits => [ 'sql commit', qr/ended the transaction/ ], 'rolls-back' => [ 'sql rollback', qr/ended the transaction/ ],
        'commits-and-begins' => [ "sql commit\nsql begin", qr/ended the transaction/ ],
        'rolls-back-and-begins' => [ "sql rollback\nsql begin", qr/ended the transaction/ ],
        'commits-by-ddl' => [ 'sql create or replace table made_by_a_handler (a int)', qr/ended the transaction/ ],
        'commits-by-setting' => [ 'sql set autocommit = 1', qr/ended the transaction/ ],
        defers => [ 'defer insert into nowhere values (1)', qr/nowhere' doesn't exist/ ], 'defers-ddl' => [ 'defer drop table effects', qr/./ ],
        'reads-not' => [ 'unread select 1', qr/unread/ ], 'breaks-off' => [ 'sql kill connection_id()', qr/killed|interrupted|lost/i ],
    },
);

sub check_misuse {
    my ($e) = @_;
    my ($store) = $e->{pair} =~ /\+(\w+)/;
    for my $id (sort keys %{ $misuse{$store} }) {
        my ($do, $reason) = @{ $misuse{$store}{$id} };
        my @ids = run_among($e, "a handler that $id", 10, { id => $id, do => $do });
        my ($got) = $e->collect('error', 1, "$id is in the error queue");
        is $got->{id}, $id, "$e->{pair}: $id alone";
        like $got->{header}{"$exception.Message"}, $reason, "$e->{pair}: with the reason";
        is $e->effects($id), 0, "$e->{pair}: without effect" unless $id =~ /^commits/;
        finish($e, @ids);
    }
}

# What one sets is neither its neighbours' nor the outbox' affair, in the next batch nor in its own commit.
my %sets = (
    pgsql => [ 'sql set role nobody_in_particular', 'sql set client_encoding = latin1', 'sql set search_path = nowhere', 'sql set default_transaction_read_only = on' ],
    mysql => [ 'sql set names gbk', q(sql set sql_mode = ''), 'sql use mysql', 'sql set completion_type = 2' ],
);

sub check_settings {
    my ($e) = @_;
    my ($store) = $e->{pair} =~ /\+(\w+)/;
    my @does = @{ $sets{$store} or return };
    $e->sql(q(do $$ begin if to_regrole('nobody_in_particular') is null then create role nobody_in_particular; end if; end $$)) if $store eq 'pgsql';
    my @setters = map { { id => "sets-$_", do => "send sink T.Sets $_\n$does[$_]" } } 0 .. $#does;
    my @ids = run_among($e, 'handlers that change settings', 40, @setters);
    $e->wait_for('the setters are done', sub { !$e->not_once(map { $_->{id} } @setters) });
    is scalar($e->collect('sink', scalar @setters)), scalar @setters, "$e->{pair}: what setters send is out";
    finish($e, @ids, map { $_->{id} } @setters);
}

# In MySQL the transaction goes on after a statement that failed, so a handler may look away.
sub check_forgiven {
    my ($e) = @_;
    my %does = (ignores => 'ignore insert into nowhere values (1)');
    for my $id (sort keys %does) {
        my @ids = run_among($e, "a handler that $id", 10, { id => $id, do => $does{$id} });
        $e->wait_for('it is handled', sub { $e->effects($id) });
        $e->wait_for('and acknowledged', sub { $e->depth('orders') == 0 });
        my $answers = sub { return my @lines = $e->log_lines(qr/msg="since the start"/) };
        my $before = $answers->();
        kill 'USR1', $e->{processes}[0];
        $e->wait_for('it is counted', sub { $answers->() > $before });
        like +($answers->())[-1], qr/ handled=11 failed=0 moved=0 duplicates=0 /, "$e->{pair}: $id: each is counted as handled, none as a duplicate";
        finish($e, @ids, $id);
    }
}

# Slow handlers: claims of what was not reached are given back, so a copy that another
# worker has is not held up for the whole batch.
sub check_slow {
    my ($e) = @_;
    $e->configure(batch_time => '20ms', concurrency => 2);
    my $started = time;
    my @slow = map { { id => "slow-$_", do => "sleep 200\nsend sink T.Slow $_" } } 1 .. 4;
    my @ids = run_among($e, 'slow handlers', 30, @slow);
    $e->send('orders', map { { id => $_ } } @ids);    # copies, while the slow ones run
    $e->wait_for('all are handled', sub { !$e->not_once(@ids, map { $_->{id} } @slow) });
    cmp_ok time - $started, '<', 5, "$e->{pair}: in the time that they need";
    is scalar($e->collect('sink', 4)), 4, "$e->{pair}: their messages are out";
    $e->wait_for('the copies are dropped', sub { $e->depth('orders') == 0 });
    is $e->depth('sink'), 0, "$e->{pair}: once";
    finish($e, @ids, map { $_->{id} } @slow);
    $e->configure(batch_time => undef, concurrency => 1);
}

# Until a message is in each worker's hands at the same time; returns their ids.
sub occupy_both {
    my ($e, $gate) = @_;
    my @ids;
    my $next = sub { push @ids, 'held-' . @ids; $e->send('orders', { id => $ids[-1], do => "wait $gate" }) };
    $e->wait_for('both workers are at work', sub { (grep { $e->attempts($_) } @ids) == 2 || !$next->() });
    return @ids;
}

sub open_gate { my ($gate) = @_; open my $file, '>', $gate or die "$gate: $!"; close $file }

# Two workers that lock two rows in opposite order, the second when both have the first.
sub check_deadlock {
    my ($e) = @_;
    $e->sql('create table account (k int primary key, n int not null); insert into account values (1, 0), (2, 0)');
    $e->configure(concurrency => 2, batch_max => 1);
    $e->start;
    my @ids = occupy_both($e, "$e->{dir}/begin");
    open_gate("$e->{dir}/begin");
    $e->wait_for('and free again', sub { !$e->not_once(@ids) });
    my $add = 'sql update account set n = n + 1 where k = ';
    my $gate = "$e->{dir}/cross";
    $e->send('orders', { id => 'forth', do => [ $add . 1, "wait $gate", $add . 2 ] }, { id => 'back', do => [ $add . 2, "wait $gate", $add . 1 ] });
    $e->wait_for('each has locked a row', sub { !$e->sql('select k from account for update skip locked') });
    open_gate($gate);
    $e->wait_for('both are handled', sub { !$e->not_once(qw(forth back)) });
    is_deeply [ $e->sql('select n from account order by k') ], [ [2], [2] ], "$e->{pair}: once";
    ok scalar($e->log_lines(qr/deadlock detected|Deadlock found/)), "$e->{pair}: after a deadlock" or diag Endpoint::read_file($e->{trace});
    finish($e, @ids, qw(forth back));
}

# A transaction that does not end, of a slow handler or of a process that is frozen, has what one message needs: the
# others of its batch go on, and it waits.
sub check_contested {
    my ($e, $lock_timeout) = @_;
    $e->configure(concurrency => 1, batch_max => 32, store => qq(lock_timeout = "$lock_timeout";));
    $e->send('orders', { id => 'contested' });
    $e->start;
    $e->wait_for('it is handled', sub { $e->effects('contested') == 1 });
    is $e->stop, 0, "$e->{pair}: stops cleanly";
    $e->sql($_) for 'set session ' . ($e->{pair} =~ /mysql/ ? '' : 'characteristics as ') . 'transaction isolation level read committed',
        'begin', "delete from $e->{name}_dedup";
    my @ids = run_among($e, 'a message whose id is locked', 20, { id => 'contested' });
    ok scalar($e->log_lines(qr/cannot go on and tries again/)), "$e->{pair}: what it waits for is said";
    my @late = map { "late-$_" } 1 .. 20;
    $e->send('orders', map { { id => $_ } } @late);
    $e->wait_for('those that come later are handled, too', sub { !$e->not_once(@late) });
    $e->sql('rollback');
    $e->wait_for('the copy is dropped when it can be', sub { kill 'USR1', $e->{processes}[0]; $e->log_lines(qr/msg="since the start".* duplicates=1 /) });
    finish($e, @ids, @late, 'contested');
    $e->configure(store => undef);
}

# Another process keeps the database busy for longer than busy_timeout: a line says so, and
# nothing is lost.
sub check_busy {
    my ($e) = @_;
    my $holder = Endpoint->new($e->{pair}, name => 'holder');
    $holder->install;
    $holder->send('holder', { id => 'holds', do => 'sleep 1500' });
    $holder->start;
    $holder->wait_for('another endpoint holds the file', sub { $holder->attempts('holds') });
    $e->configure(store => 'busy_timeout = "100ms";');
    my @ids = run_among($e, 'a busy file', 5);
    is scalar($e->log_lines(qr/cannot go on and tries again.*another writer/)), 1, "$e->{pair}: one line says so";
    is scalar($e->log_lines(qr/at work again/)), 1, "$e->{pair}: one says that it is over";
    finish($e, @ids);
    is $holder->stop, 0, "$e->{pair}: the other one stops cleanly";
}

for my $pair ('amqp+pgsql', 'sqlite+sqlite', $has_mysql ? 'sqlite+mysql' : ()) {
    my $e = Endpoint->new($pair);
    $e->install;
    check_same_id($e);
    check_same_id_failing($e);
    check_batch_handler($e);
    check_misuse($e);
    check_settings($e);
    check_slow($e) unless $pair =~ /mysql/;
    check_forgiven($e) if $pair =~ /mysql/;
    check_deadlock($e) if $pair =~ /pgsql|mysql/;
    check_contested($e, $pair =~ /mysql/ ? '1s' : '100ms') if $pair =~ /pgsql|mysql/;
    check_busy($e) if $pair =~ /\+sqlite/;
    check_order_of_keys($e) if $pair =~ /\+sqlite/;
}
done_testing;
