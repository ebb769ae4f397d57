#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# waybill uninstall: says what it would do, refuses while anything waits, removes what is the endpoint's and nothing else,
# and completes what died in the middle.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

my @pairs = @ARGV ? @ARGV : ('sqlite+sqlite', Endpoint::has_mysql() ? 'sqlite+mysql' : (), 'amqp+pgsql');
my %servers = (amqp => 'rabbitmq', pgsql => 'pgsql', mysql => 'mariadb');
Endpoint::under_servers(grep { defined } map { $servers{$_} } map { split /\+/ } @pairs) if grep { $_ ne 'sqlite+sqlite' } @pairs;

my %catalogue = (
    sqlite => q(select name from sqlite_schema where type = 'table' and name like 'waybill_%s\\_%%' escape '\\' order by 1),
    pgsql  => q(select tablename from pg_tables where tablename like '%s\\_%%' order by 1),
    mysql  => q(select table_name from information_schema.tables where table_schema = database() and table_name like '%s\\_%%' order by 1),
);
sub tables {
    my ($e, $name) = @_;
    return map { $_->[0] } $e->sql(sprintf $catalogue{ $e->{pair} =~ /(\w+)$/ ? $1 : '' }, $name);
}
sub has_queue {
    my ($e, $name) = @_;
    return ($e->query("select count(*) from waybill_queue where name = '$name'"))[0][0] if $e->{pair} =~ /^sqlite/;
    my $amqp = Amqp->new; # a queue that is missing ends the channel
    my ($ready) = $amqp->depth($name);
    $amqp->close;
    return defined $ready ? 1 : 0;
}
sub subscriptions { my ($e, $number) = @_; return [ $e->query("select count(*) from waybill_subscription where queue = $number") ] }
sub pending_table { my ($e) = @_; return { sqlite => '"waybill_orders_pending"', pgsql => '"orders_pending"', mysql => '`orders_pending`' }->{ $e->{pair} =~ /(\w+)$/ ? $1 : '' } }
sub uninstall { my ($e, @arguments) = @_; return $e->run('uninstall', '-e', 'orders', @arguments) }
sub dies_at {
    my ($e, $point) = @_;
    local $e->{program} = 'waybill-test';
    local $ENV{WAYBILL_CRASH} = $point;
    is +(uninstall($e))[0], 'signal 9', "$e->{pair}: killed at $point";
}
sub reinstall { my ($e) = @_; delete $e->{numbers}; $e->install }

# ---- RabbitMQ: what is delayed, what is somebody else's, and what died within the transport
sub exchange { # passively
    my ($e, $name) = @_;
    my $amqp = $e->amqp;
    return eval { $amqp->call($amqp->{channel}, 40, 10, "\0\0" . Amqp::short($name) . Amqp::short('') . "\x03" . Amqp::table()); 1 } ? 1 : 0;
}
sub foreign_exchange { # of that name, which has a queue
    my ($e, $name, $type, $queue) = @_;
    my $amqp = $e->amqp;
    $amqp->declare($queue);
    $amqp->call($amqp->{channel}, 40, 10, "\0\0" . Amqp::short($name) . Amqp::short($type) . "\x02" . Amqp::table());
    $amqp->call($amqp->{channel}, 50, 20, "\0\0" . Amqp::short($queue) . Amqp::short($name) . Amqp::short('#') . "\0" . Amqp::table());
}
sub succeeds { my ($e, @arguments) = @_; my ($code, $text) = $e->run(@arguments); is $code, 0, "$e->{name}: @arguments" or diag $text }
sub put { my ($e, $verb, @arguments) = @_; succeeds($e, $verb, @arguments, '--body', 'x') }
sub delayed { my ($e, $to, $delay) = @_; put($e, 'send', '--to', $to, '--type', 'Test.Do', '--delay', $delay) }
sub uninstalls { my ($e, $wanted, @arguments) = @_; my ($code, $text) = $e->run('uninstall', @arguments); is $code, $wanted, "$e->{name}: uninstall @arguments" or diag $text; return $text }
sub killed {
    my ($e, $point) = @_;
    local $e->{program} = 'waybill-test';
    local $ENV{WAYBILL_CRASH} = $point;
    is +($e->run('uninstall'))[0], 'signal 9', "$e->{name}: killed at $point";
}
sub stopped { # at that point, while `meanwhile` happens: its exit code
    my ($e, $point, $meanwhile, @arguments) = @_;
    local $e->{program} = 'waybill-test';
    local $ENV{WAYBILL_CRASH} = "$point:1:stop";
    unlink "$e->{dir}/stopped";
    my $pid = $e->spawn("$e->{dir}/stopped", 'uninstall', '-c', $e->{conf}, @arguments);
    $e->wait_for("$e->{name}: stopped at $point", sub { Endpoint::read_file("/proc/$pid/stat") =~ /\) T / }, 60);
    $meanwhile->();
    kill 'CONT', $pid;
    return $e->await_exit($pid);
}

