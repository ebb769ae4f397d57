#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What programs in other languages write in SQL: sent by any instance of the endpoint, in order where a key
# asks for it, or never there; what cannot be sent; rights; processes that are killed.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use JSON::PP;
use Time::HiRes qw(sleep time);
use Endpoint;
use Written;

Endpoint::under_servers(Endpoint::has_mysql() ? 'mariadb' : (), 'pgsql', 'rabbitmq');
Written::need();
my $round = 0;

sub endpoint {
    my ($pair, %with) = @_;
    my $e = Endpoint->new($pair, name => 'desk' . ++$round, outbox => 'enabled = true;', files => "$round-", retries => 0, program => 'waybill-test', %with);
    my ($code, $text) = $e->run('install', '--sql-api');
    die "install --sql-api: $code: $text" if $code;
    $_->prepare for $e, @{ $e->{beside} || [] };
    $e->sql('delete from effects');
    return $e;
}

sub bodies { return map { $_->{body} } @_ }
sub rows   { my ($e) = @_; return ($e->sql('select count(*) from ' . Written::table($e)))[0][0] }
sub is_done { my ($e, $what) = @_; return $e->wait_for("$what: nothing is left", sub { rows($e) == 0 }) }

# ---- three languages ----------------------------------------------------------------------
sub languages {
    my ($pair) = @_;
    my $e = endpoint($pair, name => 'Desk.Of.' . ++$round);
    $e->start;
    my $p = Written->new($e);

    my $id = $p->say('send', 'sink', 'Test.Written', 'from Python', 'k', '{"color": "gr\\u00fcn", "a.b": ""}');
    like $id, qr/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, "$pair: Python: a message has an id";
    is_deeply [ $e->read('sink') ], [], "$pair: Python: and is not sent before the commit";
    is $p->say('commit'), 'ok', "$pair: Python: commits";
    my ($got) = $e->collect('sink', 1, 'Python: it arrives');
    is $got->{id}, $id, "$pair: Python: under its id";
    is $got->{body}, 'from Python', "$pair: Python: with its body";
    is $got->{header}{color}, "gr\xc3\xbcn", "$pair: Python: and its headers";
    is $got->{header}{'a.b'}, '', "$pair: Python: empty ones, too";
    is $got->{header}{'NServiceBus.OriginatingEndpoint'}, $e->{name}, "$pair: Python: as from the endpoint";
    is $got->{header}{'NServiceBus.MessageIntent'}, 'Send', "$pair: Python: as any other message";
    is $got->{header}{$Endpoint::types}, 'Test.Written', "$pair: Python: of its type";
    is_done($e, 'Python');

    $p->say('send', 'sink', 'Test.Written', 'never');
    $p->say('sql', Written::effect($e, 'lost'));
    is $p->say('rollback'), 'ok', "$pair: Python: rolls back";
    $p->say('sql', Written::effect($e, 'kept'));
    $p->say('send', 'sink', 'Test.Written', 'with data');
    is $p->say('commit'), 'ok', "$pair: Python: data and a message in one transaction";
    is_deeply [ bodies($e->collect('sink', 1, 'Python: what was committed comes')) ], ['with data'], "$pair: Python: what was rolled back does not";
    is_deeply [ map { $_->[0] } $e->sql('select id from effects') ], ['kept'], "$pair: Python: as its data";

    my $m = 'a message ' . ("\xc3\xa4" x 3);
    is $p->say('claim', $m), 1, "$pair: Python: a message is claimed";
    is $p->say('rollback'), 'ok', "$pair: Python: given up";
    is $p->say('claim', $m), 1, "$pair: Python: claimed again";
    is $p->say('commit'), 'ok', "$pair: Python: for good";
    is $p->say('claim', $m), 0, "$pair: Python: is it new? no";
    is $p->say('claim', "$m "), 1, "$pair: Python: another is";
    is $p->say('rollback'), 'ok', "$pair: Python: rolls back";
    is $p->end, 0, "$pair: Python: ends";

    Written::by_client($e, 'sink', 'from the client');
    ($got) = $e->collect('sink', 1, 'its client: a message arrives');
    is $got->{body}, 'from the client', "$pair: its client: as it was written";
    my $perl = Written::by_perl($e, 'sink', "from \\ Perl \0 '\"", '{"language": "Perl"}');
    ($got) = $e->collect('sink', 1, 'Perl: a message arrives');
    is_deeply [ $got->{id}, $got->{body}, $got->{header}{language} ], [ $perl, "from \\ Perl \0 '\"", 'Perl' ], "$pair: Perl: as it was written";
    is_done($e, 'all');
    is $e->stop, 0, "$pair: the endpoint stops";
    is_deeply [ $e->log_lines('level=(?:warning|error)') ], [], "$pair: without a complaint";
    my ($code) = $e->run('install', '--sql-api');
    is $code, 0, "$pair: the interface is installed once more";
    ($code) = $e->run('install');
    is $code, 0, "$pair: and the endpoint without it";
}

