#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What a handler may want instead of the ordinary error queue: its message forgotten, or moved to another queue.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Peer;

my $has_kafka = -e "$Endpoint::build/tests/hostile/kafka-peer" && Endpoint::has_mysql();
Endpoint::under_servers(qw(pgsql rabbitmq), $has_kafka ? qw(kafka mariadb) : ());
my $exception = 'NServiceBus.ExceptionInfo';

sub failed { my ($e, $queue, $what) = @_; my ($got) = $e->collect($queue, 1, $what); return $got || { header => {} } }

# What it did is rolled back, and it is done: a duplicate is one.
sub check_discarded {
    my ($e, $outbox) = @_;
    my @good = map { "good-$_" } 1 .. 10;
    my $old = { id => 'old', do => [ 'send sink T.T never', 'discard a newer price is known' ] };
    $e->send('orders', map { { id => $_, do => "send sink T.T $_" } } @good[ 0 .. 4 ]);
    $e->send('orders', $old, map { { id => $_, do => "send sink T.T $_" } } @good[ 5 .. 9 ]);
    $e->start;
    my %out = map { $_->{body} => 1 } $e->collect('sink', 10, 'the others are handled');
    $e->wait_for('all are acknowledged', sub { $e->depth('orders') == 0 });
    is_deeply [ sort keys %out ], [ sort @good ], "$e->{pair}: what it sent is not out";
    is_deeply [ $e->effects('old'), $e->not_once(@good) ], [0], "$e->{pair}: it has no effect, and its neighbours have one each";
    my @lines = $e->log_lines(qr/message is discarded.*message_id=old /);
    is scalar(@lines), 1, "$e->{pair}: one line";
    like $lines[0], qr/reason="a newer price is known"/, "$e->{pair}: with the reason";
    is scalar($e->read('error')), 0, "$e->{pair}: nothing is in the error queue";
    my @before = $e->attempts('old');
    $e->send('orders', $old, { id => "after-$outbox" });
    $e->wait_for('who comes later is handled', sub { $e->effects("after-$outbox") == 1 && $e->depth('orders') == 0 });
    is scalar($e->attempts('old')) > @before, !$outbox, "$e->{pair}: its id is " . ($outbox ? 'recorded' : 'not recorded without outbox');
}

sub check_moved {
    my ($e) = @_;
    $e->make_queue('review');
    $e->send('orders', { id => 'odd', do => 'move review the amount is odd', body => "\0body" });
    my $got = failed($e, 'review', 'a message is in the queue that its handler wants');
    is_deeply [ @$got{qw(id body)}, @{ $got->{header} }{ "$exception.Message", "$exception.ExceptionType", 'NServiceBus.FailedQ' } ],
        [ 'odd', "\0body", 'the amount is odd', 'Waybill.Unrecoverable', 'orders' ], "$e->{pair}: as in any error queue";
    ok scalar($e->log_lines(qr/moved to the error queue.*error_queue=review/)), "$e->{pair}: a line says where";
    $e->send('orders', { id => 'lost', do => 'move nowhere the amount is odd' });
    $got = failed($e, 'error', 'where that queue is not there, it is in the ordinary one');
    like $got->{header}{"$exception.Message"}, qr/^the amount is odd \(could not dispatch to "nowhere": .+\)$/, "$e->{pair}: with both reasons";
    is scalar($e->read('error')), 0, "$e->{pair}: once";
}

# Queues that types name are made by install; what their messages do not say is as for others.
sub check_types {
    my ($e) = @_;
    $e->send('typed', map { { id => $_->[0], type => $_->[1], do => 'fail retry no' } } [ a => 'Test.Do' ], [ b => 'Test.Also' ], [ c => 'Test.Batch' ]);
    $e->start;
    my %got = map { my ($queue, $id) = @$_; ($id => failed($e, $queue, "$id is in the queue of its type")->{id}) } [ 'do.error', 'a' ], [ 'error', 'b' ], [ 'batch.error', 'c' ];
    is_deeply \%got, { a => 'a', b => 'b', c => 'c' }, "$e->{pair}: each where it belongs";
    is_deeply [ map { scalar $e->attempts($_) } qw(a b c) ], [ 2, 1, 4 ], "$e->{pair}: tried as often as its type says";
    is $e->stop, 0, "$e->{pair}: stops cleanly";
}

