#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# waybill rename: an endpoint gets another name with messages waiting and delayed, and the program is killed after each of
# its steps. Nothing is lost, and what was handled under the old name is a duplicate under the new one.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(sleep time);
use Catalogue;
use Peer;

# amqp+sqlite stands for what only some have: queues that are bound to amq.topic, and ids in a store of their own.
my @pairs = @ARGV ? @ARGV : ('sqlite+sqlite', 'amqp+pgsql', 'amqp+sqlite', Endpoint::has_mysql() ? 'kafka+mysql' : ());
# Kafka has no name spaces: an event reaches everybody who uses the same broker.
$ENV{WB_SERVER_DIR} = "$ENV{top_builddir}/tests/servers/rename" if grep { /kafka/ } @pairs;
Endpoint::under_servers(Peer::servers_of(@pairs, 'amqp+pgsql'));

my @steps = qw(rename_tables rename_installed rename_taken_over rename_unsubscribed rename_sent rename_acknowledged rename_removed);

my $outbox = 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";';
my $positions = 'deduplication = { by = ["id", "position"]; };'; # what is moved has new ones, and is known by its id
sub endpoint {
    my ($pair, $name) = @_;
    return Peer->new($pair, name => $name, outbox => $pair =~ /kafka/ ? "$outbox $positions" : $outbox) if $pair ne 'amqp+sqlite';
    my $conninfo = "host=$ENV{PGHOST} port=$ENV{PGPORT} user=$ENV{PGUSER} dbname=$ENV{PGDATABASE}";
    return Peer->new($pair, name => "direct-$name", transport => 'topology = "direct";',
        outbox => qq($outbox deduplication = { store = { plugin = "pgsql"; conninfo = "$conninfo"; }; };));
}
sub ids { my ($name, $count) = @_; return map { "$name-$_" } 1 .. $count }
sub good { my ($e, @ids) = @_; return map { { id => $_, good => 1, do => 'sleep 0' } } @ids }

# Whoever was killed is a member of a group, or a consumer, for a while.
sub rename_patiently {
    my ($e, @arguments) = @_;
    my ($code, $text, $end) = (75, '', time + 60);
    ($code, $text) = $e->run('rename', @arguments) while $code eq 75 && $text !~ /rows?|delayed/ && time < $end && (!$text || sleep 0.3);
    return ($code, $text);
}
sub dies_at {
    my ($e, $step, @names) = @_;
    local $e->{program} = 'waybill-test';
    local $ENV{WAYBILL_CRASH} = $step;
    is +(rename_patiently($e, @names))[0], 'signal 9', "$e->{pair}: killed at $step";
}

# A name that is misspelt, and somebody else's queue: nothing is touched.
sub leaves_others {
    my ($pair, $e) = @_;
    my ($wrong, $theirs) = map { $e->address($_) } qw(oders theirs);
    my ($code, $text) = $e->run('rename', $wrong, $e->{name});
    is $code, 72, "$pair: a name that is misspelt" or diag $text;
    like $text, qr/nothing is installed under the name "$wrong".*misspelt/, "$pair: is told of";
    is_deeply [ grep { exchange($_) } "waybill.renamed.$wrong", $wrong ], [], "$pair: and leaves nothing in the broker" if $pair =~ /amqp/;
    $e->make_queue($theirs);
    $e->inject($theirs, good($e, 'theirs'));
    for my $how ([], ['--dry-run']) {
        ($code, $text) = $e->run('rename', @$how, $theirs, $e->{name});
        is $code, 72, "$pair: rename @$how: somebody else's queue" or diag $text;
        like $text, qr/"$theirs" has a queue and no tables, and no rename of it to "\Q$e->{name}\E" .*--force/, "$pair: is told of";
    }
    is scalar($e->read($theirs)), 1, "$pair: and is left alone";
    ok !exchange("waybill.renamed.$theirs"), "$pair: with its delays" if $pair =~ /amqp/;
}
sub exchange { # is it there?
    my ($name) = @_;
    my $amqp = Amqp->new; # what is missing ends the channel
    my $is_there = eval { $amqp->call($amqp->{channel}, 40, 10, "\0\0" . Amqp::short($name) . Amqp::short('') . "\x03" . Amqp::table()); 1 } ? 1 : 0;
    $amqp->close;
    return $is_there;
}