sub events {
    my ($pair) = @_;
    my $e = endpoint($pair);
    my $p = Written->new($e);
    my $id = $p->say('publish', 'Test.Also', 'event', '', '{"do": "send sink Test.Written seen"}');
    is $p->say('commit'), 'ok', "$pair: an event is published while no instance runs";
    $e->start;
    my ($got) = $e->collect('sink', 1, 'its subscriber, the endpoint itself, has it when one does');
    is_deeply [ map { $_->[0] } $e->sql('select id from effects') ], [ unpack 'H*', $id ], "$pair: under its id";
    is $p->end, 0, "$pair: the program ends";
    is $e->stop, 0, "$pair: the endpoint stops";
}

# ---- order ----------------------------------------------------------------------------------
sub keys_wait {
    my ($pair) = @_;
    my $e = endpoint($pair);
    $e->start;
    my ($first, $second) = (Written->new($e), Written->new($e));
    $first->say('send', 'sink', 'Test.Written', '1', 'key');
    $second->tell('send', 'sink', 'Test.Written', '2', 'key');
    is $second->hear(0.3), undef, "$pair: who writes a key waits for whoever did before";
    my $other = Written->new($e);
    if ($pair ne 'sqlite') { # a file has one writer
        $other->say('send', 'sink', 'Test.Written', 'other', 'another key');
        is $other->say('commit'), 'ok', "$pair: and for nobody else";
        is_deeply [ bodies($e->collect('sink', 1, 'which is sent meanwhile')) ], ['other'], "$pair: though its number is later";
    }
    is $first->say('commit'), 'ok', "$pair: the first commits";
    isnt $second->hear, undef, "$pair: the second goes on";
    is $second->say('commit'), 'ok', "$pair: and commits";
    is_deeply [ bodies($e->collect('sink', 2, 'both come')) ], [ '1', '2' ], "$pair: in the order of their commits";
    is $_->end, 0, "$pair: a program ends" for $first, $second, $other;
    is $e->stop, 0, "$pair: the endpoint stops";
}

