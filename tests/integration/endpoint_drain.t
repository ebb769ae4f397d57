#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# waybill run --drain: it handles until nothing is left, delayed messages and pending operations included, and ends with 0;
# with 75 when that takes too long, or it is stopped before.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(time sleep);
use Peer;

Endpoint::under_servers('rabbitmq', 'pgsql', 'kafka');

# Exit code, and how long it took.
sub drain {
    my ($e, @options) = @_;
    my $started = time;
    my $pid = $e->spawn($e->{log}, 'run', '-c', $e->{conf}, '--drain', @options);
    my $code = $e->await_exit($pid, 90);
    return ($code, time - $started);
}

sub drains {
    my ($e, $what, $least, $most, @options) = @_;
    my ($code, $took) = drain($e, @options);
    is $code, 0, "$e->{pair}: $what: ends with 0";
    ok $took >= $least && $took < $most, sprintf '%s: %s: %.1f s', $e->{pair}, $what, $took;
    return $took;
}

# Told to stop when it has said that something is left.
sub stopped {
    my ($e, @options) = @_;
    my $said = sub { return scalar(my @lines = $e->log_lines(qr/msg="not drained yet"/)) };
    my $before = $said->();
    my $pid = $e->spawn($e->{log}, 'run', '-c', $e->{conf}, '--drain', @options);
    $e->wait_for('it says that it is not drained yet', sub { $said->() > $before });
    kill 'TERM', $pid;
    return $e->await_exit($pid);
}

# Records of attempts, as core/recover/attempts.c writes them: they stand before every pending operation, and are no work.
sub add_records {
    my ($e, $count) = @_;
    my $record = '57424131' . 'ff' x 8 . '00000001';    # written far from now: no retention removes it
    my ($table, $bytes) = $e->{pair} =~ /sqlite/ ? ('waybill_orders_pending', "x'$record'") : ('orders_pending', "'\\x$record'::bytea");
    $e->sql("with recursive n(i) as (select 1 union all select i + 1 from n where i < $count) insert into $table (batch, operations) select i, $bytes from n");
}

# Delayed ones need a store, or a broker that delays.
my $stored = 'delayed_delivery = { by = "store"; };';
my @pairs = (
    Endpoint->new('sqlite+sqlite', concurrency => 2, with => $stored, outbox => 'enabled = true; sweep_after = "1s"; cleanup_interval = "1s";'),
    Endpoint->new('amqp+pgsql', concurrency => 2, with => $stored, outbox => 'enabled = true; sweep_after = "1s"; cleanup_interval = "1s";'),
);

for my $e (@pairs) {
    $e->install;
    drains($e, 'nothing to do', 2, 14, '--idle', 2);

    my @ids = map { "first-$_" } 1 .. 50;
    $e->send('orders', map { { id => $_, do => "send sink T.Out $_" } } @ids);
    drains($e, 'fifty messages', 2, 20, '--idle', 2);
    is_deeply [ $e->not_once(@ids) ], [], "$e->{pair}: all are handled";
    is scalar($e->read('sink')), 50, "$e->{pair}: and sent";

    # one message begets others, with pauses shorter than --idle
    $e->send('orders', { id => 'slow', do => [ 'sleep 3000', 'header do sleep 3000', 'send orders Test.Do x' ] });
    drains($e, 'who is at work is waited for', 5, 30, '--idle', 2);
    is $e->effects('slow'), 1, "$e->{pair}: until it is done";
    is $e->depth('orders'), 0, "$e->{pair}: what it sent, too";
    is_deeply [ $e->read('error') ], [], "$e->{pair}: nothing failed";

    $e->send('orders', { id => 'later', do => [ 'delay 6000', 'send sink T.Out later' ] });
    drains($e, 'a delayed message is waited for', 7, 40, '--idle', 2);
    is_deeply [ map { $_->{body} } $e->read('sink') ], ['later'], "$e->{pair}: and is out";

    $e->send('orders', { id => 'tomorrow', do => [ 'delay 86400000', 'send sink T.Out tomorrow' ] });
    my ($code, $took) = drain($e, '--idle', 1, '--patience', 4);
    is $code, 75, "$e->{pair}: one that is due tomorrow: ends with 75";
    ok $took > 3.5 && $took < 20, sprintf '%s: at its time limit: %.1f s', $e->{pair}, $took;
    ok scalar($e->log_lines(qr/^waybill: not drained in time: endpoint "orders": messages are delayed$/)),
        "$e->{pair}: and a line says what is left";
    is stopped($e, '--idle', 1), 75, "$e->{pair}: so it does when it is stopped";
    ok scalar($e->log_lines(qr/^waybill: stopped before all was drained: endpoint "orders": messages are delayed$/)),
        "$e->{pair}: and says what is left";
    $e->sql($e->{pair} =~ /sqlite/ ? 'delete from waybill_orders_delayed' : 'delete from orders_delayed');

    # its destination is not there: what it sends stays pending, behind more records of attempts than one look takes
    add_records($e, 1500);
    drains($e, 'records of attempts', 1, 20, '--idle', 1);
    $e->send('orders', { id => 'parked', do => 'send nowhere T.Out x' });
    my $says = qr/^waybill: not drained in time: endpoint "orders": 1 row of operations is pending$/;
    for (1 .. 5) {    # a database that others keep busy for seconds does not tell in time
        ($code) = drain($e, '-p', 5, '--idle', 1);
        last if $e->log_lines($says);
    }
    is $code, 75, "$e->{pair}: pending operations are something left";
    ok scalar($e->log_lines($says)), "$e->{pair}: and all that is";
}

