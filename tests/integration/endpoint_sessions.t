#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Transactional sessions of a program: business data and messages, both or neither, whatever becomes of
# the program; what their control messages do; deduplication by the caller's key.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;
use Session;

Endpoint::under_servers(Endpoint::has_mysql() ? 'mariadb' : (), 'pgsql', 'rabbitmq');
my $round = 0;

sub effect { my ($id) = @_; return "insert into effects values ('$id', 1, 0)" }
sub count_effects { my ($e, $id) = @_; return ($e->sql("select count(*) from effects where id = '$id'"))[0][0] }
sub of_records {
    my ($e, $what) = @_;
    my $table = $e->{pair} =~ /mysql/ ? "`$e->{name}_dedup`" : $e->{pair} =~ /pgsql/ ? qq("$e->{name}_dedup") : qq("waybill_$e->{name}_dedup");
    return ($e->sql("select $what from $table"))[0][0];
}
sub records { my ($e) = @_; return of_records($e, 'count(*)') }
sub bodies { my ($e, @got) = @_; return sort map { $_->{body} } @got }

# An endpoint of its own, and a program that has it open.
sub endpoint {
    my ($pair, $session, %with) = @_;
    my $e = Endpoint->new($pair, name => 'shop' . ++$round, outbox => 'enabled = true; sweep_after = "1s"; cleanup_interval = "1s";',
        files => "$round-", %with, with => "session = { $session }; " . ($with{with} // ''));
    $e->install;
    $e->sql('delete from effects');
    return $e;
}

sub is_empty {
    my ($e, $what) = @_;
    is scalar($e->pending), 0, "$e->{pair}: $what: nothing is pending";
    is_deeply [ bodies($e, $e->read('sink')) ], [], "$e->{pair}: $what: nothing was sent";
}

sub one_after_the_other {
    my ($pair) = @_;
    my $e = endpoint($pair, 'connections = 3;');
    my $p = Session->new($e);
    is $p->{opened}, 'OK', "$pair: a program opens the endpoint";
    is_deeply [ $p->all('open a', 'sql a ' . effect('one'), 'defer a ' . effect('two'), 'send a sink Test.Session hello world', 'commit a') ], [],
        "$pair: business data, deferred and not, and a message";
    my ($got) = $e->collect('sink', 1, 'it arrives');
    is $got->{body}, 'hello world', "$pair: the message";
    is $got->{header}{'NServiceBus.MessageIntent'}, 'Send', "$pair: its headers are those of any other";
    is count_effects($e, 'one') + count_effects($e, 'two'), 2, "$pair: the data";
    $e->wait_for('its row is marked', sub { !$e->pending }, 5);
    is records($e), 1, "$pair: its id is recorded";
    like $p->say('send a sink Test.Session late'), qr/^REJECT/, "$pair: what is sent after the commit is refused";
    like $p->say('commit a'), qr/^REJECT 0 the session is over/, "$pair: there is one commit";
    is $p->say('close a'), 'OK', "$pair: and a close";

    is_deeply [ $p->all('open b', 'sql b ' . effect('three'), 'send b sink Test.Session lost', 'close b') ], [], "$pair: closed without a commit";
    is count_effects($e, 'three'), 0, "$pair: nothing of it happens";
    is_deeply [ $p->all('open b', 'sql b ' . effect('four'), 'commit b', 'close b') ], [], "$pair: without a message";
    is count_effects($e, 'four'), 1, "$pair: the data alone";
    is records($e), 1, "$pair: and no record";
    is_deeply [ $p->all('open b', 'send b sink Test.Session alone', 'commit b', 'close b') ], [], "$pair: without data";
    is_deeply [ bodies($e, $e->collect('sink', 1, 'a message alone')) ], ['alone'], "$pair: the message alone";

    is_deeply [ $p->all('open c key-1', 'sql c ' . effect('key'), 'send c sink Test.Session first', 'commit c', 'close c') ], [], "$pair: with a key";
    is_deeply [ $p->all('open c key-1', 'sql c ' . effect('key'), 'send c sink Test.Session second') ], [], "$pair: the same key again";
    like $p->say('commit c'), qr/^REJECT 10 a session with this id was committed before/, "$pair: the caller is told";
    is $p->say('close c'), 'OK', "$pair: it is closed";
    is count_effects($e, 'key'), 1, "$pair: one effect";
    is_deeply [ bodies($e, $e->collect('sink', 1, 'the first')) ], ['first'], "$pair: one message";
    is_deeply [ $p->all('open c key-2', 'sql c ' . effect('key-2'), 'commit c', 'close c', 'open c key-2', 'sql c ' . effect('key-2')) ], [],
        "$pair: a key without a message, twice";
    like $p->say('commit c'), qr/^REJECT 10 /, "$pair: is one, too";
    is $p->say('close c'), 'OK', "$pair: closed";
    is count_effects($e, 'key-2'), 1, "$pair: one effect of that";
    is_deeply [ $p->all('open c key-2', 'sql c insert into nowhere values (1)') ], ['RETRY'], "$pair: the same key, and data that cannot be written";
    like $p->say('commit c'), qr/^REJECT 10 /, "$pair: that the key was there is what counts";
    is $p->say('close c'), 'OK', "$pair: closed again";

    is_deeply [ $p->all('open d', 'sql d ' . effect('five'), 'send d sink Test.Session no', 'fail d RETRY not today') ], ['RETRY'], "$pair: a function says that it fails";
    like $p->say('commit d'), qr/^RETRY 0 not today/, "$pair: the commit says so";
    is $p->say('close d'), 'OK', "$pair: closed";
    is $p->say('open d'), 'OK', "$pair: another";
    is $p->say('sql d insert into nowhere values (1)'), 'RETRY', "$pair: a statement fails";
    is $p->say('send d sink Test.Session no'), 'OK', "$pair: a message beside it";
    like $p->say('commit d'), qr/^RETRY 0 .*nowhere/, "$pair: nothing is committed";
    is_deeply [ $p->all('close d', 'open d', 'sql d ' . effect('five')) ], [], "$pair: the connection serves on";
    like $p->say('send d sink  no'), qr/^REJECT/, "$pair: a message without a type is refused";
    like $p->say('commit d'), qr/^REJECT 0 /, "$pair: and with it the session";
    like join(' ', $p->all('close d', 'open d', 'reply d')), qr/^REJECT$/, "$pair: there is nobody to reply to";
    like $p->say('commit d'), qr/^REJECT 0 cannot reply/, "$pair: which is the session's failure";
    is $p->say('close d'), 'OK', "$pair: closed";
    is count_effects($e, 'five'), 0, "$pair: no effect of all these";
    is_deeply [ $p->all('open d', 'now d sink at once', 'close d') ], [], "$pair: an immediate message";
    is_deeply [ bodies($e, $e->collect('sink', 1, 'it is there')) ], ['at once'], "$pair: leaves whatever becomes of the session";

    is_deeply [ $p->all('open a', 'open b', 'open c') ], [], "$pair: as many sessions as connections";
    like $p->say('hasty d'), qr/^RETRY 8 all 3 connections/, "$pair: one more waits, and says so";
    is_deeply [ $p->all('close a', 'hasty d', 'close b', 'close c', 'close d') ], [], "$pair: until one is free";
    is_empty($e, 'in the end');
    is $p->end, 0, "$pair: it closes";
    is_deeply [ grep { !/level=(?:info|debug)/ } $p->log_lines('.') ], [], "$pair: no complaint in its log";
    is Endpoint::read_file("$e->{dir}/session.stderr"), '', "$pair: the library writes nothing to stderr";
}

# Due later, from a session: the poller of an instance that runs sends it, or the broker.
sub delayed {
    my ($pair) = @_;
    my $e = endpoint($pair, '');
    $e->start;
    my $p = Session->new($e);
    my $sent = time;
    is_deeply [ $p->all('open a', 'later a sink 1200 later', 'send a sink Test.Session sooner', 'commit a', 'close a') ], [], "$pair: one message is due later";
    is_deeply [ bodies($e, $e->collect('sink', 1, 'the other is there')) ], ['sooner'], "$pair: at once";
    is_deeply [ bodies($e, $e->collect('sink', 1, 'and the one')) ], ['later'], "$pair: later";
    cmp_ok time - $sent, '>=', 1.2, "$pair: not before it is due";
    is $p->end, 0, "$pair: the program ends";
    is $e->stop, 0, "$pair: the endpoint stops";
}

# The program dies right after its commit: somebody else sends.
sub dies_after_commit {
    my ($pair, $mode) = @_;
    my $e = endpoint($pair, qq(mode = "$mode"; commit_delay_increment = "100ms"; maximum_commit_duration = "5s";));
    $e->start;
    my $p = Session->new($e, { WAYBILL_CRASH => 'session_committed:1' });
    is_deeply [ $p->all('open a', 'sql a ' . effect('dead'), 'send a sink Test.Session survives') ], [], "$pair: $mode: a session";
    is $p->say('commit a'), undef, "$pair: $mode: the program dies with its commit";
    is $p->end, 'signal 9', "$pair: $mode: killed";
    is count_effects($e, 'dead'), 1, "$pair: $mode: the data is there";
    is_deeply [ bodies($e, $e->collect('sink', 1, "$mode: the message comes")) ], ['survives'], "$pair: $mode: from an instance that runs";
    $e->wait_for("$mode: the row goes", sub { !$e->pending });
    is $e->stop, 0, "$pair: $mode: the endpoint stops";
    is_empty($e, "$mode: once");
}

# And what it sent can go nowhere, or not all of it: the rest goes, and that waits, as what a handler sent would.
sub leaves_what_goes_nowhere {
    my ($pair) = @_;
    my $e = endpoint($pair, 'commit_delay_increment = "100ms"; maximum_commit_duration = "5s";');
    $e->start;
    my $p = Session->new($e, { WAYBILL_CRASH => 'session_committed:1' });
    is_deeply [ $p->all('open a', 'sql a ' . effect('astray'), 'send a nowhere-at-all Test.Session astray', 'send a sink Test.Session beside') ], [],
        "$pair: a session with a message that goes nowhere";
    is $p->say('commit a'), undef, "$pair: dies with its commit";
    is $p->end, 'signal 9', "$pair: killed";
    is_deeply [ bodies($e, $e->collect('sink', 1, 'the other one comes')) ], ['beside'], "$pair: from an instance that runs";
    $e->wait_for('its control message is done', sub { $e->depth($e->{name}) == 0 });
    sleep 2.5;
    is $e->depth($e->{name}), 0, "$pair: and does not come back";
    my @rows;
    $e->wait_for('one row is left', sub { (@rows = $e->pending) == 1 });    # two for a moment, while it is parked anew
    like $rows[0], qr/nowhere-at-all/, "$pair: with what goes nowhere";
    unlike $rows[0], qr/beside/, "$pair: and nothing else";
    cmp_ok scalar($e->log_lines('swept|parked|resum')), '<', 12, "$pair: nobody tries it time and again";
    is $e->stop, 0, "$pair: the endpoint stops";
    is scalar($e->read('error')), 0, "$pair: nothing is in the error queue";
}

# Between its control message and its commit the program stands still, or is dead.
sub stops_before_commit {
    my ($pair, $seconds) = @_;
    my $e = endpoint($pair, 'commit_delay_increment = "100ms"; maximum_commit_duration = "1500ms";');
    my $is_late = $seconds > 2;
    my $what = $is_late ? 'too late' : 'late';
    my $has_effect = $pair !~ /\+sqlite/;    # whoever has written into a file keeps all others waiting
    $e->start;
    my $p = Session->new($e, { WAYBILL_CRASH => $has_effect ? 'session_before_commit:1:stop' : 'session_after_control:1:stop' });
    is_deeply [ $p->all('open a', $has_effect ? 'defer a ' . effect('late') : (), 'send a sink Test.Session once') ], [], "$pair: $what: a session";
    $p->tell('commit a');
    if ($is_late) {
        $e->wait_for("$what: its id is closed", sub { $e->log_lines('a session was not committed in time') });
    } else {
        sleep $seconds;
    }
    kill 'CONT', $p->{pid};
    my $answer = $p->hear;
    if ($is_late) {
        like $answer, qr/^REJECT 11 the session was not committed within/, "$pair: $what: the commit says so";
        is count_effects($e, 'late'), 0, "$pair: $what: nothing of it happened";
    } else {
        is $answer, 'OK', "$pair: $what: the commit is made";
        is count_effects($e, 'late'), $has_effect ? 1 : 0, "$pair: $what: the data";
        is_deeply [ bodies($e, $e->collect('sink', 1, 'the message')) ], ['once'], "$pair: $what: the message";
    }
    sleep 2;    # what may still come of it
    is $p->end, 0, "$pair: $what: the program ends";
    $e->wait_for("$what: its queue is empty", sub { $e->depth($e->{name}) == 0 });
    is $e->stop, 0, "$pair: $what: the endpoint stops";
    is_empty($e, $what);
    is scalar($e->read('error')), 0, "$pair: $what: nothing is in the error queue";
}

# Of a control message whose session's time is over.
sub control_headers {
    my ($attempt) = @_;
    my $prefix = 'NServiceBus.TransactionalSession.';
    return [ [ 'NServiceBus.ControlMessage', 'True' ], [ "${prefix}RemainingCommitDuration", '00:00:00' ],
        [ "${prefix}CommitDelayIncrement", '00:00:01' ], [ "${prefix}CommitDelayAttempt", $attempt ] ];
}

sub dies_before_commit {
    my ($pair) = @_;
    my $e = endpoint($pair, 'commit_delay_increment = "100ms"; maximum_commit_duration = "1s";');
    $e->start;
    my $p = Session->new($e, { WAYBILL_CRASH => 'session_after_control:1' });
    is_deeply [ $p->all('open a key', 'sql a ' . effect('never'), 'send a sink Test.Session never') ], [], "$pair: a session";
    is $p->say('commit a'), undef, "$pair: dies before its commit";
    is $p->end, 'signal 9', "$pair: killed";
    $e->wait_for('its id is closed', sub { $e->log_lines('a session was not committed in time') });
    is count_effects($e, 'never'), 0, "$pair: nothing happened";
    my $record = of_records($e, 'max(batch)');
    $e->send($e->{name}, map { { id => 'key', type => undef, headers => control_headers($_) } } 1 .. 5);
    $e->wait_for('copies of its control message are done', sub { $e->depth($e->{name}) == 0 });
    is of_records($e, 'max(batch)'), $record, "$pair: copies of its control message write nothing";
    my $again = Session->new($e);
    is_deeply [ $again->all('open a key', 'sql a ' . effect('never'), 'send a sink Test.Session never') ], [], "$pair: the key once more";
    like $again->say('commit a'), qr/^REJECT 11 /, "$pair: is closed";
    is_deeply [ $again->all('close a', 'open a key', 'sql a ' . effect('never'), 'send a sink Test.Session then', 'commit a', 'close a') ], [],
        "$pair: and free for who was told so";
    is_deeply [ bodies($e, $e->collect('sink', 1, 'its message')) ], ['then'], "$pair: of that";
    is count_effects($e, 'never'), 1, "$pair: one effect";
    is $again->end, 0, "$pair: the program ends";
    is $e->stop, 0, "$pair: the endpoint stops";
    is scalar($e->log_lines('a session was not committed in time')), 1, "$pair: its id was closed once";
    is_empty($e, 'died before its commit');
}

# A program dies at each step of its session in turn. What was committed is sent, what was not never happens.
my @steps = qw(session_before_control session_after_control session_before_commit commit_sent session_committed session_before_dispatch
    half_dispatched dispatch_unconfirmed session_after_dispatch session_before_mark mark_sent session_after_mark);
my %before = map { $_ => 1 } qw(session_before_control session_after_control session_before_commit);
my %unknown = map { $_ => 1 } qw(commit_sent half_dispatched dispatch_unconfirmed);    # of the commit's, or the control message's

sub dies_everywhere {
    my ($pair, $mode) = @_;
    my $e = endpoint($pair, qq(mode = "$mode"; commit_delay_increment = "100ms"; maximum_commit_duration = "2s";));
    my (%sent, @reached);
    $e->start;
    for my $step (grep { $mode eq 'control_message' || !/control/ } @steps) {
        my $p = Session->new($e, { WAYBILL_CRASH => "$step:1" });
        my @bad = $p->all("open a $step", 'sql a ' . effect($step), "send a sink Test.Session $step.1", "send a sink Test.Session $step.2");
        my $answer = $p->say('commit a');
        sleep 0.3 if defined $answer && $answer eq 'OK';    # the dispatcher may come to it
        push @reached, $step if $p->end eq 'signal 9';
        is_deeply \@bad, [], "$pair: $mode: $step: a session";
    }
    cmp_ok scalar @reached, '>=', $mode eq 'control_message' ? 10 : 8, "$pair: $mode: steps that were reached: @reached";
    sleep 2.5;
    $e->wait_for("$mode: all is handled", sub { !$e->pending && $e->depth($e->{name}) == 0 }, 40);
    $sent{ $_->{body} }{ $_->{id} } = 1 for $e->read('sink');
    for my $step (@reached) {
        my $effects = count_effects($e, $step);
        my @ids = map { scalar keys %{ $sent{"$step.$_"} || {} } } 1, 2;
        is_deeply \@ids, [ $effects, $effects ], "$pair: $mode: $step: data and messages, both or neither, each once";
        is $effects, $before{$step} ? 0 : 1, "$pair: $mode: $step: as it should be" unless $unknown{$step};
    }
    is $e->stop, 0, "$pair: $mode: the endpoint stops";
    is scalar($e->read('error')), 0, "$pair: $mode: nothing is in the error queue";
}

# Who closes the ids of sessions that died may die itself.
sub closer_dies {
    my ($pair) = @_;
    my $e = endpoint($pair, 'commit_delay_increment = "50ms"; maximum_commit_duration = "1s";');
    my @keys = map { "gone$_" } 1 .. 5;
    for my $key (@keys) {
        my $p = Session->new($e, { WAYBILL_CRASH => 'session_after_control:1' });
        is_deeply [ $p->all("open a $key", 'sql a ' . effect($key), "send a sink Test.Session $key") ], [], "$pair: session $key";
        is $p->say('commit a'), undef, "$pair: that dies before its commit";
        is $p->end, 'signal 9', "$pair: killed";
    }
    $e->{program} = 'waybill-test';
    for my $step (qw(before_session_closed claim_sent commit_sent after_session_closed before_acknowledge)) {
        local $ENV{WAYBILL_CRASH} = "$step:1";
        $e->start;
        $e->wait_for("who closes it dies: $step", sub { !$e->is_alive }, 60);
        $e->{processes} = [];
    }
    $e->start;
    # a message that the dead had taken out of the delayed store comes back with the end of a lease, half a minute
    $e->wait_for('their control messages are done', sub { $e->depth($e->{name}) == 0 && records($e) == @keys }, 60);
    my $again = Session->new($e);
    for my $key (@keys) {
        is_deeply [ $again->all("open a $key", "send a sink Test.Session $key") ], [], "$pair: $key once more";
        like $again->say('commit a'), qr/^REJECT 11 /, "$pair: is closed";
        is $again->say('close a'), 'OK', "$pair: and done";
        is count_effects($e, $key), 0, "$pair: nothing happened";
    }
    is $again->end, 0, "$pair: the program ends";
    sleep 2;
    is $e->stop, 0, "$pair: the endpoint stops";
    is_empty($e, 'whoever closed it');
}

# Many threads; then the same keys again, while programs are killed.
sub many {
    my ($pair, $mode) = @_;
    my $e = endpoint($pair, qq(mode = "$mode";), $pair =~ /sqlite$/ ? (store => 'busy_timeout = "20s";') : ());
    $e->start;
    my $p = Session->new($e);
    my $count = 200;
    my %results;
    $p->tell("load $count 8 sink k");
    while (defined(my $line = $p->hear)) {
        last if $line eq 'OK';
        $results{$1}++ if $line =~ /^\d+ (\w+)/;
    }
    is_deeply \%results, { OK => $count }, "$pair: $mode: sessions of eight threads";
    # who is slow to mark what left meets the sweeper, which sends it again with its id
    my %once;
    $e->wait_for("$mode: their messages", sub { $once{ $_->{id} } = $_ for $e->read('sink'); keys %once >= $count });
    is_deeply [ bodies($e, values %once) ], [ sort map { "k$_" } 0 .. $count - 1 ], "$pair: $mode: each once, by its id";
    is $p->end, 0, "$pair: $mode: the program ends";
    my (%told, %sent);
    for my $i (1 .. 12) {
        my $q = Session->new($e);
        $q->tell("load $count 8 sink again");
        my $end = time + 0.15;
        while (defined(my $line = $q->hear)) {
            $told{"again$1"} = 1 if $line =~ /^(\d+) OK/;
            last if $line eq 'OK' || time > $end;
        }
        $q->end('KILL');
    }
    my $q = Session->new($e);
    $q->tell("load $count 8 sink again");
    while (defined(my $line = $q->hear)) { last if $line eq 'OK' }
    is $q->end, 0, "$pair: $mode: the last program ends";
    $e->wait_for("$mode: all are handled", sub { !$e->pending && $e->depth($e->{name}) == 0 }, 40);
    $sent{ $_->{body} }{ $_->{id} } = 1 for $e->read('sink');
    is_deeply [ grep { ($_->[1] // 0) != 1 } $e->sql("select id, count(*) from effects where id like 'again%' group by id") ], [], "$pair: $mode: one effect of each key";
    is count_effects($e, "again$_"), 1, "$pair: $mode: key $_ has its effect" for 0, $count - 1;
    is_deeply [ sort keys %sent ], [ sort map { "again$_" } 0 .. $count - 1 ], "$pair: $mode: a message of each key";
    is_deeply [ grep { keys %{ $sent{$_} } != 1 } sort keys %sent ], [], "$pair: $mode: one message, whatever was sent twice";
    is_deeply [ grep { !$sent{$_} } sort keys %told ], [], "$pair: $mode: whatever was said to be committed was";
    is $e->stop, 0, "$pair: $mode: the endpoint stops";
}

# A send-only endpoint's sessions use the outbox of another.
sub send_only {
    my ($pair) = @_;
    my $e = endpoint($pair, 'commit_delay_increment = "100ms"; maximum_commit_duration = "2s";');
    my $front = Endpoint->new($pair, name => "front$round", files => $e->{files});
    my $group = qq({ name = "front$round"; send_only = true; @{[ $e->transport_text ]} @{[ $e->persistence_text ]} )
        . qq(outbox = { enabled = true; }; session = { processor_endpoint = "$e->{name}"; commit_delay_increment = "100ms"; }; });
    Endpoint::write_file($front->{conf}, "endpoints = ( $group );\n");
    is(($front->run('install'))[0], 0, "$pair: a send-only endpoint is installed");
    $e->start;
    my $p = Session->new($front, { WAYBILL_CRASH => 'session_committed:2' });
    is $p->{opened}, 'OK', "$pair: send-only: it is opened";
    is_deeply [ $p->all('open a', 'sql a ' . effect('front'), 'send a sink Test.Session front', 'commit a', 'close a') ], [], "$pair: send-only: a session";
    is_deeply [ bodies($e, $e->collect('sink', 1, 'send-only: its message')) ], ['front'], "$pair: send-only: arrives";
    is_deeply [ $p->all('open a', 'sql a ' . effect('front'), 'send a sink Test.Session left') ], [], "$pair: send-only: another";
    is $p->say('commit a'), undef, "$pair: send-only: dies with its commit";
    is $p->end, 'signal 9', "$pair: send-only: killed";
    is_deeply [ bodies($e, $e->collect('sink', 1, 'send-only: the processor')) ], ['left'], "$pair: send-only: sends what it left";
    is count_effects($e, 'front'), 2, "$pair: send-only: both have their data";
    my $records = records($e);
    my ($code, $text) = $front->run('outbox', 'cleanup', '--older-than', '0s', '--force');
    is $code, 78, "$pair: send-only: its records are not its own to remove";
    like $text, qr/its records are those of "$e->{name}", whose retention counts: clean up there/, "$pair: send-only: and it says whose they are";
    ok $records && records($e) >= $records, "$pair: send-only: nor are they removed";
    is $e->stop, 0, "$pair: send-only: the processor stops";
}

# Handlers and sessions in one program.
sub hosts_handlers {
    my ($pair) = @_;
    my $e = endpoint($pair, '');
    my $p = Session->new($e, {}, $e->{name}, 'handlers');
    is $p->say('run'), 'OK', "$pair: a program runs its handlers";
    $e->send($e->{name}, map { { id => "m$_", do => 'send sink Test.Out handled' } } 1 .. 20);
    is_deeply [ $p->all('open a', 'send a sink Test.Session beside', 'commit a', 'close a') ], [], "$pair: and commits sessions";
    is scalar($e->collect('sink', 21, 'messages of both')), 21, "$pair: all arrive";
    is_deeply [ $e->not_once(map { "m$_" } 1 .. 20) ], [], "$pair: each handled once";
    $p->tell('quit');
    is_deeply [ $p->hear, $p->hear ], [ 'OK', 'OK' ], "$pair: it quits";
    is $p->end, 0, "$pair: and closes";
}

# What its handlers need is gone: that is looked for without taking a message, which would count as a delivery of it.
sub starts_again {
    my ($pair) = @_;
    my $e = endpoint($pair, '', concurrency => 1);    # where others go on, one is started again without a look
    my $p = Session->new($e, {}, $e->{name}, 'handlers');
    is $p->say('run'), 'OK', "$pair: gone: its handlers run";
    $e->send($e->{name}, { id => 'before' });
    $e->wait_for('it works', sub { !$e->not_once('before') });
    $e->sql(qq(alter table "waybill_$e->{name}_dedup" rename to away));
    $e->send($e->{name}, map { { id => "gone$_" } } 1 .. 4);
    $e->wait_for('it gave up, and could not be started twice', sub { 3 <= (() = $p->log_lines(qr/msg="endpoint gave up and is started again after a pause"/)) }, 30);
    is scalar(() = $p->log_lines("worker gives up")), 1, "$pair: gone: no worker took a message meanwhile";
    $e->sql(qq(alter table away rename to "waybill_$e->{name}_dedup"));
    $e->wait_for('it goes on', sub { !$e->not_once(map { "gone$_" } 1 .. 4) }, 30);
    $p->tell('quit');
    is_deeply [ $p->hear, $p->hear ], [ 'OK', 'OK' ], "$pair: gone: it quits";
    is $p->end, 0, "$pair: gone: and closes";
}

# Threads of a process that may get a signal, and those that block it.
sub threads_by_signal {
    my ($pid, $number) = @_;
    my %count = (open => 0, blocked => 0);
    for my $status (glob "/proc/$pid/task/*/status") {
        my ($mask) = Endpoint::read_file($status) =~ /^SigBlk:\s*([0-9a-f]+)/m or next;
        $count{ hex(substr $mask, -8) & 1 << $number - 1 ? 'blocked' : 'open' }++;
    }
    return \%count;
}

# A signal is the program's: by its handler it ends wb_endpoint_run(), which finishes what is in flight; without one it
# ends the process, and what was in flight comes again.
sub ends_by_signal {
    my ($pair) = @_;
    my $e = endpoint($pair, '');
    for my $is_caught (1, 0) {
        my $how = $is_caught ? 'caught' : 'not caught';
        my $gate = "$e->{dir}/gate-$is_caught";
        my $p = Session->new($e, {}, $e->{name}, 'handlers');
        is_deeply [ $p->all($is_caught ? 'catch' : (), 'run', 'open a', "send a sink Test.Session $how", 'commit a') ], [], "$pair: $how: handlers and a session";
        $e->send($e->{name}, { id => $how, do => [ "wait $gate", 'send sink Test.Out handled' ] });
        $e->wait_for("$how: a handler is at work", sub { $e->attempts($how) });
        my $threads = threads_by_signal($p->{pid}, 15);
        is $threads->{open}, 2, "$pair: $how: the program's threads alone get signals";
        cmp_ok $threads->{blocked}, '>=', 3, "$pair: $how: those of the library do not";
        kill 'TERM', $p->{pid};
        Endpoint::write_file($gate, '') if $is_caught;
        is $p->hear, $is_caught ? 'OK' : undef, "$pair: $how: " . ($is_caught ? 'wb_endpoint_run() has returned' : 'the process has ended');
        is_deeply [ $e->not_once($how) ], $is_caught ? [] : [$how], "$pair: $how: what was in flight is " . ($is_caught ? 'done' : 'not');
        is_deeply [ $p->all('close a', 'open a', "send a sink Test.Session $how", 'commit a') ], [], "$pair: $how: sessions go on" if $is_caught;
        is $p->end, $is_caught ? 0 : 'signal 15', "$pair: $how: how it ended";
        Endpoint::write_file($gate, '');
    }
    $e->start;
    $e->wait_for('what was in flight comes again', sub { !$e->not_once('not caught') && !$e->pending });
    is $e->stop, 0, "$pair: the endpoint stops";
    is_deeply [ $e->not_once('caught', 'not caught') ], [], "$pair: each was handled once";
    my %sent = map { $_->{id} => $_ } $e->read('sink');    # who was killed before its mark sends it again
    is_deeply [ bodies($e, values %sent) ], [ 'caught', 'caught', 'handled', 'handled', 'not caught' ], "$pair: and all of it has arrived";
}

sub refused {
    my $e = Endpoint->new('sqlite+sqlite', name => 'bare', outbox => '', files => 'bare-');
    $e->install;
    my $p = Session->new($e);
    is $p->{opened}, 'OK', 'an endpoint without outbox is opened';
    like $p->say('open a'), qr/^REJECT 5 the endpoint has no outbox/, 'but no session';
    is $p->end, 0, 'it ends';
    $p = Session->new($e, {}, 'nobody');
    like $p->{opened}, qr/^FATAL 5 .*there is no endpoint "nobody"/, 'an endpoint that is not there';
    is $p->end, 0, 'the program lives on';
    $e->configure(with => 'session = { };');
    my ($code, $text) = $e->run('check');
    is $code, 78, 'sessions without outbox are refused by check';
    like $text, qr/transactional sessions keep what they send in the outbox/, 'with a sentence';
    $p = Session->new($e);
    like $p->{opened}, qr/^FATAL 5 .*transactional sessions/, 'and by the library';
    is $p->end, 0, 'which ends nothing';
}

# What is closed is remembered as long as other ids.
sub forgets_what_was_closed {
    my ($name, $warned) = ('forgets', qr/warning: endpoint "forgets": ids are forgotten after .*s, also that of a session which was closed/);
    my $e = Endpoint->new('sqlite+sqlite', name => $name, outbox => 'enabled = true; retention = "89s";', with => 'session = { maximum_commit_duration = "30s"; };');
    my ($code, $text) = $e->run('check');
    is $code, 0, 'a retention shorter than a commit may take, and a minute, is no error';
    like $text, $warned, 'it is warned of';
    like $text, qr/set "retention" to 90s or more/, 'with how much it would have to be';
    for my $good ([ outbox => 'enabled = true; retention = "90s";' ], [ outbox => 'enabled = true; retention = "89s";', with => '' ]) {
        $e->configure(@$good);
        ($code, $text) = $e->run('check');
        is $code, 0, 'one that is as long, or nobody who has sessions, is right';
        unlike $text, $warned, 'and told nothing';
    }
}

my @pairs = ('sqlite+sqlite', 'amqp+pgsql', Endpoint::has_mysql() ? 'sqlite+mysql' : ());
@pairs = @ARGV if @ARGV;
refused();
forgets_what_was_closed();
for my $pair (@pairs) {
    one_after_the_other($pair);
    delayed($pair);
    dies_after_commit($pair, $_) for 'control_message', 'store_and_forward';
    leaves_what_goes_nowhere($pair);
    stops_before_commit($pair, $_) for 0.7, 3;
    dies_before_commit($pair);
    closer_dies($pair);
    dies_everywhere($pair, $_) for 'control_message', 'store_and_forward';
    many($pair, $_) for 'control_message', 'store_and_forward';
    send_only($pair);
    hosts_handlers($pair);
    starts_again($pair) if $pair eq 'sqlite+sqlite';
    ends_by_signal($pair);
}
done_testing;
