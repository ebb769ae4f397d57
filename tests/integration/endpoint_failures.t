#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# An endpoint that keeps what comes to an error queue, and waybill failures: what failed is there once, by its failure
# and not by its id, listed and grouped; what is retried goes back to where it failed, once, whoever is killed and
# however many operators are at it; what was handled then is resolved.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;
use Failures qw(keeper failures json count ids table failed_in);

my @pairs = @ARGV ? @ARGV : ('sqlite+sqlite', 'amqp+pgsql', Endpoint::has_mysql() ? 'sqlite+mysql' : ());
my %servers = ('amqp+pgsql' => [qw(pgsql rabbitmq)], 'sqlite+mysql' => ['mariadb']);
Endpoint::under_servers(map { @{ $servers{$_} // [] } } @pairs);
my $n  = 'NServiceBus';
my $sc = 'ServiceControl.Retry';

sub check_list {
    my ($e) = @_;
    my $fails = "unless $e->{dir}/mended unrecoverable";
    $e->send('orders', (map { { id => "m$_", do => "$fails amount $_ is odd", body => "\0body $_", headers => [ [ mine => 'kept' ] ] } } 1 .. 12),
        { id => 'other', type => 'Test.Nobody', do => 'sql select 1' });
    $e->wait_for('what failed is kept', sub { count($e) == 13 });
    is_deeply [ sort split / /, ids($e, '--group', $_->{group}) ], $_->{count} == 12 ? [ sort map { "m$_" } 1 .. 12 ] : ['other'],
        "$e->{pair}: a group of $_->{count}" for @{ json($e, 'group') };
    is_deeply [ map { "$_->{type}: $_->{count}" } @{ json($e, 'group') } ], [ 'Test.Do: 12', 'Test.Nobody: 1' ], "$e->{pair}: largest first";
    is ids($e, '--type', 'Test.Nobody') . ids($e, '--of', 'nobody'), 'other', "$e->{pair}: by type and endpoint";
    is ids($e, '--reason', 'amount 7 is') . ids($e, '--queue', 'elsewhere'), 'm7', "$e->{pair}: by reason and queue";
    is ids($e, '--failed-before', '2001-01-01T00:00:00Z') . ids($e, '--status', 'retrying'), '', "$e->{pair}: by time and status";
    my @pages = map { ids($e, '--limit', 5, $_ ? ('--skip', $_) : ()) } 0, 5, 10;
    is join(' ', @pages), ids($e), "$e->{pair}: page by page";
    my ($one) = @{ json($e, 'show', '--id', 'm3') };
    is_deeply [ @$one{qw(id queue endpoint attempts status body_size)}, $one->{headers}{mine} ], [ 'm3', 'orders', 'orders', 1, 'failed', 7, 'kept' ], "$e->{pair}: one, whole";
    is((failures($e, 'show', '--id', 'm3', '--body'))[1], "\0body 3", "$e->{pair}: its body");
    like((failures($e, 'list', '-e', 'orders'))[1], qr/endpoint "orders" in \S+ keeps no failed messages/, "$e->{pair}: another endpoint keeps none");
    is $e->depth('error'), 0, "$e->{pair}: the error queue is empty";
    return $one->{failure};
}

# A copy that comes twice is one failure; the same message failing in another endpoint, or later, another. An attempt more is
# an attempt of the same message.
sub check_identity {
    my ($e) = @_;
    my $failed = sub { my ($id, $endpoint, $second) = @_; return { id => $id, type => 'T.T', body => $second, headers => [ [ "$n.FailedQ" => $endpoint ], [ "$n.ProcessingEndpoint" => $endpoint ],
        [ "$n.TimeOfFailure" => "2026-01-01 00:00:0$second:000000 Z" ], [ "$n.ExceptionInfo.Message" => 'no' ] ] } };
    $e->send('error', $failed->('same', 'here', 1), $failed->('same', 'here', 1), $failed->('same', 'there', 1), { id => 'plain', type => 'T.T', body => 'no failure' }, { id => 'nowhere', type => 'T.T', body => 'nor this', headers => [ [ "$n.FailedQ" => '' ] ] });
    $e->wait_for('two endpoints, two messages', sub { count($e, '--id', 'same') == 2 && $e->depth('error') == 0 });
    $e->send('error', $failed->('same', 'here', 2));
    my @got;
    $e->wait_for('each is known by its failure', sub { @got = sort { $a->{endpoint} cmp $b->{endpoint} } @{ json($e, 'list', '--id', 'same') }; @got == 2 && $got[0]{attempts} == 2 });
    is_deeply [ map { "$_->{endpoint} $_->{attempts}" } @got ], [ 'here 2', 'there 1' ], "$e->{pair}: two messages, three failures";
    is((failures($e, 'show', '--failure', $got[0]{failure}, '--body'))[1], '2', "$e->{pair}: the last counts");
    my @refused = $e->collect('kept.error', 2, 'what is no failed message is in its own error queue');
    is_deeply [ sort map { $_->{id} } @refused ], [qw(nowhere plain)], "$e->{pair}: nor is what names no queue";
    like $_->{header}{ $_->{id} eq 'plain' ? "$n.ExceptionInfo.Message" : 'Waybill.NotKept' }, qr/it has no header NServiceBus.FailedQ/, "$e->{pair}: with the reason" for @refused;
    is((failures($e, 'discard', '--reason', '', '--dry-run'))[0], 64, "$e->{pair}: an empty part of a reason says nothing");
    is((failures($e, 'archive', '--failure', $got[0]{failure}))[0], 0, "$e->{pair}: archived");
    is((failures($e, 'discard', '--failure', $got[1]{failure}))[0], 0, "$e->{pair}: discarded");
    is_deeply [ map { "$_->{endpoint} $_->{status}" } @{ json($e, 'list', '--id', 'same', '--status', 'any') } ], ['here archived'], "$e->{pair}: one is kept, the other not";
    is((failures($e, 'retry', '--failure', $got[0]{failure}))[0], 66, "$e->{pair}: what is archived is not retried");
}

sub check_refused {
    my ($e) = @_;
    is((failures($e, 'retry'))[0], 64, "$e->{pair}: what is to be retried must be said");
    is((failures($e, 'retry', '--id', 'nobody'))[0], 66, "$e->{pair}: of none there is none");
    is((failures($e, 'retry', '--all', '--status', 'any'))[0], 64, "$e->{pair}: only what failed is retried");
    my (undef, $text) = failures($e, 'retry', '--reason', 'amount', '--dry-run');
    is scalar(() = $text =~ /would be retried/g), 12, "$e->{pair}: a dry run says which";
    is count($e, '--reason', 'amount'), 12, "$e->{pair}: and changes nothing";
}

# The host is killed meanwhile, and several operators retry the same.
sub check_retry {
    my ($e) = @_;
    Endpoint::write_file("$e->{dir}/mended", '');
    my @operators = map { $e->spawn("$e->{dir}/operator.$_", 'failures', 'retry', '-c', $e->{conf}, '--reason', 'amount') } 1, 2;
    my $stopped = $e->stop('KILL');
    $e->start;
    my @codes = map { $e->await_exit($_) // 'does not end' } @operators;
    is scalar(grep { !/^(0|66|75)$/ } @codes), 0, "$e->{pair}: each operator knows what became of it: @codes";
    my $said = join '', map { Endpoint::read_file("$e->{dir}/operator.$_") } 1, 2;
    is scalar(() = $said =~ /^\S+  retried$/mg), 12, "$e->{pair}: each message was retried by one of them";
    unlike $said, qr/notice from/, "$e->{pair}: in transactions that were begun once";
    my @all = map { "m$_" } 1 .. 12;
    $e->wait_for('all are handled', sub { !$e->not_once(@all) }, 40);
    $e->wait_for('and resolved by their answers', sub { count($e, '--status', 'resolved') == 12 }, 40);
    is count($e, '--reason', 'amount'), 0, "$e->{pair}: none is left";
    is((failures($e, 'retry', '--id', 'm1'))[0], 66, "$e->{pair}: what was handled is not retried again");
}

# What fails again is the same message; a retry that dies between its steps sent it once or not at all. Between dispatch and
# mark it is sent again by whoever runs the endpoint, and what still cannot be handled fails twice: two attempts more, one message.
sub check_deaths {
    my ($e) = @_;
    my $attempts = 1;
    $e->{program} = 'waybill-test';
    for my $point (qw(retry_before_commit session_committed session_after_dispatch)) {
        local $ENV{WAYBILL_CRASH} = "$point:1";
        is((failures($e, 'retry', '--id', 'other'))[0], 'signal 9', "$e->{pair}: killed at $point");
        delete $ENV{WAYBILL_CRASH};
        $attempts += { retry_before_commit => 0, session_committed => 1, session_after_dispatch => 2 }->{$point};
        my $m;
        $e->wait_for("what was retried at $point failed $attempts times", sub { ($m) = @{ json($e, 'list', '--id', 'other') }; $m && $m->{attempts} >= $attempts }, 40);
        is_deeply [ count($e, '--id', 'other', '--status', 'any'), $m->{attempts}, $m->{status} ], [ 1, $attempts, 'failed' ], "$e->{pair}: and is one message";
    }
    delete $e->{program};
    $e->wait_for("nothing is on its way from or to $_", sub { $e->depth($_) == 0 }) for qw(orders error);
}

# Whoever reads the queue gets each under one id, with equal bytes if it comes twice.
sub check_sent {
    my ($e) = @_;
    $e->send('error', map { { id => $_, type => 'T.T', body => 'as it came', headers => [ [ mine => 'kept' ], [ "$n.FailedQ" => 'sink' ], [ "$n.ProcessingEndpoint" => 'sink' ],
        [ "$n.TimeOfFailure" => '2026-01-01 00:00:01:000000 Z' ], [ "$n.ExceptionInfo.Message" => 'no' ], [ "$n.Retries" => 3 ] ] } } 'back', 'b1' .. 'b5');
    $e->wait_for('messages of another endpoint are kept', sub { count($e, '--of', 'sink') == 6 });
    my ($kept) = @{ json($e, 'list', '--id', 'back') };
    my @operators = map { $e->spawn("$e->{dir}/operator.$_", 'failures', 'retry', '-c', $e->{conf}, '--of', 'sink') } 3, 4;
    is scalar(grep { ($e->await_exit($_) // -1) !~ /^(0|66|75)$/ } @operators), 0, "$e->{pair}: two operators are done";
    my %got = map { $_->{id} => $_ } $e->collect('sink', 6, 'all are sent to the queue they failed in');
    is_deeply [ sort keys %got ], [ sort 'back', 'b1' .. 'b5' ], "$e->{pair}: each of them";
    my $got = $got{back};
    my %header = %{ $got->{header} };
    is_deeply [ @$got{qw(id body)}, @header{ 'mine', "$sc.UniqueMessageId", "$sc.AcknowledgementQueue" } ], [ 'back', 'as it came', 'kept', $kept->{failure}, 'error' ], "$e->{pair}: as it came, and with its name here";
    is_deeply [ grep { /^\Q$n\E\.(FailedQ|TimeOfFailure|Retries|ExceptionInfo|TimeSent|ReplyTo)/ } keys %header ], [], "$e->{pair}: without its failure";
    is json($e, 'list', '--id', 'back', '--status', 'retrying')->[0]{failure}, $kept->{failure}, "$e->{pair}: nobody knows yet what became of it";
}

# An edited message is another one: with an id of its own, which names the failure, and stays the same whoever dies.
sub check_edit {
    my ($e) = @_;
    my ($kept) = @{ json($e, 'list', '--id', 'other') };
    my @edit = ('edit-retry', '--failure', $kept->{failure});
    is((failures($e, @edit))[0], 64, "$e->{pair}: what is to be edited must be said");
    is((failures($e, 'retry', '--failure', $kept->{failure}, '--header', 'a=b'))[0], 64, "$e->{pair}: and is not edited by the way");
    is((failures($e, @edit, '--header', $_))[0], 64, "$e->{pair}: not $_") for "$n.MessageId=x", "$n.FailedQ=x", "a=\x01";
    is((failures($e, @edit, '--header', 'a=b', '--dry-run'))[1] =~ /would be edited and retried$/m, 1, "$e->{pair}: a dry run says so");
    is((failures($e, @edit, '--header', "$n.EnclosedMessageTypes=Test.Do"))[0], 0, "$e->{pair}: the type was wrong");
    $e->wait_for('the edited one is handled, and its answer resolves the failure', sub { count($e, '--id', 'other', '--status', 'resolved') == 1 }, 40);
    is $e->effects('other'), 0, "$e->{pair}: not under the old id";

    $e->send('error', { id => 'wrong', type => 'T.T', body => 'bad', headers => [ [ mine => 'kept' ], [ spare => 'x' ], [ stays => 'y' ], [ "$n.FailedQ" => 'sink' ],
        [ "$n.MessageId" => 'wrong' ], [ "$n.ProcessingEndpoint" => 'edited' ], [ "$n.TimeOfFailure" => '2026-01-01 00:00:01:000000 Z' ], [ "$n.ExceptionInfo.Message" => 'no' ] ] });
    $e->wait_for('another is kept', sub { count($e, '--id', 'wrong') == 1 });
    ($kept) = @{ json($e, 'list', '--id', 'wrong') };
    Endpoint::write_file("$e->{dir}/body", "good\0\xff");
    @edit = ('edit-retry', '--id', 'wrong', '--body-file', "$e->{dir}/body", '--header', 'mine=other=1', '--remove-header', 'spare');
    {
        local ($e->{program}, $ENV{WAYBILL_CRASH}) = ('waybill-test', 'session_after_dispatch:1');
        is((failures($e, @edit))[0], 'signal 9', "$e->{pair}: killed when it had left");
    }
    is((failures($e, @edit))[0], 66, "$e->{pair}: and not edited twice");
    my ($got, $copy) = $e->collect('sink', 2, 'the edited one leaves, and again, since nobody knew');
    is_deeply [ @$got{qw(id body)}, $got->{header} ], [ @$copy{qw(id body)}, $copy->{header} ], "$e->{pair}: with one new id and equal bytes";
    my %header = %{ $got->{header} };
    is_deeply [ $got->{body}, @header{ qw(mine spare stays), 'ServiceControl.EditOf', "$sc.UniqueMessageId", "$n.FailedQ" } ],
        [ "good\0\xff", 'other=1', undef, 'y', $kept->{failure}, $kept->{failure}, undef ], "$e->{pair}: edited, and with the failure's name";
    isnt $got->{id}, 'wrong', "$e->{pair}: under a new id";
    is $header{"$n.MessageId"} // $got->{id}, $got->{id}, "$e->{pair}: in its header, too";
    $e->send('error', { id => $got->{id}, type => 'T.T', body => 'still bad', headers => [ [ 'ServiceControl.EditOf' => $kept->{failure} ], [ "$n.FailedQ" => 'sink' ],
        [ "$n.ProcessingEndpoint" => 'edited' ], [ "$n.TimeOfFailure" => '2026-01-01 00:00:02:000000 Z' ] ] });
    $e->wait_for('one that fails again is a failure of its own', sub { count($e, '--id', $got->{id}) == 1 && count($e, '--id', 'wrong', '--status', 'archived') == 1 });
}

# Out to a file, and in again: whole, with its status, and nothing that is there is touched.
sub check_export {
    my ($e) = @_;
    my $file = "$e->{dir}/failures.jsonl";
    $e->send('error', { id => 'out', type => 'T.T', body => "\0\xff\n", headers => [ [ mine => "\xc3\xa9\"" ], [ "$n.FailedQ" => 'sink' ], [ "$n.ProcessingEndpoint" => 'out' ],
        [ "$n.TimeOfFailure" => '2026-01-01 00:00:01:123456 Z' ], [ "$n.ExceptionInfo.Message" => 'no' ] ] });
    $e->wait_for('one is kept that is no text', sub { count($e, '--id', 'out') == 1 });
    my $look = sub { my ($one) = @{ json($e, 'show', '--id', $_[0], '--status', 'any') }; delete @$one{qw(changed_at attempts)}; return [ $one, (failures($e, 'show', '--id', $_[0], '--body'))[1] ] };
    my @before = map { $look->($_) } qw(out other);
    my $count = count($e, '--status', 'any');
    is((failures($e, 'export', '--status', 'any', '--file', $file))[0], 0, "$e->{pair}: exported");
    my @lines = split /\n/, Endpoint::read_file($file);
    is scalar @lines, $count, "$e->{pair}: a line each";
    chmod 0644, $file;
    symlink $file, "$file.link" or die "symlink: $!\n";
    is((failures($e, 'export', '--id', 'out', '--file', "$file.link"))[0], 0, "$e->{pair}: exported through a link");
    is_deeply [ -l "$file.link" ? 'a link' : '', Endpoint::read_file($file), (stat $file)[2] & 0777 ], [ 'a link', (grep { /"id":"out"/ } @lines)[0] . "\n", 0600 ], "$e->{pair}: which stays, and the file is its owner's";
    symlink '/dev/full', "$file.full" or die "symlink: $!\n";
    is((failures($e, 'export', '--id', 'out', '--file', "$file.full"))[0], 74, "$e->{pair}: a device is written in its place");
    Endpoint::write_file($file, join '', map { "$_\n" } @lines);
    is((failures($e, 'export', '--id', 'out'))[1], (grep { /"id":"out"/ } @lines)[0] . "\n", "$e->{pair}: one, to standard output");
    is(join(' ', map { $_->{outcome} } @{ json($e, 'import', '--file', $file) }), join(' ', ('left alone') x $count), "$e->{pair}: what is there is left alone");
    my ($one) = @{ json($e, 'show', '--id', 'out') };
    Endpoint::write_file("$file.old", (grep { /"id":"out"/ } @lines)[0] =~ s/00:00:01:123456/00:00:00:123456/r . "\n");
    is json($e, 'import', '--file', "$file.old")->[0]{outcome}, 'left alone', "$e->{pair}: an earlier failure of it, too";
    is_deeply json($e, 'show', '--id', 'out'), [$one], "$e->{pair}: with all that is known of it";
    failures($e, 'discard', '--id', $_, '--status', $_ eq 'out' ? 'failed' : 'resolved') for qw(out other);
    is count($e, '--status', 'any'), $count - 2, "$e->{pair}: two are gone";
    is(scalar(grep { $_->{outcome} eq 'imported' } @{ json($e, 'import', '--file', $file) }), 2, "$e->{pair}: and come back");
    is_deeply [ map { $look->($_) } qw(out other) ], \@before, "$e->{pair}: as they were, with their status";
    (my $undated = (grep { /"id":"out"/ } @lines)[0]) =~ s/"failed_at":"[^"]*",//;
    Endpoint::write_file("$file.undated", $undated =~ s/"id":"out"/"id":"undated"/r . "\n");
    is json($e, 'import', '--file', "$file.undated")->[0]{outcome}, 'imported', "$e->{pair}: one that says not when it failed";
    is count($e, '--id', 'undated', '--status', 'any'), 1, "$e->{pair}: is there";
    failures($e, 'discard', '--id', 'undated');
    Endpoint::write_file($file, "$lines[0]\n{\"id\": \"x\"}\n");
    my ($code, $text) = failures($e, 'import', '--file', $file);
    is $code, 65, "$e->{pair}: a line that is none";
    like $text, qr/failures\.jsonl:2: field "body" is missing/, "$e->{pair}: with its place and reason";
    is((failures($e, 'import', '--all', '--status', 'failed'))[0], 64, "$e->{pair}: all of a file is imported");
    failures($e, 'discard', '--id', 'out');
}

# The row of a failure: how large it is, all of it, and another in its place.
sub where_id { my ($e, $key) = @_; my $hex = unpack 'H*', $key; return $e->{pair} =~ /pgsql/ ? "where id = '\\x$hex'" : "where id = x'$hex'" }
sub row_size { my ($e, $key) = @_; return ($e->sql('select length(message) from ' . table($e) . ' ' . where_id($e, $key)))[0][0] }
sub row {
    my ($e, $key) = @_;
    my $hex = $e->{pair} =~ /pgsql/ ? "encode(message, 'hex')" : 'hex(message)';
    return pack 'H*', ($e->sql("select $hex from " . table($e) . ' ' . where_id($e, $key)))[0][0];
}
sub set_row {
    my ($e, $key, $row) = @_;
    my $hex = unpack 'H*', $row;
    $e->sql('update ' . table($e) . ' set message = ' . ($e->{pair} =~ /pgsql/ ? "'\\x$hex'" : "x'$hex'") . ' ' . where_id($e, $key));
}
sub key_of { my ($e, $id) = @_; return json($e, 'list', '--id', $id, '--status', 'any')->[0]{failure} }
sub large { my ($endpoint, %body) = @_; return map { { %{ failed_in($endpoint, '2026-01-01 00:00:01', $_) }, body => $body{$_} } } sort keys %body }
sub with_group { my ($e, $group, $deed) = @_; { local $Failures::group = $group; $e->configure; $deed->() } $e->configure; return }

# Large bodies are kept compressed where that is worth it, and whoever asks gets them as they came.
sub check_large {
    my ($e) = @_;
    my ($file, $never) = ("$e->{dir}/large.jsonl", 'failures = { from = ["error"]; compress_over = "0"; };');
    srand 1;
    my %body = (words => join('', map { qq({"sku":"A-$_"},) } 1 .. 15_000), noise => pack('C*', map { int rand 256 } 1 .. 150_000), limit => 'x' x 65_536);
    my $look = sub { my ($id) = @_; return [ json($e, 'show', '--id', $id)->[0]{body_size}, (failures($e, 'show', '--id', $id, '--body'))[1] eq $body{$id} ] };
    my $sizes = sub { return join ' ', map { my $size = row_size($e, key_of($e, $_)); "$_ " . ($size < length($body{$_}) / 2 ? 'less' : $size > length $body{$_} ? 'whole' : $size) } sort keys %body };
    $e->send('error', large('large', %body));
    $e->wait_for('large ones are kept', sub { count($e, '--of', 'large') == 3 });
    is $sizes->(), 'limit whole noise whole words less', "$e->{pair}: compressed is what is over the limit and becomes smaller";
    is_deeply $look->($_), [ length $body{$_}, 1 ], "$e->{pair}: $_: as it came" for sort keys %body;
    is((failures($e, 'export', '--of', 'large', '--file', $file))[0], 0, "$e->{pair}: exported");
    (my $text = $body{words}) =~ s/"/\\"/g;
    isnt index(Endpoint::read_file($file), qq("body":"$text")), -1, "$e->{pair}: as text";
    failures($e, 'discard', '--of', 'large');
    is(scalar(grep { $_->{outcome} eq 'imported' } @{ json($e, 'import', '--file', $file) }), 3, "$e->{pair}: and imported");
    is $sizes->(), 'limit whole noise whole words less', "$e->{pair}: compressed again";
    with_group($e, $never, sub {
        is_deeply $look->('words'), [ length $body{words}, 1 ], "$e->{pair}: read without the option";
        failures($e, 'discard', '--id', 'words');
        json($e, 'import', '--file', $file);
        is $sizes->(), 'limit whole noise whole words whole', "$e->{pair}: which keeps all as they are";
    });
    is_deeply $look->('words'), [ length $body{words}, 1 ], "$e->{pair}: and is read with it";
    failures($e, 'discard', '--id', 'words');
    json($e, 'import', '--file', $file);
    is((failures($e, 'edit-retry', '--id', 'words', '--header', 'mine=edited'))[0], 0, "$e->{pair}: edited");
    my ($got) = $e->collect('sink', 1, 'the edited one leaves');
    ok $got->{body} eq $body{words} && $got->{header}{mine} eq 'edited', "$e->{pair}: with the body it had";
    like((failures($e, 'discard', '--id', 'words'))[1], qr/no such failed message whose status is failed:/, "$e->{pair}: what is retrying is not meant");
    like((failures($e, 'discard', '--id', 'words', '--status', 'retrying'))[1], qr/sent back before, which this does not call back: 1$/m, "$e->{pair}: or it is, and goes on");
    json($e, 'import', '--file', $file);
    is((failures($e, 'retry', '--of', 'large'))[0], 0, "$e->{pair}: retried");
    my %sent = map { $_->{id} => $_->{body} } $e->collect('sink', 3, 'all are sent');
    is_deeply [ map { ($sent{$_} // '') eq $body{$_} ? $_ : () } sort keys %body ], [ sort keys %body ], "$e->{pair}: each with its bytes";
    failures($e, 'discard', '--of', 'large', '--status', 'retrying');
}

# One that cannot be read is nobody else's affair: it is named, stays as it was, and the others are seen to.
sub check_damaged {
    my ($e) = @_;
    my $file = "$e->{dir}/damaged.jsonl";
    my %body = map { $_ => "$_ again, " x 10_000 } qw(body cut first good);
    $e->send('error', large('damaged', %body), large('elsewhere', cut => 'another'));
    $e->wait_for('five are kept', sub { count($e, '--of', 'damaged') + count($e, '--of', 'elsewhere') == 5 });
    my %key = map { $_->{id} => $_->{failure} } @{ json($e, 'list', '--of', 'damaged') };
    my %id = reverse %key;
    set_row($e, $key{body}, do { my $row = row($e, $key{body}); substr($row, -10, 1) ^= "\x01"; $row });
    set_row($e, $key{cut}, substr row($e, $key{cut}), 0, -9);
    my $said = sub { my ($wanted, $text, $what) = @_; is_deeply [ sort { $a cmp $b } map { $id{$_} // $_ } $text =~ /^waybill: failure (\S+): the message.* is damaged where it is kept: /mg ], $wanted, "$e->{pair}: $what" or diag $text };
    is count($e, '--of', 'damaged'), 4, "$e->{pair}: lists have all of them";
    is json($e, 'show', '--id', 'body')->[0]{body_size}, length $body{body}, "$e->{pair}: a damaged body costs nothing but itself";
    my ($code, $text) = failures($e, 'show', '--id', 'cut');
    is_deeply [ $code, $text =~ /^endpoint +(\S+)/mg ], [ 65, 'elsewhere' ], "$e->{pair}: of two by one id one is shown";
    $said->(['cut'], $text, 'and the other named');
    ($code, $text) = failures($e, 'show', '--id', 'body', '--body');
    is $code, 65, "$e->{pair}: the body itself is not shown";
    $said->(['body'], $text, 'and why');
    ($code, $text) = failures($e, 'export', '--of', 'damaged', '--file', $file);
    is_deeply [ $code, [ sort { $a cmp $b } Endpoint::read_file($file) =~ /"id":"(\w+)"/g ] ], [ 65, [qw(first good)] ], "$e->{pair}: exported are the others";
    $said->([qw(body cut)], $text, 'and these not');
    Endpoint::write_file("$file.last", "it has them\n");
    ($code, $text) = failures($e, 'export', '--of', 'damaged', '--file', "$file.last");
    is_deeply [ $code, Endpoint::read_file("$file.last") ], [ 65, "it has them\n" ], "$e->{pair}: a file that is there is not replaced by less";
    my ($beside) = $text =~ /the others are in "([^"]+)"$/m;
    is_deeply [ sort { $a cmp $b } Endpoint::read_file($beside) =~ /"id":"(\w+)"/g ], [qw(first good)], "$e->{pair}: which is beside it";
    with_group($e, 'failures = { from = ["error"]; }; body_max = "64KiB";', sub {
        my @told = failures($e, 'show', '--id', 'good', '--body');
        is $told[0], 65, "$e->{pair}: not one that is larger than it may be";
        like $told[1], qr/^waybill: failure \Q$key{good}\E: the message's body is larger than body_max: set that higher/m, "$e->{pair}: with the remedy";
    });
    ($code, $text) = failures($e, 'retry', '--of', 'damaged');
    is_deeply [ $code, scalar(() = $text =~ /  retried$/mg), scalar(() = $text =~ /  cannot be read$/mg) ], [ 65, 2, 2 ], "$e->{pair}: retried are the others";
    $said->([qw(body cut)], $text, 'and these not');
    is join(' ', map { "$_->{id} $_->{body}" eq "$_->{id} $body{$_->{id}}" ? $_->{id} : () } sort { $a->{id} cmp $b->{id} } $e->collect('sink', 2, 'two are sent')), 'first good', "$e->{pair}: as they came";
    is ids($e, '--of', 'damaged'), join(' ', map { $id{$_} } sort @key{qw(body cut)}), "$e->{pair}: what cannot be read waits";
    Endpoint::write_file("$e->{dir}/body", 'mended');
    is((failures($e, 'edit-retry', '--failure', $key{$_}, '--body-file', "$e->{dir}/body"))[0], $_ eq 'cut' ? 65 : 0, "$e->{pair}: another body for $_") for qw(body cut);
    is(($e->collect('sink', 1, 'it is sent'))[0]{body}, 'mended', "$e->{pair}: with another body it goes");
    failures($e, 'discard', '--of', 'damaged', '--status', $_) for qw(failed retrying);
    failures($e, 'discard', '--of', 'elsewhere');
}

# From a time on, with what failed then; before another, without it. What changes messages takes those and no others.
sub check_times {
    my ($e) = @_;
    my $when = sub { my %at = @_; return map { ("--failed-$_", "2000-01-01T00:00:0$at{$_}Z") } sort keys %at };
    $e->send('error', map { failed_in('timed', "2000-01-01 00:00:0$_", "t$_") } 1 .. 7);
    $e->wait_for('seven failed, each at its time', sub { count($e, '--of', 'timed') == 7 });
    for ([ 't1 t2', before => 3 ], [ 't6 t7', from => 6 ], [ 't3 t4', from => 3, before => 5 ], [ '', from => 5, before => 5 ]) {
        my ($wanted, @at) = @$_;
        my @which = ('--of', 'timed', $when->(@at));
        is ids($e, @which), $wanted, "$e->{pair}: failed @at";
        is_deeply [ map { $_->{count} } @{ json($e, 'group', @which) } ], [ scalar(() = $wanted =~ /t/g) || () ], "$e->{pair}: so many, failed @at";
    }
    for ([ 'archive', 'archived', '--of', 'timed', $when->(from => 3, before => 5) ], [ 'discard', 'discarded', '--of', 'timed', $when->(from => 6) ],
        [ 'retry', 'retried', '--of', 'timed', $when->(from => 2, before => 3) ], [ 'retry', 'retried', $when->(before => 3) ]) {
        my ($deed, $outcome, @which) = @$_;
        my $wanted = count($e, @which);
        is scalar(() = (failures($e, $deed, '--dry-run', @which))[1] =~ /  would be $outcome$/mg), $wanted, "$e->{pair}: $deed @which: a dry run says how many";
        my ($code, $text) = failures($e, $deed, @which);
        is_deeply [ $code, scalar(() = $text =~ /  $outcome$/mg) ], [ 0, $wanted ], "$e->{pair}: $deed @which: as many";
    }
    my %status = map { $_->{id} => $_->{status} } @{ json($e, 'list', '--of', 'timed', '--status', 'any') };
    is_deeply \%status, { t1 => 'retrying', t2 => 'retrying', t3 => 'archived', t4 => 'archived', t5 => 'failed' }, "$e->{pair}: what was to be changed is, and the rest waits";
    is_deeply [ sort map { $_->{id} } $e->collect('sink', 2, 'what was retried is sent') ], [qw(t1 t2)], "$e->{pair}: each once";
}

# More than one transaction takes: one of the last as well as of the first.
sub check_many {
    my ($e) = @_;
    my @all = map { "many$_" } 1 .. 201;
    $e->send('error', map { failed_in('many', '2026-01-01 00:00:01', $_) } @all);
    $e->wait_for('many are kept', sub { count($e, '--of', 'many') == @all });
    my ($code, $text) = failures($e, 'retry', '--of', 'many');
    is_deeply [ $code, scalar(() = $text =~ /  retried$/mg) ], [ 0, scalar @all ], "$e->{pair}: more than one transaction takes are retried" or diag $text =~ s/.*  retried\n//mgr;
    is_deeply [ sort map { $_->{id} } $e->collect('sink', scalar @all, 'all of them are sent') ], [ sort @all ], "$e->{pair}: each once, of so many";
}

# What nobody waits for goes when the retention is over; what waits stays.
sub check_retention {
    my ($e) = @_;
    $e->send('error', { id => 'waits', type => 'T.T', body => '', headers => [ [ "$n.FailedQ" => 'sink' ], [ "$n.TimeOfFailure" => '2026-01-01 00:00:01:000000 Z' ] ] });
    $e->wait_for('one more waits', sub { count($e, '--id', 'waits') == 1 });
    $e->sql('update ' . table($e) . ' set changed_at = 1');
    $e->wait_for('what is old and done is removed', sub { !grep { count($e, '--status', $_) } qw(resolved archived retrying) });
    is count($e, '--id', 'waits'), 1, "$e->{pair}: what waits stays";
    $e->sql('update ' . table($e) . q( set summary = 'as a later version writes it'));
    like +(failures($e, 'retry', '--all'))[1], qr/^waybill: endpoint "kept": failed messages that a later version kept, .*: [1-9]\d*$/m, "$e->{pair}: what cannot be read is told of";
}

# Rows grow old by the database's clock: a host that is behind by more than the retention says nothing of when they were changed.
sub check_clock {
    my ($e) = @_;
    my ($environment, $clock, $file) = (\&Endpoint::environment, "$e->{dir}/clock", "$e->{dir}/exported");
    no warnings 'redefine';
    local *Endpoint::environment = sub { return ($environment->(@_), LD_PRELOAD => "$ENV{top_builddir}/tests/integration/.libs/wall_clock.so", WB_CLOCK => $clock) };
    my $of_today = sub { return ($e->sql('select count(*) from ' . table($e) . ' where changed_at > ' . (time - 86_400) . '000000'))[0][0] };
    Endpoint::write_file($clock, pack 'q', -40 * 86_400);
    is $e->stop, 0, "$e->{pair}: an orderly end";
    $e->sql('delete from ' . table($e));
    $e->start;
    $e->send('error', map { failed_in('behind', '2026-01-01 00:00:01', $_) } qw(kept archived retried imported));
    $e->wait_for('they are kept', sub { count($e) == 4 });
    is $of_today->(), 4, "$e->{pair}: what a host kept that is 40 days behind is new";
    is((failures($e, 'archive', '--id', 'archived'))[0], 0, "$e->{pair}: archived there");
    is((failures($e, 'retry', '--id', 'retried'))[0], 0, "$e->{pair}: retried there");
    is((failures($e, 'export', '--file', $file, '--id', 'imported'))[0], 0, "$e->{pair}: exported there");
    is((failures($e, 'discard', '--id', 'imported'))[0], 0, "$e->{pair}: discarded");
    is((failures($e, 'import', '--file', $file))[0], 0, "$e->{pair}: and imported there");
    is(($e->collect('sink', 1, 'what is retried leaves'))[0]{id}, 'retried', "$e->{pair}: it has left");
    sleep 3;    # rounds of clean-up
    is $of_today->(), 4, "$e->{pair}: what was changed there is new, and is not removed";
    is ids($e, '--status', 'archived') . ids($e, '--status', 'retrying'), 'archivedretried', "$e->{pair}: each";
    is $e->stop, 0, "$e->{pair}: an orderly end";
    unlink $clock;
    $e->start;
}

sub check_uninstall_of_a_running_one {
    my ($e) = @_;
    for my $how ([], ['--dry-run'], ['--force']) {
        my ($code, $text) = $e->run('uninstall', '-e', 'kept', @$how);
        is $code, 75, "$e->{pair}: uninstall @$how: not while it runs" or diag $text;
        like $text, qr/^waybill: endpoint "kept": \d sessions? receives? from queue "error": stop its instances, and whoever else reads that$/m, "$e->{pair}: and says who has to stop";
    }
}

sub refuses_to_remove {
    my ($e, $wanted) = @_;
    for my $how ([], ['--dry-run']) {
        my ($code, $text) = $e->run('uninstall', '-e', 'kept', @$how);
        is $code, 75, "$e->{pair}: uninstall @$how: not while there are $wanted" or diag $text;
        like $text, qr/^waybill: endpoint "kept": $wanted: let it run until all is done, and retry, archive or discard what failed \(waybill failures\); --force removes/m, "$e->{pair}: and says what is to be done";
    }
}

# What somebody has to see to, or to hear of, is not removed unasked.
sub check_removal {
    my ($e) = @_;
    my $count = sub { return ($e->sql('select count(*) from ' . table($e)))[0][0] };
    my ($all, $is_one) = ($count->(), $e->{pair} eq 'sqlite+sqlite');
    for my $status (1, 2) {
        $e->sql('update ' . table($e) . " set status = $status");
        refuses_to_remove($e, "$all failed messages are unresolved");
    }
    if ($is_one) {
        $e->sql('with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000) insert into ' . table($e)
            . q{ (id, status, attempts, failed_at, changed_at, summary, message) select randomblob(16), i % 2 + 1, 1, i, i, x'', x'' from n});
        refuses_to_remove($e, '1000 or more failed messages are unresolved');
        $e->sql('delete from ' . table($e) . q( where summary = x''));
    }
    is $count->(), $all, "$e->{pair}: all of them are there";
    $e->sql('update ' . table($e) . ' set status = 3 + failed_at % 2') unless $is_one;
    my ($code, $text) = $e->run('uninstall', '-e', 'kept', $is_one ? '--force' : ());
    is $code, 0, "$e->{pair}: uninstalled" or diag $text;
    is((failures($e, 'list'))[0], 72, "$e->{pair}: its table is gone");
    is eval { $e->depth('error') } // 'gone', 0, "$e->{pair}: the error queue is there, and nothing came back to it";
}

for my $pair (@pairs) {
    my $e = Endpoint->new($pair);
    $e->configure(batch_max => 1, beside => [ keeper($e) ]);    # two copies in one batch would fail at once: one failure
    $e->install;
    $e->start;
    check_list($e);
    check_identity($e);
    check_refused($e);
    check_retry($e);
    check_deaths($e);
    check_sent($e);
    check_edit($e);
    check_export($e);
    check_large($e);
    check_damaged($e);
    check_times($e);
    check_many($e) if $pair eq 'sqlite+sqlite';
    check_retention($e);
    check_uninstall_of_a_running_one($e);
    check_clock($e) if $pair eq 'amqp+pgsql';
    for my $name (qw(orders kept)) {
        $e->wait_for("nothing is pending of $name", sub { local $e->{name} = $name; $e->pending == 0 });
    }
    is $e->stop, 0, "$pair: stops cleanly";
    check_removal($e);
}

# What is refused, by check and before anything is asked.
my $e = Endpoint->new('sqlite+sqlite', name => 'late');
$e->configure(beside => [ keeper($e) ]);
for ([ 'failures = { from = []; };' => qr/"failures.from" names 0 queues/ ],
    [ 'failures = { from = ["error"]; compress_over = "64"; };' => qr/"(failures\.)?compress_over" = "64"/ ],
    [ 'failures = { from = ["error"]; compress_over = "2GiB"; };' => qr/"(failures\.)?compress_over" = "2GiB"/ ],
    [ 'failures = { };' => qr/option "from" is missing|"failures.from"/ ],
    [ 'failures = { from = ["kept.error"]; };' => qr/"error_queue" = "kept.error" is the endpoint's own queue/ ],
    [ 'failures = { from = ["error"]; }; handlers = ["x.so"];' => qr/a group "failures" has a handler of its own/ ],
    [ 'failures = { from = ["error"]; }; recoverability = { delayed_retries = 2; };' => qr/has no delayed retries/ ],
    [ 'failures = { from = ["error"]; }; recoverability = { types = ( { type = "T"; delayed_retries = 1; } ); };' => qr/has no delayed retries/ ],
    [ 'failures = { from = ["error"]; }; send_only = true;' => qr/receives from an error queue/ ]) {
    local $Failures::group = $_->[0];
    $e->configure;
    my ($code, $text) = $e->run('check');
    is $code, 78, "refused: $_->[0]";
    like $text, $_->[1], 'with the reason';
}
done_testing;