# ---- a broker that delays by itself: the store has no table for it -------------------------------
{
    my $e = Endpoint->new('amqp+pgsql', name => 'native', concurrency => 2, outbox => 'enabled = true; sweep_after = "1s"; cleanup_interval = "1s";');
    $e->install;
    is_deeply [ $e->sql(q(select to_regclass('native_delayed') is null)) ], [ ['t'] ], "$e->{pair}: RabbitMQ delays, and there is no table";
    $e->send('native', map { { id => "native-$_", do => 'sleep 0' } } 1 .. 5);
    drains($e, 'messages that the broker would delay', 2, 20, '--idle', 2);
    is $e->effects("native-$_"), 1, "$e->{pair}: native-$_ is handled" for 1 .. 5;
}

# ---- a table that was missing for a while ----------------------------------------------------------
{
    my $e = Endpoint->new('amqp+pgsql', name => 'mended', concurrency => 1);
    $e->install;
    my $pid = $e->spawn($e->{log}, 'run', '-c', $e->{conf}, '--drain', '--idle', 1);
    $e->wait_for('it runs', sub { $e->log_lines(qr/endpoint starts/) });
    $e->sql('alter table mended_dedup rename to mended_off');
    $e->send('mended', { id => 'mended', do => 'sleep 0' });
    $e->wait_for('it tries, in vain', sub { $e->log_lines(qr/endpoint gave up/) >= 4 }, 30);
    $e->sql('alter table mended_off rename to mended_dedup');
    is $e->await_exit($pid, 60), 0, 'what was mended is no failure of a drain';
    is $e->effects('mended'), 1, 'which handled all';
    ok scalar($e->log_lines(qr/endpoint is well again/)), 'and says that all is well';
}

# ---- a queue that another instance alone receives from -----------------------------------------------
{
    my $e = Endpoint->new('amqp+pgsql', name => 'single', concurrency => 1);
    $e->amqp->declare('single', [ 'x-queue-type' => 'quorum' ], [ 'x-single-active-consumer' => [ t => "\1" ] ], [ 'x-delivery-limit' => [ l => pack 'q>', 50 ] ]);
    $e->install;
    $e->send('single', map { { id => "single-$_", do => 'sleep 700' } } 1 .. 20);
    $e->start;
    $e->wait_for('another instance has the queue', sub { $e->effects('single-1') });
    my ($code) = drain($e, '--idle', 1, '-p', 4);
    is $code, 75, 'a drain that gets nothing of it is not done';
    ok scalar($e->log_lines(qr/^waybill: not drained in time: endpoint "single": \d+ messages wait in its queue, and this instance gets none of them/)), 'and says why';
    drains($e, 'with time', 3, 40, '--idle', 1);
    is $e->depth('single'), 0, 'it waits until the queue is empty';
    is $e->stop, 0, 'the other one stops';
    is_deeply [ $e->not_once(map { "single-$_" } 1 .. 20) ], [], 'all are handled';
}

