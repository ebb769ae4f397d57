#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A failed message edited and retried in a real browser: found by "/", edited by keyboard, reviewed, and sent; the tables and queues are read
# afterwards, byte by byte. What is no text, hostile or too long; what happens on the page and elsewhere while somebody types; two who see to one
# message; the program killed. Pictures of the form, of the review and of what is found.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/console";
use Encode qw(decode encode);
use File::Path ();
use JSON::PP;
use Test::More;
use Time::HiRes qw(sleep);
use Browser;
use Console;
use Endpoint;

plan skip_all => 'chromium or chromedriver is not installed' if !$ENV{CI} && !Browser::is_there();

my $work = Endpoint::work_dir();
chomp(my ($port, $driver_port) = map { scalar `"$Endpoint::source/tests/support/free-port" "$work"` } 1, 2);
my $url   = "http://127.0.0.1:$port/";
my $n     = 'NServiceBus';
my $token = '0123456789abcdef0123';
my ($tab, $enter, $escape) = ("\x{e004}", "\x{e007}", "\x{e00c}");
my $pictures = "$Endpoint::build/tests/console/pictures";
File::Path::make_path($pictures);

# ---- a program, and what is in its tables --------------------------------------------------------------------
my $http = qq(http = { listen = "127.0.0.1:$port"; token = "file:token"; };\n);
my $e = Endpoint->new('sqlite+sqlite', program => 'waybill-test', retries => 1, body_max => '32MiB', top => "${http}console = { write = true; };\n");
umask 0077;
Endpoint::write_file("$e->{dir}/token", "$token\n");
umask 0022;
$e->configure(beside => [ bless { of => $e }, 'Keeper' ]);
$e->install;
$e->make_queue('sales');
$e->start;