# Of a key whose first message can go nowhere, not even to the error queue, nothing goes.
sub keys_hold {
    my ($pair, $environment, $holds) = @_;
    local %ENV = (%ENV, %{ $environment || {} });
    my $e = endpoint($pair, error_queue => 'absent-errors');
    $e->start;
    $e->wait_for('it is up', sub { $e->log_lines('endpoint starts') });
    Written::drop_queue($e, 'absent-errors');
    my $p = Written->new($e);
    $p->say('send', 'nowhere-at-all', 'Test.Written', 'astray', 'held');
    $p->say('send', 'sink', 'Test.Written', 'behind', 'held');
    $p->say('send', 'sink', 'Test.Written', 'beside', 'free');
    $p->say('send', 'sink', 'Test.Written', 'without');
    is $p->say('commit'), 'ok', "$pair: the first of a key goes nowhere";
    my @got = $e->collect('sink', $holds ? 2 : 3, 'the others go');
    is_deeply [ sort(bodies(@got)) ], [ $holds ? () : 'behind', 'beside', 'without' ], "$pair: but for " . ($holds ? 'those behind it' : 'none: the bug is seen');
    if ($holds) {
        $e->wait_for('the reason is told', sub { $e->log_lines('cannot be sent: it is tried again later.*nowhere-at-all') });
        is rows($e), 2, "$pair: both wait";
        like +($e->sql('select reason from ' . Written::table($e) . ' where reason is not null'))[0][0], qr/./, "$pair: the row says why";
        $e->make_queue('nowhere-at-all');
        $e->sql('update ' . Written::table($e) . ' set due = 0');
        is_deeply [ bodies($e->collect('nowhere-at-all', 1, 'when it can go it goes')) ], ['astray'], "$pair: itself";
        is_deeply [ bodies($e->collect('sink', 1, 'and what waited')) ], ['behind'], "$pair: for it";
        is_done($e, 'order');
    }
    is $p->end, 0, "$pair: the program ends";
    is $e->stop, 0, "$pair: the endpoint stops";
}

# ---- what cannot be sent ----------------------------------------------------------------------
sub refused {
    my ($pair) = @_;
    my $e = endpoint($pair, body_max => '10KiB');
    $e->start;
    my $p = Written->new($e);
    like $p->say('send', 'sink', 'Test.Written', 'x', '', $_), qr/^error: /, "$pair: headers that are none are refused: $_"
        for '[1]', '{"a": 1}', '{"a": {"b": "c"}}', '{';
    like $p->say('send', '', 'Test.Written', 'x'), qr/^error: /, "$pair: so is an empty destination";
    like $p->say('send', 'sink', '', 'x'), qr/^error: /, "$pair: and an empty type";
    like $p->say('claim', ''), qr/^error: /, "$pair: and an empty id";
    like $p->say('send', 'sink', 'Test.Written', 'x', '', '{"a": "' . 'x' x 65536 . '"}'), qr/^error: .*64 KiB/, "$pair: and headers of more than 64 KiB";
    like $p->say('send', 'sink', 'Test.Written', 'x', '', '{' . join(', ', map { qq("h$_": "") } 0 .. 256) . '}'), qr/^error: .*256 headers/, "$pair: and more than 256 of them";
    like $p->say('send', 'sink', 'Test.Written', 'x', 'k' x 256), qr/^error: .*a key/, "$pair: and a key of more than 255 bytes";
    like $p->say('send', 'sink', 'T' x 256, 'x'), qr/^error: .*a type/, "$pair: and such a type";
    $p->say('send', 'sink', 'Test.Written', 'large' x 3000, 'k');
    my $astray = $p->say('send', 'not-there', 'Test.Written', 'astray', 'k', '{"a": "b"}');
    $p->say('send', 'sink', 'Test.Written', 'behind', 'k');
    $p->say('send', 'sink', 'Test.Written', 'beside');
    is $p->say('commit'), 'ok', "$pair: what is too large, or goes nowhere, is not known when it is written";
    is_deeply [ sort(bodies($e->collect('sink', 2, 'what can go goes'))) ], [ 'behind', 'beside' ], "$pair: behind them and beside";
    my @failed = $e->collect('error', 2, 'the others are in the error queue');
    my ($large) = grep { length $_->{body} > 100 } @failed;
    my ($gone) = grep { length $_->{body} < 100 } @failed;
    like $large->{header}{'NServiceBus.ExceptionInfo.Message'}, qr/15000 bytes is over body_max/, "$pair: with a reason";
    is_deeply [ @{ $gone->{header} }{ 'NServiceBus.FailedQ', 'NServiceBus.MessageId', 'a' } ], [ 'not-there', $astray, 'b' ], "$pair: as what a retry brings to where it was to go";
    is_done($e, 'refused');
    {
        my $key = Written::quoted($e, 'key');
        $e->sql('insert into ' . Written::table($e) . " (form, written, id, destination, type, headers, $key, body) values "
            . "(2, 1, 'later', 'sink', 'T', null, 'l', 'x'), (1, 1, 'behind', 'sink', 'T', null, 'l', 'behind'), "
            . "(1, 1, 'odd', 'sink', 'Test.Written', '{\"a\": 7}', null, 'odd'), (1, 1, 'good', 'sink', 'T', null, null, 'good')");
        is_deeply [ bodies($e->collect('sink', 1, 'rows that nobody checked')) ], ['good'], "$pair: a good one";
        my ($odd) = $e->collect('error', 1, 'one that can be no message is in the error queue');
        like $odd->{header}{'NServiceBus.ExceptionInfo.Message'}, qr/its headers cannot be read: a header's value is no string \(at byte 7\)/, "$pair: with the reason";
        is $odd->{header}{'Waybill.Written.Headers'}, '{"a": 7}', "$pair: and what it had";
        $e->wait_for('the others are gone', sub { rows($e) == 2 });
        is_deeply [ map { "@$_" } $e->sql('select id, due, tries from ' . Written::table($e) . ' order by number') ], [ 'later 0 0', 'behind 0 0' ],
            "$pair: what a later version wrote is left alone, and what is behind it with its key";
    }
    is $p->end, 0, "$pair: the program ends";
    is $e->stop, 0, "$pair: the endpoint stops";
}