# Back to a name that it had: the topic is another one, and what the first one's partitions were done with says nothing of it.
sub back_again {
    my ($new, $old) = @_;
    my @names = ($new->{name}, $old->{name});
    my ($pair, @more) = ($old->{pair}, ids('back', 60));    # more than were handled there
    $new->inject($new->{name}, good($new, @more));
    my ($code, $text) = rename_patiently($old, @names);
    is $code, 72, "$pair: back again: refused" or diag $text;
    like $text, qr/was made anew.*"waybill install --reset-positions"; a part is done: repeat the command/, "$pair: back again: with the remedy";
    like +($old->run('install', '--reset-positions'))[1], qr/positions of [1-9]\d* partitions forgotten/, "$pair: back again: which is followed";
    ($code, $text) = rename_patiently($old, @names);
    is $code, 0, "$pair: back again: renamed" or diag $text;
    $old->prepare;
    $old->start;
    $old->wait_for('back again: all that was moved is handled', sub { !$old->not_once(@more) }, 60);
    is $old->stop, 0, "$pair: back again: stopped";
}

# ---- endpoints that are not renamed, which is in their configuration: nobody is asked
{
    my $e = Endpoint->new('sqlite+sqlite', name => 'fixed', files => 'fixed-');
    my ($from, $into) = ($e->transport_text, $e->persistence_text);
    my @cases = (
        [ 'one that only sends', qr/it is send-only and has nothing that would be renamed/, "send_only = true; $from" ],
        [ 'one that keeps failures', qr/what it keeps of an error queue stays under its name: install another one/, qq(failures = { from = ["elsewhere"]; }; $from $into outbox = { enabled = true; };) ],
    );
    push @cases, [ 'one that knows messages by positions alone', qr/what is moved gets new ones: set outbox\.deduplication\.by = \["id", "position"\]/,
        qq(handlers = ["@{[ Endpoint::module('script') ]}"]; transport = { plugin = "kafka"; brokers = "127.0.0.1:1"; }; $into outbox = { enabled = true; deduplication = { by = ["position"]; }; };) ]
        if grep { /kafka/ } @pairs;
    for (@cases) {
        my ($what, $why, $group) = @$_;
        Endpoint::write_file($e->{conf}, qq(endpoints = ( { name = "fixed"; $group } );\n));
        for my $arguments ([qw(fixed other)], [qw(other fixed)], [qw(--dry-run fixed other)], [qw(--force fixed other)]) {
            my ($code, $text) = $e->run('rename', @$arguments);
            is $code, 78, "rename @$arguments: $what";
            like $text, $why, 'is refused, with the reason';
        }
    }
}

