#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Deduplication apart from the outbox: queue and business data in SQLite files, ids in PostgreSQL, which
# crashes, hangs and comes back, and whose table goes away; and what people see and do about such a store.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use JSON::PP;
use Time::HiRes qw(sleep time);
use Endpoint;
use Servers;

my $plain = 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";';
Servers::start('pgsql');
my $store = qq(store = { plugin = "pgsql"; conninfo = "host=$ENV{PGHOST} port=$ENV{PGPORT} user=$ENV{PGUSER} dbname=$ENV{PGDATABASE}"; connect_timeout = "3s"; };);
my $e = Endpoint->new('sqlite+sqlite', concurrency => 2, with => 'start = "wait"; on_endpoint_failure = "exit";', outbox => "$plain deduplication = { $store };");

sub psql {
    my ($text) = @_;
    open my $psql, '-|', 'psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', $text or die "psql: $!\n";
    chomp(my @lines = <$psql>);
    close $psql or die "failed: $text\n";
    return @lines;
}
sub remembered { return (psql(qq(select count(*) from "@{[ table() ]}")))[0] }
sub output { my ($code, $text) = $e->run(@_); return $text }
sub table { return (psql(q(select table_name from information_schema.tables where table_name like 'orders%dedup')))[0] }
sub records { return ($e->sql('select count(*) from waybill_orders_dedup'))[0][0] }
sub ids { my ($name, $count) = @_; return map { "$name-$_" } 1 .. $count }
sub send_all { $e->send('orders', map { { id => $_, do => "send sink T.Out $_" } } @_) }
sub arrived { $e->{out}{ $_->{body} }++ for $e->read('sink'); return $e->{out} }
sub settled { return !records() && !$e->pending && !$e->depth('orders') }

# ---- what people see
like output('install', '--print-sql'), qr/in its deduplication store\n.*CREATE TABLE/s, 'the SQL of the store is printed';
is +($e->run('install', '--print-sql', '--reset-positions'))[0], 64, 'to print and to change at once is refused';
$e->install;
ok table(), 'installed in the store, under a name of its own';
like output('check'), qr/outbox +on,.*\n +store +pgsql/, 'check names the store';
unlike output('check'), qr/outbox +off/, 'and has one word on the outbox';

# ---- a message has one effect, and its id goes to the store
$e->start;
my @first = ids('first', 60);
send_all(@first, @first);
$e->wait_for('the first are done', sub { arrived(); settled() && !grep { !$e->{out}{$_} } @first });
is_deeply [ $e->not_once(@first) ], [], 'one effect each';
is remembered(), 60, 'the store has their ids';
is records(), 0, 'and no record is left';
send_all(@first);
$e->wait_for('copies are done', sub { settled() });
is_deeply [ $e->not_once(@first) ], [], 'copies that come later have none';
is remembered(), 60, 'and leave nothing';

my $stats = decode_json(output('outbox', 'stats', '--json', '--exact'));
is $stats->{records}{count}, 0, 'stats: of the outbox';
is $stats->{records_in_store}{count}, 60, 'stats: of the store';

# ---- the store crashes, hangs, comes back; processes die meanwhile
for my $trouble (qw(killed crash hang)) {
    my @before = ids("$trouble-before", 40);
    my @away = ids("$trouble-away", 40);
    send_all(@before);
    $trouble eq 'hang' ? Servers::hang('pgsql') : Servers::server('crash', 'pgsql');
    send_all(@before, @away);
    $e->wait_for('somebody says so', sub { $e->log_lines('the deduplication store is away') }) if $trouble ne 'hang';
    if ($trouble eq 'killed') {
        $e->stop('KILL');
        $e->start;
    }
    sleep 1;
    $trouble eq 'hang' ? Servers::go_on('pgsql') : Servers::server('restart', 'pgsql');
    $e->wait_for('that it is back is told', sub { $e->log_lines('the deduplication store is back') }) if $trouble eq 'crash';
    $e->wait_for("$trouble: all is done", sub { arrived(); !$e->depth('orders') && !grep { !$e->{out}{$_} } @before, @away }, 90);
    is_deeply [ $e->not_once(@before, @away) ], [], "$trouble: one effect each";
    send_all(@before, @away);
    $e->wait_for("$trouble: copies are done", sub { !$e->depth('orders') });
    is_deeply [ $e->not_once(@before, @away) ], [], "$trouble: copies have none";
}
# ---- a migration renames its table for some seconds
my $table = table();
my @renamed = ids('renamed', 40);
psql(qq(alter table "$table" rename to elsewhere));
send_all(@renamed, @first);
$e->wait_for('somebody says so', sub { $e->log_lines(qr/level=error msg="cannot go on and tries again".*\Q$table\E/) });
sleep 4;
arrived();
ok $e->is_alive && !grep({ $e->{out}{$_} } @renamed), 'it is waited for, and nothing is handled that it may know';
psql(qq(alter table elsewhere rename to "$table"));
$e->wait_for('renamed: all is done', sub { arrived(); settled() && !grep { !$e->{out}{$_} } @renamed });
is_deeply [ $e->not_once(@renamed, @first) ], [], 'renamed: one effect each';
is scalar($e->log_lines(qr/gives up|gave up/)), 0, 'renamed: nobody gave up';
is $e->depth('error'), 0, 'nothing is in the error queue';
is $e->stop, 0, 'stops cleanly';

# ---- one that stays away is not waited for without end
my $pid = $e->start;
my @dropped = ids('dropped', 4);
$e->wait_for('it works', sub { $e->log_lines(qr/"endpoint starts"/) >= 3 });
psql(qq(alter table "$table" rename to elsewhere));
my $gone = time;
send_all(@dropped);
is $e->await_exit($pid), 72, 'dropped: the endpoint ends, as on_endpoint_failure says';
cmp_ok time - $gone, '>', 9, 'dropped: after ten seconds';
$e->{processes} = [];
psql(qq(alter table elsewhere rename to "$table"));
$e->start;
$e->wait_for('dropped: all is done', sub { arrived(); settled() && !grep { !$e->{out}{$_} } @dropped });
is_deeply [ $e->not_once(@dropped) ], [], 'dropped: one effect each';
is $e->stop, 0, 'stops cleanly';

# ---- clean-up, in both
my $before = remembered() + records();
like output('outbox', 'cleanup', '--older-than', '0s', '--force', '--dry-run'), qr/would remove: $before /, 'a dry run counts both';
like output('outbox', 'cleanup', '--older-than', '0s', '--force'), qr/removed: $before /, 'a clean-up removes from both';
is remembered() + records(), 0, 'nothing is left';
done_testing;