for my $pair ('sqlite+sqlite', 'amqp+pgsql') {
    my $e = Endpoint->new($pair, name => 'typed', retries => '3; types = ( { type = "Test.Do"; immediate_retries = 1; error_queue = "do.error"; }, '
        . '{ type = "Test.Also"; immediate_retries = 0; }, { type = "Test.Batch"; error_queue = "batch.error"; } )');
    my ($code, $text) = $e->run('run');
    is $code, 72, "$pair: what is not installed is not run";
    $e->install;
    check_types($e);
}
# Later, as often as a type says.
sub check_delays_of_types {
    my ($pair) = @_;
    my $e = Endpoint->new($pair, name => 'later', retries => 0, recover => 'delayed_retries = 2; delay_increment = "300ms"; delay_jitter = 0; '
        . 'types = ( { type = "Test.Do"; delayed_retries = 0; }, { type = "Test.Batch"; delayed_retries = 1; } )');
    my %attempts = ('Test.Do' => 1, 'Test.Also' => 3, 'Test.Batch' => 2);
    $e->install;
    $e->send('later', map { { id => "later-$_", type => $_, do => 'fail retry no' } } sort keys %attempts);
    $e->start;
    is_deeply [ sort map { $_->{id} } $e->collect('error', 3, "$pair: all give up") ], [ map { "later-$_" } sort keys %attempts ], "$pair: each once";
    is_deeply { map { $_ => scalar $e->attempts("later-$_") } keys %attempts }, \%attempts, "$pair: tried as often later as its type says";
    is $e->stop, 0, "$pair: stops cleanly";
}
check_delays_of_types($_) for 'sqlite+sqlite', 'amqp+pgsql';

if ($has_kafka) {
    my ($named, $other) = map { Peer::Kafka->address($_) } qw(typed-do typed-review);
    my $e = Peer->new('kafka+mysql', name => 'typed', retries => qq(1; types = ( { type = "Test.Do"; error_queue = "$named"; } )));
    $e->install;
    $e->make_queue($other);
    $e->inject($e->{name}, { id => 'a', do => 'fail retry no' }, { id => 'b', do => "move $other it is odd" }, { id => 'c', do => 'discard it is old' }, { id => 'd' });
    $e->start;
    is_deeply [ map { failed($e, @$_)->{id} } [ $named, 'in the queue of its type' ], [ $other, 'in the queue its handler wants' ] ], [ 'a', 'b' ], "$e->{pair}: each where it belongs";
    $e->wait_for('all are done', sub { $e->waiting == 0 });
    is_deeply [ map { $e->effects($_) } qw(a b c d) ], [ 0, 0, 0, 1 ], "$e->{pair}: what is good has its effect, and nothing else";
    is $e->stop, 0, "$e->{pair}: stops cleanly";
}
# Whether a failed message comes back later, behind others with its key: those that do not are in the error queue.
sub check_on_failure {
    my ($policy, %is_moved) = @_;
    my $name = 'order-' . ($policy || 'default');
    my $e = Peer->new('kafka+mysql', name => $name, error_queue => "$name-error", retries => 1,
        recover => 'delayed_retries = 2; delay_increment = "300ms"; delay_jitter = 0;' . ($policy && qq( on_failure = "$policy";)));
    my ($keyed, $free, $asks, $behind) = my @all = map { "$name-$_" } qw(keyed free asks behind);
    my @moved = map { "$name-$_" } sort keys %is_moved;
    $e->install;
    $e->inject($e->{name}, { id => $keyed, key => 'k', do => 'later 1 retry not yet' }, { id => $free, do => 'later 1 retry not yet' },
        { id => $asks, key => 'l', do => 'after 1 300 the bank is closed' }, { id => $behind, key => 'k' });
    $e->start;
    is_deeply [ sort map { $_->{id} } $e->collect($e->{error_queue}, scalar @moved, "$name: what may not come back is moved") ], \@moved, "$name: these are moved" if @moved;
    $e->wait_for("$name: all others are handled", sub { 4 - @moved == grep { $e->effects($_) } @all and $e->waiting == 0 });
    is_deeply [ map { $e->effects($_) } @all ], [ map { $is_moved{$_} ? 0 : 1 } qw(keyed free asks behind) ], "$name: each as its policy says";
    is_deeply [ map { scalar $e->attempts($_) } $keyed, $asks ], [ $is_moved{keyed} ? 2 : 3, $is_moved{asks} ? 1 : 2 ], "$name: after that many attempts";
    is $e->stop, 0, "$name: stops cleanly";
}
if ($has_kafka) {
    check_on_failure('', keyed => 1, asks => 1);
    check_on_failure('block', keyed => 1, asks => 1, free => 1);
    check_on_failure('delay');
}
my $wrong = Endpoint->new('sqlite+sqlite', name => 'wrong', mode => 'none', outbox => '', retries => '0; types = ( { type = "A"; immediate_retries = 1; } )');
my ($code, $text) = $wrong->run('check');
like $text, qr/immediate_retries = 1/, 'retries of a type are refused with mode none' or diag $code;
for my $mode (qw(none sends_atomic_with_receive)) {
    $wrong->configure(mode => $mode, retries => '0; types = ( { type = "A"; delayed_retries = 7; } )');
    ($code, $text) = $wrong->run('check');
    is $code, 78, "delayed retries of a type are refused with mode $mode, where nobody delays";
    like $text, qr/delayed_retries = 7/, "the reason with mode $mode";
}
$wrong->configure(mode => 'receive_only', retries => '3; types = ( { type = "A"; error_queue = "wrong"; }, { type = "A"; immediate_retries = 1; }, { type = "B"; }, { typ = "C"; }, 4 )');
($code, $text) = $wrong->run('check');
is $code, 78, 'what is wrong in the list is refused';
like $text, $_, 'all of it' for qr/option "error_queue" = "wrong" is the endpoint's own queue/, qr/names a type for the second time/, qr/says nothing of its type/, qr/unknown option "typ"/, qr/option "type" is missing/, qr/is not a group/;