my $script = q(<script>window.hit = 1</script><img src=x onerror="window.hit = 1">"'&amp);
# A byte order mark, CR LF, a tab, beyond 16 bits, what browsers take for the end of a line, a blank before one, an empty line, and one at the end.
my $crlf = "\xef\xbb\xbf{\r\n\t\"Total\": 1,\r\n\t\"Box\": \"\xf0\x9f\x93\xa6\xe2\x80\xa8\xc3\xa9\" \r\n\r\n}\r\n";
my $order = qq({\n  "OrderId": "7f2c",\n  "Total": 12345678901234567890,\n  "Customer": { "Name": "M\xc3\xbcller" }\n});
my %body = (crlf => $crlf, header => $crlf, order => $order, live => $order, race => $order, raced => $order, killed1 => $order, killed2 => $order, bytes => join('', map { chr } 0 .. 255), mixed => "a\r\nb\nc", lone => "a\rb", control => "a\x01b", c1 => "a\xc2\x85b",
    large => 'x' x (16 * 1048576), limit => ('x' x 79 . "\n") x 13107 . 'y' x 16, lines => "\n" x 20001, over => 'x' x 1048577, $script => $script, turned => "a\xe2\x80\xaeb\xe2\x80\x8bc", one => '{"a":"' . 'x' x 3000 . '","b":1}', empty => '');
my $second = 0;
sub failed { my ($id, $type, @headers) = @_; return { id => $id, type => $type, body => $body{$id}, headers => [ @headers, [ "$n.MessageId" => $id ], [ "$n.FailedQ" => 'sales' ], [ "$n.ProcessingEndpoint" => 'sales' ],
    [ "$n.TimeOfFailure" => sprintf '2026-01-01 00:%02d:00:000000 Z', ++$second ], [ "$n.ExceptionInfo.Message" => "The payment service did not answer ($id)." ] ] } }
$e->send('error', map { failed($_, $_ eq $script ? $script : 'Sales.PlaceOrder', [ Tenant => 'north' ], [ Spare => 'x' ], $_ eq $script ? [ $script => $script ] : (), [ Twice => 1 ], [ Twice => 2 ], [ Raw => "\xff" ]) } sort keys %body);

my $b = Browser->new("$work/browser", $driver_port);
sub ready { my ($what, $condition, $browser) = @_; local $Test::Builder::Level = $Test::Builder::Level + 1; ok +($browser || $b)->wait_for($condition), $what or diag(($browser || $b)->run('return document.body.innerText')) }
sub sign_in { my ($browser) = @_; $browser->type('input[type=password]', $token); $browser->press($enter); return $browser->wait_for('document.body.dataset.ready && state.session.signed_in') }
sub status_of { my ($id) = @_; return (map { $_->{status} } @{ decode_json(($e->run('failures', 'list', '--json', '--status', 'any', '--id', $id))[1]) })[0] }
sub key_of { my ($id) = @_; return (map { $_->{failure} } @{ decode_json(($e->run('failures', 'list', '--json', '--status', 'any', '--id', $id))[1]) })[0] }
sub hash_of { my ($id, $page) = @_; return "#/failures/$page/" . key_of($id) }
sub open_edit { my ($id, $browser) = @_; ($browser || $b)->go($url . hash_of($id, 'edit')); ready("the form of @{[ substr $id, 0, 20 ]}", "document.body.dataset.ready == '@{[ hash_of($id, 'edit') ]}' && !!document.querySelector('#edit')", $browser) }
# As somebody who types: in place of a part of the text.
sub replace { my ($selector, $from, $to) = @_; return $b->run('const f = document.querySelector(arguments[0]), at = f.value.indexOf(arguments[1]); if (at < 0) return false; f.focus(); f.setRangeText(arguments[2], at, at + arguments[1].length, "end"); f.dispatchEvent(new Event("input", { bubbles: true })); return true', $selector, $from, $to) }
sub review { $b->click('#review'); ready('it is reviewed first', '!!document.querySelector("dialog[open] #changes")'); return join "\n", @{ $b->run('return [...document.querySelectorAll("#changes h3, #changes .side")].map(one => one.tagName == "H3" ? one.textContent : one.classList[1] + " " + one.querySelector(".line").textContent)') } }
my $told = sub { my ($browser) = @_; return ($browser || $b)->wait_for('document.querySelector("#told") && document.querySelector("#told").innerText') };
my $wrong = sub { return $b->wait_for('document.querySelector("#wrong") && !document.querySelector("#wrong").hidden && document.querySelector("#wrong").innerText') };
sub one { my ($what) = @_; return ($e->collect('sales', 1, $what))[0] }
sub looks { my ($name, $is_seen) = @_; for my $look ([ 1280, 'light' ], [ 1280, 'dark' ], [ 360, 'light' ], [ 360, 'dark' ]) { $b->look(@$look); ok !$b->run('scrollTo(0, 0); return document.documentElement.scrollWidth > innerWidth'), "$name is not wider than $look->[0]"; $b->screenshot("$pictures/$name-" . join('-', @$look) . '.png', $is_seen) } $b->look(1280, 'light') }
my $sent = 'Edited and retried: it went back to sales with an id of its own.';

# ---- found by "/" --------------------------------------------------------------------------------------------
$b->look(1280, 'light');
$b->go($url);
ok sign_in($b), 'signed in';
$e->wait_for('they are there', sub { ($b->run('return fetch("/api/failures/groups").then(a => a.json()).then(a => a.counts.failed)') // 0) == keys %body });
ready('the first page', 'document.body.dataset.ready == "#/" && document.querySelector("[data-endpoint=kept]")');
$b->press('/');
ready('"/" leads to where one finds', 'location.hash == "#/failures" && document.activeElement.dataset.focus == "search"');
$b->press(split //, 'cr');
ok $b->run('const f = document.activeElement; f.mine = 1; window.moved = 0; new MutationObserver((all) => all.forEach((one) => one.removedNodes.forEach((node) => { if (node.contains(f)) window.moved++ }))).observe(document.getElementById("main"), { childList: true, subtree: true }); return true'),
    'while somebody types there';
$body{late} = $order;
$e->send('error', failed('late', 'Sales.Late'));
ready('the list goes on', 'document.querySelector("#groups").innerText.includes("Sales.Late")');
is_deeply $b->run('const f = document.activeElement; return [f.dataset.focus, f.value, f.mine, f.selectionStart, window.moved]'), [ 'search', 'cr', 1, 2, 0 ], 'and what he typed stays, where it is';
$b->press(split(//, 'lf'), $enter);
ready('found by its id', 'location.hash == "#/failures/found?id=crlf" && document.body.dataset.ready && document.querySelectorAll("#found tbody tr").length == 1');
looks('found');
$b->run('document.activeElement.blur()');
$b->press('/');
is_deeply $b->run('const f = document.activeElement; return [f.dataset.focus, f.selectionStart, f.selectionEnd]'), [ 'search', 0, 4 ], '"/" chooses what was asked before';
$b->run('document.querySelector("[data-focus=\"find by\"]").value = "reason"');
$b->press(split(//, 'answer (killed'), $enter);
ready('by a part of the reason', 'document.body.dataset.ready == location.hash && document.querySelectorAll("#found tbody tr").length == 2');
$b->run('document.querySelector("[name=from]").value = "2026-01-01T00:01"; document.querySelector("[name=before]").value = "2026-01-01T00:03"; document.querySelector("[data-focus=search]").value = ""; document.querySelector(".find").requestSubmit()');
ready('by time', 'document.body.dataset.ready == location.hash && location.hash.includes("from") && document.querySelectorAll("#found tbody tr").length == 2');
$b->go($url . '#/failures/found?id=' . 'none');
ready('nothing is found', 'document.body.innerText.includes("No failed message is like that")');
$b->run('document.activeElement.blur()');
$b->press($escape);
ready('and back', 'location.hash.startsWith("#/failures?")');
$b->go($url . '#/failures/found?id=crlf');
ready('one', 'document.body.dataset.ready == location.hash && document.querySelector("#found td a")');
$b->click('#found td a');

# ---- edited by keyboard ----------------------------------------------------------------------------------------
ready('its page', 'document.body.dataset.ready && document.querySelector("[data-focus=edit]")');
$b->run('document.querySelector("[data-focus=edit]").focus()');
$b->press($enter);
ready('a form', 'document.body.dataset.ready && document.activeElement.id == "text"');
is $b->run('return document.querySelector("#text").value'), decode('UTF-8', $crlf =~ s/\r//gr =~ s/^\xef\xbb\xbf//r), 'the body as text';
like $b->text('#edit'), qr/Lines end with CR LF, new ones too\. It begins with a byte order mark, which stays\. What does not show in it: U\+2028\. At most 1\.0 MiB\./, 'and what does not show';
$b->click('#review');
is $wrong->(), 'Nothing is changed. To send it back as it came, go back and retry it.', 'nothing is changed';
is $b->run('return document.activeElement.id'), 'wrong', 'who does not see is told';
ok replace('#text', '"Total": 1', '"Total": 2'), 'a number';
$b->run('const f = document.querySelector("#text"); f.setSelectionRange(f.value.length, f.value.length)');
$b->type('#text', "// end\n");
is review(), decode('UTF-8', qq(Body, from line 1\nsame {\nwas \t"Total": 1,\nnow \t"Total": 2,\nsame \t"Box": "\xf0\x9f\x93\xa6U+2028\xc3\xa9" \nsame \nsame }\nnow // end\nsame )), 'what is changed is shown';
looks('review', 1);
$b->press($escape);
is $b->run('return document.querySelectorAll("dialog").length + document.activeElement.id'), '0review', 'Escape: not yet';
$b->press($enter);
ready('once more', '!!document.querySelector("dialog[open]")');
$b->press($enter);
is $told->(), $sent, 'Enter: it is sent';
is $b->run('return document.activeElement.id'), 'told', 'and said';
my $got = one('it is in the queue it failed in');
is $got->{body}, $crlf =~ s/"Total": 1/"Total": 2/r . "// end\r\n", 'each byte that was not edited is there' or diag unpack 'H*', $got->{body};
is_deeply [ @{ $got->{header} }{qw(Tenant Spare Raw ServiceControl.EditOf)}, $got->{id} ne 'crlf' ], [ 'north', 'x', "\xff", key_of('crlf'), 1 ], 'its headers, too';
is status_of('crlf'), 'retrying', 'and it is being retried';
ready('as its page says', 'document.body.dataset.ready && document.querySelector("main .pill").innerText == "retrying" && !document.querySelector("[data-focus=edit]")');

# ---- headers alone ------------------------------------------------------------------------------------------------
open_edit('header');
my ($tenant, $spare) = map { "#edit-headers [aria-label='Value of $_']" } qw(Tenant Spare);
ok replace($tenant, 'north', 'south'), 'one is changed';
$b->click("[aria-label='Remove header Spare']");
ok $b->run('return document.querySelector(arguments[0]).disabled', $spare), 'one is removed';
$b->click('#add');
ready('a new one is to be named', 'document.activeElement.placeholder == "Name"');
$b->press(split(//, 'Tenant'), $tab, split(//, "it's"));
$b->click('#review');
is $wrong->(), 'Header Tenant is there already: change it in its place.', 'not one that is there';
$b->type('.edited.added input', 'Of');
is review(), "Header Spare goes\nwas x\nHeader Tenant\nwas north\nnow south\nHeader TenantOf is new\nnow it's", 'what is changed is shown';
$b->press($enter);
is $told->(), $sent, 'it is sent';
$got = one('it is in the queue');
is_deeply [ $got->{body}, @{ $got->{header} }{qw(Tenant Spare TenantOf)} ], [ $crlf, 'south', undef, "it's" ], 'with the body that it had, and headers as they were edited';
open_edit('empty');
$b->click('#add');
$b->press(split(//, "$n.MessageId"), $tab, 'x');
review();
$b->press($enter);
is $wrong->(), "It was not sent: header $n.MessageId is not edited: whoever sends the message back sets it, or leaves it out", 'what is refused is said';
$b->type('.edited.added input', 's');
$b->type('#text', 'full');
review();
$b->press($enter);
is $told->(), $sent, 'and mended';
is one('it is sent')->{body}, 'full', 'what was empty is not';

# ---- what is no text, or too long, or hostile ------------------------------------------------------------------------
my %why = (bytes => 'it is no UTF-8', mixed => 'its lines end in several ways, which a field of text cannot keep', lone => 'its lines end in several ways, which a field of text cannot keep', lines => 'it has more than 20,000 lines', control => 'it has control characters', c1 => 'it has control characters',
    large => 'it has 16,777,216 bytes, and at most 1,048,576 are edited here', over => 'it has 1,048,577 bytes, and at most 1,048,576 are edited here');
for my $id (sort keys %why) {
    open_edit($id);
    is $b->text('#fixed-body'), "This body is not edited here: $why{$id}. It goes back as it is; headers can be changed. waybill failures edit-retry --body-file takes another one.", "$id: its body is not edited";
    ok replace($tenant, 'north', 'south'), 'but a header';
    review();
    $b->press($enter);
    is $told->(), $sent, 'it is sent';
    $got = one('it is in the queue');
    ok $got->{body} eq $body{$id} && $got->{header}{Tenant} eq 'south', 'with every byte of its body';
}
my $long = 'The body has 1,048,577 bytes now, and at most 1,048,576 are edited here.';
open_edit('limit');
$b->run('const f = document.querySelector("#text"); f.setRangeText("\n", 0, 0); f.dispatchEvent(new Event("input"))');
$b->click('#review');
is $wrong->(), $long, 'too long now';
$b->run('const f = document.querySelector("#text"); f.setRangeText("ab", 0, 2); f.dispatchEvent(new Event("input"))');
$b->click('#review');
is $wrong->(), $long, 'too long still';
$b->run('const f = document.querySelector("#text"); f.setRangeText("", 2, 3); f.dispatchEvent(new Event("input"))');
review();
$b->press($enter);
is $told->(), $sent, 'as long as may be';
ok one('it is sent')->{body} eq 'ab' . substr($body{limit}, 2), 'all of it arrives';
open_edit($script);
is $b->run('return document.querySelector("#text").value'), $script, 'markup is text, in a body';
ok replace('#text', 'window.hit = 1', 'window.hit = 2'), 'it is edited';
is review(), "Body, from line 1\nwas $script\nnow " . $script =~ s/= 1/= 2/r, 'and shown as it is';
is $b->run('return String(window.hit) + document.querySelectorAll("main script, main img, dialog script, dialog img").length'), 'undefined0', 'nothing of it ran';
$b->press($escape);
ok replace('#edit-headers .rows input:not([aria-label^="Value of Tenant"]):not([aria-label^="Value of Spare"]):not([aria-label^="Value of NServiceBus"])', 'window.hit', 'window.miss'), 'a header with a hostile name';
like review(), qr/^Header \Q$script\E$/m, 'is named as it is';
$b->press($enter);
is $told->(), $sent, 'it is sent';
$got = one('it is in the queue');
is_deeply [ $got->{body}, $got->{header}{$script} ], [ $script =~ s/= 1/= 2/r, $script =~ s/window\.hit/window.miss/r ], 'as it was edited';
open_edit('turned');
like $b->text('#edit'), qr/What does not show in it: U\+202E U\+200B\./, 'what turns a text around is named';
open_edit('one');
ok replace('#text', '"b":1', '"b":2'), 'of a long line the end';
is review(), "Body, from line 1\nwas \x{2026}" . 'x' x 54 . "\",\"b\":1}\nnow \x{2026}" . 'x' x 54 . '","b":2}', 'is shown with what stands around it';
$b->press($escape);

# ---- while somebody types -------------------------------------------------------------------------------------------------
open_edit('live');
looks('edit');
$b->run('document.querySelector("#text").mine = 1; document.querySelector("#text").setSelectionRange(4, 4)');
$b->run('window.polls = 0; const real = window.fetch; window.fetch = (path, ...more) => { if (String(path).includes("/editable")) window.polls++; return real(path, ...more) }');
$b->press(split //, 'new ');
ready('the page asks twice meanwhile', 'window.polls >= 2');
is_deeply $b->run('const f = document.activeElement; return [f.id, f.mine, f.value.slice(0, 10), f.selectionStart]'), [ 'text', 1, substr($order, 0, 4) . 'new ' . substr($order, 4, 2), 8 ], 'and what is typed, the field and where one is in it stay';
$b->run('location.hash = "#/pending"');
ready('somebody looks elsewhere', 'document.body.dataset.ready == "#/pending"');
$b->run('history.back()');
ready('and finds what he typed', 'document.querySelector("#kept") && document.querySelector("#text").value.slice(4, 8) == "new "');
$b->click('#kept button');
ready('or begins anew', '!document.querySelector("#kept") && document.querySelector("#text").value.slice(4, 8) != "new "');
$b->type('#text', 'x');
$b->click('[data-focus="give up"]');
ready('who gives up is asked', 'document.querySelector("dialog[open]")');
$b->press($enter);
ready('and is where he was', 'location.hash.startsWith("#/failures/message/") && document.body.dataset.ready == location.hash');
is_deeply [ status_of('live'), $e->depth('sales') ], [ 'failed', 0 ], 'nothing was done';
is_deeply [ grep { !/ status of 40[019] / } $b->complaints ], [], 'the browser has nothing to complain of';

# ---- two who see to one message ----------------------------------------------------------------------------------------------
my $c = $b->another("$work/browser2");
$c->go($url);
ok sign_in($c), 'another browser is signed in';
open_edit('race');
$b->type('#text', ' mine');
review();
$b->run('page.watch = async () => {}');    # what it would hear in a moment
open_edit('race', $c);
$c->type('#text', ' theirs');
$c->click('#review');
$c->wait_for('document.querySelector("dialog[open]")');
$c->press($enter);
is $told->($c), $sent, 'one edits it';
$b->press($enter);
is $wrong->(), 'It was not sent: it was left alone: it has been retried already, and nothing was heard of it yet', 'the other one is told';
is $b->run('return document.querySelector("#text").value'), decode('UTF-8', "$order mine"), 'and keeps what he typed';
is one('it is sent')->{body}, "$order theirs", 'as the first one edited it';
is $e->depth('sales'), 0, 'once';
open_edit('raced');
$b->type('#text', ' mine');
$c->go($url . hash_of('raced', 'message'));
$c->click('[data-focus=archive]');
$c->press($enter);
is $told->($c), '1 archived.', 'another archives it';
ready('which the form says', 'document.querySelector("#seen-to").innerText == "Somebody else has seen to it: it is archived now. What is edited here cannot be sent." && document.querySelector("#review").disabled');
is $b->run('return document.querySelector("#text").value'), decode('UTF-8', "$order mine"), 'and what is typed stays';
undef $c;

# ---- killed meanwhile -------------------------------------------------------------------------------------------------------------
for my $k ([ retry_before_commit => 'killed1' ], [ session_committed => 'killed2' ]) {
    my ($point, $id) = @$k;
    is $e->stop, 0, 'it stops';
    { local $ENV{WAYBILL_CRASH} = "$point:1"; $e->start }
    ready('the page asks to sign in', 'document.querySelector("h1").innerText == "Sign in"');
    ok sign_in($b), 'signed in';
    open_edit($id);
    $b->type('#text', ' edited');
    review();
    $b->press($enter);
    is $wrong->(), 'Whether it was sent is not known; look at the message again, nothing is done twice. Waybill does not answer. It may have stopped.', "killed at $point: nobody knows";
    is $e->stop, 'signal 9', 'it is dead';
    $e->start;
    ready('the page asks to sign in', 'document.querySelector("h1").innerText == "Sign in"');
    ok sign_in($b), 'signed in';
    ready('what was typed is there', 'document.querySelector("#kept") && document.querySelector("#text").value.endsWith(" edited")');
    if ($point eq 'retry_before_commit') {
        is_deeply [ status_of($id), $e->depth('sales') ], [ 'failed', 0 ], 'nothing was done';
        review();
        $b->press($enter);
        is $told->(), $sent, 'and can be done now';
    } else {
        ready('it was done', 'document.querySelector("#seen-to").innerText.includes("it is retrying now") && document.querySelector("#review").disabled');
    }
    my %got;
    $e->wait_for('it is sent', sub { $got{"$_->{id} $_->{body}"}++ for $e->read('sales'); %got });
    $e->wait_for('nothing is pending', sub { local $e->{name} = 'kept'; $e->pending == 0 });
    $got{"$_->{id} $_->{body}"}++ for $e->read('sales');
    is join('|', map { s/^\S+ //r } keys %got), "$order edited", 'it, with one id and equal bytes';
}

# ---- a console that shows only --------------------------------------------------------------------------------------------------------
is $e->stop, 0, 'it stops';
$e->configure(top => "${http}console = { };\n");
$e->start;
ready('the page asks to sign in', 'document.querySelector("h1").innerText == "Sign in"');
ok sign_in($b), 'signed in';
$b->go($url . hash_of('live', 'message'));
ready('a message', 'document.body.dataset.ready == location.hash && document.querySelector("#body")');
ok !$b->run('return document.querySelector("[data-focus=edit], [data-focus=retry]")'), 'nobody is offered to edit it';
open_edit('live');
is $b->run('return document.querySelector("#review").disabled && document.querySelector("#seen-to").innerText'), 'This console is read-only. What is edited here cannot be sent.', 'nor by its address';
is $e->stop, 0, 'it stops';
undef $b;
done_testing;
