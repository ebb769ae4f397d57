#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# PostgreSQL as careful people configure it: certificates on both sides, SCRAM, a role that may what
# the manual says and nothing else. One server for all cases; arguments choose some.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../integration", "$FindBin::Bin/../hostile", $FindBin::Bin;
use Endpoint;
use Authority;
use PrivateServer;
use Secure;
use Test::More;
use Time::HiRes qw(sleep);

my $password = Secure::secret('CLERK_PASSWORD');
$ENV{WRONG_PASSWORD} = 'another';
my $work = Endpoint::work_dir();
my $ours = Authority->new("$work/ours", 'Waybill tests');
my $others = Authority->new("$work/others", 'Somebody else');
my %shown = $ours->servers($others);
my $mutual = $ours->issue('mutual', cn => 'mutual');
my $impostor = $others->issue('impostor', cn => 'mutual');
my $server = PrivateServer->start('pgsql')->enter_environment;
my $e = Endpoint->new('sqlite+pgsql', name => 'orders', retries => 1);

sub store { my (@options) = @_; $e->configure(store_group => qq(persistence = { plugin = "pgsql"; port = $ENV{PGPORT}; database = "$ENV{PGDATABASE}"; @options };)) }
sub trusting { my ($authority) = @_; return sprintf 'host = "localhost"; sslmode = "verify-full"; sslrootcert = "%s";', $authority->pem }
sub showing { my ($files) = @_; return qq(conninfo = "sslcert=$files.pem sslkey=$files.key"; user = "mutual";) }
my $clerk = 'user = "clerk"; password = "env:CLERK_PASSWORD";';

sub set_up {
    my $data = $server->data;
    $server->keep("$shown{right}.$_", "server.$_") for qw(pem key);
    $server->keep($ours->pem, 'ca.pem');
    Endpoint::write_file("$work/hba", <<END);
host    all postgres 127.0.0.1/32 trust
hostssl all mutual   127.0.0.1/32 cert
hostssl all all      127.0.0.1/32 scram-sha-256
END
    $server->keep("$work/hba", 'db/pg_hba.conf');
    $e->sql("alter system set $_") for "ssl = on", "ssl_cert_file = '$data/server.pem'", "ssl_key_file = '$data/server.key'", "ssl_ca_file = '$data/ca.pem'";
    reload();
    Secure::shows($ENV{PGPORT}, 'postgres', $shown{right});
    $e->sql("set client_min_messages = warning; create role clerk login password '$password'; create role mutual login; revoke all on schema public from public");
}
sub reload { $server->reload_pgsql }

# ---- TLS ------------------------------------------------------------------------------
sub tls_is_verified {
    grant();
    store($clerk, trusting($ours));
    Secure::works($e, 'the right name');
    my %sentence = (wrong => qr/elsewhere\.example.*localhost.*option "host"/, expired => qr/certificate.*sslrootcert.*expired/, stranger => qr/certificate.*sslrootcert.*expired/);
    for (['wrong', 'of another name'], ['expired', 'expired'], ['stranger', 'signed by an unknown authority']) {
        my ($which, $what) = @$_;
        $server->present($shown{$which});
        Secure::shows($ENV{PGPORT}, 'postgres', $shown{$which});
        Secure::refused($e, "the server's certificate is $what", 77, $sentence{$which});
    }
    $server->present($shown{right});
    Secure::shows($ENV{PGPORT}, 'postgres', $shown{right});
    store($clerk, 'host = "localhost"; sslmode = "verify-full"; sslrootcert = "/nowhere.pem";');
    Secure::refused($e, 'no file of authorities', 78, qr/sslrootcert = "\/nowhere\.pem" cannot be read/);
    store($clerk, trusting($ours));
    $e->sql('alter system set ssl = off');
    reload();
    $e->wait_for('TLS is off', sub { ($e->sql('show ssl'))[0][0] eq 'off' });
    Secure::refused($e, 'TLS is not offered', 69, qr/does not support SSL.*ssl = on/);
    $e->sql('alter system set ssl = on');
    reload();
    Secure::shows($ENV{PGPORT}, 'postgres', $shown{right});
}

