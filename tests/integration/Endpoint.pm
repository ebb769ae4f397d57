# SPDX-License-Identifier: Apache-2.0
#
# An endpoint of the real program under test: its configuration, its process, and what goes
# into and comes out of its queues and tables, reached without the code under test.
#
#   my $e = Endpoint->new('amqp+pgsql', name => 'orders', batch_max => 10);
#   $e->install; $e->start;
#   $e->send('orders', { id => 'a', do => 'send sink T.T hello' });
#   $e->wait_for('handled', sub { $e->effects('a') == 1 });
#   my @out = $e->read('sink');       # { id, headers => [ [ n, v ], .. ], header => { n => v }, body, .. }
#   $e->stop;                         # SIGTERM; the exit code
#
# A subclass brings a pair of its own (tests/hostile/Peer.pm).
# Endpoints of a test share a virtual host, a database, or a file. Every process is killed
# when the test ends.
package Endpoint;
use strict;
use warnings;
use File::Path ();
use File::Temp ();
use POSIX ();
use Time::HiRes qw(sleep time);
use Test::More;
use lib "$ENV{top_srcdir}/tests/support";
use Amqp;
use Process;
use SqlClient;
use SqliteFile;

our $build  = $ENV{top_builddir} || die "top_builddir is not set: run this through make\n";
our $source = $ENV{top_srcdir}   || die "top_srcdir is not set: run this through make\n";
our $types  = 'NServiceBus.EnclosedMessageTypes';
our $work;
my $owner = $$;    # who forks is not to end what is not its own
my (%alive, %ended);    # processes; of those that have ended how, until somebody asks

# Run this test with servers of its own space, or skip it; the names are of with-servers.
sub under_servers {
    my (@kinds) = @_;
    return if !@kinds || $ENV{WB_SERVERS_READY};
    $ENV{WB_SERVERS_READY} = 1;
    exec "$source/tests/support/with-servers", @kinds, '--', $^X, $0, @ARGV or die "exec: $!\n";
}

sub work_dir {
    return $work if $work;
    File::Path::make_path("$build/tests/integration/work");
    my ($name) = $0 =~ m{([^/]+?)(?:\.t)?$};
    return $work = File::Temp::tempdir("$name-XXXXXX", DIR => "$build/tests/integration/work");
}

# Of a log's lines those that say one thing twice: the host adds endpoint and plugin to what a plugin tells.
sub said_twice {
    my ($text) = @_;
    return grep {
        my %seen;
        (my $line = $_) =~ s/="(?:[^"\\]|\\.)*"/=/g;
        /^\d{4}-\d\d-\d\dT\S+ level=/ && grep { $seen{$_}++ } $line =~ / ([a-z_]+)=/g;
    } split /\n/, $text;
}

END {
    my $status = $?;
    return if $$ != $owner;
    kill 'KILL', living();
    waitpid $_, 0 for living();
    my @twice = $work ? map { said_twice(read_file($_)) } glob "$work/*/*.log" : ();
    diag "a line of the log has a key twice: $twice[0]" if @twice;
    $status ||= 1 if @twice;
    File::Path::remove_tree($work) if $work && !$status && Test::More->builder->is_passing;
    $? = $status;
}
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);

sub new {
    my ($class, $pair, %self) = @_;
    my $kind = $class ne 'Endpoint' ? $class : $pair =~ /mysql/ ? 'Endpoint::SqliteMysql' : $pair eq 'sqlite+pgsql' ? 'Endpoint::SqlitePgsql'
        : $pair =~ /^sqlite/ ? 'Endpoint::Sqlite' : 'Endpoint::Amqp';
    my $self = bless { pair => $pair, name => 'orders', concurrency => 1, retries => 5, mode => 'receive_only',
        outbox => 'enabled = true;', with => '', persistence => 1, processes => [], %self }, $kind;
    File::Path::make_path($self->{dir} = work_dir() . "/$pair");
    $self->{conf} = "$self->{dir}/$self->{name}.conf";
    $self->{trace} = "$self->{dir}/$self->{name}.trace";
    $self->{log}  = "$self->{dir}/$self->{name}.log";
    $self->configure;
    return $self;
}

