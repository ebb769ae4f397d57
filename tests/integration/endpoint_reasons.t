#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Why a server cannot be reached is said in the system's words, or the TLS library's, whatever a client's library makes of them.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_REUSEADDR);
use Endpoint;

# A port that is nobody's, and stays so: it is taken, and nobody listens.
socket my $taken, Socket::PF_INET(), Socket::SOCK_STREAM(), 0 or die "socket: $!\n";
bind $taken, Socket::pack_sockaddr_in(0, Socket::INADDR_LOOPBACK()) or die "bind: $!\n";
my ($closed) = Socket::unpack_sockaddr_in(getsockname $taken);

my $number = 0;

sub refusal {    # what `waybill install` says
    my (%groups) = @_;
    my $e = Endpoint->new('sqlite+sqlite', name => 'refused' . ++$number, %groups);
    return ($e->run('install'), $e);
}

sub amqp { my ($port, $more) = @_; return qq(transport = { plugin = "amqp"; host = "127.0.0.1"; port = $port; user = "u"; password = "env:SECRET"; $more };) }

$ENV{SECRET} = 'x';
my $mysql = qq(persistence = { plugin = "mysql"; host = "127.0.0.1"; port = $closed; user = "u"; password = "env:SECRET"; database = "d"; };);
my $socket = qq(persistence = { plugin = "mysql"; socket = "/nonexistent/mysql.sock"; user = "u"; password = "env:SECRET"; database = "d"; };);
my $pgsql = qq(persistence = { plugin = "pgsql"; host = "127.0.0.1"; port = $closed; user = "u"; database = "d"; };);
my $kafka = qq(transport = { plugin = "kafka"; brokers = "127.0.0.1:$closed"; };);
my @cases = (
    [ 'amqp',  qr/could not connect to "127\.0\.0\.1" port $closed: Connection refused$/m, transport_group => amqp($closed, '') ],
    [ 'amqp',  qr/port $closed: Connection refused$/m, transport_group => amqp($closed, 'tls = "on";') ],
    [ 'pgsql', qr/Connection refused/, store_group => $pgsql ],
    [ 'mysql', qr/could not connect to MySQL: .*: Connection refused$/m, store_group => $mysql ],
    [ 'mysql', qr/could not connect to MySQL: .*mysql\.sock.*: No such file or directory$/m, store_group => $socket ],
    [ 'kafka', qr/Connection refused/, transport_group => $kafka ],
);
for my $case (@cases) {
    my ($plugin, $wanted, %groups) = @$case;
    SKIP: {
        my @built = glob "$Endpoint::build/plugins/*/$plugin/.libs/$plugin.so";
        skip "$plugin is not built", 2 if !@built;
        my ($code, $text) = refusal(%groups);
        is $code, 69, "$plugin: nobody is there";
        like $text, $wanted, 'and why';
    }
}

# Somebody else listens: what TLS makes of his answer.
my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die "listen: $!\n";
my $pid = fork // die "fork: $!\n";
if (!$pid) {
    $SIG{TERM} = 'DEFAULT';
    while (my $client = $listener->accept) { sysread $client, my $hello, 4096; syswrite $client, "220 mail.example.org ready\r\n"; close $client }
    POSIX::_exit(0);
}
my ($code, $text, $e) = refusal(transport_group => amqp($listener->sockport, 'tls = "on";'));
is $code, 69, 'no TLS at this port';
like $text, qr/TLS cannot be set up \(wrong version number\); check that the broker offers TLS at this port/, 'in the words of the TLS library';
kill 'TERM', $pid;
waitpid $pid, 0;

# An endpoint that waits says it, too.
$e = Endpoint->new('sqlite+sqlite', name => 'waits', transport_group => amqp($closed, ''), with => 'start = "wait";');
$e->start;
$e->wait_for('a line of the log', sub { $e->log_lines(qr/endpoint waits for its servers to start.* reason=".*Connection refused"/) });
is $e->stop, 0, 'it stops';
done_testing;
