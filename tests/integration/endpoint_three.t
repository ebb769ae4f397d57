#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Three endpoints in one process. A migration renames a table of one for four seconds, another's broker dies and comes back; the
# third goes on at its full rate meanwhile. All recover, with each message handled once, and nothing was given up.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(time sleep);
use Servers;

my $has_mysql = Endpoint::has_mysql();
Servers::start('pgsql', 'rabbitmq', $has_mysql ? 'mariadb' : ());

my $broker   = Endpoint->new('amqp+pgsql', name => 'broker', concurrency => 2);
my $table    = Endpoint->new('sqlite+pgsql', name => 'table', files => 'table-', concurrency => 2);
my $steady   = Endpoint->new('sqlite+sqlite', name => 'steady', files => 'steady-', concurrency => 2, beside => [ $broker, $table ]);
my @all      = ($broker, $table, $steady);
my %sent     = map { $_->{name} => [] } @all;
my $number   = 0;

sub put {
    my ($e, $count) = @_;
    my @ids = map { "$e->{name}-" . ++$number } 1 .. $count;
    $e->send($e->{name}, map { { id => $_, do => "send sink T.Out $_" } } @ids);
    push @{ $sent{ $e->{name} } }, @ids;
}

sub done { my ($e) = @_; return $e->effects }
# PostgreSQL's two share the table of effects.
sub mine { my ($e) = @_; my @left = $e->not_once(@{ $sent{ $e->{name} } }); return @{ $sent{ $e->{name} } } - @left }

# How many messages of the steady one are handled in a second, while messages wait all the time.
sub rate {
    my ($what, $seconds) = @_;
    put($steady, 2500 * $seconds);
    my $before = done($steady);
    my $started = time;
    sleep $seconds;
    my $rate = (done($steady) - $before) / (time - $started);
    diag sprintf '%-32s %.0f messages/s', $what, $rate;
    return $rate;
}

$steady->install;
$steady->start;
put($_, 20) for @all;
$steady->wait_for("all three work", sub { !grep { mine($_) < 20 } @all }, 60);
my $alone = rate('all is well', 4);
$steady->wait_for('what is left of that', sub { !$steady->not_once(@{ $sent{steady} }) }, 120);

# RabbitMQ writes the state of its quorum queues each five seconds.
sleep 6;
$table->sql('alter table table_dedup rename to elsewhere');
put($table, 20);
$broker->forget_broker;
Servers::server('crash', 'rabbitmq');
my $gone = time;
my $meanwhile = rate('a table and a broker are gone', 4);
is mine($table), 20, 'nothing is handled where a table is gone';
$table->sql('alter table elsewhere rename to table_dedup');
my $back = time;
$table->wait_for('the table is back: all is handled', sub { mine($table) == 40 }, 30);
diag sprintf 'the table was away for %.1f s, its endpoint at work %.1f s later', $back - $gone, time - $back;
Servers::server('restart', 'rabbitmq');
$back = time;
put($broker, 20);
$broker->wait_for('the broker is back: all is handled', sub { mine($broker) == 40 }, 60);
diag sprintf 'the broker was away for %.1f s, its endpoint at work %.1f s later', $back - $gone, time - $back;
cmp_ok $meanwhile, '>', $alone / 2, sprintf 'the third went on: %.0f of %.0f messages/s', $meanwhile, $alone;
$steady->wait_for('it has handled all', sub { !$steady->not_once(@{ $sent{steady} }) }, 120);

is scalar($steady->log_lines(qr/gave up|gives up/)), 0, 'nobody gave up';
is scalar($steady->log_lines(qr/endpoint=steady .*(?:away|cannot)/)), 0, 'nothing is said of the third';
for my $e (@all) {
    my %out;
    my $count = @{ $sent{ $e->{name} } };
    is_deeply [ $e->not_once(@{ $sent{ $e->{name} } }) ], [], "$e->{name}: each message has one effect";
}
is $steady->stop, 0, 'the exit code says that all is well';

# ---- the same tables on the other databases, and the one of a deduplication store ---------------------
for my $other ([ 'sqlite+sqlite', 'alter table "%s" rename to away', 'alter table away rename to "%s"', 'waybill_kept_',
    q(select name from sqlite_master where type = 'table' and name like 'waybill_kept%dedup') ],
    $has_mysql ? [ 'sqlite+mysql', 'rename table `%s` to away', 'rename table away to `%s`', 'kept_',
    q(select table_name from information_schema.tables where table_schema = database() and table_name like 'kept%dedup' and table_name <> 'kept_dedup') ] : ()) {
    my ($pair, $away, $there, $prefix, $find) = @$other;
    my $e = Endpoint->new($pair, name => 'kept', files => "$pair-", concurrency => 2);
    (my $store = $e->persistence_text) =~ s/^persistence/store/;
    my $apart = $store =~ s/(file = ")([^"]+)/$1$2-apart/ ? "$2-apart" : undef;
    $e->configure(outbox => "enabled = true; deduplication = { $store };");
    $e->install;
    $e->start;
    $e->send('kept', { id => 'before', do => 'send sink T.Out before' });
    $e->wait_for('it works', sub { $e->effects('before') == 1 });
    my $ask_apart = sub { $apart ? Endpoint::Sqlite::run_sql($apart, @_) : $e->sql(@_) };
    my ($of_store) = map { $_->[0] } $ask_apart->($find);
    for my $which ("${prefix}dedup", "${prefix}pending", $of_store) {
        my $ask = $which eq $of_store ? $ask_apart : sub { $e->sql(@_) };
        $ask->(sprintf $away, $which);
        my @ids = map { "$which-$_" } 1 .. 5;
        $e->send('kept', map { { id => $_, do => "send sink T.Out $_" } } @ids);
        sleep 4;
        is scalar($e->not_once(@ids)), 5, "$pair, $which: nothing is handled meanwhile";
        $ask->(sprintf $there, $which);
        my $back = time;
        $e->wait_for("$which was renamed: all are handled", sub { !$e->not_once(@ids) }, 30);
        diag sprintf '%s, %s: at work %.1f s later', $pair, $which, time - $back;
    }
    is scalar($e->log_lines(qr/gave up|gives up/)), 0, "$pair: nobody gave up";
    is $e->depth('error'), 0, "$pair: no message failed for it";
    is $e->stop, 0, "$pair: it stops";
}
done_testing;
