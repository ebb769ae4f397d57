#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What people change by the console, without a browser: who may, and from where; failed messages retried and archived, delayed ones
# cancelled and rescheduled; by two processes at once, and by one that is killed meanwhile. Each message leaves once.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use JSON::PP;
use Console;
use Endpoint;

plan skip_all => 'built without libmicrohttpd' if !$ENV{CI} && Endpoint::read_file("$Endpoint::build/config.h") !~ /^#define HAVE_LIBMICROHTTPD 1$/m;

chomp(my ($port, $other_port) = map { scalar `"$Endpoint::source/tests/support/free-port" "@{[ Endpoint::work_dir() ]}"` } 1, 2);
my $n     = 'NServiceBus';
my $token = '0123456789abcdef0123';

$Console::port = $port;
sub begin { return Console::begin(@_) }
sub take  { return Console::take(@_) }
sub ask   { return Console::ask(@_) }

my $e = Endpoint->new('sqlite+sqlite', program => 'waybill-test', retries => 0, error_queue => 'error',
    top => qq(http = { listen = "env:WB_TEST_LISTEN"; token = "file:token"; };\nconsole = { write = true; };\n));
umask 0077;
Endpoint::write_file("$e->{dir}/token", "$token\n");
umask 0022;
$ENV{WB_TEST_LISTEN} = "127.0.0.1:$port";
$e->configure(beside => [ bless { of => $e }, 'Keeper' ]);
$e->install;
sub start { my ($at) = @_; local $ENV{WB_TEST_LISTEN} = "127.0.0.1:$at"; my $pid = $e->start; $e->wait_for('it runs', sub { (ask('/health/ready', port => $at))[0] eq '200' }); return $pid }

