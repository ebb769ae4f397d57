#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Handlers that take long. A line says so, with the message; beyond handler_timeout the process ends with 70, the message comes
# again, and goes to the error queue when it hangs each time; the messages beside it are handled, once.
#
#   perl endpoint_timeout.t once each     # only these
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(time sleep);
use Endpoint;

Endpoint::under_servers('pgsql');
my @cases = qw(slow once spin company stopped patient each plain refused watchdog);
my $deadly = qr/its handler seems to end the process/;
my $over = qr/level=error msg="a handler takes longer than handler_timeout" endpoint=(\S+) worker=\d+ message_id=(\S+) type=Test\.Do seconds=\d+$/;
my $limits = 'slow_handler = "300ms"; handler_timeout = "1s";';

# In SQLite its transaction would have the file, and nobody could work beside it.
sub endpoint {
    my ($name, %o) = @_;
    my $e = Endpoint->new('sqlite+pgsql', name => $name, files => "$name-", retries => 1, concurrency => 2, with => $limits, %o);
    $e->install;
    return $e;
}

sub among {
    my ($e, $id, @do) = @_;
    my @ids = map { "$e->{name}-$_" } 1 .. 12;
    my @messages = map { { id => $_, do => "send sink T.Out $_" } } @ids;
    splice @messages, 5, 0, { id => $id, do => \@do };
    $e->send($e->{name}, @messages);
    return @ids;
}

# The exit code; nothing when a message is in the error queue instead.
sub next_end {
    my ($e, $pid) = @_;
    my ($end, $code) = (time + 60);
    until (defined($code = $e->await_exit($pid, 0.05)) || $e->depth('error')) {
        die "neither ended nor failed in a minute\n" if time > $end;
    }
    $e->{processes} = [] if defined $code;
    return $code;
}

sub named { my ($e, $id) = @_; return scalar grep { /$over/ && $1 eq $e->{name} && $2 eq $id } $e->log_lines($over) }

sub settle {
    my ($e, $what, @ids) = @_;
    $e->wait_for("$what: all are handled", sub { !$e->not_once(@ids) && $e->depth($e->{name}) == 0 }, 60);
    my %sent;
    $sent{ $_->{body} }++ for $e->read('sink');
    is_deeply [ map { "$_ $sent{$_}" } sort keys %sent ], [ map { "$_ 1" } sort @ids ], "$what: each has sent its message, once";
}

# Lines when it has taken that long, twice as long, and so on; nothing else happens.
sub check_slow {
    my $e = endpoint('slow', with => 'slow_handler = "200ms";');
    $e->send('slow', { id => 'takes', do => 'sleep 1300' }, { id => 'quick', do => 'sleep 20' });
    $e->start;
    $e->wait_for('slow: it returns', sub { $e->effects('takes') == 1 && $e->log_lines(qr/has returned/) });
    my @lines = $e->log_lines(qr/level=warning msg="a handler takes long" endpoint=slow worker=\d message_id=takes type=Test\.Do seconds=[01]$/);
    is scalar(@lines), 3, 'slow: a line after 0.2, 0.4 and 0.8 s' or diag join "\n", @lines;
    is scalar($e->log_lines(qr/message_id=quick/)), 0, 'slow: none about one that was quick';
    is scalar($e->log_lines(qr/has returned/)), 1, 'slow: one when it has returned';
    is $e->stop, 0, 'slow: it stops';
}

sub dies_once {
    my ($what, @do) = @_;
    my $e = endpoint($what);
    my @ids = among($e, "hangs-$what", "once $e->{dir}/$what", @do);
    my $started = time;
    is next_end($e, $e->start), 70, "$what: the process ends with 70";
    my $took = time - $started;
    ok $took > 1 && $took < 15, "$what: after handler_timeout" or diag "$took s";
    is named($e, "hangs-$what"), 1, "$what: a line names the message";
    ok scalar($e->log_lines(qr/"a handler takes long" .*message_id=hangs-$what/)), "$what: which was called slow before";
    is scalar($e->log_lines(qr/handler_time_limit/)), 0, "$what: nothing about another limit";
    $e->start;
    settle($e, $what, @ids);
    $e->wait_for("$what: it is handled when it comes again", sub { $e->effects("hangs-$what") == 1 });
    is $e->depth('error'), 0, "$what: one death is not enough for the error queue";
    is $e->stop, 0, "$what: it stops";
}
sub check_once { dies_once('hangs', 'wait ' . Endpoint::work_dir() . '/never') }
sub check_spin { dies_once('spins', 'misdo spin ' . Endpoint::work_dir() . '/never') }