# ---- a queue file that cannot be written ----------------------------------------------------------
# Locked, by an endpoint whose handler keeps it.
{
    my $busy = Endpoint->new('sqlite+sqlite', name => 'busy', files => 'locked-', mode => 'transaction_scope', outbox => '');
    my $e    = Endpoint->new('sqlite+sqlite', name => 'locked', files => 'locked-', concurrency => 1, transport => 'busy_timeout = "500ms";');
    $_->install for $busy, $e;
    $e->send('locked', map { { id => "locked-$_", do => 'sleep 0' } } 1 .. 3);
    $busy->send('busy', { id => 'holds', do => "wait $busy->{dir}/gate" });
    $busy->start;
    $busy->wait_for('a handler holds the queue file', sub { $busy->attempts('holds') });
    my $pid = $e->spawn($e->{log}, 'run', '-c', $e->{conf}, '--drain', '--idle', 1);
    $e->wait_for('a line says what is waited for', sub { $e->log_lines(qr/level=error msg="cannot go on and tries again" endpoint=locked .*another writer/) }, 30);
    sleep 3;
    is waitpid($pid, POSIX::WNOHANG()), 0, 'a drain that cannot take messages is not done';
    Endpoint::write_file("$busy->{dir}/gate", '');
    is $e->await_exit($pid, 60), 0, 'it ends when it could';
    is_deeply [ $e->not_once(map { "locked-$_" } 1 .. 3) ], [ ], 'and all are handled';
    ok scalar($e->log_lines(qr/msg="at work again" endpoint=locked/)), 'a line says that it goes on';
    is $busy->stop, 0, 'the other one stops';
}

# Full: no file of this process may be larger than what it maps.
{
    my $e = Endpoint->new('sqlite+pgsql', name => 'full', files => 'full-', concurrency => 1, batch_max => 5);
    $e->install;
    my @ids = map { "full-$_" } 1 .. 100;
    $e->send('full', map { { id => $_, do => 'sleep 0' } } @ids);
    $e->{file_size} = 66;
    my $pid = $e->spawn($e->{log}, 'run', '-c', $e->{conf}, '--drain', '--idle', 1);
    $e->wait_for('a line says that the disk is full', sub { $e->log_lines(qr/level=error msg="cannot go on and tries again" endpoint=full .*database or disk is full/) }, 30);
    sleep 3;
    is waitpid($pid, POSIX::WNOHANG()), 0, 'a drain of a full disk is not done';
    kill 'TERM', $pid;
    is $e->await_exit($pid), 75, 'a stop ends it with 75';
    ok scalar($e->log_lines(qr/^waybill: stopped before all was drained: endpoint "full": /)), 'and a line says that something is left';
    delete $e->{file_size};
    drains($e, 'with room', 1, 40, '--idle', 1);
    is_deeply [ $e->not_once(@ids) ], [], 'all are handled, once each';
}

# ---- two endpoints, one of which sends to the other ----------------------------------------------
{
    my $two = Endpoint->new('sqlite+sqlite', name => 'second', files => 'two-', concurrency => 1);
    my $one = Endpoint->new('sqlite+sqlite', name => 'firstone', files => 'two-', concurrency => 1, beside => [$two]);
    $one->install;
    $one->send('firstone', { id => 'a', do => [ 'sleep 2500', 'id b', 'header do sleep 1500', 'send second Test.Do x' ] });
    drains($one, 'two endpoints', 2, 30, '--idle', 1);
    is $one->depth('second'), 0, 'what one sent to the other is gone';
    is $two->effects('b'), 1, 'and was handled';
}

# ---- a topic, which has no end that a look could see ---------------------------------------------
{
    my $e = Peer->new('kafka+sqlite', concurrency => 2);
    $e->install;
    my @good = $e->some_good(50);
    $e->inject($e->{name}, @good);
    drains($e, 'fifty messages', 2, 40, '--idle', 3);
    $e->is_all_good('drained', 20, @good);
    is $e->waiting, 0, "$e->{pair}: none waits";
}

