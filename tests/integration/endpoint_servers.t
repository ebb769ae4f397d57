#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Bad days: servers that die, block or lose a queue while the endpoint runs. It waits, says so
# in a few lines, and goes on; nothing is lost, nothing happens twice.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;
use Servers;

my $exception = 'NServiceBus.ExceptionInfo';
my $e;
my $round = 0;

sub count_lines { return scalar split /\n/, Endpoint::read_file($e->{log}) }

# While $what happens: few lines in the log, one says what is awaited, one that it is over. The
# housekeeper, which works once a minute otherwise and here each two seconds, does not count.
sub quiet {
    my ($what, $lines, $pattern) = @_;
    my $news = sub { grep { !/housekeeping|swept/ } (split /\n/, Endpoint::read_file($e->{log}))[ $lines .. count_lines() - 1 ] };
    $e->wait_for("$what: one says that it is over", sub { grep { /msg="the (?:broker|database) is back"/ } $news->() });
    my @new = $news->();
    cmp_ok scalar(@new), '<=', 6 * $e->{concurrency}, "$what: few lines in the log" or diag join "\n", @new;
    ok scalar(grep { $_ =~ $pattern } @new), "$what: one says what is awaited" or diag join "\n", @new;
    diag sprintf '%s: %d lines in the log', $what, scalar @new;
}

sub messages { my ($count, $do) = @_; $round++; return map { { id => "r$round-$_", do => "$do\nsend sink T.Out r$round-$_" } } 1 .. $count }

