#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# MariaDB as careful people configure it: certificates on both sides, a user that may what the
# manual says and nothing else. One server for all cases; arguments choose some.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../integration", "$FindBin::Bin/../hostile", $FindBin::Bin;
use Endpoint;
use Authority;
use PrivateServer;
use Secure;
use Test::More;

my $password = Secure::secret('CLERK_PASSWORD');
$ENV{WRONG_PASSWORD} = 'another';
my $work = Endpoint::work_dir();
my $ours = Authority->new("$work/ours", 'Waybill tests');
my $others = Authority->new("$work/others", 'Somebody else');
my %shown = $ours->servers($others);
my $mutual = $ours->issue('mutual', cn => 'mutual');
my $impostor = $others->issue('impostor', cn => 'mutual');
my $server = PrivateServer->start('mariadb')->enter_environment;
my $database = $ENV{MYSQL_DATABASE};
my $e = Endpoint->new('sqlite+mysql', name => 'orders', retries => 1);

# localhost would be the socket; of 127.0.0.1 Connector/C 3.4 does not verify the name. This leads
# there, too, and is none of theirs.
my $tcp = qq(host = "127.1"; port = $ENV{MYSQL_PORT};);
sub store { my (@options) = @_; $e->configure(store_group => qq(persistence = { plugin = "mysql"; database = "$database"; @options };)) }
sub trusting { my ($authority) = @_; return sprintf '%s ssl_mode = "verify_identity"; ssl_ca = "%s";', $tcp, $authority->pem }
sub showing { my ($files) = @_; return qq(ssl_cert = "$files.pem"; ssl_key = "$files.key";) }
my $clerk = 'user = "clerk"; password = "env:CLERK_PASSWORD";';
my $certified = 'user = "mutual"; password = "env:CLERK_PASSWORD";';

sub set_up {
    $server->keep($ours->pem, 'tls/ca.pem');
    $server->present($shown{right});
    $server->administer("create user clerk identified by '$password' require ssl");
    $server->administer("create user mutual identified by '$password' require x509");
}

# ---- what the manual says that `waybill run` needs --------------------------------------
my @documented = (
    [ 'waybill_endpoints', 'select' ],
    (map { [ 'orders_dedup', $_ ] } qw(select insert update delete)),
    (map { [ 'orders_pending', $_ ] } qw(select insert update delete)),
    (map { [ 'orders_delayed', $_ ] } qw(select insert update delete)),
    [ 'effects', 'insert' ],    # the handler's own
);
sub grant { my $user = shift // 'clerk'; $server->administer(join ';', map { "grant $_->[1] on $database.$_->[0] to $user" } @documented) }

# ---- TLS ------------------------------------------------------------------------------
sub tls_is_verified {
    grant();
    store($clerk, trusting($ours));
    Secure::works($e, 'the right name');
    for (['wrong', 'of another name'], ['expired', 'expired'], ['stranger', 'signed by an unknown authority']) {
        my ($which, $what) = @$_;
        $server->present($shown{$which});
        Secure::shows($ENV{MYSQL_PORT}, 'mysql', $shown{$which});
        Secure::refused($e, "the server's certificate is $what", 77, qr/(?:certificate|hostname).*ssl_ca.*certificate.*expired.*host/i);
    }
    $server->present($shown{right});
    store($clerk, $tcp, 'ssl_mode = "verify_identity"; ssl_ca = "/nowhere.pem";');
    Secure::refused($e, 'no file of authorities', 78, qr/ssl_ca/);
    store($clerk, trusting($ours));
    with_line('skip_ssl', sub { Secure::refused($e, 'TLS is not offered', 69, qr/does not support it.*switch TLS on/) });
}

# With a line more in the server's configuration.
sub with_line {
    my ($line, $code) = @_;
    my $file = $server->data . '/my.cnf';
    my $text = Endpoint::read_file($file);
    Endpoint::write_file($file, "$text$line\n");
    $server->restart;
    $code->();
    Endpoint::write_file($file, $text);
    $server->restart;
}

sub certificates_are_asked_for {
    grant('mutual');
    store($certified, trusting($ours), showing($mutual));
    Secure::works($e, 'a certificate of ours');
    store($certified, trusting($ours));
    Secure::refused($e, 'no certificate of ours', 77, qr/Access denied for user 'mutual'.*ssl_cert/);
    store($certified, trusting($ours), showing($impostor));
    # 69: Connector/C 3.3 does not see why the server hangs up
    Secure::refused($e, 'a certificate of another authority', qr/^(?:69|77)$/, qr/ssl_cert/);
    store('user = "clerk"; password = "env:WRONG_PASSWORD";', trusting($ours));
    Secure::refused($e, 'wrong password', 77, qr/Access denied for user 'clerk'.*check user and password/);
    store($clerk, $tcp, 'ssl_mode = "disabled";');
    Secure::refused($e, 'a user that needs TLS, without', 77, qr/Access denied for user 'clerk'.*ssl_mode/);
}

sub each_privilege_at_the_start {
    grant();
    store($clerk, trusting($ours));
    Secure::works($e, 'the documented privileges');
    for (@documented[ 0 .. $#documented - 1 ]) {
        my ($table, $privilege) = @$_;
        $server->administer("revoke $privilege on $database.$table from clerk");
        Secure::refused($e, "no $privilege on $table", 77, qr/\U$privilege\E command denied to user 'clerk'.*$table.*grant/);
        $server->administer("grant $privilege on $database.$table to clerk");
    }
    Secure::refused($e, 'install without create', 77, qr/CREATE command denied to user 'clerk'.*grant/, 'install');
    $server->administer("grant create, select, insert, update on $database.* to clerk");
    Secure::succeeds($e, 'install with what it needs', 'install');
    $server->administer("revoke all, grant option from clerk");
    Secure::refused($e, 'nothing in the database', 77, qr/Access denied for user 'clerk'.*to database '$database'.*grant/);
}

# What it has done stays; what was refused is done when it is granted.
sub privileges_that_are_taken_away {
    grant();
    store($clerk, trusting($ours));
    for (['orders_dedup', 'insert'], ['orders_pending', 'insert']) {
        my ($table, $privilege) = @$_;
        my $case = Secure::runs($e, "$privilege on $table is taken away");
        $server->administer("revoke $privilege on $database.$table from clerk");
        $e->send('orders', $case->{message});
        $e->wait_for("$case->{what}: it says so", sub { $e->log_lines(qr/gave up.*\U$privilege\E command denied.*$table.*grant/) });
        $server->administer("grant $privilege on $database.$table to clerk");
        Secure::goes_on($case, undef, qr/^(?:0|77)$/);    # 77 while it is not known that all is well again
    }
}

my %cases = (tls => \&tls_is_verified, mutual => \&certificates_are_asked_for, start => \&each_privilege_at_the_start, taken => \&privileges_that_are_taken_away);
store($tcp, 'user = "waybill"; password = "env:MYSQL_PASSWORD";');
$e->install;
set_up();
$cases{$_}->() for @ARGV ? @ARGV : qw(tls mutual start taken);
Secure::keeps_secrets();
done_testing;