# ---- killed after each of its steps
for my $pair (@pairs) {
    my $old = endpoint($pair, 'orders');
    my $new = endpoint($pair, 'billing');
    my @names = ($old->{name}, $new->{name});
    my ($code, $text) = rename_patiently($new, @names);
    is $code, 72, "$pair: nothing is there that could be renamed" or diag $text;
    $old->install;
    $old->start;
    my @handled = ids('handled', 20);
    $old->inject($old->{name}, good($old, @handled));
    $old->wait_for('some are handled under the old name', sub { $old->effects == @handled }, 60);
    ($code, $text) = $new->run('rename', @names);
    is $code, 75, "$pair: not while an instance runs" or diag $text;
    is $old->stop, 0, "$pair: it is stopped";

    # what waits
    my @waiting = ids('waiting', 150);
    $old->inject($old->{name}, good($old, @waiting, $handled[0], $waiting[0]));
    is +($old->run('publish', '--type', 'Test.Also', '--body', 'news'))[0], 0, "$pair: an event waits";
    my $delayed = $pair eq 'amqp+pgsql';
    my $recorded = $pair eq 'amqp+pgsql';
    $old->sql(q(insert into "orders_subscribed" (type) values ('Gone.Type'))) if $recorded; # which no module handles any more
    is +($old->run('send', '--to', $old->{name}, '--type', 'Test.Do', '--delay', '30s', '--body', 'late'))[0], 0, "$pair: and one that the broker delays" if $delayed;

    ($code, $text) = rename_patiently($new, '--dry-run', @names);
    is $code, 0, "$pair: it says what it would do" or diag $text;
    like $text, qr/messages wait in its queue.*would give its tables to "\Q$names[1]\E".*would install.*move what waits/s, "$pair: step by step";
    dies_at($new, $_, @names) for $pair =~ /pgsql|mysql/ ? qw(rename_row_copied rename_tables_half) : (), @steps;
    ($code, $text) = rename_patiently($new, @names);
    is $code, 0, "$pair: renamed" or diag $text;
    is +($new->run('rename', @names))[0], 0, "$pair: it may be repeated";
    like +($new->run('rename', '--dry-run', @names))[1], qr/"\Q$names[0]\E": is "\Q$names[1]\E" already/, "$pair: which does nothing";
    leaves_others($pair, $new);
    if ($recorded) {
        is_deeply [ $new->sql(q(select type from "billing_subscribed" where type = 'Gone.Type')) ], [], "$pair: what was subscribed to and is not handled is forgotten";
        is_deeply [ Catalogue::named($new, 'orders') ], [], "$pair: nothing in the catalogue has the former name";
        ok +($new->sql(q(select count(*) from pg_indexes where indexname like 'billing\_%')))[0][0] > 2, "$pair: all of them";
    }

    # under the new name
    $new->prepare;
    $new->start;
    my @extra = ids('extra', 10);
    $new->inject($new->{name}, good($new, @extra, @handled, @waiting[ 0 .. 9 ]));
    my $wanted = @handled + @waiting + @extra + 1 + !!$delayed;
    $new->wait_for('all is handled under the new name', sub { $new->effects >= $wanted }, 90);
    sleep 1;
    is_deeply [ $new->not_once(@handled, @waiting, @extra) ], [], "$pair: each once, duplicates too";
    is $new->effects, $wanted, "$pair: and nothing else";
    is +($new->run('publish', '--type', 'Test.Also', '--body', 'more'))[0], 0, "$pair: an event";
    $new->wait_for('is handled', sub { $new->effects == $wanted + 1 }, 60);
    is $new->stop, 0, "$pair: stopped";
    is +($new->run('send', '--to', $old->{name}, '--type', 'Test.Do', '--body', 'x'))[0], 65, "$pair: the old queue is gone";
    is scalar($new->error), 0, "$pair: and nothing has failed";
    back_again($new, $old) if $pair =~ /kafka/;
}

# ---- killed in the middle, and the old name was installed again: what is under it is for the new one all the same
for my $pair (grep { !/kafka/ } @pairs) {
    my ($old, $new) = map { endpoint($pair, "again-$_") } qw(old new);
    my @names = ($old->{name}, $new->{name});
    my @handled = map { "$pair-$_" } ids('before', 20);
    my @waiting = map { "$pair-$_" } ids('after', 20);
    $old->install;
    $old->start;
    $old->inject($old->{name}, good($old, @handled));
    $old->wait_for('some are handled', sub { !$old->not_once(@handled) }, 60);
    is $old->stop, 0, "$pair: again: stopped";
    $old->inject($old->{name}, good($old, @waiting, @handled));
    dies_at($new, 'rename_tables', @names);
    is +($old->run('install'))[0], 0, "$pair: again: somebody installs the old name";
    for my $how ([], ['--dry-run']) {
        my ($code, $text) = rename_patiently($new, @$how, @names);
        is $code, 72, "$pair: again: @$how: both names have tables" or diag $text;
        like $text, qr/both have tables, as when the first was installed again.*--force removes the tables of "\Q$names[0]\E"/, "$pair: again: and the remedy is named";
        unlike $text, qr/a part is done/, "$pair: again: nothing was done";
    }
    my ($code, $text) = rename_patiently($new, '--dry-run', '--force', @names);
    is $code, 0, "$pair: again: it says what it would do" or diag $text;
    like $text, qr/would remove the tables of "\Q$names[0]\E".*move what waits/s, "$pair: again: step by step";
    dies_at($new, 'rename_second_store', '--force', @names);
    ($code, $text) = rename_patiently($new, '--force', @names);
    is $code, 0, "$pair: again: the remedy works" or diag $text;
    $new->prepare;
    $new->start;
    $new->wait_for('what waited is handled', sub { !$new->not_once(@waiting) }, 60);
    $new->wait_for('all of it', sub { $new->depth($names[1]) == 0 }, 60);
    is $new->stop, 0, "$pair: again: stopped";
    is_deeply [ $new->not_once(@handled, @waiting) ], [], "$pair: again: once, what was handled before, too";
}

