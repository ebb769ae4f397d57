#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# An endpoint behind PgBouncer, with a configuration that does not know of it: in transaction mode it
# notices and works, also when a session ends at COMMIT and when the server behind dies; in statement
# mode, which has no transactions, it is refused at start.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

my $dir = Endpoint::work_dir() . '/pgbouncer';
my $round = 0;
my $e;

sub server { return system("$Endpoint::source/tests/support/server", @_) >> 8 }
END { my $status = $?; server('stop', $dir) if -e "$dir/kind"; $? = $status }

sub start_server {
    my $code = server('start', 'pgbouncer', $dir);
    plan skip_all => 'PgBouncer or PostgreSQL is not installed' if $code == 77 && !$ENV{CI};
    BAIL_OUT('PgBouncer did not start') if $code;
    $ENV{$1} = $2 while `$Endpoint::source/tests/support/server env '$dir'` =~ /^(\w+)='(.*)';/mg;
}

sub at_server { my ($sql) = @_; local $ENV{PGPORT} = $ENV{PGSERVERPORT}; my @rows = $e->sql($sql); return @rows ? $rows[0][0] : undef }

sub messages { my ($count, @do) = @_; $round++; return map { { id => "r$round-$_", do => join "\n", @do, "send sink T.Out r$round-$_" } } 1 .. $count }

sub complete {
    my ($what, @messages) = @_;
    my @ids = map { $_->{id} } @messages;
    $e->wait_for("$what: every message has its effect", sub { my @n = eval { $e->not_once(@ids) }; !$@ && !@n }, 40);
    $e->wait_for("$what: all is sent", sub { $e->pending == 0 && $e->depth('orders') == 0 }, 20);
    my %out;
    $out{ $_->{body} }{ $_->{id} } = 1 for $e->read('sink');
    is_deeply [ grep { keys %{ $out{$_} || {} } != 1 } @ids ], [], "$what: its message is out, under one id";
    is_deeply [ $e->not_once(@ids) ], [], "$what: and one effect only";
}

start_server();
$e = Endpoint->new('sqlite+pgsql', concurrency => 3, batch_max => 10, retries => 2, store => 'lock_timeout = "7s";',
    outbox => 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";');    # marks may be lost with the server
$e->install;
at_server(q(create table seen (setting text); create table later (code text);
    create function end_session() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
    create constraint trigger later after insert on later deferrable initially deferred for each row execute function end_session()));
$e->start;

my @messages = messages(200, q(sql insert into seen select current_setting('lock_timeout')), 'defer select 1', 'defer select 1');
$e->send('orders', @messages, @messages[ 0 .. 20 ]);
complete('transaction mode', @messages);
is scalar(() = $e->log_lines(qr/level=info msg="a connection pooler is in front of PostgreSQL/)), 1, 'transaction mode: one line says that it was noticed';
is at_server("select count(*) from seen where setting <> '7s'"), 0, 'transaction mode: the settings go with each transaction';
sleep 2.5;    # rounds of sweep and clean-up
# who is at work just now has one, and gives it back
$e->wait_for('transaction mode: no lock is left in a session', sub { !at_server(q(select count(*) from pg_locks where locktype = 'advisory')) });
is_deeply [ $e->log_lines(qr/level=(?:error|warning)/) ], [], 'transaction mode: nothing to complain of';

@messages = messages(40);
$e->send('orders', @messages[ 0 .. 19 ], { id => 'bad', do => "send sink T.Out bad\ndefer insert into later values ('x')" }, @messages[ 20 .. 39 ]);
my @failed;
$e->wait_for('a session that ends at COMMIT: its message is in the error queue', sub { push @failed, $e->read('error'); @failed }, 60);
is $failed[0]{id}, 'bad', 'a session that ends at COMMIT: it and nobody else';
is $e->effects('bad'), 0, 'a session that ends at COMMIT: without effect';
complete('a session that ends at COMMIT', @messages);
ok scalar($e->log_lines(qr/outcome of a commit is unknown/)), 'a session that ends at COMMIT: the outcome is called unknown';

@messages = messages(400, 'sleep 3');
my $before = $e->effects;
$e->send('orders', @messages);
$e->wait_for('the server dies: busy', sub { $e->effects > $before + 50 });
server('crash', $dir);
sleep 1;
server('restart', $dir);
complete('the server dies', @messages);
is $e->depth('error'), 0, 'the server dies: nothing is in the error queue';
ok $e->is_alive, 'the endpoint lives';
is $e->stop, 0, 'it stops cleanly';

{
    local $ENV{PGDATABASE} = 'statements';
    $e->configure;
    my ($code, $text) = $e->run('run');
    is $code, 69, 'statement mode is refused at start';
    like $text, qr/^waybill: endpoint "orders": could not open a transaction: transaction blocks not allowed in statement pooling mode/, 'and one line says why';
}
done_testing;
