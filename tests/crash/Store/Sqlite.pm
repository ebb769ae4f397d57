# SPDX-License-Identifier: Apache-2.0
#
# Tables in a SQLite file. Each trial has its own, or shares one with its queues.
package Store::Sqlite;
use strict;
use warnings;
use POSIX ();
use lib "$ENV{top_srcdir}/tests/support";
use SqliteFile;
use Store;
our @ISA = ('Store');

our $patience = 'busy_timeout = "300ms";';

sub home { return $_[0]->file }
sub file { return $_[0]{one_file} ? "$_[0]{dir}/queue.db" : "$_[0]{dir}/store.db" }
sub section { return qq(persistence = { plugin = "sqlite"; file = "@{[ $_[0]->file ]}"; $patience };) }
sub types    { return qw(Crash.Plain Crash.Batch) }
sub handlers { return 'effects-sqlite' }
sub serial   { return 'integer primary key' }
sub hex      { return $_[1] }    # sql-sqlite prints blobs so
sub prepare  { }
sub no_lease { return 'owner = null, leased_until = 0' }
sub operation_table { my ($self) = @_; return $self->delayed_table . "_operation" }
sub pending_table { my ($self) = @_; return "waybill_$self->{endpoint}_pending" }

sub run_sql {
    my ($file, $text) = @_;
    return SqliteFile::ask($Crash::build, $file, $text);
}
sub sql { my ($self, $text) = @_; return run_sql($self->file, $text) }

# Keep all others from writing the file, from when it is free, for longer than they wait for it.
# @return a process to wait for
sub lock_file {
    my ($file) = @_;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    eval { run_sql($file, 'begin immediate; select pause(900); commit;') };
    POSIX::_exit($@ ? 1 : 0);
}

1;