# Programs send the token, and need nothing else.
my @program = ("Authorization: Bearer $token");
sub api { my ($path) = @_; my ($status, $text) = ask("/api/$path", headers => \@program); return $status eq '200' ? decode_json($text) : { status => $status, text => $text } }
sub change { my ($path, $given, %more) = @_; my ($status, $text) = ask("/api/$path", method => 'POST', headers => \@program, body => encode_json($given), %more); return $status eq '200' ? decode_json($text) : { status => $status, text => $text } }
sub outcome { my ($answer) = @_; return defined $answer->{done} ? "$answer->{done} $answer->{left_alone}" : "$answer->{status}: " . ($answer->{text} =~ s/\n//r) }
sub ids { my ($status) = @_; return map { $_->{id} } @{ api("failures?status=$status&limit=500")->{messages} } }
sub failures { my ($filter) = @_; return map { $_->{failure} } @{ api("failures?$filter&limit=500")->{messages} } }
sub fail_ids { my ($type, @ids) = @_; return map { { id => $_, type => $type, body => "body of $_", headers => [ [ "$n.FailedQ" => 'sink' ], [ "$n.ProcessingEndpoint" => 'sink' ], [ "$n.TimeOfFailure" => '2026-01-01 00:00:01:000000 Z' ], [ "$n.ExceptionInfo.Message" => 'no' ] ] } } @ids }

sub group_of { my ($type) = @_; return (map { $_->{group} } grep { $_->{type} eq $type } @{ api('failures/groups')->{groups} })[0] }

start($port);
my @many = map { "many$_" } 1 .. 40;
my @lots = map { "lots$_" } 1 .. 201;    # more than two transactions take
$e->send('error', fail_ids('T.One', map { "one$_" } 1 .. 4), fail_ids('T.Many', @many), fail_ids('T.Lots', @lots), fail_ids('T.Killed', map { "killed$_" } 1 .. 3));
$e->wait_for('they are there', sub { (api('failures/groups')->{counts}{failed} // 0) == 7 + @many + @lots });

# ---- who may ----------------------------------------------------------------------------------------------
my ($status, $text, $head) = ask('/api/session', method => 'POST', headers => \@program);
my $session = decode_json($text);
ok $session->{write}, 'who signs in may change something';
my ($cookie) = $head =~ /^Set-Cookie: (waybill-$port=[0-9a-f]{64});/m;
my ($one) = failures('id=one1');
my $body = encode_json({ failures => [$one] });
my @page = ("Cookie: $cookie", "X-Waybill-Token: $session->{token}", "Origin: http://127.0.0.1:$port", 'Sec-Fetch-Site: same-origin');
my $asked = sub { my (@headers) = @_; return (ask('/api/failures/retry', method => 'POST', body => $body, headers => \@headers))[0] };
is $asked->(), 401, 'nobody';
is $asked->($page[0]), 403, 'a cookie alone, which a page of somebody else could have sent';
is $asked->($page[0], 'X-Waybill-Token: ' . 'a' x 64), 403, 'with a token that is not of its session';
is $asked->($page[0], "X-Waybill-Token: @{[ substr $cookie, -64 ]}"), 403, 'nor is the cookie';
is $asked->(@page[ 0, 1 ], 'Origin: http://evil.example'), 403, "another's page, whatever it knows";
is $asked->(@page[ 0, 1 ], 'Sec-Fetch-Site: same-site'), 403, 'as the browser says';
is $asked->(@program, 'Origin: http://evil.example'), 403, 'with the token, too';
is +(ask('/api/failures/retry', headers => \@page))[0], 405, 'GET changes nothing';
is_deeply [ ids('retrying') ], [], 'nothing was changed by any of these';
for ([ 'nonsense' => 400 ], [ '[]' => 400 ], [ '{"failures":["' . 'x' x 70_000 . '"]}' => 413 ], [ '' => 400 ], [ '{"failures":"x"}' => 200 ], [ '{"failures":[1,null,[],"","' . 'x' x 65 . '"]}' => 200 ]) {
    my ($code, $answer) = ask('/api/failures/retry', method => 'POST', body => $_->[0], headers => \@page);
    is $code, $_->[1], 'sent: ' . substr $_->[0], 0, 40;
    like $answer, qr/"done":0/, 'which is nothing' if $code eq '200';
}
is $asked->(@page), 200, 'a page of ours, signed in';
my @got = $e->collect('sink', 1, 'it is sent back');
is_deeply [ map { "$_->{id} $_->{body}" } @got ], ['one1 body of one1'], 'as it came';
is_deeply [ ids('retrying') ], ['one1'], 'and is being retried';
is outcome(change('failures/retry', { failures => [$one] })), '0 1', 'once';
ok $e->log_lines(qr/msg="somebody signed in to the console" session=1 address=127\.0\.0\.1/), 'the log says who signed in';
ok $e->log_lines(qr/msg="failed messages retried in the console" endpoint=kept messages=1 asked=1 failure=\Q$one\E who="session 1, 127\.0\.0\.1"/), 'and who did what' or diag $e->log_lines(qr/console/);

# ---- archive -------------------------------------------------------------------------------------------------
my @two = failures('id=one2');
is outcome(change('failures/archive', { failures => [ @two, @two, 'none-such' ] })), '1 1', 'archived, whatever else is named';
is_deeply [ ids('archived') ], ['one2'], 'it is';
is outcome(change('failures/retry', { failures => \@two })), '0 1', 'and not retried';
is outcome(change('failures/archive', { failures => [$one], status => 'retrying' })), '1 0', 'nor heard of';
is outcome(change('failures/archive', { failures => [$one], status => 'archived' })), '400: {"error":"only what is failed or retrying is archived"}', 'but not again';
is outcome(change('failures/archive', { group => 'none-such' })), '0 0', 'of no group';
is outcome(change('failures/retry', { endpoint => 'orders', group => 'x' })), '404: {"error":"endpoint \"orders\" keeps no failed messages"}', 'nor of who keeps none';

is outcome(change('failures/retry', { group => group_of('T.Lots') })), '201 0', 'many at once';
@got = $e->collect('sink', scalar @lots, 'all are sent');
is_deeply [ sort map { $_->{id} } @got ], [ sort @lots ], 'each once';

# A page asks for the rest of a group until there is none: what failed again meanwhile does not belong to it.
sub failed_at { my ($time, @messages) = @_; $_->{headers}[2][1] = "2026-01-01 $time:000000 Z" for @messages; return @messages }
$e->send('error', failed_at('00:00:02', fail_ids('T.Again', 'again1', 'again2')));
$e->wait_for('two more are there', sub { 2 == grep { /^again/ } ids('failed') });
my $again = group_of('T.Again');
my $first = change('failures/retry', { group => $again });
is outcome($first), '2 0', 'a group is retried';
$e->collect('sink', 2, 'and sent');
$e->send('error', failed_at('00:00:03', fail_ids('T.Again', 'again1', 'again2')));
$e->wait_for('both fail again', sub { 2 == grep { /^again/ } ids('failed') });
is outcome(change('failures/retry', { group => $again, until => $first->{until} })), '0 0', 'which are not the rest of the group';
is outcome(change('failures/retry', { group => $again })), '2 0', 'but the group, when it is asked for anew';
$e->collect('sink', 2, 'and sent again');

# ---- one that cannot be read waits as before, and keeps nobody else ---------------------------------------------------
my ($broken) = failures('id=one3');
$e->sql("update waybill_kept_failed set message = substr(message, 1, length(message) - 1) where id = cast('$broken' as blob)");
my $answer = change('failures/retry', { failures => [ $broken, failures('id=one4') ] });
is_deeply [ outcome($answer), $answer->{unreadable} ], [ '1 0', [$broken] ], 'of two that are retried one cannot be read';
is_deeply [ map { $_->{id} } $e->collect('sink', 1, 'the other is sent') ], ['one4'], 'it alone';
is_deeply [ failures('id=one3&status=failed') ], [$broken], 'and this one waits';
like((ask("/api/failures/message?failure=$broken", headers => \@program))[1], qr/the message is damaged where it is kept: restore its row/, 'for a reason');
ok $e->log_lines(qr/msg="failed messages retried in the console" endpoint=kept messages=1 asked=2 unreadable=1 /), 'as the log has it';

# Nor do more of them than one answer is about: who asks for the rest comes to those behind.
$e->send('error', failed_at('00:00:04', fail_ids('T.Damaged', map { "damaged$_" } 1 .. 501)));
$e->wait_for('many are there', sub { (() = failures('type=T.Damaged')) == 500 && (() = failures('type=T.Damaged&skip=500')) == 1 });
$e->sql('update waybill_kept_failed set message = substr(message, 1, length(message) - 1) where failed_at = (select max(failed_at) from waybill_kept_failed)');
$e->send('error', failed_at('00:00:05', fail_ids('T.Damaged', 'whole')));
$e->wait_for('and one behind them', sub { failures('id=whole') });
$answer = change('failures/retry', { group => group_of('T.Damaged') });
is_deeply [ outcome($answer), scalar @{ $answer->{unreadable} }, $answer->{more} ? 'more' : '' ], [ '0 0', 500, 'more' ], 'of 501 that cannot be read one is told with the rest';
$answer = change('failures/retry', { group => group_of('T.Damaged'), until => $answer->{until} });
is_deeply [ outcome($answer), scalar @{ $answer->{unreadable} }, $answer->{more} ? 'more' : '' ], [ '1 0', 1, '' ], 'and what is behind them is retried';
is_deeply [ map { $_->{id} } $e->collect('sink', 1, 'it is sent') ], ['whole'], 'it alone';

# ---- two processes at once --------------------------------------------------------------------------------------
start($other_port);
my $group = group_of('T.Many');
my @races = map { begin('/api/failures/retry', method => 'POST', headers => \@program, body => encode_json({ group => $group }), port => $_) } $port, $other_port, $port, $other_port;
my @answers = map { [ take($_) ] } @races;
is_deeply [ map { $_->[0] } @answers ], [ (200) x 4 ], 'four ask to retry a group, of two processes' or diag explain \@answers;
my $sum = 0;
$sum += decode_json($_->[1])->{done} for @answers;
is $sum, @many, 'each message is retried by one of them';
@got = $e->collect('sink', scalar @many, 'all are sent');
is_deeply [ sort map { $_->{id} } @got ], [ sort @many ], 'each once';
is $e->depth('sink'), 0, 'and no more';
is $e->stop, 0, 'both stop';

# ---- killed meanwhile ----------------------------------------------------------------------------------------------
for my $k ([ retry_before_commit => 'killed1', 0 ], [ session_committed => 'killed2', 1 ], [ session_after_dispatch => 'killed3', 1 ]) {
    my ($point, $id, $is_sent) = @$k;
    { local $ENV{WAYBILL_CRASH} = "$point:1"; start($port) }
    my ($key) = failures("id=$id");
    is outcome(change('failures/retry', { failures => [$key] })), ': ', "killed at $point";
    is $e->stop, 'signal 9', 'it is dead';
    start($port);
    if ($is_sent) {
        my @sent = $e->collect('sink', 1, 'what was committed is sent');
        is outcome(change('failures/retry', { failures => [$key] })), '0 1', 'and is not retried again';
        $e->wait_for('nothing is pending', sub { local $e->{name} = 'kept'; $e->pending == 0 });
        push @sent, $e->read('sink');
        my %sent = map { ("$_->{id} $_->{body}" => 1) } @sent;
        is_deeply [ keys %sent ], ["$id body of $id"], 'it, with equal bytes if it comes twice';
    } else {
        is_deeply [ (grep { $_ eq $id } ids('failed')), $e->depth('sink') ], [ $id, 0 ], 'nothing was done';
        is outcome(change('failures/retry', { failures => [$key] })), '1 0', 'and it can be done again';
        is_deeply [ map { $_->{id} } $e->collect('sink', 1, 'once') ], [$id], 'sent';
    }
    is $e->stop, 0, 'it stops';
}

# ---- delayed messages ----------------------------------------------------------------------------------------------
start($port);
$e->send('orders', { id => 'd', do => [ map { ('delay 3600000', "send sink T.Later x$_") } 1 .. 3 ] });
my $list;
$e->wait_for('three are due later', sub { $list = api('delayed')->{messages}; @{ $list || [] } == 3 });
my @key = map { my $m = $_; +{ map { $_ => $m->{$_} } qw(id destination retries) } } @$list;
is outcome(change('delayed/cancel', $key[0])), '1 0', 'one is cancelled';
is outcome(change('delayed/cancel', $key[0])), '0 1', 'once';
is outcome(change('delayed/reschedule', { %{ $key[1] }, delay_seconds => 0 })), '1 0', 'one is due now';
is outcome(change('delayed/reschedule', { %{ $key[2] }, due => '2030-01-01T00:00:00Z' })), '1 0', 'and one much later';
is_deeply [ map { $_->{id} } $e->collect('sink', 1, 'what is due is sent') ], [ $key[1]{id} ], 'it alone';
is_deeply [ map { [ @$_{qw(id due)} ] } @{ api('delayed')->{messages} } ], [ [ $key[2]{id}, '2030-01-01T00:00:00.000Z' ] ], 'the other one waits';
like outcome(change("delayed/$_->[0]", $_->[1])), qr/^400: /, "$_->[0] of what is not said" for [ cancel => {} ], [ cancel => { id => 'x', destination => 'sink' } ], [ cancel => { id => 'x', destination => 'sink', retries => -1 } ],
    [ reschedule => $key[2] ], [ reschedule => { %{ $key[2] }, due => 'soon' } ], [ reschedule => { %{ $key[2] }, delay_seconds => -1 } ];
ok $e->log_lines(qr/msg="delayed message cancelled in the console" endpoint=orders message_id=\Q$key[0]{id}\E destination=sink done=yes who="token, 127\.0\.0\.1"/), 'the log says who did that';
is $e->stop, 0, 'it stops';

# ---- a console that shows only ----------------------------------------------------------------------------------------
$e->configure(top => qq(http = { listen = "env:WB_TEST_LISTEN"; token = "file:token"; };\nconsole = { };\n));
start($port);
is +(ask("/api/$_", method => 'POST', headers => \@program, body => '{}'))[0], 403, "$_: nobody may" for qw(failures/retry failures/edit-retry failures/archive delayed/cancel delayed/reschedule);
is $e->stop, 0, 'it stops';
ok !$e->log_lines(qr/0123456789abcdef/), 'no token in the log';
done_testing;