# One program's open transaction is no other's affair, however many rows are removed at once.
sub beside_an_open_one {
    my ($pair) = @_;
    my $e = endpoint($pair);
    my ($many, $open) = map { Written->new($e) } 1 .. 2;
    is $many->say('many', 300, 'sink', 'Test.Written'), 'ok', "$pair: 300 are committed";
    $open->say('send', 'sink', 'Test.Written', 'open', 'k');
    $e->start;
    is scalar($e->collect('sink', 300, 'they are sent beside one whose transaction is open')), 300, "$pair: all of them";
    my $began = time;
    is_done($e, 'beside an open one');
    cmp_ok time - $began, '<', 40, "$pair: and removed without waiting for it";
    is $open->say('commit'), 'ok', "$pair: it is committed at last";
    is_deeply [ bodies($e->collect('sink', 1, 'and comes')) ], ['open'], "$pair: as it was";
    is $_->end, 0, "$pair: a program ends" for $many, $open;
    is $e->stop, 0, "$pair: the endpoint stops";
    is_deeply [ $e->log_lines('level=(?:warning|error)') ], [], "$pair: without a complaint";
}

# What a program asks of its commits is not to make messages of what is lost.
sub commits_are_flushed {
    my ($pair) = @_;
    my $e = endpoint($pair);
    my $p = Written->new($e);
    my $look = q(insert into effects select current_setting('synchronous_commit') || ' %s', 1, 0);
    $p->say('sql', q(set synchronous_commit = 'off'));
    $p->say('sql', sprintf $look, 'before');
    $p->say('send', 'sink', 'Test.Written', 'x');
    $p->say('sql', sprintf $look, 'after');
    $p->say('commit');
    $p->say('sql', sprintf $look, 'then');
    $p->say('sql', q(set local synchronous_commit = 'remote_apply'));
    $p->say('send', 'sink', 'Test.Written', 'x');
    $p->say('sql', sprintf $look, 'still');
    $p->say('commit');
    is_deeply [ sort map { $_->[0] } $e->sql('select id from effects') ], [ 'off before', 'off then', 'on after', 'remote_apply still' ],
        "$pair: the commit of a message is flushed, and no other";
    is $p->end, 0, "$pair: the program ends";
}

