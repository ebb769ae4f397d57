# SPDX-License-Identifier: Apache-2.0
#
# What differs between the pairs of transport and persistence: configuration, and how the
# suite reaches queues and tables without the endpoint.
#
#   Pair->named('amqp+pgsql', $space)    $space: a name for what trials share, one a job
#
# Methods: types, waived, begin, end, environment, inject, state, drain, peek, take_all, lead_to_sink, effects,
# ledger, pending, sql; on servers cut_database, cut_broker,
# hold_commits; on files lock_file. state() returns counts { effects, errors, ready, pending, consumers }.
package Pair;
use strict;
use warnings;
use File::Path ();
use POSIX ();

our %names = (
    'amqp+pgsql'            => [ 'Pair::Amqp', 'receive_only' ],
    'sqlite+sqlite'         => [ 'Pair::Sqlite', 'receive_only' ],
    'sqlite+sqlite/file'    => [ 'Pair::Sqlite', 'receive_only', 'one file' ],
    'sqlite+sqlite/scope'   => [ 'Pair::Sqlite', 'transaction_scope', 'one file' ],
    'sqlite+sqlite/atomic'  => [ 'Pair::Sqlite', 'sends_atomic_with_receive' ],
);

sub named {
    my ($class, $name, $space) = @_;
    my ($kind, $mode, $one_file) = @{ $names{$name} || die "no such pair: $name\n" };
    my $self = bless { name => $name, mode => $mode, one_file => $one_file, space => $space }, $kind;
    $self->{root} = ($ENV{CRASH_DIR} || "$Crash::build/tests/crash/work") . "/$space";
    File::Path::make_path($self->{root});
    return $self;
}

sub has_outbox { my ($name) = @_; return $names{$name}[1] eq 'receive_only' }

sub write_file {
    my ($path, $text) = @_;
    open my $file, '>', $path or die "$path: $!\n";
    print $file $text;
    close $file or die "$path: $!\n";
}

# Run a command with text on stdin; its lines of output. Dies when it fails.
sub run {
    my ($input, @command) = @_;
    open my $in, '+>', undef or die "temporary file: $!\n";
    syswrite $in, $input;
    sysseek $in, 0, 0;
    my $pid = open my $out, '-|' // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<&', $in or POSIX::_exit(99);
        exec { $command[0] } @command or POSIX::_exit(98);
    }
    my @lines = <$out>;
    close $out or die "@command: status $?\n";
    chomp @lines;
    return @lines;
}

sub rows { return map { [ split /\t/, $_, -1 ] } @_ }

sub messages {    # lines of the sinks
    my @messages;
    for (rows(@_)) {
        my ($queue, $id, $digest, $body, $reason) = @$_;
        my %message = (queue => $queue, id => $id, digest => $digest, reason => $reason);
        @message{qw(cause ordinal hash)} = $body =~ /^cause=(\S+) ordinal=(\d+) hash=(\w+)/ if $queue eq 'sink';
        $message{cause} //= $body if $queue eq 'sink';
        $message{$_} //= 0 for qw(ordinal hash);
        push @messages, \%message;
    }
    return @messages;
}

sub module { return "$Crash::build/tests/crash/.libs/$_[0].so" }

# The endpoint under test, and the endpoint whose queue collects what it sends.
sub configuration {
    my ($self, $trial) = @_;
    my $outbox = $self->{mode} eq 'receive_only' ? 'true' : 'false';
    # Kills and looks into the queue count as deliveries; only `poison` wants them to add up.
    my $retries = $trial->{retries} // 20;
    my $recoverability = "recoverability = { immediate_retries = $retries; delayed_retries = 0; "
        . 'error_queue = "error"; };';
    return (<<END, <<END);
endpoints = (
  { name = "crash"; handlers = ["@{[ $self->handlers ]}"];
    concurrency = $trial->{concurrency}; batch_max = $trial->{batch_max}; transaction_mode = "$self->{mode}";
    @{[ $self->transport ]}
    @{[ $self->persistence ]}
    outbox = { enabled = $outbox; cleanup_interval = "1s"; sweep_after = "2s"; };
    $recoverability }
);
END
endpoints = (
  { name = "sink"; handlers = ["@{[ module('sink') ]}"]; concurrency = 1;
    @{[ $self->transport ]}
    $recoverability }
);
END
}

sub write_configuration {
    my ($self, $trial, $dir) = @_;
    my ($endpoint, $sink) = $self->configuration($trial);
    write_file("$dir/endpoint.conf", $endpoint);
    write_file("$dir/sink.conf",     $sink);
}

sub install {
    my ($self, $dir) = @_;
    local %ENV = (%ENV, $self->environment);
    for my $file (qw(endpoint.conf sink.conf)) {
        system("'$Crash::program' install -c '$dir/$file' >>'$dir/endpoint.log' 2>&1") == 0
            or die "install -c $dir/$file failed: see $dir/endpoint.log\n";
    }
}

sub environment { return (WAYBILL_PLUGIN_DIR => "$Crash::build/plugins") }

