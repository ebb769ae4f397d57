#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Failed messages that are edited in the console and sent back, without a browser: who may, what of a message may be edited, what is hostile,
# too long or of no use, bytes that nobody edited; by two processes at once, and by one that is killed meanwhile. And those that are found.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Encode qw(decode);
use JSON::PP;
use Test::More;
use Console;
use Endpoint;

plan skip_all => 'built without libmicrohttpd' if !$ENV{CI} && Endpoint::read_file("$Endpoint::build/config.h") !~ /^#define HAVE_LIBMICROHTTPD 1$/m;

chomp(($Console::port, my $other_port) = map { scalar `"$Endpoint::source/tests/support/free-port" "@{[ Endpoint::work_dir() ]}"` } 1, 2);
my $port  = $Console::port;
my $n     = 'NServiceBus';
my $sc    = 'ServiceControl';
my $token = '0123456789abcdef0123';
my $MiB   = 1024 * 1024;

my $e = Endpoint->new('sqlite+sqlite', program => 'waybill-test', retries => 0, error_queue => 'error',
    top => qq(http = { listen = "env:WB_TEST_LISTEN"; token = "file:token"; };\nconsole = { write = true; };\n));
umask 0077;
Endpoint::write_file("$e->{dir}/token", "$token\n");
umask 0022;
$ENV{WB_TEST_LISTEN} = "127.0.0.1:$port";
$e->configure(beside => [ bless { of => $e }, 'Keeper' ]);
$e->install;
sub start { my ($at) = @_; local $ENV{WB_TEST_LISTEN} = "127.0.0.1:$at"; my $pid = $e->start; $e->wait_for('it runs', sub { (Console::ask('/health/ready', port => $at))[0] eq '200' }); return $pid }

