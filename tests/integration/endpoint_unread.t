#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A log that nobody reads, a full pipe, keeps nobody from ending the process in time: a second signal, shutdown_timeout,
# handler_timeout, a handler that calls exit. Lines lost by that are counted, and told once somebody reads again.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Errno ();
use Fcntl qw(O_NONBLOCK O_RDWR);
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);
use Endpoint;

my @settings = (name => 'unread', with => 'slow_handler = "1s"; handler_timeout = "3s"; shutdown_timeout = "2s";');
my $e = Endpoint->new('sqlite+sqlite', @settings);
$e->install;
my $pipe = "$e->{dir}/pipe";
POSIX::mkfifo($pipe, 0600) or die "mkfifo: $!\n";
sysopen my $log, $pipe, O_RDWR | O_NONBLOCK or die "$pipe: $!\n";
fcntl $log, 1031, 4096;    # F_SETPIPE_SZ: the least
my $text = '';

sub read_log { while (sysread $log, my $part, 65536) { $text .= $part } return $text }
sub fill { 1 while syswrite $log, 'x' x 64 or $!{EINTR}; return }

sub start {
    $text = '';
    my $pid = $e->spawn($pipe, 'run', '-c', $e->{conf});
    $e->wait_for('it runs', sub { read_log() =~ /endpoint starts/ });
    return $pid;
}

sub in_hand { my ($id, @do) = @_; $e->send('unread', { id => $id, do => \@do }); $e->wait_for("$id is in hand", sub { $e->attempts($id) }); return }

my $pid = start();
in_hand('stays', "wait $e->{dir}/never");
fill();
kill 'USR1', $pid;    # whose answer has no place
kill 'TERM', $pid;
is $e->await_exit($pid, 20), 75, 'shutdown_timeout ends it';

$pid = start();
$e->wait_for('it is in hand again', sub { $e->attempts('stays') > 1 });
fill();
kill 'USR1', $pid;
kill 'TERM', $pid;
sleep 0.3;
kill 'TERM', $pid;
is $e->await_exit($pid, 20), 75, 'a second signal ends it';

$pid = start();
$e->wait_for('it is in hand once more', sub { $e->attempts('stays') > 2 });
fill();
is $e->await_exit($pid, 30), 70, 'handler_timeout ends it';

read_log();
Endpoint::write_file("$e->{dir}/never", '');
$pid = start();
$e->wait_for('it is done', sub { $e->effects('stays') || grep { $_->{id} eq 'stays' } $e->read('error') });
fill();
kill 'USR1', $pid and sleep 0.3 for 1 .. 3;
sleep 1.5;
read_log();
$e->wait_for('what was lost is told', sub { kill 'USR1', $pid; read_log() =~ /level=warning msg="lines were lost: nobody read the log" lines=[1-9]/ });
kill 'TERM', $pid;
$e->wait_for('and it stops', sub { read_log(); !grep { $_ == $pid } Endpoint::living() or Endpoint::has_ended($pid) });
is $e->await_exit($pid), 0, 'as ever';

$e->configure(with => '');    # no time limit
$pid = start();
in_hand('leaves', "wait $e->{dir}/gate", 'misdo exit');
fill();
Endpoint::write_file("$e->{dir}/gate", '');
is $e->await_exit($pid, 30), 70, 'a handler that calls exit ends it';
done_testing;