# Words that turn a table's own checks off.
sub insert_or {
    my ($pair) = @_;
    my $e = endpoint($pair);
    my $p = Written->new($e);
    my ($claim, $send) = map { Written::quoted($e, Written::prefix($e) . $_) } '_claim', '_send';
    for my $or ('or replace', 'or ignore', 'or abort') {
        is $p->say('sql', "insert $or into $claim (id) values ('$or')"), 'ok', "$pair: insert $or: a claim";
        is $p->say('commit'), 'ok', "$pair: insert $or: is made";
        like $p->say('sql', "insert $or into $claim (id) values ('$or')"), qr/^error: UNIQUE/, "$pair: insert $or: once";
        is $p->say('claim', $or), 0, "$pair: insert $or: and for all";
        like $p->say('sql', "insert $or into $send (id, destination, type) values ($_)"), qr/^error: /, "$pair: insert $or: $_ is refused"
            for q(null, 'q', 'T'), q('i', null, 'T'), q('i', 'q', null), q('i', '', 'T');
    }
    is $p->end, 0, "$pair: the program ends";
}

# ---- rights -------------------------------------------------------------------------------------
sub rights {
    my ($pair) = @_;
    my $e = endpoint($pair);
    $e->start;
    my @login = Written::make_role($e);
    my $p = Written->new($e, @login);
    like $p->say('send', 'sink', 'Test.Written', 'no'), qr/^error: .*(?:denied|permission)/i, "$pair: a role may not send";
    like $p->say('claim', 'm'), qr/^error: .*(?:denied|permission)/i, "$pair: nor claim";
    Written::grant($e);
    like $p->say('send', 'sink', 'Test.Written', 'yes', 'k'), qr/^[0-9a-f-]{36}$/, "$pair: once it is granted it may";
    like $p->say('publish', 'Test.Unheard', 'yes', 'k'), qr/^[0-9a-f-]{36}$/, "$pair: and publish";
    is $p->say('claim', 'm'), 1, "$pair: and claim";
    is $p->say('commit'), 'ok', "$pair: in a transaction of its own";
    is_deeply [ bodies($e->collect('sink', 1, 'it arrives')) ], ['yes'], "$pair: as others do";
    like $p->say('sql', "$_ " . Written::table($e)), qr/^error: .*(?:denied|permission)/i, "$pair: but it may not $_" for 'select * from', 'delete from';
    (my $dedup = Written::table($e)) =~ s/_written/_dedup/;
    like $p->say('sql', "delete from $dedup"), qr/^error: .*(?:denied|permission)/i, "$pair: nor delete records";
    is $p->end, 0, "$pair: the program ends";
    Written::drop_role($e);
    is $e->stop, 0, "$pair: the endpoint stops";
}

# ---- how soon, and how many ------------------------------------------------------------------------
sub soon {
    my ($pair) = @_;
    my $e = endpoint($pair);
    $e->start;
    $e->start;
    my $p = Written->new($e);
    $p->say('send', 'sink', 'Test.Written', 'warm');
    $p->say('commit');
    $e->collect('sink', 1, 'the first arrives');
    my @took;
    for my $n (1 .. 20) {
        $p->say('send', 'sink', 'Test.Written', $n);
        $p->say('commit');
        my $committed = time;
        until ($e->read('sink')) { die "$pair: $n does not come\n" if time > $committed + 20; sleep 0.001 }
        push @took, time - $committed;
    }
    @took = sort { $a <=> $b } @took;
    diag sprintf '%s: a message arrives %.0f ms (median of 20), at most %.0f ms after its commit', $pair, 1000 * $took[10], 1000 * $took[-1];
    cmp_ok $took[10], '<', 1, "$pair: a message arrives soon";
    $p->say('many', 300, 'sink', 'Test.Written');
    is_deeply [ sort { $a <=> $b } bodies($e->collect('sink', 300, 'many come, from two instances')) ], [ 0 .. 299 ], "$pair: each once";
    is_done($e, 'many');
    kill 'KILL', my $pid = shift @{ $e->{processes} };
    is $e->await_exit($pid), 'signal 9', "$pair: an instance is killed";
    $p->say('send', 'sink', 'Test.Written', 'after');
    $p->say('commit');
    is_deeply [ bodies($e->collect('sink', 1, 'the other one sends')) ], ['after'], "$pair: as it did";
    is $p->end, 0, "$pair: the program ends";
    is $e->stop, 0, "$pair: the endpoint stops";
}