# A directory for the trial's logs; kept by the caller when the trial fails.
sub begin {
    my ($self, $trial) = @_;
    my $dir = "$self->{root}/$trial->{prefix}";
    File::Path::make_path($dir);
    $self->write_configuration($trial, $dir);
    $self->prepare($trial, $dir);
    return $dir;
}
sub end { }
sub waived { return $_[0]{mode} eq 'sends_atomic_with_receive' ? 'double' : () }

our $tables = <<'END';
create table effects (msg_id text not null, seq int not null, body_hash text not null,
    variant text not null, pid int not null, attempt int not null);
create table ledger (msg_id text not null, key text not null, amount int not null);
END

sub effects {
    my ($self, $trial) = @_;
    return map { { id => $_->[0], hash => $_->[1], attempt => $_->[2], variant => $_->[3], pid => $_->[4] } }
        $self->sql($trial, 'select msg_id, body_hash, attempt, variant, pid from effects');
}

sub ledger {
    my ($self, $trial) = @_;
    return map { { id => $_->[0], amount => $_->[1] } } $self->sql($trial, 'select msg_id, amount from ledger');
}

# ---- RabbitMQ and PostgreSQL --------------------------------------------------------
# Trials of a job share a virtual host and a database: those of `with-servers`.
package Pair::Amqp;
use strict;
use warnings;
our @ISA = ('Pair');

sub types    { return qw(Crash.Plain Crash.Deferred Crash.Batch) }
sub handlers { return Pair::module('effects-pgsql') }

sub transport {
    return qq(transport = { plugin = "amqp"; host = "$ENV{AMQP_HOST}"; port = $ENV{AMQP_PORT}; )
        . qq(vhost = "$ENV{AMQP_VHOST}"; user = "$ENV{AMQP_USER}"; password = "env:AMQP_PASSWORD"; };);
}

