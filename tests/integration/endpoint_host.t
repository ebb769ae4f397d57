#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Several endpoints in one process, each with a fate of its own: what breaks under one while it
# runs leaves its neighbour alone, is tried again with growing pauses, and shows in the exit code;
# and every stop ends in time.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

my $pair = 'sqlite+sqlite';
my $number = 0;
my $gave_up = qr/msg="endpoint gave up and is started again after a pause"/;
my $again = qr/msg="endpoint is started again"/;

# An endpoint with files of its own, and a neighbour in the same process.
sub two {
    my (%o) = @_;
    $number++;
    my $sound = Endpoint->new($pair, name => "sound$number");
    my $e = Endpoint->new($pair, name => "frail$number", files => "frail$number-", concurrency => 2, beside => [$sound], %o);
    $e->install;
    return ($e, $sound);
}

sub table { my ($e) = @_; return "waybill_$e->{name}_dedup" }
sub break_table { my ($e) = @_; $e->sql("alter table \"@{[ table($e) ]}\" rename to away") }
sub mend_table  { my ($e) = @_; $e->sql("alter table away rename to \"@{[ table($e) ]}\"") }

# All messages of the neighbour are handled, whatever happens beside it.
sub neighbour_works {
    my ($e, $sound, $what) = @_;
    my @ids = map { "$what-$_" } 1 .. 200;
    $sound->send($sound->{name}, map { { id => $_, do => 'send sink T.T x' } } @ids);
    $e->wait_for("$what: the neighbour handles all its messages", sub { !$sound->not_once(@ids) });
}

# The code, and one line for the frail endpoint that says why; none for its neighbour.
sub ends_with {
    my ($e, $sound, $what, $code) = @_;
    is $e->stop, $code, "$what: the exit code tells";
    is scalar($e->log_lines(qr/^waybill: endpoint "$e->{name}": /)), $code ? 1 : 0, "$what: and a line says why";
    is scalar($e->log_lines(qr/^waybill: endpoint "$sound->{name}": /)), 0, "$what: nothing is wrong with the neighbour";
}

sub check_restart {
    my ($e, $sound) = two();
    $e->send($e->{name}, { id => 'before' });
    $e->start;
    neighbour_works($e, $sound, 'before');
    $e->wait_for('the other one works, too', sub { $e->effects('before') == 1 });
    break_table($e);
    $e->send($e->{name}, { id => 'meanwhile' });
    $e->wait_for('a table is gone: it is started again after a second', sub { $e->log_lines(qr/$gave_up.*endpoint=$e->{name} .*no such table.*pause=1s/) });
    neighbour_works($e, $sound, 'meanwhile');
    $e->wait_for('and once more, after two', sub { $e->log_lines(qr/$again.*endpoint=$e->{name} .*no such table.*pause=2s/) });
    mend_table($e);
    $e->wait_for('mended: it goes on', sub { $e->effects('meanwhile') == 1 }, 30);
    $e->wait_for('with all of it', sub { $e->log_lines($gave_up) == $e->log_lines($again) });
    my ($last) = ($e->log_lines($again))[-1] =~ /pause=(\d+)s/;
    sleep $last + 1;
    is scalar($e->log_lines(qr/endpoint=$sound->{name} .*pause=/)), 0, 'restart: the neighbour was not';
    ends_with($e, $sound, 'restart', 0);
}

sub check_stop_while_broken {
    my ($e, $sound) = two();
    $e->start;
    $e->send($e->{name}, { id => 'before' });
    $e->wait_for('it works', sub { $e->effects('before') == 1 });
    break_table($e);
    $e->send($e->{name}, { id => 'waits' });
    $e->wait_for('it gave up', sub { $e->log_lines($gave_up) });
    my $stopped = time;
    ends_with($e, $sound, 'stopped while broken', 72);
    cmp_ok time - $stopped, '<', 10, 'stopped while broken: soon';
    my ($code, $text) = $e->run('run');
    is $code, 72, 'a start with a missing table ends the program, as ever' or diag $text;
    mend_table($e);
    $e->start;
    $e->wait_for('its message was not lost', sub { $e->effects('waits') == 1 });
    is $e->stop, 0, 'mended: 0';
}

# The file itself is gone: its place holds something else.
sub check_garbage {
    my ($e, $sound) = two(concurrency => 1);
    $e->start;
    $e->send($e->{name}, { id => 'before' });
    $e->wait_for('it works', sub { $e->effects('before') == 1 });
    break_table($e);    # so that nobody has the file open
    $e->send($e->{name}, { id => 'lost' });
    $e->wait_for('it gave up', sub { $e->log_lines(qr/$gave_up.*endpoint=$e->{name} .*pause=1s/) });
    unlink $e->store_file . "-$_" for qw(wal shm);
    Endpoint::write_file($e->store_file, 'this is no database ' x 1000);
    neighbour_works($e, $sound, 'garbage');
    $e->wait_for('garbage: it gave up again', sub { $e->log_lines(qr/$gave_up.*endpoint=$e->{name} .*(?:not a database|malformed).*pause=4s/) });
    is scalar(grep { /worker gives up/ } $e->log_lines(qr/endpoint=$e->{name} /)), 1, 'garbage: and no worker took the message again';
    ends_with($e, $sound, 'garbage', 72);
}