sub certificates_are_asked_for {
    grant('mutual');
    store(trusting($ours), showing($mutual));
    Secure::works($e, 'a certificate of ours');
    store(trusting($ours), 'user = "mutual";');
    Secure::refused($e, 'no certificate of ours', 77, qr/valid client certificate.*sslcert/);
    store(trusting($ours), showing($impostor));
    Secure::refused($e, 'a certificate of another authority', 77, qr/sslcert/);
    store('user = "clerk"; password = "env:WRONG_PASSWORD";', trusting($ours));
    Secure::refused($e, 'wrong password', 77, qr/password authentication failed for user "clerk"/);
    store('user = "nobody"; password = "env:CLERK_PASSWORD";', trusting($ours));
    Secure::refused($e, 'no such role', 77, qr/password authentication failed for user "nobody"/);
}

# ---- what the manual says that `waybill run` needs --------------------------------------
my @documented = (
    [ 'schema public', 'usage' ],
    [ 'table waybill_endpoints', 'select' ],
    (map { [ 'table orders_dedup', $_ ] } qw(select insert delete)),
    (map { [ 'table orders_pending', $_ ] } qw(select insert update delete)),
    (map { [ 'table orders_delayed', $_ ] } qw(select insert update delete)),
    [ 'table effects', 'insert' ],    # the handler's own
);
sub grant { my $role = shift // 'clerk'; $e->sql(join ';', map { "grant $_->[1] on $_->[0] to $role" } @documented) }

sub each_privilege_at_the_start {
    grant();
    store($clerk, trusting($ours));
    Secure::works($e, 'the documented privileges');
    for (@documented[ 0 .. $#documented - 1 ]) {
        my ($on, $privilege) = @$_;
        my ($name) = $on =~ /(\w+)$/;
        $e->sql("revoke $privilege on $on from clerk");
        Secure::refused($e, "no $privilege on $on", 77, qr/"clerk" lacks.*\Q$name\E.*grant \U$privilege\E$/);
        $e->sql("grant $privilege on $on to clerk");
    }
    $e->sql("revoke connect on database postgres from public");
    Secure::refused($e, 'no connect', 77, qr/permission denied for database "postgres".*CONNECT/);
    $e->sql("grant connect on database postgres to public");
    Secure::refused($e, 'install without create', 77, qr/"clerk" may make no tables in schema public: grant CREATE/, 'install');
    $e->sql('create schema fresh; grant usage, create on schema fresh to clerk');
    store($clerk, trusting($ours), 'schema = "fresh";');
    Secure::succeeds($e, 'install with what it needs', 'install');
    $e->sql('grant create on database postgres to clerk');
    store($clerk, trusting($ours), 'schema = "fresher";');
    Secure::succeeds($e, 'install with what it needs, the schema not there', 'install');
}

# What it has done stays; what was refused is done when it is granted.
sub privileges_that_are_taken_away {
    grant();
    store($clerk, trusting($ours));
    for (['orders_dedup', 'insert'], ['orders_pending', 'insert']) {
        my ($table, $privilege) = @$_;
        my $case = Secure::runs($e, "$privilege on $table is taken away");
        $e->sql("revoke $privilege on $table from clerk");
        $e->send('orders', $case->{message});
        $e->wait_for("$case->{what}: it says so", sub { $e->log_lines(qr/lacks.*$table.*grant \U$privilege\E"/) });
        $e->sql("grant $privilege on $table to clerk");
        Secure::goes_on($case, undef, qr/^(?:0|77)$/);    # 77 while it is not known that all is well again
    }
}

my %cases = (tls => \&tls_is_verified, mutual => \&certificates_are_asked_for, start => \&each_privilege_at_the_start, taken => \&privileges_that_are_taken_away);
store('user = "postgres"; host = "127.0.0.1";');
$e->install;
set_up();
$cases{$_}->() for @ARGV ? @ARGV : qw(tls mutual start taken);
Secure::keeps_secrets();
done_testing;