# ---- the new name has a queue, of somebody who is down just now: nothing is poured into it
for my $pair (grep { !/kafka/ } @pairs) {
    my ($old, $new) = map { endpoint($pair, "taken-$_") } qw(from into);
    my @names = ($old->{name}, $new->{name});
    my ($mine, $theirs) = map { "$pair-$_" } qw(mine theirs);
    $old->install;
    $new->make_queue($names[1]);
    $old->inject($names[0], good($old, $mine));
    $new->inject($names[1], good($new, $theirs));
    for my $how ([], ['--dry-run']) {
        my ($code, $text) = rename_patiently($new, @$how, @names);
        is $code, 72, "$pair: taken: rename @$how: somebody else's queue has the new name" or diag $text;
        like $text, qr/"\Q$names[1]\E" has a queue and no tables, so it may be somebody else's, who would get what is for "\Q$names[0]\E".*--force takes/, "$pair: taken: is told of";
        unlike $text, qr/a part is done/, "$pair: taken: nothing was done";
    }
    is +($old->run('publish', '--type', 'Test.Also', '--body', 'news'))[0], 0, "$pair: taken: an event";
    $old->wait_for('is for the old name', sub { $old->depth($names[0]) == 2 });
    is $new->depth($names[1]), 1, "$pair: taken: alone";

    # unless it is told; what dies then is completed without being told again
    my ($code, $text) = rename_patiently($new, '--dry-run', '--force', @names);
    is $code, 0, "$pair: taken: with --force it says what it would do" or diag $text;
    like $text, qr/^would take the queue of "\Q$names[1]\E", which is there: 1 message waits in its queue$/m, "$pair: taken: with that queue";
    dies_at($new, $pair =~ /pgsql/ ? 'rename_row_copied' : 'rename_tables', '--force', @names);
    ($code, $text) = rename_patiently($new, @names);
    is $code, 0, "$pair: taken: renamed" or diag $text;
    $new->wait_for('taken: all that waited is there', sub { $new->depth($names[1]) == 3 });
    $new->prepare;
    $new->start;
    $new->wait_for('taken: all of it is handled', sub { !$new->not_once($mine, $theirs) }, 60);
    is $new->stop, 0, "$pair: taken: stopped";
}

# ---- what cannot be read is in the error queue, and the rest is moved
for my $pair ('sqlite+sqlite', 'amqp+pgsql') {
    my ($old, $new) = map { Endpoint->new($pair, name => $_, files => 'odd-', error_queue => 'odd.error') } qw(odd even);
    $old->install;
    $old->send('odd', { id => 'unreadable', do => 'sleep 0', headers => [ map { [ "h$_", 'x' ] } 1 .. 600 ], body => 'whole' }, { id => 'fine', do => 'sleep 0' });
    my ($code, $text) = $new->run('rename', 'odd', 'even');
    is $code, 0, "$pair: a message that is unreadable keeps nobody from renaming" or diag $text;
    like $text, qr/^endpoint "odd": is "even" now; 1 messages moved, 1 to the error queue$/m, "$pair: it is counted";
    like $text, qr/message moved to the error queue.*message_id="?unreadable/, "$pair: and logged";
    my ($failed, @more) = $old->read('odd.error');
    is_deeply [ scalar @more, @$failed{qw(id body)} ], [ 0, 'unreadable', 'whole' ], "$pair: it is in the error queue";
    is_deeply [ map { $failed->{header}{"NServiceBus.$_"} } qw(FailedQ ExceptionInfo.ExceptionType) ], [ 'even', 'Waybill.UnreadableMessage' ], "$pair: to be retried under the new name";
    like $failed->{header}{'NServiceBus.ExceptionInfo.Message'}, qr/headers/, "$pair: with the reason";
    $new->prepare;
    $new->start;
    $new->wait_for('the other one is handled', sub { $new->effects('fine') == 1 });
    is $new->stop, 0, "$pair: stopped";
}