sub persistence {
    return qq(persistence = { plugin = "pgsql"; conninfo = "host=$ENV{PGHOST} port=$ENV{PGPORT} )
        . qq(user=$ENV{PGUSER} dbname=$ENV{PGDATABASE}"; };);
}

sub sql {
    my ($self, $trial, $text) = @_;
    return Pair::rows(Pair::run($text, qw(psql -X -q -A -t -v ON_ERROR_STOP=1), '-F', "\t"));
}

my %installed;

sub prepare {
    my ($self, $trial, $dir) = @_;
    if (!$installed{ $ENV{PGDATABASE} }++) {
        $self->sql($trial, $Pair::tables);
        $self->install($dir);
        # A queue that was deleted leaves its exchange behind: only "mandatory" tells then.
        $self->tool('lead-nowhere', 'nowhere');
    }
    $self->sql($trial, 'truncate effects, ledger');
    $self->tool('drain', qw(crash error sink));
}

sub tool {
    my ($self, @arguments) = @_;
    return Pair::run('', "$Crash::build/tests/crash/sink-amqp", @arguments);
}

sub inject {
    my ($self, $trial, @lines) = @_;
    Pair::run(join('', @lines), "$Crash::build/tests/crash/inject-amqp", 'crash');
}

sub drain { return Pair::messages($_[0]->tool('drain', qw(sink error))) }
sub peek  { return map { $_->[1] } Pair::rows($_[0]->tool('peek', 'crash')) }
sub take_all { return map { $_->[1] } Pair::rows($_[0]->tool('drain', 'crash')) }
sub lead_to_sink { $_[0]->tool('lead-to-sink', 'nowhere') }

# Pending rows as text in which a message id can be found.
sub pending {
    my ($self, $trial) = @_;
    my @rows = $self->sql($trial, 'select encode(operations, \'hex\') from crash_pending');
    return join "\n", map { pack 'H*', $_->[0] } @rows;
}

sub state {
    my ($self, $trial) = @_;
    my ($counts) = $self->sql($trial,
        'select (select count(distinct msg_id) from effects), (select count(*) from crash_pending)');
    my %queue = map { $_->[0] => $_ } Pair::rows($self->tool('depth', qw(crash error)));
    return {
        effects => $counts->[0], pending => $counts->[1], ready => $queue{crash}[1],
        consumers => $queue{crash}[2],
        errors => $queue{error}[1] + grep { $_->{queue} eq 'error' } @{ $trial->{drained} },
    };
}

# ---- faults of the servers, for the trials of this job alone
sub server {
    system("$Crash::source/tests/support/server", @_) == 0 or die "server @_ failed\n";
}
sub cut_database { server('cut', "$ENV{WB_SERVER_DIR}/pgsql",    $ENV{PGDATABASE}) }
sub cut_broker   { server('cut', "$ENV{WB_SERVER_DIR}/rabbitmq", $ENV{AMQP_VHOST}) }

# While $work runs, a COMMIT is not answered; this holds up all who use the server.
sub hold_commits {
    my ($self, $trial, $work) = @_;
    my $set = sub {
        $self->sql($trial, "alter system set synchronous_standby_names = '$_[0]'");
        $self->sql($trial, 'select pg_reload_conf()');
    };
    $set->('nobody');
    my $done = eval { $work->(); 1 };
    my $why = $@;
    $set->('');
    die $why unless $done;
}
sub holds_commit {
    my ($self, $trial) = @_;
    return scalar $self->sql($trial, "select 1 from pg_stat_activity where datname = current_database() and wait_event = 'SyncRep'");
}

# ---- SQLite and SQLite ----------------------------------------------------------------
# Each trial has files of its own: one for each plugin, or one file for both.
package Pair::Sqlite;
use strict;
use warnings;
our @ISA = ('Pair');

sub types    { return qw(Crash.Plain Crash.Batch) }
sub handlers { return Pair::module('effects-sqlite') }
sub queue_file { return "$_[0]{dir}/queue.db" }
sub store_file { return $_[0]{one_file} ? $_[0]->queue_file : "$_[0]{dir}/store.db" }

my $patience = 'busy_timeout = "300ms";';
sub transport   { return qq(transport = { plugin = "sqlite"; file = "@{[ $_[0]->queue_file ]}"; $patience };) }
sub persistence { return qq(persistence = { plugin = "sqlite"; file = "@{[ $_[0]->store_file ]}"; $patience };) }

# Keep all others from writing the file, from when it is free, for longer than they wait for it.
# @return a process to wait for
sub lock_file {
    my ($self, $file) = @_;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    eval { run_sql($file, 'begin immediate; select pause(900); commit;') };
    POSIX::_exit($@ ? 1 : 0);
}

sub begin {
    my ($self, $trial) = @_;
    $self->{dir} = "$self->{root}/$trial->{prefix}";
    return $self->SUPER::begin($trial);
}

sub run_sql {
    my ($file, $text) = @_;
    return Pair::rows(Pair::run($text, "$Crash::build/tests/crash/sql-sqlite", $file));
}
sub sql { return run_sql($_[0]->store_file, $_[2]) }

sub prepare {
    my ($self, $trial, $dir) = @_;
    $self->install($dir);
    $self->sql($trial, $Pair::tables);
    $self->{queues} = { map { $_->[1] => "waybill_message_$_->[0]" }
            run_sql($self->queue_file, 'select number, name from waybill_queue') };
}

# Rows as the transport writes them, all in one transaction; the queue is then looked at
# because somebody opened and closed the file of sessions.
sub inject {
    my ($self, $trial, @lines) = @_;
    my $sql = "begin immediate;\n";
    for (@lines) {
        chomp;
        my ($id, $type, $body) = split /\t/;
        my $headers = pack 'V V/a x V/a x', 1, 'NServiceBus.EnclosedMessageTypes', $type;
        $sql .= sprintf "insert into %s (id, headers, body) values (x'%s', x'%s', x'%s');\n",
            $self->{queues}{crash}, map { unpack 'H*', $_ } $id, $headers, $body;
    }
    run_sql($self->queue_file, "$sql commit;");
    open my $bell, '>>', $self->queue_file . '-sessions';
}

sub drain {
    my ($self) = @_;
    my @lines;
    for my $queue (qw(sink error)) {
        my $table = $self->{queues}{$queue};
        for my $row (run_sql($self->queue_file, "begin immediate; select id, headers, body, key from $table
            order by seq; delete from $table; commit;")) {
            my ($id, $headers, $body) = map { pack 'H*', $_ } @$row;
            my %headers = unpack 'V/(V/a x V/a x)', $headers;
            push @lines, join "\t", $queue, $id, Crash::digest(join ' ', @$row), $body,
                $headers{'NServiceBus.ExceptionInfo.Message'} // '';
        }
    }
    return Pair::messages(@lines);
}

sub peek {
    my ($self) = @_;
    return map { pack 'H*', $_->[0] } run_sql($self->queue_file, "select id from $self->{queues}{crash}");
}

sub take_all {    # out of the input queue
    my ($self) = @_;
    my $table = $self->{queues}{crash};
    return map { pack 'H*', $_->[0] } run_sql($self->queue_file, "begin immediate; select id from $table; delete from $table; commit;");
}

sub lead_to_sink {    # the destination that was not there: the sink under that name
    my ($self) = @_;
    run_sql($self->queue_file, "update waybill_queue set name = 'nowhere' where name = 'sink'");
}

sub pending {
    my ($self, $trial) = @_;
    return '' if $self->{mode} ne 'receive_only';
    return join "\n", map { pack 'H*', $_->[0] } $self->sql($trial, 'select operations from waybill_crash_pending');
}

sub state {
    my ($self, $trial) = @_;
    my $pending = $self->{mode} eq 'receive_only' ? 'select count(*) from waybill_crash_pending' : 'select 0';
    my ($counts) = $self->sql($trial, "select (select count(distinct msg_id) from effects), ($pending)");
    my ($ready, $errors) = map { $_->[0] } run_sql($self->queue_file,
        "select count(*) from $self->{queues}{crash}; select count(*) from $self->{queues}{error}");
    return {
        effects => $counts->[0], pending => $counts->[1], ready => $ready, consumers => 0,
        errors => $errors + grep { $_->{queue} eq 'error' } @{ $trial->{drained} },
    };
}

1;