# Every message has one effect, and its outgoing message is out, copies with the same id.
sub complete {
    my ($what, @messages) = @_;
    my @ids = map { $_->{id} } @messages;
    $e->wait_for("$what: every message has its effect", sub { my @n = eval { $e->not_once(@ids) }; !$@ && !@n }, 40);
    $e->wait_for("$what: the queue is empty", sub { ($e->depth('orders') // 1) == 0 && $e->pending == 0 }, 40);
    my (%out, $copies);
    for ($e->read('sink')) { $copies++ if $out{ $_->{body} }{ $_->{id} }++ }
    is_deeply [ grep { keys %{ $out{$_} || {} } != 1 } @ids ], [], "$what: its message is out, under one id";
    is_deeply [ $e->not_once(@ids) ], [], "$what: and one effect only";
    diag sprintf '%s: %d messages, %d sent again', $what, scalar @ids, $copies || 0;
}

sub with_password {
    $e->sql("create role clerk login password 'right'");
    my ($file) = map { $_->[0] } $e->sql('show hba_file');
    $e->sql("create table hba (line text); insert into hba values ('host all clerk 127.0.0.1/32 scram-sha-256'), "
            . "('host all all 127.0.0.1/32 trust'); copy hba to '$file'; select pg_reload_conf()");
    sleep 0.2;
    for ([ wrong => qr/password authentication failed for user "clerk"/ ], [ right => qr/lacks privileges/ ]) {
        my ($password, $pattern) = @$_;
        Endpoint::write_file("$e->{dir}/password", $password);
        chmod 0600, "$e->{dir}/password";
        $e->configure(user => 'clerk', store => qq(password = "file:$e->{dir}/password";));
        my ($code, $text) = $e->run('run');
        is $code, 77, "a $password password: exit code";
        like $text, qr/^waybill: endpoint "orders": .*$pattern/, "a $password password: one line says why";
        unlike $text, qr/$password/, 'without the password' if $password eq 'wrong';
    }
    $e->configure(user => undef, store => undef);
}

sub pgsql_dies_idle {
    my $lines = count_lines();
    Servers::server('crash', 'pgsql');
    my @messages = messages(20, 'sql select 1');
    sleep 0.5;
    $e->send('orders', @messages);
    sleep 1.5;
    Servers::server('restart', 'pgsql');
    complete('PostgreSQL dies while idle', @messages);
    quiet('PostgreSQL dies while idle', $lines, qr/the database is away.*PostgreSQL/);
}

sub pgsql_dies_busy {
    my $lines = count_lines();
    my @messages = messages(300, 'sleep 5');
    $e->send('orders', @messages);
    $e->wait_for('busy', sub { $e->effects > 50 });
    Servers::server('crash', 'pgsql');
    sleep 2;
    Servers::server('restart', 'pgsql');
    complete('PostgreSQL dies while busy', @messages);
    quiet('PostgreSQL dies while busy', $lines, qr/the database is away.*PostgreSQL/);
}

sub rabbitmq_dies_busy {
    my $lines = count_lines();
    my @messages = messages(300, 'sleep 5');
    my $before = $e->effects;
    $e->send('orders', @messages);
    $e->wait_for('busy', sub { $e->effects > $before + 50 });
    Servers::server('crash', 'rabbitmq');
    $e->forget_broker;
    sleep 1;
    Servers::server('restart', 'rabbitmq');
    complete('RabbitMQ dies while busy', @messages);
    quiet('RabbitMQ dies while busy', $lines, qr/the broker is away.*could not/);
}

sub rabbitmq_blocks {
    $e->stop;
    my @messages = messages(50, 'sql select 1');
    $e->send('orders', @messages);
    Servers::alarm_on('memory');
    my $lines = count_lines();
    $e->start;
    $e->wait_for('a memory alarm: the endpoint says so', sub { $e->log_lines(qr/the broker blocks publishing/) });
    sleep 1;
    is $e->depth('sink'), 0, 'a memory alarm: nothing is sent';
    Servers::alarm_off('memory');
    complete('a memory alarm', @messages);
    ok scalar($e->log_lines(qr/the broker accepts messages again/)), 'a memory alarm: the endpoint says that it is over';
    cmp_ok count_lines() - $lines, '<=', 6, 'a memory alarm: few lines in the log';
}

# The alarm outlasts many windows: what is in hand stays there, and comes from the broker once.
sub rabbitmq_blocks_long {
    $e->stop;
    $e->configure(transport => 'confirm_timeout = "500ms";');
    my @messages = messages(50, 'sql select 1');
    $e->send('orders', @messages);
    Servers::alarm_on('memory');
    my ($lines, $resumed) = (count_lines(), scalar $e->log_lines(qr/msg="resuming/));
    $e->start;
    sleep 6;
    Servers::alarm_off('memory');
    complete('a long alarm', @messages);
    is scalar($e->log_lines(qr/msg="resuming/)), $resumed, 'a long alarm: nothing came again';
    cmp_ok count_lines() - $lines, '<=', 10, 'a long alarm: few lines in the log';
    $e->stop;
    $e->configure(transport => undef);
    my $starts = () = $e->log_lines(qr/endpoint starts/);
    $e->start;
    $e->wait_for('a long alarm: it runs again', sub { (() = $e->log_lines(qr/endpoint starts/)) > $starts });
}

sub queue_is_deleted {
    my $lines = count_lines();
    $e->amqp->delete('orders');
    $e->wait_for('the queue is deleted: a line says so and what to do', sub { $e->log_lines(qr/the broker cannot be used.*queue .*orders.*(?:deleted|install)/) });
    sleep 1;
    ok $e->is_alive, 'the queue is deleted: the endpoint lives';
    my ($code, $text) = $e->run('install');
    is $code, 0, 'the queue is installed again' or diag $text;
    my @messages = messages(20, 'sql select 1');
    $e->send('orders', @messages);
    complete('a deleted queue is installed again', @messages);
    quiet('a deleted queue', $lines, qr/orders/);
}

# It would drop what it confirms. Whoever made it so does something about it while the endpoint waits.
sub queue_is_another {
    my $starts = () = $e->log_lines(qr/endpoint starts/);
    $e->stop;
    $e->configure(transport => 'heartbeat = "1s";');
    my $lines = count_lines();
    $e->start;
    $e->wait_for('it runs again', sub { (() = $e->log_lines(qr/endpoint starts/)) > $starts });
    $e->amqp->delete('orders');
    $e->amqp->declare('orders', [ 'x-queue-type' => 'quorum' ], [ 'x-max-length' => [ I => pack 'N', 5 ] ]);
    $e->wait_for('a queue with a limit: a line says so', sub { $e->log_lines(qr/the broker cannot be used.*queue .*orders.* has x-max-length = 5/) });
    sleep 1;
    ok $e->is_alive, 'a queue with a limit: the endpoint lives';
    $e->amqp->delete('orders');
    my ($code, $text) = $e->run('install');
    is $code, 0, 'a queue with a limit: another one is installed' or diag $text;
    my @messages = messages(20, 'sql select 1');
    $e->send('orders', @messages);
    complete('a queue with a limit is made anew', @messages);
    quiet('a queue with a limit', $lines, qr/orders/);
    $e->stop;
    $e->configure(transport => undef);
    $e->start;
}

# Told to stop while it waits for a server, it does not wait any longer.
sub stops_while_waiting {
    $e->send('orders', { id => 'left' });
    $e->wait_for('idle again', sub { $e->effects('left') == 1 });
    Servers::server('crash', 'pgsql');
    $e->send('orders', { id => 'kept' });
    sleep 1;
    my $stopped = time;
    is $e->stop, 0, 'stops cleanly while PostgreSQL is away';
    cmp_ok time - $stopped, '<', 3, 'soon';
    Servers::server('restart', 'pgsql');
    $e->start;
    $e->wait_for('nothing is lost', sub { $e->effects('kept') == 1 });
    Servers::server('crash', 'rabbitmq');
    $e->forget_broker;
    sleep 1;
    $stopped = time;
    is $e->stop, 0, 'stops cleanly while RabbitMQ is away';
    cmp_ok time - $stopped, '<', 3, 'soon';
}

Servers::start('pgsql', 'rabbitmq');
$e = Endpoint->new('amqp+pgsql', concurrency => 2,
    outbox => 'enabled = true; cleanup_interval = "2s"; sweep_after = "1s";');    # marks may be lost with the server
$e->install;
with_password();
$e->start;
$e->wait_for('it runs', sub { $e->log_lines(qr/endpoint starts/) });
my %days = (idle => \&pgsql_dies_idle, database => \&pgsql_dies_busy, broker => \&rabbitmq_dies_busy, blocked => \&rabbitmq_blocks, long => \&rabbitmq_blocks_long,
    deleted => \&queue_is_deleted, another => \&queue_is_another, stop => \&stops_while_waiting);
for (@ARGV ? @ARGV : qw(idle database broker blocked long deleted another stop)) { $days{$_}->() }
done_testing;