# ---- names that are no endpoint's
{
    my $beside = Endpoint->new('sqlite+sqlite', name => 'beside', files => 'names-');
    my $e = Endpoint->new('sqlite+sqlite', name => 'shop', files => 'names-', beside => [$beside], with => 'audit = { queue = "copies"; };',
        recover => 'types = ( { type = "Test.Odd"; error_queue = "odd"; } );');
    $e->install;
    my @queues = qw(error copies odd beside shop);
    $e->send($_, { id => $_, do => 'sleep 0' }) for @queues;
    my $shared = qr/is an error queue or the audit queue of endpoint "(?:shop|beside)".*give the endpoint's names/;
    my $unnamed = qr/is no name of an endpoint: give one/;
    for ([ error => 'shop', $shared ], [ copies => 'shop', $shared ], [ odd => 'shop', $shared ], [ shop => 'error', $shared ], [ shop => 'queue:error', $shared ],
        [ shop => 'copies', $shared ], [ shop => 'odd', $shared ], [ shop => 'no name "at" all', $unnamed ], [ 'no name', 'shop', $unnamed ],
        [ shop => 'x' x 201, $unnamed ], [ shop => 'beside', qr/the configuration has both/ ], [ beside => 'shop', qr/the configuration has both/ ]) {
        my ($former, $name, $why) = @$_;
        for my $how ([], ['--force']) {
            my ($code, $text) = $e->run('rename', @$how, $former, $name);
            is $code, 64, "rename @$how $former " . substr($name, 0, 20);
            like $text, $why, 'is refused, with the remedy';
        }
    }
    is_deeply [ map { $e->depth($_) } @queues ], [ (1) x @queues ], 'and all is as it was';

    # somebody else's, who runs, or has a queue alone
    my $busy = Endpoint->new('sqlite+sqlite', name => 'busy', files => 'names-', concurrency => 2);
    $busy->install;
    $busy->start;
    $busy->send('busy', { id => 'first', do => 'sleep 0' });
    $busy->wait_for('another endpoint runs', sub { $busy->effects('first') == 1 });
    for my $how ([], ['--force'], ['--dry-run']) {
        my ($code, $text) = $e->run('rename', @$how, 'shop', 'busy');
        is $code, 75, "rename @$how: not to the name of one that runs";
        like $text, qr/endpoint "busy": [12] sessions? receives? from its queue: stop its instances/, 'which is named';
    }
    is $busy->stop, 0, 'it is stopped';
    is $e->depth('shop'), 1, 'and all is as it was';

    my $fresh = Endpoint->new('sqlite+sqlite', name => 'fresh', files => 'names-');
    $e->make_queue('theirs');
    $e->send('theirs', { id => 'theirs', do => 'sleep 0' });
    for my $how ([], ['--dry-run']) {
        my ($code, $text) = $fresh->run('rename', @$how, 'theirs', 'fresh');
        is $code, 72, "rename @$how: a queue without tables";
        like $text, qr/neither "theirs" nor "fresh" has tables.*--force/, 'is no endpoint';
    }
    is $e->depth('theirs'), 1, 'and is left alone';
    is +($fresh->run('rename', '--force', 'theirs', 'fresh'))[0], 0, 'unless told';
    is $e->depth('fresh'), 1, 'then it is moved';

    # a queue of the former name that came after the rename, and after one that was begun
    delete $e->{numbers};
    $e->make_queue('theirs');
    my ($code, $text) = $fresh->run('rename', 'theirs', 'fresh');
    is $code, 72, 'a new queue of the former name';
    like $text, qr/"theirs" has a queue and no tables.*is left to complete/, 'is somebody else\'s, too';
    is +($fresh->run('rename', '--force', 'theirs', 'fresh'))[0], 0, 'unless told';
    ok !$e->query("select 1 from waybill_queue where name = 'theirs'"), 'then it goes';
}