# All connections to the database break, those of the instances too: the turn is somebody's again.
sub sessions_lost {
    my ($pair) = @_;
    my $e = endpoint($pair);
    $e->start;
    $e->start;
    for my $n (1 .. 3) {
        my $p = Written->new($e);
        $p->say('send', 'sink', 'Test.Written', $n, 'key');
        $p->say('commit');
        is_deeply [ bodies($e->collect('sink', 1, "message $n comes")) ], [$n], "$pair: once";
        is_done($e, "message $n");
        is $p->end, 0, "$pair: the program ends";
        Written::cut($e);
    }
    is $e->stop, 0, "$pair: the endpoint stops";
}

# ---- killed -----------------------------------------------------------------------------------------
# The bodies and ids that came when an instance was killed at a point, and another began.
sub killed_at {
    my ($pair, $point, $bug) = @_;
    my $e = endpoint($pair);
    my $p = Written->new($e);
    $p->say('send', 'sink', 'Test.Written', $_, $_ < 4 ? 'key' : '') for 1 .. 6;
    $p->say('send', 'absent', 'Test.Written', 'astray') if $point =~ /move/;
    $p->say('commit');
    {
        local %ENV = (%ENV, WAYBILL_CRASH => "$point:1", $bug ? (WAYBILL_BUG => $bug) : ());
        my $pid = $e->start;
        @{ $e->{processes} } = ();
        is $e->await_exit($pid), 'signal 9', "$pair: killed at $point";
    }
    local $ENV{WAYBILL_BUG} = $bug if $bug;
    $e->start;
    $e->wait_for("$point: nothing is left", sub { rows($e) == 0 });
    is $p->end, 0, "$pair: $point: the program ends";
    is $e->stop, 0, "$pair: $point: the endpoint stops";
    return $e->read('sink');
}

sub distinct { my %of; push @{ $of{ $_->{body} } }, $_ for @_; return \%of }
# What is sent twice is the same message.
sub not_equal {
    my (@got) = @_;
    my $of = distinct(@got);
    return grep { my @copies = @{ $of->{$_} }; grep { $_->{id} ne $copies[0]{id} || join("\0", map { @$_ } sort { $a->[0] cmp $b->[0] } @{ $_->{headers} })
        ne join("\0", map { @$_ } sort { $a->[0] cmp $b->[0] } @{ $copies[0]{headers} }) } @copies } sort keys %$of;
}

sub killed {
    my ($pair) = @_;
    for my $point (map { "written_$_" } qw(fetched before_dispatch after_dispatch before_settle after_settle before_move after_move)) {
        my @got = killed_at($pair, $point);
        my $of = distinct(@got);
        is_deeply [ sort keys %$of ], [ 1 .. 6 ], "$pair: $point: all came";
        is_deeply [ not_equal(@got) ], [], "$pair: $point: and what came twice is the same, id, headers and all";
        my %seen;
        is_deeply [ grep { !$seen{$_}++ } grep { $_ < 4 } bodies(@got) ], [ 1, 2, 3 ], "$pair: $point: the key's in order";
    }
}

sub bugs_are_seen {
    my ($pair) = @_;
    my @got = killed_at($pair, 'written_before_dispatch', 'written_settled_first');
    isnt join(' ', sort keys %{ distinct(@got) }), '1 2 3 4 5 6', "$pair: what is removed before it is sent is missed";
    @got = killed_at($pair, 'written_before_settle', 'written_new_ids');
    isnt scalar(not_equal(@got)), 0, "$pair: new ids are seen";
    keys_hold($pair, { WAYBILL_BUG => 'written_keys_ignored' }, 0);
}