# ---- a database that lets nobody in any more --------------------------------------------------------
# In front of PostgreSQL; each connection has a process of its own, so what is open goes on when who accepts is stopped.
my $door;
END { my $status = $?; kill 'KILL', $door if $door; $? = $status }

sub pass {
    my @pair = @_;
    my $ready = IO::Select->new(@pair);
    while (my @from = $ready->can_read) {
        for my $from (@from) {
            sysread $from, my $bytes, 65536 or POSIX::_exit(0);
            syswrite $from == $pair[0] ? $pair[1] : $pair[0], $bytes;
        }
    }
}

sub open_door {    # -> its port
    my $listener = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1', LocalPort => 0) or die "listen: $@\n";
    $door = fork // die "fork: $!\n";
    return $listener->sockport if $door;
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
    $SIG{CHLD} = 'IGNORE';
    while (my $client = $listener->accept) {
        next if fork;
        close $listener;
        pass($client, IO::Socket::INET->new(PeerAddr => $ENV{PGHOST}, PeerPort => $ENV{PGPORT}) || POSIX::_exit(1));
        POSIX::_exit(0);
    }
    POSIX::_exit(0);
}

{
    my ($host, $port) = @ENV{qw(PGHOST PGPORT)};
    my $behind = open_door();
    @ENV{qw(PGHOST PGPORT)} = ('127.0.0.1', $behind);
    my $e = Endpoint->new('sqlite+pgsql', name => 'shut', files => 'shut-', concurrency => 1);
    @ENV{qw(PGHOST PGPORT)} = ($host, $port);
    $e->install;
    for my $way ('its time is over', 'it is told to stop') {
        $e->send('shut', { id => $way });
        my $started = time;
        my $pid = $e->spawn($e->{log}, 'run', '-c', $e->{conf}, '--drain', '--idle', 2, '-p', 6);
        $e->wait_for("$way: it runs", sub { $e->effects($way) == 1 });
        kill 'STOP', $door;
        sleep 3.5;
        my $answers = sub { return scalar(my @lines = $e->log_lines(qr/msg="since the start" endpoint=shut /)) };
        my $before = $answers->();
        kill 'USR1', $pid;
        $e->wait_for("$way: signals are answered while the database is not there to ask", sub { $answers->() > $before }, 1);
        kill 'TERM', $pid if $way =~ /stop/;
        is $e->await_exit($pid, 20), 75, "$way: it ends";
        cmp_ok time - $started, '<', 15, "$way: without waiting for the database";
        kill 'CONT', $door;
    }
    ok scalar($e->log_lines(qr/^waybill: $_: endpoint "shut": its database does not tell what is left in its tables/)), "$_: and a line says what it waited for"
        for 'not drained in time', 'stopped before all was drained';
    drains($e, 'one that can be asked again', 1, 20, '--idle', 1);
}

# ---- the command line --------------------------------------------------------------------------------
{
    my $e = $pairs[0];
    for my $bad ([ '--idle', 5 ], [ '-p', 5 ], [ '--drain', '--idle', 0 ], [ '--drain', '-p', 'x' ]) {
        my ($code, $text) = $e->run('run', @$bad);
        is $code, 64, "@$bad: wrong usage" or diag $text;
    }
    my $starts = sub { return scalar(my @lines = $e->log_lines(qr/endpoint starts/)) };
    my $before = $starts->();
    $e->start;
    $e->wait_for('it runs', sub { $starts->() > $before });
    is $e->stop, 0, 'without --drain it runs until it is stopped';
    $e->sql('delete from waybill_orders_pending');    # what goes nowhere
    $before = $starts->();
    my $pid = $e->spawn($e->{log}, 'run', '-c', $e->{conf}, '--drain', '--idle', 3600);
    $e->wait_for('it drains', sub { $starts->() > $before });
    kill 'TERM', $pid;
    is $e->await_exit($pid), 0, 'a stop ends a drain, where nothing is left with 0';
}
done_testing;