my @program = ("Authorization: Bearer $token");
sub api { my ($path) = @_; my ($status, $text) = Console::ask("/api/$path", headers => \@program); return $status eq '200' ? decode_json($text) : { status => $status, text => $text } }
sub outcome {
    my ($status, $text) = @_;
    my $answer = eval { decode_json($text) } || {};
    return $status eq '200' ? "$answer->{done} $answer->{left_alone}" : "$status: " . ($answer->{error} // '');
}
sub edit { my ($given, %more) = @_; return outcome(Console::ask('/api/failures/edit-retry', method => 'POST', headers => \@program, body => encode_json($given), %more)) }
sub key { my ($id) = @_; return api("failures?status=any&id=$id")->{messages}[0]{failure} }
sub status_of { my ($id) = @_; return api("failures?status=any&id=$id")->{messages}[0]{status} }
my $second = 0;
sub failed { my ($id, $body, @headers) = @_; return { id => $id, type => 'T.T', body => $body, headers => [ @headers, [ "$n.MessageId" => $id ], [ "$n.FailedQ" => 'sink' ], [ "$n.ProcessingEndpoint" => 'sink' ],
    [ "$n.TimeOfFailure" => sprintf '2026-01-01 00:00:%02d:000000 Z', ++$second ], [ "$n.ExceptionInfo.Message" => "no $id" ] ] } }

# A byte order mark, both bytes of line ends, what browsers take for the end of a line, and beyond 16 bits.
my $text = "\xef\xbb\xbf{\r\n\t\"a\": \"\xf0\x9f\x93\xa6\xe2\x80\xa8\xc3\xa9\\\"\"\r\n}\r\n";
my $bytes = join '', map { chr } 0 .. 255;
start($port);
$e->send('error', failed('text', $text, [ mine => 'kept' ], [ spare => 'x' ], [ stays => "\xc3\xa9 \"&<>" ], [ twice => '1' ], [ twice => '2' ], [ raw => "\xff\x01" ]), failed('bytes', $bytes, [ mine => 'x' ]),
    failed('who', 'w'), failed('odd', 'o'), failed('long', 'l'), failed('longer', 'l'), failed('empty', 'e'), failed('race', 'r'), (map { failed("killed$_", "body of killed$_") } 1 .. 3), failed('archived', 'a'), failed('small', 's'));
$e->wait_for('they are there', sub { (api('failures/groups')->{counts}{failed} // 0) == 13 });

# ---- those that are found -----------------------------------------------------------------------------------
my $found = sub { my ($filter) = @_; my $all = api("failures?$filter"); return $all->{messages} ? join ' ', map { $_->{id} } @{ $all->{messages} } : $all->{status} };
is $found->('failure=' . key('who')), 'who', 'by its failure';
is $found->('reason=no%20killed'), 'killed1 killed2 killed3', 'by a part of the reason';
is $found->('from=2026-01-01T00:00:02Z&before=2026-01-01T00:00:04Z'), 'bytes who', 'by time, the second not included';
is $found->('before=2026-01-01T00:00:02Z&id=bytes'), '', 'both have to hold';
is $found->('from=soon'), 400, 'a time that is none';
is $found->('before=1'), 400, 'nor is that';
is $found->('from=1970-01-01T00:00:00Z&id=who'), 'who', 'the first moment of all';

# ---- who may ---------------------------------------------------------------------------------------------------
my ($status, $answer, $head) = Console::ask('/api/session', method => 'POST', headers => \@program);
my $session = decode_json($answer);
my ($cookie) = $head =~ /^Set-Cookie: (waybill-$port=[0-9a-f]{64});/m;
my @page = ("Cookie: $cookie", "X-Waybill-Token: $session->{token}", "Origin: http://127.0.0.1:$port", 'Sec-Fetch-Site: same-origin');
my $wanted = encode_json({ failure => key('who'), body => 'edited' });
my $asked = sub { my ($content, @headers) = @_; return (Console::ask('/api/failures/edit-retry', method => 'POST', body => $content, headers => \@headers))[0] };
my @strangers = ([ 401, 'nobody' ], [ 403, 'a cookie alone', $page[0] ], [ 403, 'with a token of no session', $page[0], 'X-Waybill-Token: ' . 'a' x 64 ], [ 403, "another's page", @page[ 0, 1 ], 'Origin: http://evil.example' ],
    [ 403, 'as the browser says', @page[ 0, 1 ], 'Sec-Fetch-Site: cross-site' ], [ 403, "another's page with the token", @program, 'Origin: http://evil.example' ]);
for (@strangers) {
    my ($expected, $name, @headers) = @$_;
    is $asked->($wanted, @headers), $expected, $name;
    is $asked->('x' x $MiB, @headers), $expected, 'nor more by a long text';
}
is +(Console::ask('/api/failures/edit-retry', headers => \@page))[0], 405, 'GET changes nothing';
is +(Console::ask('/api/failures/editable?failure=' . key('who')))[0], 401, 'nor does a stranger see what may be edited';
is status_of('who'), 'failed', 'nothing was changed by any of these';
is $asked->($wanted, @page), 200, 'a page of ours, signed in';
is_deeply [ map { $_->{body} } $e->collect('sink', 1, 'it is sent back') ], ['edited'], 'edited';
my $who_key = key('who');
ok $e->log_lines(qr/msg="failed message edited and retried in the console" endpoint=kept done=yes failure=\Q$who_key\E body=edited headers=0 removed=0 who="session 1, 127\.0\.0\.1"/), 'the log says who did what' or diag $e->log_lines(qr/console/);

# ---- what may be edited ------------------------------------------------------------------------------------------
my $m = api('failures/editable?failure=' . key('text'));
my %fixed = map { ($_->{name} => $_->{fixed} ? 1 : 0) } @{ $m->{headers} };
is_deeply [ map { "$_ $fixed{$_}" } sort grep { $fixed{$_} } keys %fixed ], [ map { "$n.$_ 1" } qw(ExceptionInfo.Message FailedQ MessageId TimeOfFailure) ], 'all headers but those of the platform';
is_deeply [ map { "$_->{name}=" . ($_->{value} // "hex $_->{value_hex}") } grep { $_->{name} =~ /^[a-z]/ } @{ $m->{headers} } ], [ 'mine=kept', 'spare=x', "stays=\xe9 \"&<>", 'twice=1', 'twice=2', 'raw=hex ff01' ], 'each as it is, in their order';
is_deeply [ @$m{qw(status body_size body_max)} ], [ 'failed', length $text, $MiB ], 'and how much body';
is +(Console::ask("/api/failures/editable?$_", headers => \@program))[0], /none/ ? 404 : 400, "of $_" for 'failure=none-such', 'failure=' . 'x' x 65, '', 'failure=';

# ---- bytes -----------------------------------------------------------------------------------------------------------
is edit({ failure => key('text'), headers => [ { name => 'mine', value => "other\x{e9}=1" }, { name => 'new', value => '' }, { name => 'twice', value => '3' } ], removed => ['spare'] }), '1 0', 'headers alone';
my ($got) = $e->collect('sink', 1, 'it is sent');
is $got->{body}, $text, 'the body is what it was, byte for byte';
my %header = %{ $got->{header} };
is_deeply [ @header{ qw(mine new spare stays twice raw), "$sc.EditOf", "$sc.Retry.UniqueMessageId", "$n.FailedQ" } ], [ "other\xc3\xa9=1", '', undef, "\xc3\xa9 \"&<>", '3', "\xff\x01", (key('text')) x 2, undef ], 'its headers are edited';
is scalar(grep { $_->[0] eq 'twice' } @{ $got->{headers} }), 1, 'one in place of two';
is_deeply [ $got->{id} ne 'text', $header{"$n.MessageId"} ], [ 1, $got->{id} ], 'and its id is new';
is status_of('text'), 'retrying', 'the failure is being retried';
is edit({ failure => key('text'), body => 'x' }), '409: it was left alone: it has been retried already, and nothing was heard of it yet', 'and is not edited again';
is edit({ failure => key('bytes'), headers => [ { name => 'mine', value => 'y' } ] }), '1 0', 'a body that is no text';
($got) = $e->collect('sink', 1, 'it is sent');
is_deeply [ $got->{body}, $got->{header}{mine} ], [ $bytes, 'y' ], 'stays as it is';
is edit({ failure => key('empty'), body => '' }), '1 0', 'an empty one';
is +($e->collect('sink', 1, 'it is sent'))[0]{body}, '', 'is empty';

# ---- what is refused -----------------------------------------------------------------------------------------------------
my $odd = key('odd');
my $forms = '"body" is a string, "headers" are objects with "name" and "value", "removed" are names, of each at most 256';
my $set = sub { return { failure => $odd, headers => [ map { { name => $_->[0], value => $_->[1] } } @_ ] } };
for ([ {} => '400: say which: failure=ID' ], [ { failure => $odd } => '400: say what is edited: "body", "headers", "removed"' ], [ { failure => $odd, headers => [], removed => [] } => '400: say what is edited: "body", "headers", "removed"' ],
    [ { failure => 'x' x 65, body => 'x' } => '400: say which: failure=ID' ], [ { failure => [$odd], body => 'x' } => '400: say which: failure=ID' ], [ { failure => 'none-such', body => 'x' } => '404: there is no such failed message, or none any more' ],
    (map { [ { failure => $odd, %$_ } => "400: $forms" ] } { body => 1 }, { body => undef }, { body => ['x'] }, { headers => {} }, { headers => ['a'] }, { headers => [ { name => 'a' } ] }, { headers => [ { name => 1, value => 'x' } ] },
        { removed => 'a' }, { removed => [1] }, { removed => [ ('a') x 257 ] }, { headers => [ ({ name => 'a', value => 'x' }) x 257 ] }),
    [ $set->([ "$n.MessageId" => 'x' ]) => "400: header $n.MessageId is not edited: whoever sends the message back sets it, or leaves it out" ], [ $set->([ "$sc.EditOf" => 'x' ]) => "400: header $sc.EditOf is not edited: whoever sends the message back sets it, or leaves it out" ],
    [ { failure => $odd, removed => ["$n.FailedQ"] } => "400: header $n.FailedQ is not edited: whoever sends the message back sets it, or leaves it out" ],
    [ $set->([ a => "x\r\nEvil: y" ]) => '400: the value of header a is no text of at most 32768 bytes' ], [ $set->([ a => 'x' x 32769 ]) => '400: the value of header a is no text of at most 32768 bytes' ],
    [ $set->([ '' => 'x' ]) => "400: a header's name is 1 to 255 bytes of text" ], [ $set->([ 'x' x 256 => 'x' ]) => "400: a header's name is 1 to 255 bytes of text" ], [ $set->([ "a\nb" => 'x' ]) => "400: a header's name is 1 to 255 bytes of text" ],
    [ $set->([ a => 'x' ], [ a => 'y' ]) => '400: header a is set twice' ], [ { failure => $odd, endpoint => 'orders', body => 'x' } => '404: endpoint "orders" keeps no failed messages' ]) {
    is edit($_->[0]), $_->[1], substr 'refused: ' . encode_json($_->[0]), 0, 100;
}
my $raw = sub { my ($content) = @_; return (Console::ask('/api/failures/edit-retry', method => 'POST', headers => \@program, body => $content))[0] };
is $raw->($_->[0]), 400, "sent: $_->[1]" for [ qq({"failure":"$odd","body":"\xff"}), 'no UTF-8' ], [ qq({"failure":"$odd","body":"\\ud83d"}), 'half a character' ], [ qq({"failure":"$odd","body":"a\\u0000b"}), 'NUL' ], [ qq({"failure":"$odd","body":"a","body":"b"}), 'twice' ],
    [ '[' x 100_000, 'deep' ], [ '', 'nothing' ], [ qq({"failure":"$odd","body":"), 'half of it' ];
is_deeply [ status_of('odd'), $e->depth('sink') ], [ 'failed', 0 ], 'nothing was changed by any of these';
my $hostile = "$text<script>\x01\x1b[31m</script>";
is edit({ failure => $odd, who => 'root', body => decode('UTF-8', $hostile) }), '1 0', 'whatever is in a body';
is +($e->collect('sink', 1, 'it is sent'))[0]{body}, $hostile, 'is sent as it is';
ok !$e->log_lines(qr/who=root/), 'and nobody says who he is';

# ---- long ones ----------------------------------------------------------------------------------------------------------------
is edit({ failure => key('long'), body => '"' x ($MiB + 1) }), "413: the body has @{[ $MiB + 1 ]} bytes, and at most $MiB are edited here; waybill failures edit-retry takes larger ones", 'too long';
is edit({ failure => key('long'), body => '"' x $MiB }), '1 0', 'as long as may be, twice as long on the way';
is +($e->collect('sink', 1, 'it is sent'))[0]{body}, '"' x $MiB, 'all of it';
is edit({ failure => key('longer'), body => 'x' x (4 * $MiB) }), "413: what was sent is too long: it may have @{[ 4 * $MiB ]} bytes", 'not read to its end';
is $asked->('{"body":"' . 'x' x 70_000, @page[ 0, 1 ], 'Origin: http://evil.example'), 403, 'of a stranger not even that';
is status_of('longer'), 'failed', 'nothing was done';

# ---- two processes at once --------------------------------------------------------------------------------------------------------
start($other_port);
my $race = key('race');
my @races = map { Console::begin('/api/failures/edit-retry', method => 'POST', headers => \@program, body => encode_json({ failure => $race, body => "by $_->[0]" }), port => $_->[1]) } [ 1, $port ], [ 2, $other_port ], [ 3, $port ], [ 4, $other_port ];
my @said = map { outcome(Console::take($_)) } @races;
my ($winner) = grep { $said[ $_ - 1 ] eq '1 0' } 1 .. 4;
is_deeply [ sort @said ], [ '1 0', ('409: it was left alone: it has been retried already, and nothing was heard of it yet') x 3 ], 'of four who edit one message one does, and the others are told' or diag explain \@said;
is_deeply [ map { $_->{body} } $e->collect('sink', 1, 'it is sent') ], ["by $winner"], 'as that one edited it';
is $e->depth('sink'), 0, 'once';
is $e->stop, 0, 'both stop';

# ---- killed meanwhile ------------------------------------------------------------------------------------------------------------------
for my $k ([ retry_before_commit => 'killed1', 0 ], [ session_committed => 'killed2', 1 ], [ session_after_dispatch => 'killed3', 1 ]) {
    my ($point, $id, $is_sent) = @$k;
    { local $ENV{WAYBILL_CRASH} = "$point:1"; start($port) }
    my %edit = (failure => key($id), body => "edited $id", headers => [ { name => 'mine', value => $id } ]);
    is edit(\%edit), ': ', "killed at $point";
    is $e->stop, 'signal 9', 'it is dead';
    start($port);
    if ($is_sent) {
        my @sent = $e->collect('sink', 1, 'what was committed is sent');
        is edit(\%edit), '409: it was left alone: it has been retried already, and nothing was heard of it yet', 'and is not edited again';
        $e->wait_for('nothing is pending', sub { local $e->{name} = 'kept'; $e->pending == 0 });
        push @sent, $e->read('sink');
        my %sent = map { ("$_->{id} $_->{body} $_->{header}{mine}" => 1) } @sent;
        is_deeply [ keys %sent ], ["$sent[0]{id} edited $id $id"], 'it, with equal bytes and one id if it comes twice';
    } else {
        is_deeply [ status_of($id), $e->depth('sink') ], [ 'failed', 0 ], 'nothing was done';
        is edit(\%edit), '1 0', 'and it can be done again';
        is_deeply [ map { "$_->{body} $_->{header}{mine}" } $e->collect('sink', 1, 'once') ], ["edited $id $id"], 'sent';
    }
    is $e->stop, 0, 'it stops';
}

# ---- what others did meanwhile; an endpoint of small messages ---------------------------------------------------------------------------
$e->configure(beside => [ bless { of => $e, more => 'body_max = "1KiB";' }, 'Keeper' ]);
start($port);
is outcome(Console::ask('/api/failures/archive', method => 'POST', headers => \@program, body => encode_json({ failures => [ key('archived') ] }))), '1 0', 'one is archived';
is edit({ failure => key('archived'), body => 'x' }), '409: it was left alone: it has been archived', 'and not edited then';
is api('failures/editable?failure=' . key('small'))->{body_max}, 1024, 'body_max holds of what is edited';
is edit({ failure => key('small'), body => 'x' x 1025 }), '413: the body has 1025 bytes, and at most 1024 are edited here; waybill failures edit-retry takes larger ones', 'too';
is edit({ failure => key('small'), body => 'x' x 1024 }), '1 0', 'to the last byte';
is $e->stop, 0, 'it stops';

# ---- a console that shows only ----------------------------------------------------------------------------------------------------------------
$e->configure(top => qq(http = { listen = "env:WB_TEST_LISTEN"; token = "file:token"; };\nconsole = { };\n));
start($port);
is edit({ failure => key('longer'), body => 'x' }), '403: the console may change nothing: see console.write in the configuration', 'nobody may';
is edit({ failure => key('longer'), body => 'x' x $MiB }), '403: the console may change nothing: see console.write in the configuration', 'whatever is sent';
is status_of('longer'), 'failed', 'nothing was done';
is $e->stop, 0, 'it stops';
ok !$e->log_lines(qr/0123456789abcdef/), 'no token in the log';
done_testing;