sub check_exit {
    my ($e, $sound) = two(with => 'on_endpoint_failure = "exit";');
    $e->start;
    $e->send($e->{name}, { id => 'before' });
    $e->wait_for('it works', sub { $e->effects('before') == 1 });
    break_table($e);
    $e->send($e->{name}, { id => 'waits' });
    $e->wait_for('exit: it stays ended', sub { $e->log_lines(qr/msg="endpoint gave up and stays ended" endpoint=$e->{name} /) });
    sleep 1.5;
    is scalar($e->log_lines($again)), 0, 'exit: it is not started again';
    neighbour_works($e, $sound, 'exit');
    ends_with($e, $sound, 'exit', 72);

    $e->configure(beside => []);    # alone: nobody is left
    mend_table($e);
    my $pid = $e->start;
    $e->wait_for('its message was not lost', sub { $e->effects('waits') == 1 });
    break_table($e);
    $e->send($e->{name}, { id => 'last' });
    is $e->await_exit($pid), 72, 'exit: the last endpoint takes the process along';
    $e->{processes} = [];
}

# One that cannot start ends the program, whichever it is; nothing ran, nothing hangs.
sub check_failed_start {
    my ($e, $sound) = two();
    for my $first ($e, $sound) {
        my $second = $first == $e ? $sound : $e;
        $e->{beside} = [];
        $first->configure(beside => [$second]);
        $e->send($e->{name}, { id => "untouched-$first->{name}" });
        break_table($e);
        my ($code, $text) = $first->run('run');
        is $code, 72, "$e->{name} cannot start, $first->{name} stands first: exit code" or diag $text;
        is scalar(split /\n/, $text), 1, 'one line says why' or diag $text;
        mend_table($e);
        $first->configure(beside => []);
    }
    is $e->effects, 0, 'nothing was handled';
}

# The time of each counts: the idle one with a lot of it makes nobody wait.
sub check_own_time {
    my ($e, $sound) = two(shutdown_timeout => '500ms');
    $e->send($e->{name}, { id => 'endless', do => "wait $e->{dir}/never" });
    $e->start;
    $e->wait_for('a handler hangs', sub { $e->attempts('endless') });
    my $stopped = time;
    is $e->stop, 75, 'a handler hangs: exit code 75';
    my $took = time - $stopped;
    ok $took > 0.4 && $took < 10, 'after its own shutdown_timeout' or diag "$took s";
    is scalar($e->log_lines(qr/reason=shutdown_timeout/)), 1, 'one line says so';
}

# Its clean-up waits for a file that somebody else holds for long.
sub check_housekeeper {
    my $busy = Endpoint->new($pair, name => 'busy', outbox => '');
    my $e = Endpoint->new($pair, name => 'kept', shutdown_timeout => '500ms', store => 'busy_timeout = "1min";',
        outbox => 'enabled = true; cleanup_interval = "1s"; retention = "1s";');
    $_->install for $busy, $e;
    $e->send('kept', { id => 'old' });
    $e->start;
    $e->wait_for('it has a record to clean up', sub { $e->effects('old') == 1 });
    $busy->send('busy', { id => 'holds', do => "wait $e->{dir}/gate" });
    $busy->start;
    $busy->wait_for('a handler holds the file', sub { $busy->attempts('holds') });
    sleep 2.5;
    my $stopped = time;
    my $code = $e->stop;
    cmp_ok time - $stopped, '<', 10, "the housekeeper is at work: stopped in time with $code";
    Endpoint::write_file("$e->{dir}/gate", '');
    $busy->wait_for('the other one was left alone', sub { $busy->effects('holds') == 1 });
    is $busy->stop, 0, 'and stops';
}

# Messages are out of the queue already, and no queue takes them.
sub check_mode_none {
    my $e = Endpoint->new($pair, name => 'hasty', mode => 'none', retries => 0, outbox => '', error_queue => 'nowhere', shutdown_timeout => '1s');
    $e->install;
    $e->start;
    $e->send('hasty', { id => 'before' });
    $e->wait_for('it works', sub { $e->effects('before') == 1 });
    $e->query("delete from waybill_queue where name = 'nowhere'");
    $e->send('hasty', map { { id => "bad-$_", do => 'fail unrecoverable no' } } 1 .. 5);
    $e->wait_for('handlers fail', sub { $e->attempts('bad-1') });
    my $stopped = time;
    my $code = $e->stop;
    cmp_ok time - $stopped, '<', 10, "mode none, no error queue: stopped in time with $code";
}

my %checks = (
    restart => \&check_restart, broken => \&check_stop_while_broken, garbage => \&check_garbage, exit => \&check_exit,
    start => \&check_failed_start, time => \&check_own_time, housekeeper => \&check_housekeeper, none => \&check_mode_none,
);
$checks{$_}->() for @ARGV ? @ARGV : qw(restart broken garbage exit start time housekeeper none);
done_testing;
