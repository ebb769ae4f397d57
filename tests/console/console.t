#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The console in a real browser: signing in, every page by mouse and by keyboard, what is hostile in messages; what is changed there, with
# the tables and queues read afterwards, by two browsers at once, and while the program is killed; pictures of every page, wide and narrow, light and dark.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/console";
use File::Path ();
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);
use Browser;
use Endpoint;

plan skip_all => 'chromium or chromedriver is not installed' if !$ENV{CI} && !Browser::is_there();

my $work = Endpoint::work_dir();
chomp(my ($port, $driver_port) = map { scalar `"$Endpoint::source/tests/support/free-port" "$work"` } 1, 2);
my $url = "http://127.0.0.1:$port/";
my $n   = 'NServiceBus';
my $token = '0123456789abcdef0123';
my ($tab, $enter, $escape) = ("\x{e004}", "\x{e007}", "\x{e00c}");

package Keeper {
    use strict;
    sub group {
        my ($e) = $_[0]{of};
        return qq(  { name = "kept"; failures = { from = ["error"]; }; concurrency = 1; outbox = { enabled = true; sweep_after = "1s"; cleanup_interval = "1s"; };\n    ) . $e->transport_text . "\n    " . $e->persistence_text . ' }';
    }
    sub prepare { }
}

# ---- a program, and what is in its tables --------------------------------------------------------------------
my $e = Endpoint->new('sqlite+sqlite', program => 'waybill-test', concurrency => 2, retries => 1, body_max => '32MiB', top => qq(http = { listen = "127.0.0.1:$port"; token = "file:token"; };\nconsole = { write = true; };\n));
umask 0077;
Endpoint::write_file("$e->{dir}/token", "$token\n");
umask 0022;
$e->configure(beside => [ bless { of => $e }, 'Keeper' ]);
$e->install;
$e->make_queue('sales');
$e->start;
my $script = q(<script>window.hit = 1</script><img src=x onerror="window.hit = 1">"'&amp);
my $turned = "a\xe2\x80\xaeb\x01\x1b[31m";    # turns what follows around, and what a terminal would obey
my $order  = '{"OrderId":"7f2c","Total":12345678901234567890,"Lines":[{"Sku":"A-100","Quantity":2,"Gift":false,"Note":null}],"Customer":{"Name":"M\u00fcller & S\u00f6hne"}}';
my $begun = time - 7200;
my $count = 0;
my $failed = sub { my ($id, $type, $reason, $body, @headers) = @_; return { id => $id, type => $type, body => $body, headers => [ @headers, [ "$n.FailedQ" => 'sales' ], [ "$n.ProcessingEndpoint" => 'sales' ],
    [ "$n.TimeSent" => POSIX::strftime('%F %T:000000 Z', gmtime $begun) ], [ "$n.TimeOfFailure" => POSIX::strftime('%F %T:000000 Z', gmtime $begun + 97 * ++$count) ], [ "$n.ExceptionInfo.ExceptionType" => 'System.TimeoutException' ], [ "$n.ExceptionInfo.Message" => $reason ] ] } };
$e->send('error', (map { $failed->("order-$_", 'Sales.PlaceOrder', "The payment service did not answer within 30 s (attempt $_).", $order) } 1 .. 55),
    (map { $failed->("invoice-$_", 'Billing.SendInvoice', 'No address is known for this customer.', $order) } 1 .. 7),
    $failed->($script, $script, $script, $script, [ $script => $script ]), $failed->('turned', 'T.Turned', $turned, $turned), $failed->('large', 'T.Large', 'It is large.', 'x' x (16 * 1048576)), $failed->('nested', 'T.Nested', 'It is nested.', '[' x 20_000 . ']' x 20_000), $failed->('bytes', 'T.Bytes', 'It is no text.', join '', map { chr } 0 .. 255));
$e->send('orders', (map { { id => "o$_", do => 'send sink T.Out x' } } 1 .. 40), { id => 'later', do => [ map { ("delay ${_}000000", 'send sink Sales.CancelUnpaid x') } 3, 5, 9 ] });
$e->wait_for('messages are handled', sub { $e->effects >= 41 });

# ---- signing in ------------------------------------------------------------------------------------------------
my $b = Browser->new("$work/browser", $driver_port);
sub sign_in { my ($browser) = @_; $browser->type('input', $token); $browser->press($enter); return $browser->wait_for('document.body.dataset.ready && state.session.signed_in') }
sub ready { my ($what, $condition) = @_; local $Test::Builder::Level = $Test::Builder::Level + 1; ok $b->wait_for($condition), $what or diag $b->run('return document.body.innerText') }
sub shows { my ($what, $text) = @_; local $Test::Builder::Level = $Test::Builder::Level + 1; ready($what, 'document.body.dataset.ready && document.querySelector("main").innerText.includes(' . JSON::PP->new->allow_nonref->encode($text) . ')') }
$b->look(1280, 'light');
$b->go($url);
is $b->text('h1'), 'Sign in', 'nobody sees anything before';
$b->type('input', '0123456789abcdef0124');
$b->press($enter);
ready('another token is refused', 'document.querySelector("[role=alert]").innerText == "This is not the token."');
$b->type('input', $token);
$b->press($enter);
shows('the token is taken', 'orders');
is $b->run('return document.cookie'), '', 'scripts do not see the cookie';
$b->complaints;    # the token that was refused is one

# ---- endpoints ---------------------------------------------------------------------------------------------------
ready('it is live', 'document.querySelector(".live") && document.querySelector(".live").innerText == "Live"');
is $b->text('[data-endpoint=orders] .pill'), 'running', 'an endpoint that runs';
$e->send('orders', map { { id => "p$_", do => 'send sink T.Out x' } } 1 .. 5);
$b->click('[data-endpoint=orders] h2 a');
shows('one of them', 'the outbox, after the commit');
ready('counts go on by themselves', '[...document.querySelectorAll("dl.facts dt")].some(dt => dt.innerText == "Handled" && dt.nextSibling.innerText == "46")');

# ---- by keyboard alone ---------------------------------------------------------------------------------------------
$b->press('2');
shows('the second page by its number', 'The payment service did not answer');
is $b->text('nav a[aria-current] .count'), '67', 'how many wait';
$b->run('document.getElementById("main").focus()');
for (1 .. 12) { $b->press($tab); last if $b->run('return (document.activeElement.dataset.focus || "").startsWith("group")') }
$b->press($enter);
shows('a group by Tab and Enter', 'order-1');
ok !$b->run('return document.body.innerText.includes("order-51")'), 'a page of 50';
$b->click('[data-focus=later]');
shows('the next one', 'order-55');
$b->press($escape);
shows('and back', 'Billing.SendInvoice');

# ---- messages, hostile ones, too --------------------------------------------------------------------------------------
sub open_message {
    my ($reason) = @_;
    $b->go($url . '#/failures');
    ready("the group of $reason", 'document.body.dataset.ready == "#/failures" && document.querySelector("#groups")');
    $b->run('[...document.querySelectorAll("#groups a")].find(a => a.innerText.includes(arguments[0])).click()', $reason);
    ready('its messages', 'document.body.dataset.ready && document.querySelector("main .reason") && document.querySelector("td a.mono")');
    $b->click('td a.mono');
    ready('one of them', 'document.body.dataset.ready && document.querySelector("#body") && document.querySelector("#headers")');
}
open_message('No address is known');
is $b->text('#body [aria-selected=true]'), 'JSON', 'JSON is shown as such';
like $b->text('#body pre'), qr/^\{\n  "OrderId": "7f2c",\n  "Total": 12345678901234567890,\n/, 'in lines, and no number changes';
like $b->text('.timeline'), qr/^Sent\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\nFailed\n/, 'its history';
$b->click('#body [data-kind=Hex]');
like $b->text('#body pre'), qr/^00000000  7b 22 4f 72 64 65 72 49  64 22 3a 22 37 66 32 63  \{"OrderId":"7f2c/, 'as bytes';
open_message('<script>');
is $b->text('h1'), $script, 'markup is text, in a type';
is $b->text('.reason'), $script, 'in a reason';
is $b->text('#body pre'), $script, 'in a body';
ok $b->run('return [...document.querySelectorAll("#headers td")].filter(td => td.innerText == arguments[0]).length >= 2', $script), 'in names and values of headers';
is $b->run('return String(window.hit) + document.querySelectorAll("main script, main img").length'), 'undefined0', 'and nothing of it ran';
open_message('U+202E');
is $b->text('#body pre'), 'aU+202Eb\x01\x1b[31m', 'what would not show is shown by name';
open_message('It is large.');
like $b->text('#body .title'), qr/16\.0 MiB, its beginning is shown/, '16 MiB: the beginning';
is $b->run('return document.querySelector("#body pre").innerText.length'), 262144, 'is shown';
is $b->run('return fetch(document.querySelector("#body a[download]").href).then(a => a.blob()).then(b => b.size)'), 16 * 1048576, 'and all of it can be saved';
open_message('It is nested.');
is $b->text('#body [aria-selected=true]'), 'JSON', 'JSON of 20,000 levels';
is $b->run('return document.querySelector("#body pre").textContent.length'), 40_000, 'is shown as it is';
open_message('It is no text.');
is $b->text('#body [aria-selected=true]'), 'Hex', 'bytes are shown as bytes';

# ---- the rest -----------------------------------------------------------------------------------------------------------
$b->press('3');
shows('delayed messages', 'in ');
is $b->run('return document.querySelectorAll("tbody tr").length'), 3, 'each of them';
$b->click('td a.mono');
shows('one of them', 'Sales.CancelUnpaid');
$b->press('4');
shows('pending rows', 'Nothing is pending');
is_deeply [ $b->complaints ], [], 'the browser has nothing to complain of';

# ---- pictures ---------------------------------------------------------------------------------------------------------------
File::Path::make_path("$Endpoint::build/tests/console/pictures");
# an hour that was not waited for
my $hour = 'state.history = { step_seconds: 10, samples: 360, samples_max: 360, at: 9e15, endpoints: state.status.endpoints.map((one, k) => { const wave = (a, b, c) => Array.from({ length: 360 }, (_, i) => Math.max(0, a + b * Math.sin(i / 31 + k) + c * Math.sin(i / 7.3) + c * Math.sin(i / 2.1 + k)));'
    . ' return { name: one.name, handled: wave(140, 60, 12), failed: wave(-4, 7, 1), critical_high: wave(.06, .03, .01), critical_mean: wave(.03, .012, .003), lag: wave(.1, .4, .1), pending: wave(2, 3, 1).map(Math.round) }; }) };';
sub picture {
    my ($name, $hash) = @_;
    $b->go($url . $hash);
    ready($name, "document.body.dataset.ready == '$hash' && document.querySelector('main h1')");
    $b->run("$hour; put(page.show())");
    for my $look ([ 1280, 'light' ], [ 1280, 'dark' ], [ 360, 'light' ], [ 360, 'dark' ]) {
        $b->look(@$look);
        ok !$b->run('return document.body.innerText.includes("[object") || document.body.innerText.includes("undefined") || document.body.innerText.includes("NaN")'), "$name says what it means";
        ok !$b->run('return document.documentElement.scrollWidth > 360') || $look->[0] > 360, "$name is not wider than 360";
        $b->screenshot("$Endpoint::build/tests/console/pictures/$name-" . join('-', @$look) . '.png');
    }
    $b->look(1280, 'light');
}
open_message('The payment service');
my $message = $b->run('return location.hash');
picture('message', $message);
my ($group) = $b->run('return document.querySelector(".back").hash');
picture(@$_) for [ group => $group ], [ endpoints => '#/' ], [ endpoint => '#/endpoint/orders' ], [ failures => '#/failures' ], [ delayed => '#/delayed' ], [ pending => '#/pending' ];

# ---- what is changed: the tables and queues are read ---------------------------------------------------------------------------------
sub rows { my ($status, $type) = @_; return scalar grep { $_->{type} eq $type } @{ JSON::PP->new->decode(($e->run('failures', 'list', '--json', '--status', $status))[1]) } }
my $told = sub { my ($browser) = @_; return $browser->wait_for('document.querySelector("#told") && document.querySelector("#told").innerText') };
$b->go($url . '#/failures');
ready('groups', 'document.body.dataset.ready == "#/failures" && document.querySelector("#groups")');
$b->run('[...document.querySelectorAll("#groups tr")].find(row => row.innerText.includes("No address")).querySelector("button").click()');
ready('one is asked first', 'document.querySelector("dialog[open]").innerText.includes("Retry 7 messages?")');
for my $look ([ 1280, 'light' ], [ 360, 'dark' ]) { $b->look(@$look); $b->screenshot("$Endpoint::build/tests/console/pictures/retry-" . join('-', @$look) . '.png', 1) }
$b->look(1280, 'light');
$b->press($escape);
is $b->run('return document.querySelectorAll("dialog").length'), 0, 'Escape: not';
is rows('failed', 'Billing.SendInvoice'), 7, 'nothing happened';
$b->click('#groups tr:nth-child(2) button');
ready('asked again', 'document.querySelector("dialog[open]")');
$b->press($enter);
is $told->($b), '7 retried.', 'Enter: retried';
my @sent = $e->collect('sales', 7, 'they are in the queue they failed in');
is_deeply [ sort map { "$_->{id} $_->{body}" } @sent ], [ map { "invoice-$_ $order" } 1 .. 7 ], 'each once, as it came';
is rows('retrying', 'Billing.SendInvoice'), 7, 'and is being retried';
open_message('It is no text.');
$b->click('[data-focus=archive]');
$b->press($enter);
is $told->($b), '1 archived.', 'one is archived';
is rows('archived', 'T.Bytes'), 1, 'in the table, too';
$b->run('state.session.token = "0".repeat(64)');
open_message('It is nested.');
$b->click('[data-focus=archive]');
$b->press($enter);
is $told->($b), '1 archived.', 'with the token of a session that is gone the page asks for that which there is';
is_deeply [ map { /status of (\d+)/ } $b->complaints ], [403], 'having been refused once';
$b->go($url . '#/failures/group/' . ($group =~ m{group/(\w+)})[0] . '?skip=500');
shows('a page behind the last one', 'None is left on this page');
ok $b->run('return document.querySelector("[data-focus=earlier]")'), 'leads back';
$b->go($url . '#/delayed?skip=500');
shows('one of delayed messages', 'None is left on this page');
ok $b->run('return document.querySelector("[data-focus=earlier]")'), 'does, too';
$b->go($url . '#/failures/group/' . ($group =~ m{group/(\w+)})[0] . '?skip=500');
shows('the page behind the last one', 'None is left on this page');
$b->run('location.reload()');
ready('a page of a group knows how many wait', 'document.querySelector("nav a[aria-current] .count")');
$b->go($url . '#/failures/group/' . ($group =~ m{group/(\w+)})[0]);
ready('a group', 'document.querySelectorAll("td input").length == 50');
$b->click("tr:nth-child($_) input") for 1 .. 3;
ready('three are chosen', 'document.querySelector("[data-focus=archive]").innerText == "Archive 3 chosen"');
$b->click('[data-focus=archive]');
$b->press($enter);
is $told->($b), '3 archived.', 'and archived';
is rows('archived', 'Sales.PlaceOrder'), 3, 'they alone';
$b->go($url . '#/delayed');
ready('delayed messages', 'document.querySelectorAll("tbody tr").length == 3');
$b->click('td a.mono');
$b->click('[data-focus=cancel]');
$b->press($enter);
is $told->($b), '1 cancelled.', 'a delayed message is cancelled';
$b->go($url . '#/delayed');
ready('two are left', 'document.querySelectorAll("tbody tr").length == 2');
$b->click('td a.mono');
$b->click('[data-focus=reschedule]');
$b->press($enter);
is $told->($b), '1 rescheduled.', 'another is due now';
my ($due) = $e->collect('sink', 1, 'it is sent');
$e->wait_for('and one waits', sub { @{ JSON::PP->new->decode(($e->run('delayed', 'list', '--json'))[1]) } == 1 });

# ---- two browsers, one retry ----------------------------------------------------------------------------------------------------------
my $c = $b->another("$work/browser2");
$c->go($url);
ok sign_in($c), 'another browser is signed in';
open_message('<script>');
my $message_url = $url . $b->run('return location.hash');
$c->go($message_url);
ok $c->wait_for('document.querySelector("[data-focus=retry]")'), 'both see one message';
my $at = $b->run('return Date.now()') + 1500;
for ($b, $c) { $_->click('[data-focus=retry]'); $_->run('const form = document.querySelector("dialog form"); setTimeout(() => form.requestSubmit(), arguments[0] - Date.now())', $at) }
my @said = sort map { $told->($_) } $b, $c;
is_deeply \@said, [ '1 retried.', 'Nothing was retried. 1 was left alone: somebody else has seen to it meanwhile.' ], 'one of them retried it';
is_deeply [ map { $_->{id} } $e->collect('sales', 1, 'it is sent') ], [$script], 'once';
undef $c;
is_deeply [ grep { !/ status of 40[14] / } $b->complaints ], [], 'the browser has nothing to complain of';

# ---- killed during a retry, and back ----------------------------------------------------------------------------------------------------
$b->go($url . '#/');
ready('it is live', 'document.querySelector(".live").innerText == "Live"');
is $e->stop, 0, 'it stops';
ready('the page says so', 'document.querySelector(".live").innerText == "Not connected"');
{ local $ENV{WAYBILL_CRASH} = 'session_committed:1'; $e->start }
ready('and asks to sign in when it is there again', 'document.querySelector("h1").innerText == "Sign in"');
ok sign_in($b), 'signed in';
$b->go($url . $group);
ready('a group', 'document.querySelectorAll("td input").length == 50');
$b->click('[data-focus=retry]');
$b->press($enter);
like $told->($b), qr/^Whether it was done is not known; look again, nothing is done twice\. /, 'killed meanwhile: nobody knows';
is $e->stop, 'signal 9', 'it is dead';
$e->start;
my %got;
$e->wait_for('all are sent', sub { $got{$_->{id}}{ $_->{body} }++ for $e->read('sales'); keys %got == 52 }, 40);
$e->wait_for('nothing is pending', sub { local $e->{name} = 'kept'; $e->pending == 0 });
$got{$_->{id}}{ $_->{body} }++ for $e->read('sales');
is_deeply [ map { join ',', keys %$_ } values %got ], [ ($order) x 52 ], 'each with equal bytes';
is rows('retrying', 'Sales.PlaceOrder'), 52, 'and is being retried';
ready('the page asks to sign in', 'document.querySelector("h1").innerText == "Sign in"');
ok sign_in($b), 'signed in';
$b->go($url . '#/failures?status=retrying');
shows('where one sees it', 'The payment service did not answer');
is $e->stop, 0, 'it stops';
undef $b;
done_testing;
