#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What a service manager sees of the real program: READY, STATUS, STOPPING, and a watchdog that is
# fed as long as handlers return in time. The manager is a socket of the test's own.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use IO::Socket::UNIX;
use Socket qw(SOCK_DGRAM);
use Time::HiRes qw(sleep time);
use Endpoint;

my ($manager, @told);

sub listen_at {
    my ($name) = @_;
    $ENV{NOTIFY_SOCKET} = $name;
    $manager = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $name =~ s/^@/\0/r) or die "$name: $!\n";
    $manager->blocking(0);
    @told = ();
}

sub hear {    # all there is: [ time, text ]
    while (defined $manager->recv(my $text, 4096)) { push @told, [ time, $text ] }
    return @told;
}
sub heard { my ($pattern) = @_; return scalar grep { $_->[1] =~ $pattern } hear() }

my $e = Endpoint->new('sqlite+sqlite', concurrency => 2, with => 'handler_time_limit = "1s";');
$e->install;

# ---- a life -----------------------------------------------------------------------------
listen_at(Endpoint::work_dir() . '/notify');
$ENV{WATCHDOG_USEC} = 400_000;
$e->start;
$e->wait_for('READY', sub { heard(qr/^READY=1$/) });
$e->wait_for('its status', sub { heard(qr/^STATUS=running: orders running$/) });
ok !heard(qr/STOPPING/), 'it does not stop';
my $fed = heard(qr/^WATCHDOG=1$/);
sleep 2;
cmp_ok heard(qr/^WATCHDOG=1$/) - $fed, '>=', 6, 'the watchdog is fed within half of its time';

# ---- handlers ----------------------------------------------------------------------------
$e->send('orders', { id => 'quick', do => 'sleep 500' });
$e->wait_for('a handler within its limit returns', sub { $e->effects('quick') == 1 });
ok !$e->log_lines(qr/takes longer than/), 'no line about it';
ok !heard(qr/degraded/), 'and no change of the status';

$e->send('orders', { id => 'slow', do => 'sleep 4000' });
$e->wait_for('a handler beyond its limit: a line', sub { $e->log_lines(qr/a handler takes longer than handler_time_limit.* type=Test\.Do seconds=1/) });
$e->wait_for('and the status says so', sub { heard(qr/^STATUS=degraded: orders degraded \(a handler takes too long\)$/) });
my $hungry = heard(qr/^WATCHDOG=1$/);
sleep 1.5;
is heard(qr/^WATCHDOG=1$/), $hungry, 'the watchdog is not fed while one hangs, though another worker is idle';
is $e->effects('slow'), 0, 'it hangs still';
$e->wait_for('it returns', sub { $e->effects('slow') == 1 });
$e->wait_for('the watchdog is fed again', sub { heard(qr/^WATCHDOG=1$/) > $hungry });
$e->wait_for('the status is as before', sub { heard(qr/^STATUS=running/) == 2 });
is scalar($e->log_lines(qr/takes longer than/)), 1, 'one line when it took too long';
is scalar($e->log_lines(qr/has returned/)), 1, 'one when it returned';

# ---- the end -------------------------------------------------------------------------------
$e->send('orders', { id => 'last', do => 'sleep 900' });
$e->wait_for('at work', sub { $e->attempts('last') });
is $e->stop, 0, 'it stops';
ok heard(qr/^STOPPING=1\nSTATUS=stopping: orders stopping$/), 'STOPPING';
is $e->effects('last'), 1, 'after it had finished';
is heard(qr/^READY=1$/), 1, 'READY came once';

# ---- whose watchdog, which socket -----------------------------------------------------------
listen_at("\@waybill-health-$$");
$ENV{WATCHDOG_PID} = $$;    # not the program's
$e->start;
$e->wait_for('an abstract socket: READY', sub { heard(qr/^READY=1$/) });
sleep 1;
is heard(qr/WATCHDOG/), 0, "another process's watchdog is not fed";
is $e->stop, 0, 'it stops';
# ---- what stays pending ---------------------------------------------------------------------
my $late = Endpoint->new('sqlite+sqlite', name => 'late', retries => 0, outbox => 'enabled = true; sweep_after = "1s"; cleanup_interval = "1s";');
$late->install;
listen_at(Endpoint::work_dir() . '/notify-late');
$late->start;
$late->send('late', { id => 'stays', do => 'send nowhere T.Out out' });
$late->wait_for('what cannot be dispatched is in the status', sub { heard(qr/^STATUS=degraded: late degraded \(operations stay pending: .*1 parked\)$/) }, 60);
$late->make_queue('nowhere');
$late->wait_for('until it can', sub { (grep { /^STATUS=/ } map { $_->[1] } hear())[-1] eq 'STATUS=running: late running' }, 60);
is scalar($late->read('nowhere')), 1, 'and is';
is $late->stop, 0, 'it stops cleanly';

done_testing;
