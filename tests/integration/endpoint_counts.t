#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What an operator sees and asks for: counters by SIGUSR1 and once a minute, the log's level, file and form by SIGHUP. What
# is no more of use to him (SIGUSR2, SIGPIPE, a configuration that is broken, a log that cannot be written) harms nothing.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep);
use File::Spec;
use JSON::PP;
use Endpoint;

my %number = (HUP => 1, INT => 2, USR1 => 10, USR2 => 12, TERM => 15);

sub lines { my ($path, $pattern) = @_; return grep { /$pattern/ } split /\n/, Endpoint::read_file($path) }
sub signal { my ($e, $signal) = @_; kill $signal, $e->{processes}[0] or die "kill: $!\n" }

sub begin { my ($e) = @_; $e->start; $e->wait_for('it starts', sub { $e->log_lines(qr/endpoint starts/) }) }

# Ask by SIGUSR1 until the answer has it all: a text, or a pattern.
sub counts {
    my ($e, $what, $wanted) = @_;
    my $pattern = ref $wanted ? $wanted : qr/\Q$wanted\E/;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $answers = sub { my @lines = $e->log_lines(qr/msg="since the start"/); return scalar @lines };
    $e->wait_for($what, sub {
        my $before = $answers->();
        signal($e, 'USR1');
        for (1 .. 100) { last if $answers->() > $before; sleep 0.02 }
        return (($e->log_lines(qr/msg="since the start"/))[-1] // '') =~ / endpoint=orders $pattern$/;
    }) or diag 'wanted: ', $wanted;
}

# ---- counters ---------------------------------------------------------------------------
sub check_counters {
    my ($pair) = @_;
    my $e = Endpoint->new($pair, concurrency => 2, retries => 2, recover => 'delayed_retries = 1; delay_increment = "300ms";');
    my $gate = "$e->{dir}/gate";
    $e->install;
    begin($e);
    counts($e, 'nothing yet', 'handled=0 failed=0 moved=0 duplicates=0 waiting=0');
    $e->send('orders', map { { id => $_, do => "send sink T.Out $_" } } qw(a b c));
    $e->wait_for('three are handled', sub { $e->effects == 3 });
    counts($e, 'and counted', 'handled=3 failed=0 moved=0 duplicates=0 waiting=0');
    $e->send('orders', { id => 'a', do => 'send sink T.Out again' });
    counts($e, 'one that came before is a duplicate', 'handled=3 failed=0 moved=0 duplicates=1 waiting=0');
    $e->send('orders', { id => 'bad', do => 'fail retry no' });
    $e->collect('error', 1, 'one fails, is retried later, fails again, is moved');
    counts($e, 'each attempt failed, one message', 'handled=3 failed=6 moved=1 duplicates=1 retried_later=1 waiting=0');
    is scalar($e->log_lines(qr/message_id=bad .*reason=/)), scalar($e->log_lines(qr/message_id=bad type=Test\.Do .*reason=/)), "$pair: each line about it says its type";
    $e->send('orders', { id => 'odd', type => 'No.Handler' });
    $e->collect('error', 1, 'one that nothing handles is moved');
    counts($e, 'it has made no attempt', 'handled=3 failed=6 moved=2 duplicates=1 retried_later=1 waiting=0');
    is scalar($e->log_lines(qr/message moved to the error queue.* message_id=odd type=No\.Handler /)), 1, "$pair: and a type";
    $e->send('orders', { id => 'old', do => 'discard nobody wants it' });
    counts($e, 'one is discarded', 'handled=3 failed=6 moved=2 duplicates=1 retried_later=1 discarded=1 waiting=0');
    $e->send('orders', { id => 'slow', do => "wait $gate" });
    $e->wait_for('a handler is at work', sub { $e->attempts('slow') });
    counts($e, 'its message waits', 'handled=3 failed=6 moved=2 duplicates=1 retried_later=1 discarded=1 waiting=1');
    Endpoint::write_file($gate, '');
    counts($e, 'until it is handled', 'handled=4 failed=6 moved=2 duplicates=1 retried_later=1 discarded=1 waiting=0');
    is scalar($e->log_lines(qr/in the last minute/)), 0, "$pair: a minute is not over";
    is $e->stop, 0, "$pair: it stops";
}

# A batch of one transaction, of any mode. What fails in a larger one is asked once more, alone.
sub check_modes {
    for my $mode (qw(none receive_only sends_atomic_with_receive transaction_scope)) {
        my $e = Endpoint->new('sqlite+sqlite', mode => $mode, name => 'orders', files => "$mode-", outbox => '', retries => 0);
        $e->{log} =~ s/orders\.log$/$mode.log/;
        $e->install;
        $e->send('orders', (map { { id => $_, do => "send sink T.Out $_" } } 1 .. 20), { id => 'bad', do => 'fail retry no' });
        begin($e);
        $e->wait_for("$mode: one is moved", sub { $e->depth('error') == 1 });
        $e->wait_for("$mode: all others are handled", sub { $e->effects == 20 });
        counts($e, "$mode: each is counted once", qr/handled=20 failed=[12] moved=1 duplicates=0 waiting=0/);
        is $e->stop, 0, "$mode: it stops";
    }
}

# Who only sends has done nothing, and is there.
sub check_send_only {
    my $e = Endpoint->new('sqlite+sqlite', files => 'front-');
    $e->{log} =~ s/orders\.log$/front.log/;
    $e->install;
    my $beside = qq({ name = "front"; send_only = true; @{[ $e->transport_text ]} });
    Endpoint::write_file($e->{conf}, Endpoint::read_file($e->{conf}) =~ s/endpoints = \(/endpoints = ( $beside,/r);
    is +($e->run('install'))[0], 0, 'one that only sends is installed beside it';
    begin($e);
    signal($e, 'USR1');
    $e->wait_for('SIGUSR1 has a line of each endpoint', sub { $e->log_lines(qr/msg="since the start" endpoint=(?:front|orders) /) == 2 });
    is scalar($e->log_lines(qr/msg="since the start" endpoint=front handled=0 failed=0 moved=0 duplicates=0 waiting=0$/)), 1, 'of one that only sends, too';
    is $e->stop, 0, 'it stops';
}

# ---- once a minute -------------------------------------------------------------------------
sub check_minutes {
    local $ENV{WAYBILL_PERIOD} = 700;
    my $e = Endpoint->new('sqlite+sqlite', program => 'waybill-test', files => 'minute-');
    $e->{log} =~ s/orders\.log$/minute.log/;
    my $minutes = sub { return grep { /msg="in the last minute"/ } $e->log_lines('.') };
    $e->install;
    $e->start;
    $e->send('orders', map { { id => $_ } } 1 .. 5);
    $e->wait_for('five messages, and a line at the end of the minute', sub { scalar $minutes->() });
    sleep 2;
    my $sum = 0;
    $sum += /^\S+ level=info msg="in the last minute" endpoint=orders handled=(\d+) failed=0 moved=0 duplicates=0 waiting=\d+$/ ? $1 : die "$_\n" for $minutes->();
    is $sum, 5, 'lines of a minute say what happened in it';
    cmp_ok scalar($minutes->()), '<=', 2, 'where nothing happens there is none';
    my $before = $minutes->();
    $e->send('orders', { id => 'more' });
    $e->wait_for('one more', sub { $minutes->() == $before + 1 });
    like +($minutes->())[-1], qr/ handled=1 /, 'what was told is not told again';
    is $e->stop, 0, 'it stops';
}

# ---- signals -----------------------------------------------------------------------------
# The thread that waits for them has them unblocked meanwhile.
sub blocked_everywhere_else {
    my ($e) = @_;
    my @masks = map { map { /^SigBlk:\s*([0-9a-f]+)/ ? hex substr $1, -8 : () } split /\n/, Endpoint::read_file($_) } glob "/proc/$e->{processes}[0]/task/*/status";
    my @open = grep { my $mask = $_; grep { !($mask & 1 << $_ - 1) } values %number } @masks;
    return @masks > 3 && @open <= 1;
}

sub check_signals {
    my $e = Endpoint->new('sqlite+sqlite', files => 'signals-', concurrency => 2);
    $e->{log} =~ s/orders\.log$/signals.log/;
    $e->install;
    begin($e);
    my $handled = sub { my ($id) = @_; $e->send('orders', { id => $id }); $e->wait_for("$id is handled", sub { $e->effects($id) == 1 }) };
    $handled->('first');
    ok blocked_everywhere_else($e), 'every thread but one has the signals blocked, those of handlers, too';
    my $lines = $e->log_lines('.');
    for my $signal (qw(USR2 PIPE XFSZ)) { signal($e, $signal) for 1 .. 3 }
    $handled->('second');
    ok $e->is_alive, 'SIGUSR2, SIGPIPE and SIGXFSZ end nothing';
    is scalar($e->log_lines('.')), $lines, 'nor are they told of';

    # the level, up and down
    my $debug = sub { scalar $e->log_lines(qr/level=debug msg="duplicate: handled before"/) };
    my $said  = sub { my ($pattern) = @_; scalar $e->log_lines($pattern) };
    $e->configure(top => qq(log_level = "debug";\n));
    is $debug->(), 0, 'a file that has changed changes nothing';
    signal($e, 'HUP');
    $e->wait_for('SIGHUP does', sub { $said->(qr/level=info msg="SIGHUP: the log is as the configuration says now"/) });
    $e->send('orders', { id => 'first' });
    $e->wait_for('debug lines are written', $debug);

    # a configuration that is broken
    for my $broken ("endpoints = (\n", qq(log_level = "loud";\nendpoints = ();\n), '') {
        my $told = $said->(qr/SIGHUP: the log stays as it is/);
        my $before = $debug->();
        Endpoint::write_file($e->{conf}, $broken);
        signal($e, 'HUP');
        $e->wait_for('a broken configuration: one warning', sub { $said->(qr/level=warning msg="SIGHUP: the log stays as it is" problems=\d+ reason="\Q$e->{conf}\E:/) == $told + 1 });
        $e->send('orders', { id => 'first' });
        $e->wait_for('and the level is as before', sub { $debug->() > $before });
    }
    unlink $e->{conf};
    signal($e, 'HUP');
    $e->wait_for('none at all: a warning, too', sub { $said->(qr/SIGHUP: the log stays as it is.*No such file/) == 1 });

    my $renewed = qr/level=info msg="SIGHUP: the log is as the configuration says now"/;
    for my $level (qw(error warning)) {
        my $lines = $said->($renewed);
        $e->configure(top => qq(log_level = "$level";\n));
        signal($e, 'HUP');
        $e->wait_for("a line says that it was done at level $level as well", sub { $said->($renewed) == $lines + 1 });
    }
    $e->configure(top => qq(log_level = "error";\n));
    signal($e, 'HUP');
    $e->wait_for('back at error', sub { $said->($renewed) == 4 });
    Endpoint::write_file($e->{conf}, '');
    my $kept = $said->(qr/SIGHUP: the log stays as it is/);
    signal($e, 'HUP');
    $e->wait_for('that nothing was done, too', sub { $said->(qr/level=warning msg="SIGHUP: the log stays as it is"/) == $kept + 1 });
    my $before = $debug->();
    $e->send('orders', { id => 'first' });
    counts($e, 'who asks is answered at level error as well', 'handled=2 failed=0 moved=0 duplicates=5 waiting=0');
    is $debug->(), $before, 'and gets nothing else';
    is $e->stop, 0, 'it stops by SIGTERM';
}

# ---- a file of its own -----------------------------------------------------------------------
sub check_file {
    my $e = Endpoint->new('sqlite+sqlite', files => 'file-', top => qq(log_file = "run.log";\n));
    my $own = "$e->{dir}/run.log";
    $e->{log} =~ s/orders\.log$/output.log/;
    $e->install;
    is +($e->run('check'))[0], 0, 'a log file that is not there yet is fine';
    ok !-e $own, 'check does not make it';
    my $before = umask 0077;
    $e->start;
    umask $before;
    $e->wait_for('the log is in its file, beside the configuration', sub { lines($own, qr/msg="endpoint starts" endpoint=orders/) });
    is sprintf('%04o', (stat $own)[2] & 07777), '0640', 'with its mode';
    is Endpoint::read_file($e->{log}), '', 'and nothing of it elsewhere';

    rename $own, "$own.1";
    $e->send('orders', { id => 'one', do => 'fail unrecoverable no' });
    $e->wait_for('renamed, it is written to', sub { lines("$own.1", qr/message_id=one /) });
    ok !-e $own, 'until';
    signal($e, 'HUP');
    $e->wait_for('SIGHUP opens a new one', sub { lines($own, qr/SIGHUP: the log is as the configuration says now" log_file=\Q$own\E$/) });
    $e->send('orders', { id => 'two', do => 'fail unrecoverable no' });
    $e->wait_for('which has what follows', sub { lines($own, qr/message_id=two /) });
    is scalar(lines("$own.1", qr/message_id=two |SIGHUP/)), 0, 'and the old one nothing more';

    $e->configure(top => qq(log_file = "/nonexistent/run.log";\n));
    signal($e, 'HUP');
    $e->wait_for('a file that cannot be opened: one warning, in the old one', sub { lines($own, qr/SIGHUP: the log stays as it is" reason="cannot open \\"\/nonexistent\/run\.log\\": No such file or directory"/) == 1 });

    $e->configure(top => qq(log_file = "json.log"; log_format = "json";\n));
    signal($e, 'HUP');
    $e->wait_for('another file, another form', sub { lines("$e->{dir}/json.log", '.') });
    $e->send('orders', { id => "th\x85r\n\xc2\x9bee", do => "fail unrecoverable \xff\"no\\" });
    $e->wait_for('which has what follows, too', sub { lines("$e->{dir}/json.log", 'error queue') });
    signal($e, 'USR1');
    $e->wait_for('and counts', sub { lines("$e->{dir}/json.log", 'since the start') });
    my @objects = map { my $line = $_; eval { decode_json($line) } || die "$line: $@" } lines("$e->{dir}/json.log", '.');
    is scalar(grep { join(' ', sort keys %$_) ne 'endpoint fields level text time' && $_->{text} !~ /^SIGHUP/ } @objects), 0, 'each line is one object';
    my ($moved) = grep { $_->{text} eq 'message moved to the error queue' } @objects;
    is_deeply [ @$moved{qw(level endpoint)}, @{ $moved->{fields} }{qw(message_id type reason)} ],
        [ 'error', 'orders', "th\x{fffd}r\n\x{9b}ee", 'Test.Do', "\x{fffd}\"no\\" ], 'with what was said';
    ok !lines("$e->{dir}/json.log", qr/[\x00-\x1f\x7f]|\xc2[\x80-\x9f]|[^\x00-\x7f]/), 'and nothing that a terminal would obey';
    my ($counts) = grep { $_->{text} eq 'since the start' } @objects;
    is_deeply $counts->{fields}, { handled => 0, failed => 3, moved => 3, duplicates => 0, waiting => 0 }, 'counts are fields';

    $e->configure(top => '');
    signal($e, 'HUP');
    $e->wait_for('no file any more: where it went before', sub { $e->log_lines(qr/ level=info msg="SIGHUP: the log is as the configuration says now"$/) });
    is $e->stop, 0, 'it stops';

    # with a relative path, and without standard streams
    my $other = "$e->{dir}/closed.log";
    $e->configure(top => qq(log_file = "closed.log";\n));
    {
        local @$e{qw(conf closed)} = (File::Spec->abs2rel($e->{conf}), 1);
        $e->start;
    }
    $e->wait_for('started with the standard streams closed', sub { lines($other, qr/endpoint starts/) });
    is_deeply [ map { readlink "/proc/$e->{processes}[0]/fd/$_" } 0 .. 2 ], [ ('/dev/null') x 3 ], 'they are /dev/null';
    $e->send('orders', { id => 'moves', do => 'misdo chdir' });
    $e->wait_for('a handler goes to another directory', sub { $e->effects('moves') == 1 });
    signal($e, 'HUP');
    $e->wait_for('which keeps nobody from reading the configuration again', sub { lines($other, qr/SIGHUP: the log is as the configuration says now" log_file=\Q$other\E$/) });
    is $e->stop, 0, 'it stops';
    is scalar(lines($other, qr/descriptor was closed/)), 0, 'and no handler has closed a standard stream';
}

# ---- a log that is of no use -----------------------------------------------------------------
sub check_refusals {
    my $e = Endpoint->new('sqlite+sqlite', files => 'refused-');
    $e->{log} =~ s/orders\.log$/refused.log/;
    $e->install;
    for my $path (map { "$_" } '/nonexistent/run.log', $e->{dir}, "$e->{dir}/") {
        $e->configure(top => qq(log_level = "info";\nlog_file = "$path";\n));
        my @said = map { [ $e->run($_) ] } qw(check run);
        is_deeply [ map { $_->[0] } @said ], [ 78, 78 ], "$path: refused";
        like $_->[1], qr/^\Q$e->{conf}\E:2: option "log_file": cannot write to "\Q$path\E": \w/m, 'with its place' for @said;
    }
    $e->configure(top => qq(log_format = "xml";\n));
    is +($e->run('check'))[0], 78, 'so is a form that is none';

    $e->configure(top => qq(log_file = "/dev/full";\n));
    $e->start;
    $e->send('orders', { id => 'all the same', do => 'send sink T.Out x' });
    $e->collect('sink', 1, 'a disk that is full stops nothing');
    signal($e, $_) for qw(USR1 HUP);
    is $e->stop, 0, 'it stops';
}

check_counters('sqlite+sqlite');
check_modes();
check_send_only();
check_minutes();
check_signals();
check_file();
check_refusals();
done_testing;
