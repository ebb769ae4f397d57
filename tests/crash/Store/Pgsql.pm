# SPDX-License-Identifier: Apache-2.0
#
# PostgreSQL. Trials of a job share a database, the one of `with-servers`.
package Store::Pgsql;
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/support";
use SqlClient;
use Store;
use Tools;
our @ISA = ('Store');

sub home     { return "$ENV{PGHOST}:$ENV{PGPORT}/$ENV{PGDATABASE}" }
sub types    { return qw(Crash.Plain Crash.Deferred Crash.Batch) }
sub handlers { return 'effects-pgsql' }
sub serial   { return 'bigserial' }
sub hex      { return "encode($_[1], 'hex')" }
sub prepare  { $_[0]->empty_tables }

sub section {
    return qq(persistence = { plugin = "pgsql"; conninfo = "host=$ENV{PGHOST} port=$ENV{PGPORT} )
        . qq(user=$ENV{PGUSER} dbname=$ENV{PGDATABASE}"; };);
}

sub sql {
    my ($self, $text) = @_;
    return SqlClient::ask('pgsql', $text);
}

# ---- faults of the server, for the trials of this job alone
sub cut { Tools::server('cut', 'pgsql', $ENV{PGDATABASE}) }

# The server's process in which the endpoint has an open transaction; it reads no further
# while it is stopped.
sub stop_transaction {
    my ($self) = @_;
    my ($server) = map { $_->[0] } $self->sql(
        "select pid from pg_stat_activity where datname = current_database() and state = 'idle in transaction'");
    kill 'STOP', $server or die "nobody is in a transaction\n";
    return $server;
}

# While $work runs, a COMMIT is not answered; this holds up all who use the server.
sub hold_commits {
    my ($self, $work) = @_;
    my $set = sub {
        $self->sql("alter system set synchronous_standby_names = '$_[0]'");
        $self->sql('select pg_reload_conf()');
    };
    $set->('nobody');
    my $done = eval { $work->(); 1 };
    my $why = $@;
    $set->('');
    die $why unless $done;
}
sub holds_commit {
    my ($self) = @_;
    return scalar $self->sql("select 1 from pg_stat_activity where datname = current_database() and wait_event = 'SyncRep'");
}

1;