# What another worker is at when the time is over is finished, and counts no delivery.
sub check_company {
    my $e = endpoint('company', outbox => '', with => 'slow_handler = "1s"; handler_timeout = "3s";');
    $e->send('company', { id => 'hangs-company', do => [ "once $e->{dir}/company", "wait $e->{dir}/never" ] });
    my $pid = $e->start;
    $e->wait_for('company: it hangs', sub { $e->attempts('hangs-company') });
    sleep 1.5;
    $e->send('company', { id => 'late', do => [ 'sleep 2000', 'send sink T.Out late' ] });
    is $e->await_exit($pid), 70, 'company: the process ends';
    $e->{processes} = [];
    is $e->effects('late'), 1, 'company: what another worker was at is done';
    $e->start;
    settle($e, 'company', 'late');
    is_deeply [ $e->attempts('late') ], [1], 'company: at once';
    $e->wait_for('company: the other comes again', sub { $e->effects('hangs-company') == 1 });
    is $e->stop, 0, 'company: it stops';
}

# A stop looks after handlers, too: one beyond its limit does not hold it up, and its attempt is counted.
sub check_stopped {
    my $e = endpoint('stopped', shutdown_timeout => '1h');
    my @ids = among($e, 'hangs-stopped', "wait $e->{dir}/never");
    my ($deaths, $code) = (0);
    while ($deaths < 7) {
        my $pid = $e->start;
        $e->wait_for('stopped: it hangs, or is in the error queue', sub { (my @calls = $e->attempts('hangs-stopped')) > $deaths || $e->depth('error') }, 60);
        last if $e->depth('error');
        my $slow = () = $e->log_lines(qr/"a handler takes long" .*message_id=hangs-stopped/);
        kill 'TERM', $pid;
        $code = $e->await_exit($pid, 20);
        last if ($code // '') ne 70;
        cmp_ok scalar($e->log_lines(qr/"a handler takes long" .*message_id=hangs-stopped/)), '>', $slow, 'stopped: lines name it' if !$deaths++;
        $e->{processes} = [];
    }
    is $code, 70, 'stopped: a stop ends with 70 after handler_timeout, not with 75 after shutdown_timeout';
    is $deaths, 6, 'stopped: each time counts';
    is named($e, 'hangs-stopped'), $deaths, 'stopped: each time a line names it';
    settle($e, 'stopped', @ids);
    is $e->effects('hangs-stopped'), 0, 'stopped: it has no effect';
    is $e->stop, 0, 'stopped: and without it a stop ends with 0';
}

# The other way round it is 75, as ever; one within its limits is finished, and was named.
sub check_patient {
    my $e = endpoint('patient', with => 'slow_handler = "300ms"; handler_timeout = "1min";', shutdown_timeout => '2s');
    $e->send('patient', { id => 'returns', do => "wait $e->{dir}/go" });
    my $pid = $e->start;
    $e->wait_for('patient: one takes long', sub { $e->attempts('returns') });
    kill 'TERM', $pid;
    $e->wait_for('patient: while it stops a line says so', sub { $e->log_lines(qr/"a handler takes long" .*message_id=returns/) });
    Endpoint::write_file("$e->{dir}/go", '');
    is $e->await_exit($pid), 0, 'patient: it is waited for';
    $e->{processes} = [];
    is $e->effects('returns'), 1, 'patient: and done';
    $e->send('patient', { id => 'hangs-patient', do => "wait $e->{dir}/never" });
    $pid = $e->start;
    $e->wait_for('patient: one hangs', sub { $e->attempts('hangs-patient') });
    kill 'TERM', $pid;
    is $e->await_exit($pid), 75, 'patient: after shutdown_timeout, where that comes first';
    $e->{processes} = [];
    ok scalar($e->log_lines(qr/"a handler takes long" .*message_id=hangs-patient/)), 'patient: a line named what held it up';
}

sub dies_each_time {
    my ($e, $what, $most) = @_;    # what waybill.conf(5) says of it
    my @ids = among($e, "hangs-$what", "wait $e->{dir}/never");
    my ($deaths, $code) = (0);
    while (defined($code = next_end($e, $e->start))) {
        last if $code != 70 || ++$deaths > $most;
    }
    ok !defined $code, "$what: each time with 70" or diag $code;
    is $deaths, $most, "$what: $deaths times";
    my ($got) = $e->collect('error', 1, "$what: then it is in the error queue");
    is $got->{id}, "hangs-$what", "$what: alone";
    like $got->{header}{'NServiceBus.ExceptionInfo.Message'}, $deadly, "$what: with the reason";
    is named($e, "hangs-$what"), $deaths, "$what: each time a line names it";
    settle($e, $what, @ids);
    is $e->effects("hangs-$what"), 0, "$what: it has no effect";
    is $e->depth('error'), 0, "$what: nobody went along";
    is $e->stop, 0, "$what: it stops";
}
sub check_each { dies_each_time(endpoint('each'), 'each', 6) }

# Nothing is written down: 19 deliveries decide, and they count for whatever is in hand beside it.
sub check_plain {
    my $e = endpoint('plain', outbox => '', with => 'slow_handler = "100ms"; handler_timeout = "300ms";');
    dies_each_time($e, 'plain', 19);
}

sub check_refused {
    my $e = Endpoint->new('sqlite+sqlite', name => 'refused', with => 'handler_timeout = "30s";');
    my ($code, $text) = $e->run('check');
    is $code, 78, 'not longer than slow_handler: refused';
    like $text, qr/refused\.conf:\d+: endpoint "refused": option "handler_timeout" = "30s" is not longer than slow_handler \(30s\)/, 'with the reason';
    for my $with ('handler_timeout = "31s";', 'slow_handler = 0; handler_timeout = "1s";', 'slow_handler = "1min"; handler_timeout = 0;') {
        $e->configure(with => $with);
        ($code, $text) = $e->run('check');
        is $code, 0, "$with is fine" or diag $text;
        unlike $text, qr/warning: /, '... and nothing to warn of';
    }
    my $lost = qr/refused\.conf:\d+: warning: endpoint "refused": with transaction_mode = "none" what is in hand when the program ends for handler_timeout is lost/;
    $e->configure(with => 'slow_handler = "100ms"; handler_timeout = "300ms";', mode => 'none', outbox => '', retries => 0);
    ($code, $text) = $e->run('check');
    is $code, 0, 'without transactions it is warned of';
    like $text, $lost, 'by check';
    $e->install;
    $e->send('refused', { id => 'hangs-refused', do => "wait $e->{dir}/never" });
    my $pid = $e->start;
    is $e->await_exit($pid), 70, 'the process ends';
    $e->{processes} = [];
    ok scalar($e->log_lines($lost)), 'and has said it at the start';
    is $e->depth('refused'), 0, 'as it is: the message is lost';
}

# Who ends the process for its handler says which: the watchdog does not come first.
sub check_watchdog {
    my $e = endpoint('watched', with => 'slow_handler = "100ms"; handler_time_limit = "300ms"; handler_timeout = "1500ms";');
    $e->send('watched', { id => 'hangs-watched', do => [ "once $e->{dir}/watched", "wait $e->{dir}/never" ] });
    my $pid = $e->start;
    $e->wait_for('watchdog: a limit that is set is minded', sub { $e->log_lines(qr/longer than handler_time_limit" .*message_id=hangs-watched/) });
    is $e->await_exit($pid), 70, 'watchdog: and so is the other';
    $e->{processes} = [];
    is scalar($e->log_lines(qr/longer than handler_time_limit/)), 1, 'watchdog: a line for each';
}

no strict 'refs';
for my $case (@ARGV ? @ARGV : @cases) {
    my $started = time;
    &{"check_$case"}();
    diag sprintf '%s: %.1f s', $case, time - $started;
}
done_testing;
