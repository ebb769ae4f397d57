#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# waybill doctor: what it finds is provoked on real servers, one after the other, and gone when its own remedy was applied.
# What is fine is found fine, nothing is changed, and the exit code says which. RabbitMQ: amqp_limits.t.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use JSON::PP ();
use Test::More;
use Endpoint;
use SmallDisk;

SmallDisk::own_space();
Endpoint::under_servers(qw(pgsql mariadb));

use constant { FINE => 0, BITES => 1 };
my ($code, $text, %found);

# What there is to find, by name. The disk of whoever runs this is his own affair.
sub look {
    my ($e, @arguments) = @_;
    my ($exit, $output) = $e->run('doctor', '--json', @arguments);
    my $answer = eval { JSON::PP->new->decode($output) } or die "doctor: $exit: $output\n";
    my @findings = grep { $_->{name} ne 'disk-space' || $e->{small} } @{ $answer->{findings} };
    $code = $exit == BITES && !grep({ $_->{severity} ne 'note' } @findings) ? FINE : $exit;
    %found = ();
    push @{ $found{ $_->{name} } }, $_ for @findings;
}

# A name of a finding, how it comes about, what its text says, and what applies its remedy.
sub bites {
    my ($e, $name, $provoke, $pattern, $mend, @arguments) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $provoke->();
    look($e, @arguments);
    is $code, BITES, "$e->{name}: $name bites";
    my ($finding) = @{ $found{$name} || [ {} ] };
    like $finding->{text} // 'nothing', $pattern, "$e->{name}: $name is found" or diag explain \%found;
    $mend->($finding->{remedy} // '');
    look($e, @arguments);
    ok !$found{$name}, "$e->{name}: $name is mended" or diag explain $found{$name};
}

sub is_fine {
    my ($e) = @_;
    look($e);
    is $code, FINE, "$e->{name}: fine" or diag explain \%found;
}

# ---- SQLite ------------------------------------------------------------------------------

my $e = Endpoint->new('sqlite', name => 'files');
($code, $text) = $e->run('doctor');
is $code, BITES, 'files: there is nothing yet' or diag $text;
like $text, qr/files: transport sqlite: does-not-start\n  danger    .*\n  mend      waybill install\n/, 'files: and it says so';
$e->install;
is_fine($e);
like +($e->run('doctor'))[1], qr/^nothing found that would bite$|^1 would bite$/m, 'files: for people';

my $configured = sub { my %changes = @_; return sub { $e->configure(%changes) } };
bites($e, 'synchronous', $configured->(transport => 'synchronous = "normal";'), qr/last sends/, sub { $e->configure(transport => "$_[0];") });
bites($e, 'synchronous', $configured->(store => 'synchronous = "normal";'), qr/last commits/, sub { $e->configure(store => "$_[0];") });
bites($e, 'retention-too-short', $configured->(outbox => 'enabled = true; retention = "2d";'), qr/after 2d .* an outage/,
    sub { my ($retention) = $_[0] =~ /retention = ("\w+")/; $e->configure(outbox => "enabled = true; retention = $retention;") });
look($e, '--outage', '4d');
is $found{'retention-too-short'}[0]{severity}, 'danger', 'files: a longer outage is another matter';
is_deeply [ $e->run('doctor', '--outage', 'soon') ], [ 64, qq(waybill: --outage "soon" is not a duration like 10s, 2h or 7d\n) ], 'usage';
is +($e->run('doctor', '-e', 'others'))[0], 64, 'there is no such endpoint';

$e = Endpoint->new('sqlite', name => 'small', files => 'small/', small => 1);
my $disk = SmallDisk->new("$e->{dir}/small", '2g');
if ($disk->{mounted}) {
    my $size = sub { system("mount -o remount,size=$_[0] $disk->{directory}") == 0 or die "remount\n" };
    $e->install;
    bites($e, 'disk-space', sub { $size->('64m') }, qr/has \d+ MiB left/, sub { $size->('2g') });
}

# ---- PostgreSQL ---------------------------------------------------------------------------
# Limits leave room for connections that have just been closed: a server lets go of them when it comes to it.

my $role = "doctor_$ENV{PGDATABASE}";
my $database = $ENV{PGDATABASE};
$e = Endpoint->new('sqlite+pgsql', name => 'orders', concurrency => 12, files => 'orders-', user => $role);
$e->sql(qq(create role "$role" login; grant create, usage on schema public to "$role"));
$e->install;
my $sql = sub { my ($text) = @_; return sub { $e->sql($_) for split /; /, $text } };
my $mend = sub { my ($remedy) = @_; $e->sql($_) for split /; /, $remedy =~ s/, (?:if nobody|and the same in my.cnf).*//r };
is_fine($e);

bites($e, 'warning-at-start', $sql->(qq(alter role "$role" set synchronous_commit = off)), qr/commits can be lost .*synchronous_commit/, $mend);
bites($e, 'warning-at-start', $sql->(qq(alter database "$database" set synchronous_commit = off)), qr/synchronous_commit/,
    sub { like $_[0], qr/^ALTER DATABASE /, 'orders: where it is set'; $mend->(@_) });
# The postmaster reads its file when it comes to it.
for ([ 'warning-at-start', 'full_page_writes' ], [ 'autovacuum', 'autovacuum' ]) {
    my ($name, $setting) = @$_;
    my $read = sub { my ($value) = @_; $e->wait_for("$setting is $value", sub { ($e->sql("show $setting"))[0][0] eq $value }) };
    bites($e, $name, sub { $sql->("alter system set $setting = off; select pg_reload_conf()")->(); $read->('off') }, qr/$setting/,
        sub { $mend->(@_); $read->('on'); $e->sql("alter system reset $setting") });
}
bites($e, 'connections', $configured->(concurrency => 250), qr/up to \d+ connections, and the server allows 197/,
    sub { like $_[0], qr/or a lower concurrency$/, 'orders: fewer do'; $e->configure(concurrency => 12) });
bites($e, 'connections', $sql->(qq(alter role "$role" connection limit 10)), qr/up to \d+ connections, and its user may have 10/, $mend);
bites($e, 'connections', $sql->(qq(alter database "$database" connection limit 10)), qr/its database may have 10/, $mend);
bites($e, 'transaction-timeout', $sql->(qq(alter role "$role" set idle_in_transaction_session_timeout = '5s')), qr/is 5000 ms/, $mend);
bites($e, 'replication-slot', $sql->("select pg_create_physical_replication_slot('$role', true)"), qr/"\Q$role\E"/, $mend);
bites($e, 'does-not-start', $sql->(qq(revoke delete on orders_dedup from "$role")), qr/lacks privileges on the table public.orders_dedup: grant DELETE/,
    $sql->(qq(grant delete on orders_dedup to "$role")));

# The clock of the host.
my $clock = "$e->{dir}/clock";
{
    no warnings 'redefine';
    my $environment = \&Endpoint::environment;
    local *Endpoint::environment = sub { return ($environment->(@_), LD_PRELOAD => "$ENV{top_builddir}/tests/integration/.libs/wall_clock.so", WB_CLOCK => $clock) };
    my $set = sub { my ($seconds) = @_; return sub { Endpoint::write_file($clock, pack 'q', $seconds) } };
    bites($e, 'clocks-differ', $set->(-3600), qr/ ahead of this host's/, $set->(0));
    bites($e, 'clocks-differ', $set->(3600), qr/ behind this host's/, $set->(0));
}
is_fine($e);

# A server that is not there.
$e->configure(store_group => $e->persistence_text =~ s/port = \d+/port = 1/r);
($code, $text) = $e->run('doctor');
is $code, 69, 'orders: PostgreSQL is not there';
like $text, qr/persistence pgsql: cannot-look\n  unseen .*\n1 could not be looked at, and \d+ would bite\n/, 'orders: and it says so';
$e->sql(qq(drop owned by "$role"; drop role "$role"));

# ---- MariaDB --------------------------------------------------------------------------------

if (Endpoint::has_mysql()) {
    $e = Endpoint->new('sqlite+mysql', name => 'bills', concurrency => 12, files => 'bills-');
    $e->install;
    is_fine($e);
    # it survives the death of the server's process, which is all that happens to the others that use it
    bites($e, 'warning-at-start', $sql->('set global innodb_flush_log_at_trx_commit = 2'), qr/commits can be lost .*innodb_flush_log_at_trx_commit/, $mend);
    bites($e, 'transaction-timeout', $sql->("set global $_ = 50"), qr/ is 50 s/, $mend) for qw(idle_transaction_timeout idle_write_transaction_timeout);
    bites($e, 'connections', $configured->(concurrency => 250), qr/up to \d+ connections, and the server allows 200/,
        sub { like $_[0], qr/or a lower concurrency$/, 'bills: fewer do'; $e->configure(concurrency => 12) });
    my $user = substr "d_$ENV{MYSQL_DATABASE}", 0, 30;
    $sql->("create user '$user'\@'%' identified by 'secret' with max_user_connections 10; grant all on `$ENV{MYSQL_DATABASE}`.* to '$user'\@'%'")->();
    my $group = $e->persistence_text =~ s/user = "[^"]*"; password = "[^"]*"/user = "$user"; password = "secret"/r;
    bites($e, 'connections', $configured->(store_group => $group), qr/its user may have 10/, $mend);
    $e->sql("drop user '$user'\@'%'");
}
done_testing;
