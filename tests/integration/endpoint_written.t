#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What programs in other languages write in SQL: sent by any instance of the endpoint, in order where a key
# asks for it, or never there; what cannot be sent; rights; processes that are killed.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
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
        $e->sql('insert into ' . Written::table($e) . ' (form, written, id, destination, type, headers, body) values '
            . "(2, 1, 'later', 'sink', 'T', null, 'x'), (1, 1, 'odd', 'sink', 'Test.Written', '{\"a\": 7}', 'odd'), (1, 1, 'good', 'sink', 'T', null, 'good')");
        is_deeply [ bodies($e->collect('sink', 1, 'rows that nobody checked')) ], ['good'], "$pair: a good one";
        my ($odd) = $e->collect('error', 1, 'one that can be no message is in the error queue');
        like $odd->{header}{'NServiceBus.ExceptionInfo.Message'}, qr/its headers cannot be read: a header's value is no string \(at byte 7\)/, "$pair: with the reason";
        is $odd->{header}{'Waybill.Written.Headers'}, '{"a": 7}', "$pair: and what it had";
        $e->wait_for('what a later version wrote is left alone', sub { $e->log_lines('a later version of Waybill wrote this') });
        is_deeply [ map { $_->[0] } $e->sql('select id from ' . Written::table($e)) ], ['later'], "$pair: and stays";
    }
    is $p->end, 0, "$pair: the program ends";
    is $e->stop, 0, "$pair: the endpoint stops";
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

for my $pair (grep { !$ENV{WRITTEN_PAIR} || $_ eq $ENV{WRITTEN_PAIR} } Written::pairs()) {
    languages($pair);
    events($pair);
    keys_wait($pair);
    keys_hold($pair, undef, 1);
    refused($pair);
    rights($pair) if $pair ne 'sqlite'; # who may write the file may
    soon($pair);
    sessions_lost($pair) if $pair ne 'sqlite';
    killed($pair);
    bugs_are_seen($pair);
    installation($pair);
}
done_testing;