# ---- RabbitMQ: what is delayed to a name that several endpoints had
sub on_rabbitmq {
    my ($topology) = @_;
    my %e = map { ($_ => Endpoint->new('amqp+pgsql', name => "$topology-$_", persistence => 0, outbox => '', transport => qq(topology = "$topology";))) } qw(a b c d);
    my $name = sub { "$topology-$_[0]" };
    my $rename = sub { my ($old, $new) = @_; my ($code, $text) = $e{$new}->run('rename', map { $name->($_) } $old, $new); is $code, 0, "$topology: $old is $new" or diag $text };
    my $delay = sub { my ($to, $seconds) = @_; is +($e{$to}->run('send', '--to', $name->($to), '--type', 'Test.Do', '--delay', "${seconds}s", '--body', 'x'))[0], 0, "$topology: delayed to $to" };
    my $depths = sub { return join ' ', map { $_ . '=' . ($e{a}->depth($name->($_)) // '-') } qw(a b c d) };
    $e{a}->install;
    $delay->('a', 12);
    $rename->('a', 'b');
    $rename->('b', 'c');
    $e{b}->install; # another one, which is renamed, too
    $rename->('b', 'd');
    $e{a}->wait_for('what was delayed to the first name', sub { ($e{c}->depth($name->('c')) // 0) == 1 }, 60);
    is $depths->(), 'a=- b=- c=1 d=0', "$topology: is with who has its second new name, alone";
    $e{a}->install;
    $delay->('a', 1);
    $e{a}->wait_for('what is delayed to a new one of the first name', sub { $e{a}->depth($name->('a')) == 1 }, 60);
    $delay->('d', 1);
    $e{a}->wait_for('what is delayed to the last', sub { $e{a}->depth($name->('d')) == 1 }, 60);
    is $depths->(), 'a=1 b=- c=1 d=1', "$topology: is its own";
    late_reader($e{d}, map { $name->($_) } qw(d b)) if $topology eq 'direct';
}
# Who stops receiving is heard of late, the program itself for one: a reader that goes while the queue is to be removed.
sub late_reader {
    my ($e, $old, $new) = @_;
    my $reader = Amqp->new;
    local $ENV{WAYBILL_CRASH} = 'rename_unsubscribed:1:stop';
    local $e->{program} = 'waybill-test';
    my $pid = $e->spawn("$e->{dir}/late", 'rename', '-c', $e->{conf}, $old, $new);
    $e->wait_for('a rename is stopped', sub { Endpoint::read_file("/proc/$pid/stat") =~ /\) T / }, 60);
    $reader->call($reader->{channel}, 60, 20, "\0\0" . Amqp::short($old) . Amqp::short('late') . "\0" . Amqp::table());
    kill 'CONT', $pid;
    sleep 8;
    $reader->close;
    is $e->await_exit($pid), 0, "$old: renamed behind a reader that went late" or diag Endpoint::read_file("$e->{dir}/late");
}
if (grep { /amqp/ } @pairs) { on_rabbitmq($_) for qw(conventional direct) }

# ---- no catalogue keeps the former name, which can be installed anew, and removed without the renamed one
my $longest = 'n' x 50; # that is the prefix of tables as it is; PostgreSQL cuts off what is made of it
sub succeeds { my ($e, @arguments) = @_; my ($code, $text) = $e->run(@arguments); is $code, 0, "$e->{pair}: $e->{name}: @arguments" or diag $text }
sub keeps_no_name {
    my ($e, $name, $when) = @_;
    is_deeply [ Catalogue::named($e, $name) ], [], "$e->{pair}: $when: nothing is called $name";
}
sub by_name {
    my ($pair) = @_;
    my $endpoint = sub { Endpoint->new($pair, name => $_[0], files => 'named-', with => 'delayed_delivery = { by = "store"; };') };
    my ($old, $long, $new) = map { $endpoint->($_) } 'former', $longest, 'latter';
    succeeds($old, 'install', '--sql-api');
    my @all = Catalogue::named($old, 'former');
    $old->sql($_) for Catalogue::others($old, 'former');
    succeeds($long, 'rename', 'former', $longest);
    keeps_no_name($long, 'former', 'renamed');
    succeeds($long, 'install', '--sql-api');
    my @renamed = Catalogue::named($long, $longest);
    cmp_ok scalar @renamed, '>=', scalar @all, "$pair: all of them have the new one";

    # the former name anew
    succeeds($old, 'install', '--sql-api');
    is_deeply [ Catalogue::named($old, 'former') ], \@all, "$pair: a new one of the former name has each name that the first had";
    succeeds($old, 'uninstall', '-e', 'former');
    keeps_no_name($old, 'former', 'removed');
    is_deeply [ Catalogue::named($long, $longest) ], \@renamed, "$pair: and the renamed one has all of its own";

    succeeds($new, 'rename', $longest, 'latter');
    keeps_no_name($new, $longest, 'renamed from the longest name');
    if ($pair =~ /pgsql/) { # failures that it once kept went along unasked, and do not go so
        my ($code, $text) = $new->run('uninstall', '-e', 'latter');
        is $code, 75, "$pair: what is kept of failures";
        like $text, qr/1 failed message is unresolved/, "$pair: is told of";
    }
    succeeds($new, 'uninstall', '-e', 'latter', '--force');
    keeps_no_name($new, 'latter', 'removed');
}
by_name($_) for 'sqlite+sqlite', 'amqp+pgsql', (grep { /mysql/ } @pairs) ? 'sqlite+mysql' : ();

# ---- names of the greatest length, which differ in their last character: a note has both
sub of_the_longest_names {
    my ($pair) = @_;
    my ($old, $new) = map { Endpoint->new($pair, name => 'n' x 199 . $_, files => 'longest-') } qw(a b);
    my @names = ($old->{name}, $new->{name});
    $old->install;
    $old->send($names[0], { id => 'long', do => 'sleep 0' });
    succeeds($new, 'rename', @names);
    like +($new->run('rename', '--dry-run', @names))[1], qr/"$names[0]": is "$names[1]" already/, "$pair: names of 200 characters: noted as over";
    is $new->depth($names[1]), 1, "$pair: names of 200 characters: what waited is there";
    succeeds($new, 'uninstall', '-e', $names[1], '--force');
}
of_the_longest_names($_) for 'sqlite+sqlite', 'amqp+pgsql', (grep { /mysql/ } @pairs) ? 'sqlite+mysql' : ();

# ---- what is refused
{
    my $e = Endpoint->new('sqlite+sqlite', name => 'rows', files => 'rows-', with => 'delayed_delivery = { by = "store"; };');
    $e->install;
    is +($e->run('rename', 'rows', 'rows'))[0], 64, 'a name that is the same';
    is +($e->run('rename', 'a', 'b'))[0], 64, 'names that the configuration does not have';
    is +($e->run('send', '--to', 'rows', '--type', 'Test.Do', '--delay', '1h', '--body', 'x'))[0], 0, 'a row waits';
    my ($code, $text) = $e->run('rename', 'rows', 'lines');
    is $code, 75, 'rows that wait';
    like $text, qr/1 message is delayed: .*--force renames it/, 'are named, with the remedy';
    is +($e->run('rename', '--force', 'rows', 'lines'))[0], 0, 'with --force it is done';
    is_deeply [ $e->sql(q(select count(*) from waybill_lines_delayed)) ], [ [1] ], 'with the row';
    is_deeply [ $e->sql(q(select name from sqlite_schema where name like 'waybill\_rows\_%' escape '\')) ], [], 'and nothing of the old name is left';
    $e->configure(outbox => 'enabled = true;');
    $e->install;
    for my $how ([], ['--force']) {
        ($code, $text) = $e->run('rename', @$how, 'lines', 'rows');
        is $code, 75, "@$how: two names that have tables, and a row waits";
        like $text, qr/"lines" and "rows" both have tables, and in those of "lines" something waits: run it under that name until nothing does/, 'is refused, with the remedy';
    }
    is_deeply [ $e->sql(q(select count(*) from waybill_lines_delayed)) ], [ [1] ], 'and the row is there';
    $e->sql('delete from waybill_lines_delayed');
    ($code, $text) = $e->run('rename', 'lines', 'rows');
    is $code, 72, 'when none waits';
    like $text, qr/if they are two endpoints, uninstall one of them/, 'it has to be told';
    is +($e->run('rename', '--force', 'lines', 'rows'))[0], 0, 'with --force';
    is_deeply [ $e->sql(q(select name from sqlite_schema where name like 'waybill\_lines\_%' escape '\')) ], [], 'the tables of the first go';
}

done_testing;