# Three delayed retries, each as late as it may be: 12, 24 and 36 s.
my $short = Endpoint->new('sqlite+sqlite', name => 'short', recover => 'delayed_retries = 3;', outbox => 'enabled = true; retention = "71s";');
($code, $text) = $short->run('check');
is $code, 0, 'a retention shorter than the delayed retries is no error';
like $text, qr/warning: endpoint "short": ids are forgotten sooner than the last delayed retry of a message may come, 72s after/, 'it is warned of';
$short->configure(outbox => 'enabled = true; retention = "72s";');
unlike +($short->run('check'))[1], qr/forgotten sooner/, 'one that is as long is not';
$short->configure(outbox => 'enabled = true; retention = "72s";', retries => '0; types = ( { type = "A"; delayed_retries = 4; } )');
like +($short->run('check'))[1], qr/forgotten sooner.* 2min after/, 'what one type may take counts';

for my $pair ('sqlite+sqlite', 'amqp+pgsql') {
    for my $outbox (1, 0) {
        my $e = Endpoint->new($pair, files => "outbox$outbox-", outbox => $outbox ? 'enabled = true;' : '');
        $e->install;
        $e->sql('delete from effects');
        unlink $e->{trace}, $e->{log};
        check_discarded($e, $outbox);
        check_moved($e);
        is $e->stop, 0, "$pair: stops cleanly";
    }
}
# In the transactions of a transport.
for my $mode (qw(sends_atomic_with_receive transaction_scope)) {
    my $e = Endpoint->new('sqlite+sqlite', name => 'orders', files => "$mode-", mode => $mode, outbox => '');
    $e->install;
    unlink $e->{trace}, $e->{log};
    $e->send('orders', { id => 'old', do => 'discard it is old' }, { id => 'odd', do => 'move nowhere it is odd' }, { id => 'good' });
    $e->start;
    my $got = failed($e, 'error', "$mode: one is in the error queue");
    is $got->{id}, 'odd', "$mode: which wanted to be elsewhere";
    $e->wait_for("$mode: all are done", sub { $e->depth('orders') == 0 && $e->effects('good') == 1 });
    is_deeply [ $e->effects('old'), $e->effects('odd') ], [ 0, 0 ], "$mode: neither has an effect";
    is scalar($e->log_lines(qr/message is discarded/)), 1, "$mode: one line";
    is $e->stop, 0, "$mode: stops cleanly";
}
done_testing;
