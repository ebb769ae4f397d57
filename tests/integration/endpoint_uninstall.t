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
sub pending_table { my ($e) = @_; return { sqlite => '"waybill_orders_pending"', pgsql => '"orders_pending"', mysql => '`orders_pending`' }->{ $e->{pair} =~ /(\w+)$/ ? $1 : '' } }
sub uninstall { my ($e, @arguments) = @_; return $e->run('uninstall', '-e', 'orders', @arguments) }
sub dies_at {
    my ($e, $point) = @_;
    local $e->{program} = 'waybill-test';
    local $ENV{WAYBILL_CRASH} = $point;
    is +(uninstall($e))[0], 'signal 9', "$e->{pair}: killed at $point";
}
sub reinstall { my ($e) = @_; delete $e->{numbers}; $e->install }

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
    ($code, $text) = uninstall($e, '--force');
    is $code, 0, "$pair: with --force it is uninstalled" or diag $text;
    ok !has_queue($e, 'orders'), "$pair: its queue is gone";
    is_deeply [ tables($e, 'orders') ], [], "$pair: its tables are gone";
    ok has_queue($e, 'error') && has_queue($e, 'others') && tables($e, 'others'), "$pair: the error queue is there, and all of another endpoint";
    is +(uninstall($e))[0], 0, "$pair: it may be repeated";
    is +($e->run('send', '-e', 'others', '--to', 'orders', '--type', 'Test.Do', '--body', 'x'))[0], 65, "$pair: nobody sends to it";

    # what died in the middle
    my @numbers;    # of queues in SQLite: a sender that remembers one must not fill another's
    for my $point (qw(queue_removed tables_removed)) {
        reinstall($e);
        push @numbers, $e->number('orders') if $pair =~ /^sqlite/;
        dies_at($e, $point);
        is +(uninstall($e))[0], 0, "$pair: and completed";
            ok !has_queue($e, 'orders') && !tables($e, 'orders'), "$pair: nothing is left";
    }

    # the error queue
    reinstall($e);
    is scalar(keys %{ { map { $_ => 1 } @numbers, $e->number('orders') } }), 3, "$pair: a queue's number is never another one's" if $pair =~ /^sqlite/;
    $e->send('error', { id => 'failed', do => 'sleep 0' });
    is +(uninstall($e, '--error-queues'))[0], 0, "$pair: with its error queue";
    ok has_queue($e, 'error'), "$pair: which stays while it holds something";
    is scalar($e->read('error')), 1, "$pair: with what it holds";
    reinstall($e);
    is +(uninstall($e, '--error-queues'))[0], 0, "$pair: and when it is empty";
    ok !has_queue($e, 'error'), "$pair: it goes";
    is +($e->run('uninstall'))[0], 0, "$pair: all endpoints of the file";
    ok !has_queue($e, 'others') && !tables($e, 'others'), "$pair: are gone";
}

done_testing;