sub on_rabbitmq {
    my ($topology) = @_;
    my $is_direct = $topology eq 'direct';
    my ($gone, $stays, $never, $renamed) = map {
        Endpoint->new('amqp+pgsql', name => "$topology-$_", persistence => 0, outbox => '', error_queue => "$topology-error",
            transport => qq(topology = "$topology";))
    } qw(gone stays never renamed);
    my ($name, $error) = ($gone->{name}, "$topology-error");
    $_->install for $gone, $stays;

    # an exchange of the name of an endpoint that was never installed, and just as install would make it
    foreign_exchange($never, $never->{name}, 'fanout', "$topology-theirs");
    uninstalls($never, 0);
    ok exchange($never, $never->{name}), "$topology: somebody else's exchange is there";
    $never->amqp->publish($never->{name}, 'a.b', { id => 'a' }, 'x');
    is $never->depth("$topology-theirs"), 1, "$topology: with its binding";

    # killed while nothing leads to the queue: it is not run like that
    killed($gone, 'queue_cut_off');
    my ($code, $text) = $gone->run('run');
    is $code, 72, "$topology: what is half removed is not run";
    like $text, qr/"\Q$name\E" was being removed.*waybill install/, "$topology: and says why";

    # a message that comes in the last moment: all is as it was
    is stopped($gone, 'queue_cut_off', sub { $gone->send($name, { id => 'late', do => 'sleep 0' }) }), 75, "$topology: refused in the last moment";
    put($stays, 'send', '--to', $name, '--type', 'Test.Do');
    put($stays, 'publish', '--type', 'Test.Also');
    delayed($stays, $name, '1s');
    $gone->wait_for('what is sent, published and delayed comes again', sub { $gone->depth($name) == 4 }, 60);
    is $gone->depth($error), 0, "$topology: and nowhere else";
    ok !exchange($gone, "waybill.removing.$name"), "$topology: and nothing says that it is being removed";
    $gone->read($_) for $name, $stays->{name};

    # what the broker delays
    delayed($stays, $name, '10s') for 1 .. 2;
    like uninstalls($gone, 0, '--dry-run'), qr/nothing waits.*is not counted, and would go to queue "\Q$error\E"/s, "$topology: asked what it would do, it says what becomes of them";
    like uninstalls($gone, 0), qr/those to this endpoint go to the error queue.*delayed_for_all="?[1-9]/, "$topology: it says that messages are delayed";
    is +($stays->run('send', '--to', $name, '--type', 'Test.Do', '--body', 'x', '--delay', '1s'))[0], 65, "$topology: nobody delays to it";
    like uninstalls($gone, 0, '--error-queues'), qr/the error queue stays/, "$topology: the error queue is needed";
    $gone->wait_for('what was delayed is in the error queue', sub { ($gone->depth($error) // 0) == 2 }, 60);
    is scalar($gone->read($error)), 2, "$topology: all of it";

    # installed again it gets what is delayed to it, once
    $gone->install;
    delayed($stays, $name, '1s');
    $gone->wait_for('who is installed again', sub { $gone->depth($name) == 1 }, 60);
    is $gone->depth($error), 0, "$topology: gets all that is delayed to it";
    $gone->read($name);

    # killed behind the queue: what is left is ours, and what others make afterwards is not
    delayed($stays, $name, '8s');
    killed($gone, 'queue_deleted');
    is exchange($gone, $name), $is_direct ? 0 : 1, "$topology: its exchange is left";
    uninstalls($gone, 0);
    ok !exchange($gone, $name), "$topology: and removed by the next";
    $gone->wait_for('what was delayed comes to the error queue', sub { $gone->depth($error) == 1 }, 60);
    foreign_exchange($gone, $name, 'topic', "$topology-theirs");
    uninstalls($gone, 0);
    ok exchange($gone, $name), "$topology: but not somebody else's of that name";
    $gone->amqp->delete_exchange($name);

    # what was delayed to a former name, when the new one is removed
    $gone->read($error);
    $gone->install;
    delayed($stays, $name, '12s');
    succeeds($renamed, 'rename', $name, $renamed->{name});
    uninstalls($renamed, 0);
    $gone->wait_for('what was delayed to its former name comes to the error queue', sub { $gone->depth($error) == 1 }, 60);

    # an error queue that is not there, and nothing is delayed that would need it
    $stays->amqp->delete($error);
    uninstalls($stays, 0);
    ok !has_queue($stays, $error), "$topology: an error queue that was not there is not made";
    $_->forget_broker for $gone, $stays, $never, $renamed;
}

# ---- queues of one name in two transports are two
if (grep { /amqp/ } @pairs) {
    my ($copied, $typed) = ('two-copies', 'two-typed');
    my %same  = (error_queue => 'two-error', files => 'two-');
    my $there = Endpoint->new('sqlite+sqlite', %same, name => 'two-there', with => qq(audit = { queue = "$copied"; };),
        retries => qq(0; types = ( { type = "Test.Do"; error_queue = "$typed"; } )));
    my $here = Endpoint->new('amqp+pgsql', %same, name => 'two-here', beside => [$there],
        retries => qq(0; types = ( { type = "Test.Do"; error_queue = "$typed"; }, { type = "Test.Copy"; error_queue = "$copied"; } )));
    my %queues = ($here->{name} => [ 'two-error', $typed, $copied ], $there->{name} => [ 'two-error', $typed ]);
    my $removes = sub {
        my (@arguments) = @_;
        my ($code, $text) = $here->run('uninstall', '--error-queues', @arguments);
        is $code, 0, "two transports: uninstall @arguments" or diag $text;
        return $text;
    };
    for my $pair ([ $here, $there ], [ $there, $here ]) {
        my ($one, $other) = @$pair;
        delete $_->{numbers} for @$pair;
        $here->install;
        $there->make_queue($copied);
        my $text = $removes->('-e', $one->{name}, '--dry-run');
        like $text, qr/would remove, if empty: queue "$_"/, "two transports: $one->{name}: $_ would go" for @{ $queues{ $one->{name} } };
        unlike $removes->('-e', $one->{name}), qr/ stays/, "two transports: $one->{name}: nobody else has a use for its queues";
        is_deeply [ grep { has_queue($one, $_) } @{ $queues{ $one->{name} } } ], [], "two transports: $one->{name}: all of its own are gone";
        is_deeply [ grep { has_queue($other, $_) } @{ $queues{ $other->{name} } }, $other->{name} ], [ @{ $queues{ $other->{name} } }, $other->{name} ],
            "two transports: $one->{name}: and those of the same names that are $other->{name}'s are not";
        ok has_queue($there, $copied), "two transports: $one->{name}: nor is an audit queue";
    }
    $here->install;
    unlike $removes->(), qr/ stays/, 'two transports: all endpoints of the file';
    is_deeply [ map { my $one = $_; grep { has_queue($one, $_) } @{ $queues{ $one->{name} } }, $one->{name} } $here, $there ], [], 'two transports: with all of their error queues';
}

if (grep { /amqp/ } @pairs) { on_rabbitmq($_) for qw(conventional direct) }

for my $pair (@pairs) {
    my $other = Endpoint->new($pair, name => 'others');
    my $e     = Endpoint->new($pair, beside => [$other], with => 'delayed_delivery = { by = "store"; };');
    $e->install;
    my ($code, $text) = uninstall($e, '--dry-run');
    is $code, 0, "$pair: it says what it would do";
    like $text, qr/nothing waits.*would remove: queue "orders".*would remove: the tables of "orders"/s, "$pair: queue and tables";
    ok has_queue($e, 'orders') && tables($e, 'orders'), "$pair: and does nothing";

    # what waits: a message, a delayed one, and a row
    $e->send('orders', { id => 'a', do => 'sleep 0' });
    is +($e->run('send', '-e', 'orders', '--to', 'orders', '--type', 'Test.Do', '--delay', '1h', '--body', 'x'))[0], 0, "$pair: one is delayed";
    $e->sql('insert into ' . pending_table($e) . q{ (batch, operations) values (1, 'of a later version')});
    ($code, $text) = uninstall($e);
    is $code, 75, "$pair: it refuses";
    like $text, qr/1 message waits in its queue, 1 row of operations is pending, 1 message is delayed: .*--force/, "$pair: and says what waits";
    ($code, $text) = uninstall($e, '--dry-run');
    is $code, 75, "$pair: asked what it would do, it says so as well";
    is $e->depth('orders'), 1, "$pair: nothing is lost";

    # somebody receives; what is left of whoever was killed does not
    $e->start;
    $e->wait_for('it runs', sub { $e->effects('a') == 1 });
    ($code, $text) = uninstall($e, '--force');
    is $code, 75, "$pair: not while an instance runs, whatever it is told";
    like $text, qr/"orders": 1 session receives from its queue: stop its instances/, "$pair: and says so";
    $e->send('orders', { id => 'b', do => 'sleep 0' });
    $e->wait_for('it goes on', sub { $e->effects('b') == 1 });
    if ($pair =~ /^sqlite/) {
        $e->stop('KILL');
    } else {
        is $e->stop, 0, "$pair: which is stopped";
    }
    $e->send('orders', { id => 'c', do => 'sleep 0' });
    my $number = $pair =~ /^sqlite/ ? $e->number('orders') : 0;
    ok subscriptions($e, $number)->[0][0], "$pair: it has subscribed" if $number;
    ($code, $text) = uninstall($e, '--force');
    is $code, 0, "$pair: with --force it is uninstalled" or diag $text;
    ok !has_queue($e, 'orders'), "$pair: its queue is gone";
    is_deeply [ tables($e, 'orders') ], [], "$pair: its tables are gone";
    is_deeply subscriptions($e, $number), [ [0] ], "$pair: and its subscriptions" if $number;
    ok has_queue($e, 'error') && has_queue($e, 'others') && tables($e, 'others'), "$pair: the error queue is there, and all of another endpoint";
    is +(uninstall($e))[0], 0, "$pair: it may be repeated";
    is +($e->run('send', '-e', 'others', '--to', 'orders', '--type', 'Test.Do', '--body', 'x'))[0], 65, "$pair: nobody sends to it";

    # somebody else's queue of that name
    delete $e->{numbers};
    $e->make_queue('orders');
    for my $how ([], ['--dry-run']) {
        ($code, $text) = uninstall($e, @$how);
        is $code, 72, "$pair: @$how: a queue without the endpoint's tables";
        like $text, qr/"orders": there is a queue of that name and none of the endpoint's tables.*--force/, "$pair: may be somebody else's";
    }
    ok has_queue($e, 'orders'), "$pair: and stays";
    is +(uninstall($e, '--force'))[0], 0, "$pair: unless it is told";
    ok !has_queue($e, 'orders'), "$pair: then it goes";

    # what died in the middle
    my @numbers;    # of queues in SQLite: a sender that remembers one must not fill another's
    for my $point (qw(queue_removed tables_removed)) {
        reinstall($e);
        push @numbers, $e->number('orders') if $pair =~ /^sqlite/;
        dies_at($e, $point);
        ($code, $text) = $e->run('run');
        is $code, 72, "$pair: what is half removed is not run";
        like $text, qr/endpoint "orders": an uninstall was begun and is not complete: repeat "waybill uninstall", or .*"waybill install"/, "$pair: and says why" if $point eq 'queue_removed';
        is +(uninstall($e))[0], 0, "$pair: and completed";
            ok !has_queue($e, 'orders') && !tables($e, 'orders'), "$pair: nothing is left";
    }

    # what a program, or a session, commits in the middle
    my $commit = sub { $e->sql('insert into ' . pending_table($e) . q{ (batch, operations) values (1, 'of a later version')}) };
    reinstall($e);
    is stopped($e, 'queue_removed', $commit, '-e', 'orders'), 75, "$pair: a row that is committed while the queue is removed";
    ($text) = Endpoint::read_file("$e->{dir}/stopped");
    like $text, qr/endpoint "orders": its queue is removed, but something came into its tables meanwhile \(rows that wait: 1\): .*"waybill install".*--force/, "$pair: is told of";
    is +($e->sql('select count(*) from ' . pending_table($e)))[0][0], 1, "$pair: and is there";
    like +($e->run('run'))[1], qr/an uninstall was begun and is not complete/, "$pair: as is the note";
    is +(uninstall($e))[0], 75, "$pair: it stays";
    $e->sql('delete from ' . pending_table($e));
    is +(uninstall($e))[0], 0, "$pair: until it is gone";
    reinstall($e);
    is stopped($e, 'queue_removed', $commit, '-e', 'orders', '--force'), 0, "$pair: unless it is told";
    ok !has_queue($e, 'orders') && !tables($e, 'orders'), "$pair: nothing is left";

    # half removed, and installed again: nothing is begun any more
    if ($pair =~ /^sqlite/) {
        reinstall($e);
        dies_at($e, 'queue_removed');
        reinstall($e);
        $e->query(q(begin immediate; delete from waybill_queue where name = 'orders'; commit));
        ($code, $text) = $e->run('run');
        is $code, 72, "$pair: a queue that somebody removed";
        unlike $text, qr/an uninstall was begun/, "$pair: is missing, and no more is said";
    }

    # the error queue
    reinstall($e);
    is scalar(keys %{ { map { $_ => 1 } @numbers, $e->number('orders') } }), 3, "$pair: a queue's number is never another one's" if $pair =~ /^sqlite/;
    $e->send('error', { id => 'failed', do => 'sleep 0' });
    is +(uninstall($e, '--error-queues'))[0], 0, "$pair: with its error queue";
    is $e->depth('error'), 1, "$pair: which stays with what it holds";
    is scalar($e->read('error')), 1, "$pair: all of it";
    reinstall($e);
    for my $options ([ '--error-queues', '--dry-run' ], [ '--error-queues' ]) {
        ($code, $text) = uninstall($e, @$options);
        like $text, qr/queue "error" stays: endpoint "others" has a use for it/, "$pair: @$options: it stays while another endpoint of the file has it";
    }
    ok has_queue($e, 'error'), "$pair: when it is empty, too";

    # its error queues are others' queues, or its own
    $e->make_queue('copies');
    $other->configure(with => 'audit = { queue = "copies"; };');
    $e->configure(error_queue => 'others', retries => '0; types = ( { type = "Test.Do"; error_queue = "mine"; }, { type = "Test.Copy"; error_queue = "copies"; } )');
    reinstall($e);
    ($code, $text) = uninstall($e, '--error-queues', '--dry-run');
    like $text, qr/would remove, if empty: queue "mine"/, "$pair: it says which would go";
    unlike $text, qr/would remove, if empty: queue "(?:others|copies)"/, "$pair: and no others";
    ($code, $text) = uninstall($e, '--error-queues');
    is $code, 0, "$pair: uninstalled" or diag $text;
    like $text, qr/queue "$_" stays: endpoint "others" has a use for it/, "$pair: of another endpoint: $_" for qw(others copies);
    unlike $text, qr/queue "mine" stays/, "$pair: and its own do not";
    ok has_queue($e, $_), "$pair: queue $_ is there" for qw(others copies);
    ok !has_queue($e, $_), "$pair: queue $_ is gone" for qw(orders mine);

    # all go with the last who has them
    $other->configure(with => '');
    $e->configure(error_queue => 'error', retries => 5);
    reinstall($e);
    ($code, $text) = $e->run('uninstall', '--error-queues');
    is $code, 0, "$pair: all endpoints of the file" or diag $text;
    unlike $text, qr/ stays/, "$pair: nobody is left who has a use for anything";
    ok !has_queue($e, 'error'), "$pair: their error queue goes";
    ok !has_queue($e, 'others') && !tables($e, 'others'), "$pair: are gone";
}

# ---- ids in a store of their own
if (grep { $_ eq 'sqlite+sqlite' } @pairs) {
    my $file = Endpoint::work_dir() . '/ids.db';
    my $e = Endpoint->new('sqlite+sqlite', files => 'apart-', outbox => qq(enabled = true; deduplication = { store = { plugin = "sqlite"; file = "$file"; }; };));
    my $kept = sub { return map { $_->[0] } Endpoint::Sqlite::run_sql($file, q(select name from sqlite_schema where type = 'table' and name like 'waybill\_orders%' escape '\\')) };
    $e->install;
    ok scalar($kept->()), 'ids are in a store of their own';
    is +(uninstall($e))[0], 0, 'which is uninstalled, too';
    is_deeply [ $kept->() ], [], 'and its tables are gone';
}

done_testing;