# ---- what waits is seen ---------------------------------------------------------------------------------
sub told {
    my ($e, $when) = @_;
    my ($code, $text) = $e->run('outbox', 'pending');
    is $text, "written in SQL, not sent: 3 messages\n", "$e->{pair}: $when: outbox pending tells";
    ($code, $text) = $e->run('outbox', 'pending', '--json');
    is_deeply decode_json($text), [ { state => 'written', messages => 3 } ], "$e->{pair}: $when: for programs, too";
    ($code, $text) = $e->run('outbox', 'stats');
    like $text, qr/^messages that programs wrote in SQL\n  not sent +3\n/m, "$e->{pair}: $when: outbox stats tells";
    ($code, $text) = $e->run('outbox', 'stats', '--json');
    is_deeply decode_json($text)->{written}, { count => 3, is => 'exact' }, "$e->{pair}: $when: for programs, too";
}

sub what_waits {
    my ($pair) = @_;
    my $e = endpoint($pair);
    my ($code, $text) = $e->run('outbox', 'pending');
    is $text, '', "$pair: nothing is written, and outbox pending says nothing";
    my $p = Written->new($e);
    $p->say('send', 'sink', 'Test.Written', $_, 'key') for 1 .. 3;
    is $p->say('commit'), 'ok', "$pair: three messages are written";
    is $p->end, 0, "$pair: the program ends";
    told($e, 'while no instance runs');
    ($code, $text) = $e->run('uninstall');
    is $code, 75, "$pair: an endpoint with them is not removed";
    like $text, qr/3 messages written in SQL wait/, "$pair: and the line has their number";

    $e->sql('update ' . Written::table($e) . ' set due = 9000000000000000');
    $e->start;
    Written::by_client($e, 'sink', 'has the turn');
    is_deeply [ bodies($e->collect('sink', 1, 'an instance sends')) ], ['has the turn'], "$pair: what may go";
    $e->wait_for('and removes it', sub { rows($e) == 3 });
    told($e, 'beside an instance that has the turn');
    is $e->stop, 0, "$pair: the endpoint stops";

    ($code, $text) = $e->run('run', '--drain', '--idle', 2, '-p', 4);
    is $code, 75, "$pair: a drain waits for them";
    like $text, qr/not drained in time: endpoint "\Q$e->{name}\E": messages written in SQL wait$/m, "$pair: and says so";
    $e->sql('update ' . Written::table($e) . ' set due = 0');
    ($code, $text) = $e->run('run', '--drain', '--idle', 2, '-p', 40);
    is $code, 0, "$pair: one that may send them ends" or diag $text;
    is_deeply [ bodies($e->collect('sink', 3, 'they come')) ], [ 1 .. 3 ], "$pair: when they are sent";
    is rows($e), 0, "$pair: and nothing is left";
}

# ---- the installation ---------------------------------------------------------------------------------
sub installation {
    my ($pair) = @_;
    my $e = Endpoint->new($pair, name => 'plain' . ++$round, outbox => 'enabled = false;', files => "$round-", retries => 0);
    my ($code, $text) = $e->run('install', '--sql-api');
    is $code, 78, "$pair: without an outbox there is no interface in SQL";
    like $text, qr/--sql-api wants .*outbox/, "$pair: the line says what it wants";
    $e = Endpoint->new($pair, name => ('long' . $round . '-') x 9, outbox => 'enabled = true;', files => "$round-", retries => 0);
    ($code, $text) = $e->run('install', '--sql-api', '--print-sql');
    is $code, 0, "$pair: the SQL of an interface for a long name";
    like $text, qr/_written/, "$pair: is printed";
    ($code, my $without) = $e->run('install', '--print-sql');
    unlike $without, qr/_written/, "$pair: if it is asked for";
    ($code, $text) = $e->run('install', '--sql-api');
    is $code, 0, "$pair: it is installed" or diag $text;
    $e->prepare;
    $e->start;
    my $p = Written->new($e);
    $p->say('send', 'sink', 'Test.Written', 'long', 'k');
    is $p->say('commit'), 'ok', "$pair: and works";
    is_deeply [ bodies($e->collect('sink', 1, 'with long names')) ], ['long'], "$pair: as with short ones";
    is $p->end, 0, "$pair: the program ends";
    is $e->stop, 0, "$pair: the endpoint stops";
}

