#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What is answered by HTTP while an endpoint runs: its numbers as they come about, health, status and `waybill status`. Clients that
# are slow, many or no clients at all keep neither workers nor, for long, others who ask. TLS and a token.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use IO::Socket::INET;
use JSON::PP;
use Time::HiRes qw(sleep time);
use Endpoint;

plan skip_all => 'built without libmicrohttpd' if !$ENV{CI} && Endpoint::read_file("$Endpoint::build/config.h") !~ /^#define HAVE_LIBMICROHTTPD 1$/m;

$SIG{PIPE} = 'IGNORE';    # who is asked may close before all is said
chomp(my $port = `"$Endpoint::source/tests/support/free-port" "@{[ Endpoint::work_dir() ]}"`);

sub connection { my ($text, $from) = @_; my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 10, $from ? (LocalAddr => $from) : ()) or return; $socket->autoflush(1); print $socket $text if defined $text; return $socket }

# Status, headers and text; nothing when nobody answers.
sub ask {
    my ($path, %more) = @_;
    my $method = $more{method} // 'GET';
    my $socket = connection("$method $path HTTP/1.1\r\nHost: @{[ $more{host} // '127.0.0.1' ]}\r\nConnection: close\r\n@{[ $more{headers} // '' ]}\r\n", $more{from}) or return ('');
    local $SIG{ALRM} = sub { die "no answer to $path\n" };
    alarm 30;
    my $all = do { local $/; <$socket> } // '';
    alarm 0;
    my ($head, $text) = split /\r\n\r\n/, $all, 2;
    return (($head // '') =~ m{^HTTP/1\.1 (\d+)} ? $1 : '', $text // '', $head // '');
}
sub metric { my ($name) = @_; return (ask('/metrics'))[1] =~ /^\Q$name\E (\S+)$/m ? $1 : undef }
sub is_metric { my ($e, $name, $value) = @_; local $Test::Builder::Level = $Test::Builder::Level + 1; $e->wait_for("$name is $value", sub { (metric($name) // '') eq $value }) or diag $name, ' is ', metric($name) // 'not there' }

# ---- a life -----------------------------------------------------------------------------
my $e = Endpoint->new('sqlite+sqlite', program => 'waybill-test', concurrency => 2, retries => 1, recover => 'delayed_retries = 1; delay_increment = "100ms";', top => qq(http = { listen = "127.0.0.1:$port"; };\n));
$e->install;
my ($code, $text) = $e->run('status');
is $code, 69, 'nobody answers yet';
$e->start;
$e->wait_for('it is ready', sub { (ask('/health/ready'))[0] eq '200' });
is join(' ', (ask('/health/live'))[ 0, 1 ]), "200 alive\n", 'and alive';
is metric('waybill_messages_handled_total{endpoint="orders"}'), 0, 'nothing is handled yet';
$e->send('orders', map { { id => $_, do => "send sink T.Out $_", headers => [ [ 'NServiceBus.TimeSent', '2020-01-01 00:00:00:000000 Z' ] ] } } 'a' .. 'c');
is_metric($e, 'waybill_messages_handled_total{endpoint="orders"}', 3);
is_metric($e, 'waybill_operations_sent_total{endpoint="orders"}', 3);
is_metric($e, 'waybill_critical_time_seconds_bucket{endpoint="orders",le="86400.0"}', 0);
is_metric($e, 'waybill_critical_time_seconds_count{endpoint="orders"}', 3);
is_metric($e, 'waybill_handler_seconds_count{endpoint="orders"}', 3);
cmp_ok metric('waybill_batch_messages_count{endpoint="orders"}'), '>=', 1, 'there are batches';
is metric('waybill_batch_messages_sum{endpoint="orders"}'), 3, 'of three messages';
cmp_ok metric(qq(waybill_stage_seconds_count{endpoint="orders",stage="$_"})), '>=', 1, "time of $_" for qw(receive claim handle commit dispatch acknowledge);
$e->send('orders', { id => 'a' });
is_metric($e, 'waybill_messages_duplicate_total{endpoint="orders"}', 1);
$e->send('orders', { id => 'bad', do => 'fail retry no' });
is_metric($e, 'waybill_messages_moved_total{endpoint="orders"}', 1);
is metric('waybill_attempts_failed_total{endpoint="orders",class="handler"}'), 4, 'its attempts';
is metric('waybill_messages_retried_later_total{endpoint="orders"}'), 1, 'its delayed retry';
is_metric($e, 'waybill_delayed_lateness_seconds_count{endpoint="orders"}', 1);
cmp_ok metric('waybill_batches_rolled_back_total{endpoint="orders"}'), '>=', 4, 'and what was rolled back for them';
is metric('waybill_connections_opened_total{endpoint="orders",server="database"}'), 2, 'each worker has one connection';
is metric('waybill_workers{endpoint="orders",state="working"}'), 2, 'two workers';
is metric('waybill_pending_rows{endpoint="orders"}'), 0, 'nothing is pending';
is metric('waybill_endpoint_state{endpoint="orders",waybill_endpoint_state="running"}'), 1, 'it runs';
like +(ask('/metrics'))[2], qr{^Content-Type: application/openmetrics-text; version=1\.0\.0; charset=utf-8\r?$}m, 'as its type says';

# ---- status -----------------------------------------------------------------------------
my $status = decode_json((ask('/status'))[1]);
is_deeply [ $status->{state}, @{ $status->{endpoints}[0] }{qw(name state reason transport outbox)} ], [ 'running', 'orders', 'running', undef, 'sqlite', JSON::PP::true ], '/status';
($code, $text) = $e->run('status');
is $code, 0, 'waybill status';
like $text, qr/^waybill \S+: running, since \S+\norders: running\n  handled=3 failed=4 moved=1 duplicates=1 retried_later=1 .*\n  workers 2  (?:queue \d+  )?critical time \S+ s on average/, 'says it in words';
($code, $text) = $e->run('status', '--json');
is_deeply decode_json($text)->{endpoints}[0]{messages}, $status->{endpoints}[0]{messages}, 'and as JSON';

# ---- refused ----------------------------------------------------------------------------
is +(ask('/'))[0], 404, 'another path';
is +(ask('/../etc/passwd'))[0], 404, 'nor is there a file';
is +(ask('/status', method => 'POST', headers => "Content-Length: 5\r\n"))[0], 405, 'another method';
is +(ask('/status', host => 'evil.example'))[0], 421, 'a name that leads here';
is join(' ', (ask('/metrics', method => 'HEAD'))[ 0, 1 ]), '200 ', 'HEAD has no text';
like +(ask('/status', headers => 'X: ' . 'x' x 60000 . "\r\n"))[0], qr/^(?:4\d\d|)$/, 'headers that are too long';
like connection("\x16\x03\x01nonsense\r\n\r\n")->getline // '', qr{^(?:HTTP/1\.[01] 400|$)}, 'what is no HTTP';

# ---- what waits in the queue, which is asked for now and then ---------------------------------
$e->send('orders', map { { id => "behind $_", do => "wait $e->{dir}/go" } } 1 .. 7);
$e->wait_for('seven wait in the queue', sub { (metric('waybill_queue_messages{endpoint="orders"}') // '') eq 7 }, 40);
like +($e->run('status'))[1], qr/^  workers 2  queue 7  critical time/m, 'status says so, too';
is decode_json((ask('/status'))[1])->{endpoints}[0]{queue_messages}, 7, 'and as JSON';
Endpoint::write_file("$e->{dir}/go", '');
$e->wait_for('and none', sub { (metric('waybill_queue_messages{endpoint="orders"}') // '') eq 0 }, 40);

is $e->stop, 0, 'it stops';
is +(ask('/health/live'))[0], '', 'nobody answers then';

# ---- who is many, from one address: as if each had ten minutes ------------------------------------
$ENV{WAYBILL_PERIOD} = 600_000;
$e->start;
$e->wait_for('it answers', sub { (ask('/health/live'))[0] eq '200' });
my @held = map { connection('GET') } 1 .. 40;
is join(' ', map { (ask('/health/live', from => '127.0.0.2'))[0] } 1 .. 5), '200 200 200 200 200', 'another address is answered';
is $e->stop, 0, 'it stops, whoever asks';
undef @held;

# ---- who is slow, and many: as if each had two seconds -------------------------------------------
$ENV{WAYBILL_PERIOD} = 2000;
$e->start;
$e->wait_for('it answers', sub { (ask('/health/live'))[0] eq '200' });
my @slow = map { connection(qw(GET GET\ /metrics\ HTTP/1.1)[ $_ % 2 ]) } 1 .. 60;
$e->send('orders', map { { id => "beside $_" } } 1 .. 20);
$e->wait_for('60 that never end their question keep no worker', sub { $e->effects == 30 });
$e->wait_for('nor others who ask, for long', sub { (ask('/health/live'))[0] eq '200' }, 30);
my $drip = connection("GET /metrics HTTP/1.1\r\nX: ");
my $open = 1;
$e->wait_for('one that sends a byte now and then is cut off, too', sub {
    $open = (defined $drip->send('x') && (!defined $drip->blocking(0) || !defined sysread($drip, my $byte, 1))) if $open;
    sleep 0.1;
    return !$open;
}, 30);
$e->wait_for('and all is well', sub { (ask('/health/live'))[0] eq '200' });
undef @slow;
@slow = map { connection('GET') } 1 .. 40;
is $e->stop, 0, 'it stops, whoever asks';
undef @slow;

# ---- while it starts, and its broker takes the connection and says nothing: as if each had four seconds ---------------
my $silent = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1', LocalPort => 0) or die "listen: $@\n";
my $starts = Endpoint->new('sqlite+sqlite', name => 'starts', program => 'waybill-test', shutdown_timeout => '1s',
    transport_group => qq(transport = { plugin = "amqp"; host = "127.0.0.1"; port = @{[ $silent->sockport ]}; user = "guest"; password = "guest"; connect_timeout = "50s"; };),
    top => qq(http = { listen = "127.0.0.1:$port"; };\nconsole = { };\n));
SKIP: {
    skip 'amqp is not built', 6 if !-e "$Endpoint::build/plugins/transport/amqp";
    $ENV{WAYBILL_PERIOD} = 4000;
    $starts->start;
    $starts->wait_for('it answers', sub { (ask('/health/live'))[0] eq '200' });
    is +(ask('/health/ready'))[0], '503', 'that it is not ready';
    my $stream = connection("GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:$port\r\n\r\n");
    local $SIG{ALRM} = sub { die "no events\n" };
    alarm 30;
    my @events;
    while (@events < 3) { my $line = <$stream> // last; push @events, decode_json($1) if $line =~ /^data: (.*)/ }
    alarm 0;
    is_deeply [ map { $_->{endpoints}[0]{state} } @events ], [qw(starting starting starting)], 'who looks on is told, second after second';
    @slow = grep { $_ } map { connection('GET') } 1 .. 60;
    my $byte;
    $starts->wait_for('who is slow is cut off', sub { $_->blocking(0) for @slow; syswrite $_, 'x' for @slow; !grep { !defined sysread($_, $byte, 1) } @slow }, 20);
    is +(ask('/health/live'))[0], '200', 'so that others are answered';
    ok $starts->is_alive && !$starts->log_lines(qr/endpoint starts/), 'and it starts, still';
    is $starts->stop, 75, 'a stop ends it';
    undef @slow;
}
delete $ENV{WAYBILL_PERIOD};

# ---- what an earlier process left --------------------------------------------------------------
my $left = Endpoint->new('sqlite+sqlite', name => 'left', concurrency => 1, retries => 0, outbox => 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";', top => qq(http = { listen = "127.0.0.1:$port"; };\n));
$left->install;
$left->start;
$left->send('left', { id => 'parked', do => 'send nowhere T.Out x' });
$left->wait_for('what cannot be sent is parked', sub { (metric('waybill_parked_rows{endpoint="left"}') // '') eq 1 });
is $left->stop, 0, 'it stops';
$left->configure(outbox => 'enabled = true; cleanup_interval = "1h"; sweep_after = "1h";');
$left->start;
$left->wait_for('the next one tells of it long before its first round', sub { (metric('waybill_parked_rows{endpoint="left"}') // '') eq 1 }, 20);
is decode_json((ask('/status'))[1])->{endpoints}[0]{pending}{parked}, 1, 'as JSON, too';
is $left->stop, 0, 'it stops';

# ---- a place that is taken ---------------------------------------------------------------------
my $taken = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', LocalPort => $port, ReuseAddr => 1) or die "listen: $@\n";
($code, $text) = $e->run('run');
is $code, 69, 'somebody else listens there';
like $text, qr/^waybill: \Q$e->{conf}\E:1: option "http\.listen" = "127\.0\.0\.1:$port": Address already in use$/m, 'which is said with its place';
close $taken;

# ---- TLS and a token -----------------------------------------------------------------------------
my $d = $e->{dir};
# As an authority issues them: one between it and the listener's, which it issued to somebody else, too.
sub certify {
    my ($name, $by, $is_authority) = @_;
    my $from = $by ? "-CA '$d/$by.crt' -CAkey '$d/$by.key'" : '';
    Endpoint::write_file("$d/$name.ext", 'basicConstraints = critical, CA:' . ($is_authority ? "TRUE\n" : "FALSE\n"));
    return system("openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj '/CN=@{[ $is_authority ? $name : 'waybill' ]}' -keyout '$d/$name.key' -out '$d/$name.csr' >>'$d/openssl' 2>&1 && "
        . "openssl x509 -req -in '$d/$name.csr' -extfile '$d/$name.ext' -days 2 @{[ $by ? \"$from -CAcreateserial\" : \"-signkey '$d/$name.key'\" ]} -out '$d/$name.crt' >>'$d/openssl' 2>&1 && "
        . "cat '$d/$name.crt' @{[ $by ? \"'$d/$by.crt'\" : '' ]} >'$d/$name.pem' && chmod 0600 '$d/$name.key' && chmod 0644 '$d/$name.pem'");
}
is certify('root', undef, 1) + certify('between', 'root', 1) + certify('cert', 'between') + certify('cert2', 'between'), 0, 'certificates' or diag Endpoint::read_file("$d/openssl");
# As long as the other: signatures are of several lengths, and that alone would tell them apart.
sub size_of { my ($name) = @_; return 0 + `openssl x509 -in '$d/$name.crt' -outform DER | wc -c` }
for (1 .. 100) { last if size_of('cert2') == size_of('cert'); certify('cert2', 'between') }
is size_of('cert2'), size_of('cert'), 'as long as each other';
umask 0077;
Endpoint::write_file("$d/token", "0123456789abcdef0123\n");
Endpoint::write_file("$d/other", "0123456789abcdef0124\n");
umask 0022;
my $tls = qq(listen = "0.0.0.0:$port"; tls_cert_file = "cert.pem"; tls_key_file = "cert.key");
$e->configure(top => qq(http = { $tls; token = "file:token"; };\n));
$e->start;
$e->wait_for('with TLS and token: waybill status', sub { ($code, $text) = $e->run('status'); $code eq 0 });
like $text, qr/^orders: running$/m, 'is answered';
$e->configure(top => qq(http = { $tls; token = "file:other"; };\n));
($code, $text) = $e->run('status');
is $code, 77, 'not with another token' or diag $text;
$e->configure(top => qq(http = { listen = "127.0.0.1:$port"; };\n));
isnt +($e->run('status'))[0], 0, 'nor without TLS';
$tls =~ s/cert\./cert2./g;
$e->configure(top => qq(http = { $tls; token = "file:token"; };\n));
($code, $text) = $e->run('status');
is $code, 69, 'who has another certificate of that authority, and of that name, is not asked' or diag $text;
like $text, qr/no TLS with \S+: it has another certificate/, 'and it is said why';
ok !$e->log_lines(qr/0123456789abcdef/), 'no token in the log';
is $e->stop, 0, 'it stops';
my $heard = "$d/heard";
my $impostor = open my $mouth, '|-', "exec openssl s_server -accept 127.0.0.1:$port -cert '$d/cert.crt' -key '$d/cert.key' -quiet >'$heard' 2>&1" or die "openssl: $!\n";
$e->wait_for('somebody else answers there', sub { connection() });
($code, $text) = $e->run('status');
is $code, 69, 'who is not asked' or diag $text;
kill 'TERM', $impostor;
close $mouth;
unlike Endpoint::read_file($heard), qr/GET|0123456789/, 'nor told the token';
$tls =~ s/cert2\.key/cert.key/;
$e->configure(top => qq(http = { $tls; token = "file:token"; };\n));
($code, $text) = $e->run('run');
is $code, 78, 'a key of another certificate' or diag $text;
like $text, qr/certificate and key are of no use, or do not belong together/, 'is said to be one';
done_testing;
