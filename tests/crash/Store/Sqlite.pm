# SPDX-License-Identifier: Apache-2.0
#
# Tables in a SQLite file. Each trial has its own, or shares one with its queues.
package Store::Sqlite;
use strict;
use warnings;
use POSIX ();
use Tools;

our $patience = 'busy_timeout = "300ms";';

sub new { my ($class, %self) = @_; return bless \%self, $class }
sub home { return $_[0]->file }
sub file { return $_[0]{one_file} ? "$_[0]{dir}/queue.db" : "$_[0]{dir}/store.db" }
sub section { return qq(persistence = { plugin = "sqlite"; file = "@{[ $_[0]->file ]}"; $patience };) }
sub types    { return qw(Crash.Plain Crash.Batch) }
sub handlers { return 'effects-sqlite' }

sub run_sql {
    my ($file, $text) = @_;
    return Tools::rows(Tools::run($text, "$Crash::build/tests/crash/sql-sqlite", $file));
}
sub sql { my ($self, $text) = @_; return run_sql($self->file, $text) }
sub prepare { }

sub pending_count { return 'select count(*) from waybill_crash_pending' }
sub pending {
    my ($self) = @_;
    return map { pack 'H*', $_->[0] } $self->sql('select operations from waybill_crash_pending');
}

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