# A table that somebody else made has triggers of his, now or later: what programs call must not run them.
sub strangers {
    my ($pair) = @_;
    my $e = Endpoint->new($pair, name => 'desk' . ++$round, outbox => 'enabled = true;', files => "$round-", retries => 0);
    my ($code, $text) = $e->run('install');
    is $code, 0, "$pair: an endpoint without the interface";
    Written::make_role($e);
    my $table = Written::table($e);
    $e->sql(qq{grant create on schema public to "$e->{role}"; set role "$e->{role}"; create table $table (number bigint generated always as identity primary key, }
        . 'form bigint default 1, written bigint, due bigint default 0, tries bigint default 0, id text, destination text, type text, '
        . 'headers text, key text, reason text, body bytea); reset role');
    ($code, $text) = $e->run('install', '--sql-api');
    isnt $code, 0, "$pair: where a stranger made its table it is not installed";
    like $text, qr/belong to different roles/, "$pair: and the line says why";
    is_deeply [ $e->sql(q(select proname from pg_proc where proname = ') . Written::prefix($e) . q(_write')) ], [], "$pair: nothing of it";
    Written::drop_role($e);
    ($code, $text) = $e->run('install', '--sql-api');
    is $code, 0, "$pair: without his it is" or diag $text;
}

# What an earlier version made is not what a later one calls.
sub replaced {
    my ($pair) = @_;
    my $e = endpoint($pair);
    my $send = Written::quoted($e, Written::prefix($e) . '_send');
    $e->sql($_) for $pair eq 'sqlite' ? ("drop view $send", "create view $send as select 1 as id")
        : ("drop procedure $send", "create procedure $send() comment 'waybill 0' select 1");
    my ($code, $text) = $e->run('install', '--sql-api');
    is $code, 0, "$pair: it is installed over an earlier one";
    like $text, qr/a procedure is made anew.*send/, "$pair: and says which grants are gone" if $pair ne 'sqlite';
    ($code, $text) = $e->run('install', '--sql-api');
    unlike $text, qr/made anew/, "$pair: once";
    my $p = Written->new($e);
    like $p->say('send', 'sink', 'Test.Written', 'new'), qr/^[0-9a-f-]{36}$/, "$pair: as it is now";
    is $p->end, 0, "$pair: the program ends";
}

for my $pair (grep { !$ENV{WRITTEN_PAIR} || $_ eq $ENV{WRITTEN_PAIR} } Written::pairs()) {
    languages($pair);
    events($pair);
    keys_wait($pair);
    keys_hold($pair, undef, 1);
    refused($pair);
    beside_an_open_one($pair) if $pair ne 'sqlite'; # a file has one writer
    commits_are_flushed($pair) if $pair =~ /pgsql/;
    insert_or($pair) if $pair eq 'sqlite';
    rights($pair) if $pair ne 'sqlite'; # who may write the file may
    soon($pair);
    sessions_lost($pair) if $pair ne 'sqlite';
    killed($pair);
    bugs_are_seen($pair);
    what_waits($pair);
    installation($pair);
    strangers($pair) if $pair =~ /pgsql/;
    replaced($pair) if $pair !~ /pgsql/;
}
done_testing;