# Is the handler module of MySQL built?
sub has_mysql { return -e module('script_mysql') }
sub module { return "$build/tests/integration/.libs/endpoint_$_[0].so" }

# Keys of the endpoint: concurrency, batch_max, batch_time, body_max, shutdown_timeout; retries, error_queue;
# mode, outbox (its text), recover (more text of recoverability), with (more text), transport, store (more text for either; transport_group,
# store_group: all of either); beside: other
# endpoints, which the processes of this one run as well (install and prepare them through this one, too);
# files: what begins the names of its own files (SQLite); top: text in front of the endpoints; closed: the standard streams are, at the
# start.
sub configure {
    my ($self, %changes) = @_;
    %$self = (%$self, %changes);
    write_file($self->{conf}, ($self->{top} // '') . "endpoints = (\n" . join(",\n", map { $_->group } $self, @{ $self->{beside} || [] }) . "\n);\n");
}

sub group {
    my ($self) = @_;
    my @settings = map { defined $self->{$_} ? qq($_ = $self->{$_};) : () } qw(concurrency batch_max);
    push @settings, map { defined $self->{$_} ? qq($_ = "$self->{$_}";) : () } qw(batch_time body_max shutdown_timeout);
    my $handlers = $self->{handlers} || module($self->script);
    my $error    = $self->{error_queue} || 'error';
    my $outbox   = $self->{outbox} ? "outbox = { $self->{outbox} };" : '';
    # what fails is to be in the error queue at once
    my $delayed  = ($self->{recover} // '') =~ /delayed_retries/ ? '' : 'delayed_retries = 0; ';
    my $text = <<END;
  { name = "$self->{name}"; handlers = ["$handlers"]; transaction_mode = "$self->{mode}";
    @settings $self->{with}
    @{[ $self->{transport_group} || $self->transport_text ]}
    @{[ $self->{store_group} || ($self->{persistence} ? $self->persistence_text : '') ]}
    $outbox
    recoverability = { immediate_retries = $self->{retries}; ${delayed}error_queue = "$error"; @{[ $self->{recover} // '' ]} }; }
END
    chomp $text;
    return $text;
}

sub write_file {
    my ($path, $text) = @_;
    open my $file, '>', $path or die "$path: $!\n";
    print $file $text;
    close $file or die "$path: $!\n";
}

sub read_file {
    my ($path) = @_;
    open my $file, '<:raw', $path or return '';
    local $/;
    return scalar(<$file>) // '';
}

# ---- the program ----------------------------------------------------------------------
sub script { return 'script' }
sub environment { my ($self) = @_; return (WAYBILL_PLUGIN_DIR => "$build/plugins", WB_TRACE => $self->{trace}) }

sub spawn {
    my ($self, $output, @arguments) = @_;
    my $pid = fork // die "fork: $!\n";
    delete $ended{$pid};
    return $alive{$pid} = $pid if $pid;
    %ENV = (%ENV, $self->environment);
    open STDOUT, '>>', $output or POSIX::_exit(99);
    open STDERR, '>&', \*STDOUT;
    open STDIN, '<', '/dev/null';
    my $limits = join ' && ', map { $self->{ $_->[0] } ? "ulimit -$_->[1] $self->{$_->[0]}" : () } [ stack => 's' ], [ file_size => 'f' ];
    my $closed = $self->{closed} ? '<&- >&- 2>&-' : '';
    my @limited = $limits || $closed ? ('/bin/sh', '-c', join(' && ', $limits || (), "exec \"\$0\" \"\$@\" $closed")) : ();
    exec @limited, "$build/@{[ $self->{program} || 'waybill' ]}", @arguments or POSIX::_exit(99);
}

sub living { return keys %alive }

# Who looks takes the process away, and its number may be anybody's from then on: nobody may send that a signal.
sub has_ended {
    my ($pid) = @_;
    return 1 if exists $ended{$pid};
    my $found = waitpid $pid, POSIX::WNOHANG();
    return 0 if $found == 0;
    $ended{$pid} = $found == $pid ? $? : undef;
    delete $alive{$pid};
    return 1;
}

sub await_exit {    # the exit code, "signal N", or nothing when it does not end
    my ($self, $pid, $seconds) = @_;
    my $end = time + ($seconds || 40);
    until (has_ended($pid)) {
        return if time > $end;
        sleep 0.01;
    }
    my $status = delete $ended{$pid};
    return unless defined $status;
    return $status & 127 ? 'signal ' . ($status & 127) : $status >> 8;
}

# Run a verb to its end: exit code and what it printed.
sub run {
    my ($self, $verb, @arguments) = @_;
    my $output = "$self->{dir}/output";
    unlink $output;
    my $pid = $self->spawn($output, $verb, '-c', $self->{conf}, @arguments);
    my $code = $self->await_exit($pid);
    return ($code, read_file($output));
}

sub install {
    my ($self) = @_;
    my ($code, $text) = $self->run('install');
    die "install of $self->{conf}: $code: $text" if ($code // -1) ne 0;
    $_->prepare for $self, @{ $self->{beside} || [] };
}

sub start { my ($self) = @_; my $pid = $self->spawn($self->{log}, 'run', '-c', $self->{conf}); push @{ $self->{processes} }, $pid; return $pid }

sub stop {    # of all processes: the worst exit code
    my ($self, $signal) = @_;
    my @pids = splice @{ $self->{processes} };
    my $end = time + 10;
    sleep 0.01 while !$signal && time < $end && grep { !has_ended($_) && !Process::waits_for_sigterm($_) } @pids;
    kill $signal || 'TERM', grep { !has_ended($_) } @pids;
    my @codes = map { $self->await_exit($_) // 'does not end' } @pids;
    return (grep { $_ ne 0 } @codes)[0] // 0;
}

sub is_alive { my ($self) = @_; return !grep { has_ended($_) } @{ $self->{processes} } }

sub log_lines { my ($self, $pattern) = @_; return grep { /$pattern/ } split /\n/, read_file($self->{log}) }

# To look costs more than what is looked for, mostly: the longer it took, the longer the next pause.
sub pause { my ($since) = @_; my $long = (time - $since) / 8; sleep($long < 0.02 ? 0.02 : $long > 0.25 ? 0.25 : $long) }

# Poll until it holds; a test that passes or fails.
sub wait_for {
    my ($self, $what, $condition, $seconds) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $start = time;
    my $end = $start + ($seconds || 20);
    my $met;
    until ($met = $condition->()) {
        last if time > $end;
        pause($start);
    }
    ok $met, "$self->{pair}: $what" or diag join "\n", 'the end of the log:', grep { defined } (split /\n/, read_file($self->{log}))[ -8 .. -1 ];
    return $met;
}

# ---- what happened --------------------------------------------------------------------
# Committed calls of a message, or of all.
sub effects {
    my ($self, $id) = @_;
    my $where = defined $id ? sprintf "where id = '%s'", unpack 'H*', $id : '';
    return ($self->sql("select count(*) from effects $where"))[0][0];
}

# Ids that do not have exactly one effect.
sub not_once { my ($self, @ids) = @_; my %count = map { pack('H*', $_->[0]) => $_->[1] } $self->sql('select id, count(*) from effects group by id'); return grep { ($count{$_} || 0) != 1 } @ids }

# The handler's calls of a message, committed or not: attempt numbers, in order.
sub attempts {
    my ($self, $id) = @_;
    my $hex = unpack 'H*', $id;
    return map { /^call \Q$hex\E (\d+)/ ? $1 : () } split /\n/, read_file($self->{trace});
}
# The results of its sends.
sub results {
    my ($self, $id) = @_;
    my $hex = unpack 'H*', $id;
    return map { /^(?:send|now|memory|publish|reply|echo) \Q$hex\E (-?\d+)$/ ? $1 : () } split /\n/, read_file($self->{trace});
}

sub headers_of {    # of a message to be sent
    my ($message) = @_;
    my @headers = @{ $message->{headers} || [] };
    my $type = exists $message->{type} ? $message->{type} : 'Test.Do';
    push @headers, [ $types => $type ] if defined $type;
    push @headers, [ do => ref $message->{do} ? join "\n", @{ $message->{do} } : $message->{do} ] if defined $message->{do};
    return \@headers;
}

# Collect from a queue until that many are there; in `received`, by id.
sub collect {
    my ($self, $queue, $count, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @got;
    $self->wait_for($what || "$count in queue $queue", sub { push @got, $self->read($queue); @got >= $count });
    return @got;
}

# Headers as they can be compared: RabbitMQ sorts them by name, SQLite keeps their order.
sub ordered { my ($self, @headers) = @_; return $self->{pair} =~ /amqp/ ? sort { $a->[0] cmp $b->[0] || $a->[1] cmp $b->[1] } @headers : @headers }

sub pairs { my ($message) = @_; return { map { $_->[0] => $_->[1] } @{ $message->{headers} } } }

# ---- RabbitMQ and PostgreSQL ------------------------------------------------------------
package Endpoint::Amqp;
use strict;
use warnings;
our @ISA = ('Endpoint');

sub transport_text {
    my ($self) = @_;
    return qq(transport = { plugin = "amqp"; host = "$ENV{AMQP_HOST}"; port = $ENV{AMQP_PORT}; vhost = "$ENV{AMQP_VHOST}"; )
        . qq(user = "$ENV{AMQP_USER}"; password = "env:AMQP_PASSWORD"; @{[ $self->{transport} // '' ]} };);
}

sub persistence_text {
    my ($self) = @_;
    my $user = $self->{user} || $ENV{PGUSER};
    return qq(persistence = { plugin = "pgsql"; host = "$ENV{PGHOST}"; port = $ENV{PGPORT}; user = "$user"; )
        . qq(database = "$ENV{PGDATABASE}"; @{[ $self->{store} // '' ]} };);
}

sub amqp { my ($self) = @_; return $self->{amqp} ||= Amqp->new }
sub forget_broker { my ($self) = @_; delete $self->{amqp} }

sub prepare {
    my ($self) = @_;
    $self->sql('set client_min_messages = warning; create table if not exists effects (id text, attempt int, size int)');
    $self->make_queue('sink');
}
sub make_queue {
    my ($self, $name) = @_;
    my $amqp = $self->amqp;
    $amqp->declare($name);
    $amqp->call($amqp->{channel}, 40, 10, "\0\0" . Amqp::short($name) . Amqp::short('fanout') . "\x02" . Amqp::table());
    $amqp->call($amqp->{channel}, 50, 20, "\0\0" . Amqp::short($name) x 2 . Amqp::short('') . "\0" . Amqp::table());
}

sub sql {
    my ($self, $text) = @_;
    return SqlClient::ask('pgsql', $text);
}
sub pending { my ($self) = @_; return map { pack 'H*', $_->[0] } $self->sql(qq(select encode(operations, 'hex') from "$self->{name}_pending")) }

sub send {
    my ($self, $queue, @messages) = @_;
    $self->amqp->publish_all('', $queue, map {
        my $m = $_;
        [ { id => $m->{id}, headers => Endpoint::headers_of($m), %{ $m->{properties} || {} } }, $m->{body} // '' ]
    } @messages);
}
sub read  { my ($self, $queue) = @_; my @got = $self->amqp->drain($queue); $_->{header} = Endpoint::pairs($_) for @got; return @got }
sub depth { my ($self, $queue) = @_; return scalar $self->amqp->depth($queue) }

# ---- SQLite -----------------------------------------------------------------------------
package Endpoint::Sqlite;
use strict;
use warnings;
our @ISA = ('Endpoint');

sub queue_file { my ($self) = @_; return "$self->{dir}/@{[ $self->{files} // '' ]}queue.db" }
sub store_file { my ($self) = @_; return $self->{one_file} || $self->{mode} eq 'transaction_scope' ? $self->queue_file : "$self->{dir}/@{[ $self->{files} // '' ]}store.db" }
sub transport_text   { my ($self) = @_; return qq(transport = { plugin = "sqlite"; file = "@{[ $self->queue_file ]}"; @{[ $self->{transport} // '' ]} };) }
sub persistence_text { my ($self) = @_; return qq(persistence = { plugin = "sqlite"; file = "@{[ $self->store_file ]}"; @{[ $self->{store} // '' ]} };) }

sub prepare {
    my ($self) = @_;
    $self->sql('create table if not exists effects (id text, attempt int, size int)') if $self->{persistence};
    $self->make_queue('sink');
}
sub make_queue {    # as `waybill install` makes it
    my ($self, $name) = @_;
    $self->query("begin immediate; insert into waybill_queue(name) values('$name') on conflict do nothing; commit");
    my $number = $self->number($name);
    $self->query("create table if not exists waybill_message_$number(seq integer primary key, id blob, key blob, "
            . 'headers blob not null, body blob not null)');
}

sub run_sql { my ($file, $text) = @_; return SqliteFile::ask($Endpoint::build, $file, $text) }
sub sql   { my ($self, $text) = @_; return run_sql($self->store_file, $text) }
sub query { my ($self, $text) = @_; return run_sql($self->queue_file, $text) }
sub number { my ($self, $name) = @_; return $self->{numbers}{$name} ||= ($self->query("select number from waybill_queue where name = '$name'"))[0][0] }
sub pending { my ($self) = @_; return map { pack 'H*', $_->[0] } $self->sql(qq(select operations from "waybill_$self->{name}_pending")) }

sub send {
    my ($self, $queue, @messages) = @_;
    my $number = $self->number($queue);
    my $sql = "begin immediate;\n";
    for my $m (@messages) {
        my $headers = $m->{blob} // pack 'V (V/a x V/a x)*', scalar @{ Endpoint::headers_of($m) }, map { @$_ } @{ Endpoint::headers_of($m) };
        $sql .= sprintf "insert into waybill_message_%d (seq, id, key, headers, body) values ((select max((select coalesce(max(seq), 0) "
            . "from waybill_message_%d), (select coalesce(max(last), 0) from waybill_claim where queue = %d)) + 1), %s, %s, x'%s', x'%s');\n",
            $number, $number, $number, (map { defined $m->{$_} ? "x'" . unpack('H*', $m->{$_}) . "'" : 'null' } qw(id key)), unpack('H*', $headers),
            unpack 'H*', $m->{body} // '';
    }
    $self->query("$sql commit;");
    open my $bell, '>>', $self->queue_file . '-sessions' or die "bell: $!\n";
    syswrite $bell, "\n";
}

sub read {
    my ($self, $queue) = @_;
    my $table = 'waybill_message_' . $self->number($queue);
    return map {
        my ($id, $headers, $body) = map { pack 'H*', $_ } @$_;
        my @strings = unpack 'V/(V/a x V/a x)', $headers;
        my @headers;
        while (my ($name, $value) = splice @strings, 0, 2) { push @headers, [ $name, $value ] }
        my $message = { id => $id, headers => \@headers, body => $body };
        $message->{header} = Endpoint::pairs($message);
        $message;
    } $self->query("begin immediate; select id, headers, body from $table order by seq; delete from $table; commit");
}
sub depth { my ($self, $queue) = @_; return ($self->query('select count(*) from waybill_message_' . $self->number($queue)))[0][0] }

# ---- SQLite's queues, MySQL's tables ------------------------------------------------------
package Endpoint::SqliteMysql;
use strict;
use warnings;
our @ISA = ('Endpoint::Sqlite');

sub script { return 'script_mysql' }
sub persistence_text {
    my ($self) = @_;
    return qq(persistence = { plugin = "mysql"; host = "$ENV{MYSQL_HOST}"; port = $ENV{MYSQL_PORT}; user = "$ENV{MYSQL_USER}"; )
        . qq(password = "env:MYSQL_PASSWORD"; database = "$ENV{MYSQL_DATABASE}"; @{[ $self->{store} // '' ]} };);
}

sub sql {
    my ($self, $text) = @_;
    return SqlClient::ask('mysql', $text);
}
sub pending { my ($self) = @_; return map { pack 'H*', $_->[0] } $self->sql("select hex(operations) from `$self->{name}_pending`") }

# ---- SQLite's queues, PostgreSQL's tables -------------------------------------------------
package Endpoint::SqlitePgsql;
use strict;
use warnings;
our @ISA = ('Endpoint::Sqlite');

*persistence_text = \&Endpoint::Amqp::persistence_text;
*sql              = \&Endpoint::Amqp::sql;
*pending          = \&Endpoint::Amqp::pending;

1;
