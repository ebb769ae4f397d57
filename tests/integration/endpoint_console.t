#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What the console answers, without a browser: its page and what a browser is told to refuse, who may ask, what it says of endpoints,
# failed, delayed and pending messages, whatever is in these; events, and many who look on.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use IO::Socket::INET;
use JSON::PP;
use Time::HiRes qw(sleep time);
use Endpoint;

plan skip_all => 'built without libmicrohttpd' if !$ENV{CI} && Endpoint::read_file("$Endpoint::build/config.h") !~ /^#define HAVE_LIBMICROHTTPD 1$/m;

chomp(my $port = `"$Endpoint::source/tests/support/free-port" "@{[ Endpoint::work_dir() ]}"`);
my $n = 'NServiceBus';

# Beside the endpoint whose messages fail, with the same plugins.
package Keeper {
    use strict;
    sub group {
        my ($e) = $_[0]{of};
        return qq(  { name = "kept"; failures = { from = ["error"]; }; concurrency = 1; outbox = { enabled = true; };\n    ) . $e->transport_text . "\n    " . $e->persistence_text . ' }';
    }
    sub prepare { }
}

sub connection { my ($text) = @_; my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 10) or return; $socket->autoflush(1); print $socket $text; return $socket }

# Status, text and headers; nothing when nobody answers. Headers are lines.
sub ask {
    my ($path, %more) = @_;
    my $headers = join '', map { "$_\r\n" } @{ $more{headers} || [] };
    my $socket = connection("@{[ $more{method} // 'GET' ]} $path HTTP/1.1\r\nHost: @{[ $more{host} // qq(127.0.0.1:$port) ]}\r\nConnection: close\r\n$headers\r\n") or return ('');
    local $SIG{ALRM} = sub { die "no answer to $path\n" };
    alarm 60;
    my $all = do { local $/; <$socket> } // '';
    alarm 0;
    my ($head, $text) = split /\r\n\r\n/, $all, 2;
    return (($head // '') =~ m{^HTTP/1\.1 (\d+)} ? $1 : '', $text // '', $head // '');
}
sub api { my ($path, @more) = @_; my ($status, $text) = ask("/api/$path", @more); return $status eq '200' ? decode_json($text) : { status => $status, text => $text } }

# ---- what is refused before it runs ---------------------------------------------------------------------
my $http = qq(http = { listen = "127.0.0.1:$port"; };\n);
my $e = Endpoint->new('sqlite+sqlite', program => 'waybill-test', concurrency => 2, retries => 1, error_queue => 'error', top => "console = { };\n");
my ($code, $text) = $e->run('check');
is $code, 78, 'a console without http is refused';
like $text, qr/:1: group "console" needs a group "http"/, 'with its place';
$e->configure(top => "$http\nconsole = { write = true; };\n");
($code, $text) = $e->run('check');
is $code, 78, 'and one that changes things without a token';
like $text, qr/:3: option "console\.write" = true needs http\.token/, 'with its place';
$e->configure(top => $http, beside => [ bless { of => $e }, 'Keeper' ]);
$e->install;
$e->start;
$e->wait_for('it runs', sub { (ask('/health/ready'))[0] eq '200' });
is_deeply [ map { (ask($_))[0] } '/', '/console.js', '/api/session', '/api/plan' ], [ (404) x 4 ], 'without a group there is no console';
is $e->stop, 0, 'it stops';

# ---- the page ---------------------------------------------------------------------------------------------
$e->configure(top => "$http\nconsole = { };\n");
$e->start;
$e->wait_for('it runs', sub { (ask('/health/ready'))[0] eq '200' });
my %type = ('/' => 'text/html', '/console.css' => 'text/css', '/console.js' => 'text/javascript', '/edit.js' => 'text/javascript', '/console.svg' => 'image/svg+xml');
my %file = ('/' => 'console.html');
for my $path (sort keys %type) {
    my ($status, $content, $head) = ask($path);
    is $content, Endpoint::read_file("$Endpoint::source/core/console/page/" . ($file{$path} // substr $path, 1)), "$path, as it is in the source";
    like $head, qr/^Content-Type: \Q$type{$path}\E/m, 'with its type';
    like $head, qr/^Content-Security-Policy: default-src 'none'; script-src 'self'; .*frame-ancestors 'none'; require-trusted-types-for 'script'/m, 'and what a browser has to refuse';
    like $head, qr/^\Q$_\E\r?$/m, $_ for 'X-Frame-Options: DENY', 'X-Content-Type-Options: nosniff', 'Referrer-Policy: no-referrer', 'Cross-Origin-Opener-Policy: same-origin', 'Cross-Origin-Resource-Policy: same-origin';
}
unlike Endpoint::read_file("$Endpoint::source/core/console/page/$_"), qr/https?:(?!\/\/www\.w3\.org\/2000\/svg)|innerHTML =|insertAdjacent|document\.write|\beval\b|style=| on\w+=/, "$_: nothing from elsewhere, no markup made of text"
    for qw(console.html console.js edit.js console.css);
is +(ask('/', host => 'evil.example'))[0], 421, 'a name that leads here';
is +(ask($_))[0], 404, $_ for '/console.html', '/../etc/passwd', '/api/', '/api/failures/nothing';
is +(ask($_, method => 'POST', headers => ['Content-Length: 0']))[0], 405, "POST $_" for '/', '/console.js', '/api/failures', '/api/status';

# ---- endpoints ----------------------------------------------------------------------------------------------
is_deeply api('session'), { version => api('status')->{version}, needs_token => JSON::PP::false, signed_in => JSON::PP::true, write => JSON::PP::false }, 'who asks may look, and change nothing';
my ($plan) = @{ api('plan') };
is_deeply [ @$plan{qw(name mode outbox delay_by)}, $plan->{keeps} ], [ 'orders', 'receive_only', JSON::PP::true, 'store', { failures => JSON::PP::false, delayed => JSON::PP::true, pending => JSON::PP::true } ], 'what was negotiated';
is_deeply [ map { $_->{name} } @{ api('history')->{endpoints} } ], [qw(orders kept)], 'the last hour of each';

# ---- failed messages, and what is hostile in them --------------------------------------------------------------
my $evil = qq(<script>alert(1)</script>"'&\x01\x1b[31m\x{7f});
my $second = 0;    # lists are in the order in which they failed
my $failed = sub { my ($id, $type, $body, @headers) = @_; return { id => $id, type => $type, body => $body, headers => [ @headers, [ "$n.FailedQ" => 'sink' ], [ "$n.ProcessingEndpoint" => 'sales' ],
    [ "$n.TimeOfFailure" => sprintf '2026-01-01 00:00:%02d:000000 Z', ++$second ], [ "$n.ExceptionInfo.Message" => $type eq 'T.Evil' ? $evil : "no $id" ] ] } };
$e->send('error', (map { $failed->("m$_", 'T.Number', qq({"n":$_})) } 1 .. 5), $failed->('evil', 'T.Evil', "\xff\0$evil", [ "x$evil" => $evil ]),
    $failed->('nul', 'T.Nul', "a\0\x{1b}b"), $failed->('large', 'T.Large', 'x' . "\xc3\xa4" x 200_000), $failed->('none', 'T.None', ''));
my $groups;
$e->wait_for('they are there', sub { $groups = api('failures/groups'); ($groups->{counts}{failed} // 0) == 9 });
is_deeply [ map { "$_->{type} $_->{count}" } sort { $a->{type} cmp $b->{type} } @{ $groups->{groups} } ], [ 'T.Evil 1', 'T.Large 1', 'T.None 1', 'T.Nul 1', 'T.Number 5' ], 'by type and reason';
my ($numbers) = grep { $_->{type} eq 'T.Number' } @{ $groups->{groups} };
my $page = api("failures?group=$numbers->{group}&limit=3");
is join(' ', map { $_->{id} } @{ $page->{messages} }) . " $page->{more}", 'm1 m2 m3 1', 'a page of a group';
$page = api("failures?group=$numbers->{group}&limit=3&skip=3");
is join(' ', map { $_->{id} } @{ $page->{messages} }) . ($page->{more} ? ' more' : ''), 'm4 m5', 'and the next one';
is +(ask('/api/failures?status=nonsense'))[0], 400, 'a status that is none';
is scalar @{ api('failures?status=archived')->{messages} }, 0, 'none is archived';
my $one = sub { my ($id, $what) = @_; my ($m) = @{ api("failures?id=$id")->{messages} }; return $what ? [ ask("/api/failures/$what?failure=$m->{failure}") ] : api("failures/message?failure=$m->{failure}") };
my $m = $one->('evil');
is $m->{reason_hex}, unpack('H*', $evil), 'a reason that is no text';
is_deeply [ $m->{body}, $m->{body_hex} ], [ undef, 'ff00' . unpack 'H*', $evil ], 'nor is the body';
is $m->{headers}{"$n.ProcessingEndpoint"}, 'sales', 'its headers';
$m = $one->('nul');
is $m->{body}, "a\0\x1bb", 'control characters in a body';
unlike $one->('nul', 'message')->[1], qr/[\0-\x08\x0b-\x1f]/, 'are escaped';
is $one->('none')->{body}, '', 'an empty one';
$m = $one->('large');
is_deeply [ length $m->{body}, $m->{body_size}, $m->{body_is_cut}, length $m->{body_hex} ], [ 131072, 400_001, JSON::PP::true, 32768 ], 'of a large one the beginning, between characters';
my ($status, $body, $head) = @{ $one->('large', 'body') };
is $body, 'x' . "\xc3\xa4" x 200_000, 'and all of it as a file';
like $head, qr/^Content-Disposition: attachment\r?$/m, 'that a browser does not show';
like $head, qr{^Content-Type: application/octet-stream\r?$}m, 'whatever is in it';
is +(ask('/api/failures/message?failure=none-such'))[0], 404, 'one that is not there';
is +(ask('/api/failures/message'))[0], 400, 'or not named';
is +(ask('/api/failures?endpoint=orders'))[0], 404, 'an endpoint that keeps none';
is +(ask('/api/failures?endpoint=%ff%00&limit=-1&group=%zz'))[0], 200, 'what is no text is not given';
$e->sql(q(update waybill_kept_failed set summary = 'as a later version writes it' where failed_at = (select min(failed_at) from waybill_kept_failed)));
$groups = api('failures/groups');
my ($left) = map { $_->{count} } grep { $_->{type} eq 'T.Number' } @{ $groups->{groups} };
is_deeply [ $groups->{unreadable}, $left, $groups->{counts}{failed} ], [ 1, 4, 9 ], 'what a later version kept is told of';
is api('failures/groups?status=archived')->{unreadable}, 0, 'where it belongs';

# ---- delayed messages, pending rows ------------------------------------------------------------------------------
$e->send('orders', { id => 'd', do => [ 'delay 3600000', 'send sink T.Later x' ] });
my $list;
$e->wait_for('one is due later', sub { $list = api('delayed'); @{ $list->{messages} || [] } == 1 });
is_deeply [ @{ $list->{messages}[0] }{qw(destination retries taken_until)} ], [ 'sink', 0, undef ], 'and said to be';
$m = api("delayed/message?id=$list->{messages}[0]{id}&retries=0");
is $m->{headers}{"$n.EnclosedMessageTypes"}, 'T.Later', 'with its headers';
is +(ask('/api/delayed/message?id=nobody'))[0], 404, 'one that does not wait';
is_deeply api('pending'), { endpoint => 'orders', rows => [], more => JSON::PP::false }, 'nothing is pending';

# ---- events, and many who look on ----------------------------------------------------------------------------------
my $stream = connection("GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:$port\r\n\r\n");
my @events;
local $SIG{ALRM} = sub { die "no events\n" };
alarm 60;
while (@events < 2) { my $line = <$stream> // last; push @events, decode_json($1) if $line =~ /^data: (.*)/ }
alarm 0;
is_deeply [ map { $_->{endpoints}[0]{name} } @events ], [qw(orders orders)], 'events say how it is';
cmp_ok $events[0]{seen}, 'lt', $events[1]{seen}, 'again and again';
my @streams = map { connection("GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:$port\r\n\r\n") } 1 .. 11;
for (@streams) { my $line = <$_>; like $line, qr/ 200 /, 'one more looks on' or last }
is +(ask('/api/events'))[0], 503, 'one too many is told so';
is +(ask('/health/live'))[0], 200, 'and all else is answered';
$stream->close;
$e->wait_for('who goes makes room', sub { my $one = connection("GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:$port\r\n\r\n"); my $line = <$one> // ''; return $line =~ / 200 / });
is $e->stop, 0, 'it stops, whoever looks on';
undef @streams;

# ---- a token ---------------------------------------------------------------------------------------------------------
my $token = '0123456789abcdef0123';
umask 0077;
Endpoint::write_file("$e->{dir}/token", "$token\n");
umask 0022;
$e->configure(top => qq(http = { listen = "127.0.0.1:$port"; token = "file:token"; };\nconsole = { };\n));
$e->start;
$e->wait_for('it runs', sub { (ask('/health/ready'))[0] eq '200' });
is +(ask('/'))[0], 200, 'the page is for everybody';
is +(ask("/api/$_"))[0], 401, "/api/$_ is not" for qw(status events history plan failures failures/body delayed pending);
is api('session')->{signed_in}, JSON::PP::false, 'nobody is signed in';
my $signed = sub { my ($given, @more) = @_; return ask('/api/session', method => 'POST', headers => [ 'Content-Length: 0', "Authorization: Bearer $given", @more ]) };
is +($signed->('0123456789abcdef0124'))[0], 401, 'not by another token';
is +($signed->($token, 'Origin: http://evil.example'))[0], 403, "nor from another's page";
is +($signed->($token, 'Sec-Fetch-Site: cross-site'))[0], 403, 'as the browser says';
($status, $body, $head) = $signed->($token, "Origin: http://127.0.0.1:$port", 'Sec-Fetch-Site: same-origin');
is $status, 200, 'by the token one is';
my ($cookie) = $head =~ /^Set-Cookie: (waybill-$port=[0-9a-f]{64}); Path=\/; HttpOnly; SameSite=Strict\r?$/m or diag $head;
ok $cookie, 'and has a cookie that scripts do not see';
is +(ask('/api/plan', headers => ["Cookie: a=b; $cookie"]))[0], 200, 'which is enough to look';
is +(ask('/api/plan', headers => ["Cookie: $cookie" =~ s/.$/x/r]))[0], 401, 'unlike another';
is +(ask('/status', headers => ["Cookie: $cookie"]))[0], 401, 'and no token for all else';
is +(ask('/api/plan', headers => ["Authorization: Bearer $token"]))[0], 200, 'programs send the token';
like +(ask('/api/session', method => 'DELETE', headers => ["Cookie: $cookie"]))[2], qr/^Set-Cookie: waybill-$port=; .*Max-Age=0/m, 'signed out';
is +(ask('/api/plan', headers => ["Cookie: $cookie"]))[0], 401, 'it is worth nothing';
is $e->stop, 0, 'it stops';

# ---- a reason of its own each ----------------------------------------------------------------------------------------
$e->configure(beside => [ bless { of => $e }, 'Keeper' ], top => qq(http = { listen = "127.0.0.1:$port"; };\nconsole = { };\n));
$e->start;
$e->send('error', map { { id => "own$_", type => "T.Own$_", body => '', headers => [ [ "$n.FailedQ" => 'sales' ], [ "$n.TimeOfFailure" => '2026-02-01 00:00:00:000000 Z' ] ] } } 1 .. 1001);
$e->wait_for('they are there', sub { $groups = api('failures/groups'); ($groups->{counts}{failed} // 0) == 1010 });
is_deeply [ scalar @{ $groups->{groups} }, $groups->{more} ? 'more' : '' ], [ 1000, 'more' ], 'so many groups in an answer, and that there are more';
ok !api('failures/groups?status=archived')->{more}, 'where there are not it says so';
is $e->stop, 0, 'it stops';

# ---- with TLS --------------------------------------------------------------------------------------------------------
# What the browser keeps it sends over TLS alone, and is told so when it is to forget it, too.
umask 0077;
is system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=waybill -keyout '$e->{dir}/key.pem' -out '$e->{dir}/cert.pem' >'$e->{dir}/openssl' 2>&1"), 0,
    'a certificate' or diag Endpoint::read_file("$e->{dir}/openssl");
umask 0022;
$e->configure(top => qq(http = { listen = "127.0.0.1:$port"; token = "file:token"; tls_cert_file = "cert.pem"; tls_key_file = "key.pem"; };\nconsole = { };\n));
$e->start;
$e->wait_for('it runs with TLS', sub { ($code) = $e->run('status'); $code eq 0 });
my $cookies = sub {
    my ($method, @headers) = @_;
    my $question = join "\r\n", "$method /api/session HTTP/1.1", "Host: 127.0.0.1:$port", 'Connection: close', 'Content-Length: 0', @headers, '', '';
    Endpoint::write_file("$e->{dir}/question", $question);
    my $answer = `timeout 60 openssl s_client -quiet -connect 127.0.0.1:$port <'$e->{dir}/question' 2>'$e->{dir}/openssl'`;
    return $answer =~ /^Set-Cookie: (.*?)\r?$/mg;
};
($cookie, my @more) = $cookies->('POST', "Authorization: Bearer $token");
like $cookie, qr/^waybill-$port=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Strict; Secure$/, 'a cookie that no connection without TLS has';
is_deeply [ @more, $cookies->('DELETE', 'Cookie: ' . ($cookie // '') =~ s/;.*//r) ], ["waybill-$port=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0"], 'nor what takes its place when one signs out';
is $e->stop, 0, 'it stops';
ok !$e->log_lines(qr/0123456789abcdef/), 'no token in the log';
done_testing;
