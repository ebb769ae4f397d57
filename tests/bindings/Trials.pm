# SPDX-License-Identifier: Apache-2.0
#
# What a handler module over a binding is asked for, in any language: what it throws, sees, sends, states, and keeps. The
# types of its messages begin with `prefix`; their bodies say what is to be done (tests/integration/endpoint_coat.cc, tests/bindings/rust/trials.rs).
#
#   Trials::run($module, { prefix => 'Rust', ... }, @cases);      # subtests, all of them or those named
#
# What differs: `thrown`, `misstated`, `refused_open`, `closed` are tables of a message's or a setting's word and what is to come of it.
package Trials;
use strict;
use warnings;
use Test::More;
use Endpoint;

my $exception = 'NServiceBus.ExceptionInfo';
my $n = 0;

sub endpoint {
    my ($t, %o) = @_;
    my $e = Endpoint->new('sqlite+sqlite', name => lc($t->{prefix}) . ++$n, handlers => $t->{module}, retries => 1, %o);
    $e->sql(qq(pragma encoding = "$o{encoding}"; create table if not exists wide (it))) if $o{encoding};
    $e->install;
    $e->sql('create table if not exists seen (id text, what text); create table if not exists only_once (word text unique); '
        . 'delete from seen; delete from only_once');
    $e->read($_) for qw(sink error);    # the test before may have left something
    return $e;
}

sub message { my ($t, $type, $id, $body, %more) = @_; return { type => "$t->{prefix}.$type", id => $id, body => $body, %more } }
sub seen { my ($e, $id) = @_; return map { $_->[0] } $e->sql("select what from seen where id = '$id' order by rowid") }
sub settled { my ($e, $what) = @_; return $e->wait_for("$what: all are settled", sub { $e->depth($e->{name}) == 0 && !$e->pending }) }

# The reason in the error queue of each, by id.
sub reasons {
    my ($e, $count, $what, $queue) = @_;
    return { map { $_->{id} => $_->{header}{"$exception.Message"} } $e->collect($queue || 'error', $count, $what) };
}

# Texts, or patterns.
sub alike {
    my ($got, $wanted, $what) = @_;
    is_deeply [ sort keys %$got ], [ sort keys %$wanted ], $what;
    for my $id (sort keys %$wanted) {
        ref $wanted->{$id} ? like($got->{$id} // '', $wanted->{$id}, "the reason of $id") : is($got->{$id}, $wanted->{$id}, "the reason of $id");
    }
}

my %wishes = (reject => 'no such customer', retry => 'not yet', long => qr/^(?:panic: )?x{900,1000}$/, percent => '100%s of %n',
    nowhere => 'the amount is odd (it was to go to a queue whose name is no text of 1 to 255 bytes)');

sub check_thrown {
    my ($t) = @_;
    my $e = endpoint($t);
    my %failing = (%wishes, %{ $t->{thrown} });
    my @good = qw(once nothing);
    $e->make_queue('review');
    $e->start;
    $e->send($e->{name}, map { message($t, Throw => $_, $_) } @good, 'discard', 'move', sort keys %failing);
    $e->send($e->{name}, map { message($t, @$_) } @{ $t->{more} || [] });
    alike(reasons($e, keys(%failing) + keys(%{ $t->{of_more} || {} }), 'what was thrown is in the error queue'), { %failing, %{ $t->{of_more} || {} } }, 'and nothing else');
    is reasons($e, 1, 'one is where its handler wants it', 'review')->{move}, 'the amount is odd', 'with its reason';
    settled($e, 'thrown');
    is_deeply [ map { scalar seen($e, $_) } @good, 'discard', 'move', sort keys %failing ], [ 1, 1, (0) x (2 + keys %failing) ], 'what was done before is rolled back';
    is_deeply [ sort map { $_->{body} } $e->read('sink') ], [ sort @good ], 'and what was sent';
    ok scalar($e->log_lines(qr/message is discarded.*message_id=discard .*reason="a newer one is known"/)), 'one is discarded';
    ok scalar($e->log_lines(qr/only once/)), 'the reason of one that was tried again is logged';
    is $e->stop, 0, 'the process has lived through all of it';
}

sub check_later {
    my ($t) = @_;
    my $e = endpoint($t, recover => 'delayed_retries = 1;', with => 'delayed_delivery = { by = "store"; };');
    $e->start;
    $e->send($e->{name}, message($t, Throw => 'later', 'later'));
    $e->wait_for('it waits in the store', sub { ($e->sql("select count(*) from waybill_$e->{name}_delayed"))[0][0] == 1 });
    settled($e, 'later');
    my ($code, $text) = $e->run('delayed', 'list');
    like $text, qr/later/, 'which shows it';
    is $e->depth('error'), 0, 'it is not in the error queue';
    is $e->stop, 0, 'stops cleanly';
}

sub check_seen {
    my ($t) = @_;
    my $e = endpoint($t);
    my $p = $t->{prefix};
    my @headers = ([ "$p.First", '1' ], [ "$p.Second", "a\xc3\xa4" ], [ "$p.Second", 'not this' ], [ "$p.Empty", '' ]);
    $e->start;
    $e->send($e->{name}, message($t, Look => 'look-1', 'b' x 3, key => 'k-1', headers => \@headers), message($t, Look => 'look-2', ''));
    settled($e, 'seen');
    my $all = "$p.First=1 $p.Second=a\xc3\xa4 $p.Second=not this $p.Empty= found=a\xc3\xa4 lacks=(none) endpoint=$e->{name}";
    is_deeply [ seen($e, 'look-1') ], ["id=look-1 type=$p.Look body=bbb key=k-1 attempt=1 $all"], 'a message as it is';
    is_deeply [ seen($e, 'look-2') ], ["id=look-2 type=$p.Look body= key=(none) attempt=1 found=(none) lacks=(none) endpoint=$e->{name}"], 'and one without anything';
    is scalar($e->log_lines(qr/msg="looked at 100%s"/)), 2, 'a line of the log is text, and no format';
    is $e->stop, 0, 'stops cleanly';
}

sub check_sent {
    my ($t) = @_;
    my $e = endpoint($t, with => 'delayed_delivery = { by = "store"; };', recover => 'delayed_retries = 1;');
    my $p = $t->{prefix};
    $e->start;
    $e->send($e->{name}, message($t, Send => 'ask', 'the body', headers => [ [ 'NServiceBus.ReplyToAddress' => 'sink' ] ]));
    my @got = $e->collect('sink', 9, 'all is sent');
    my %got = map { $_->{header}{$Endpoint::types} => $_ } @got;
    is_deeply [ sort keys %got ], [ map { "$p.$_" } qw(At Bodyless Expires Full Late Passed Plain Reply) ], 'each as it was asked for';
    my ($plain, $again) = grep { $_->{header}{$Endpoint::types} eq "$p.Plain" } @got;
    is $again->{body}, $plain->{body}, 'the same once more';
    is $plain->{body}, 'plain body', 'its body';
    isnt $plain->{id}, $again->{id}, 'which is a message of its own';
    is_deeply [ @{ $plain->{header} }{ "$p.Empty", "$p.Nul" } ], [ '', "a\0b" ], 'headers, empty or with a NUL byte';
    my $full = $got{"$p.Full"};
    is_deeply [ @$full{qw(id body)}, $full->{header}{'NServiceBus.ContentType'} ], [ 'my-id', 'bytes', 'text/plain' ], 'id, body, content type';
    is $got{"$p.Bodyless"}{body}, '', 'no body is an empty one';
    is $got{"$p.Expires"}{header}{'NServiceBus.TimeToBeReceived'}, '01:00:00', 'a time to be received';
    is $got{"$p.Passed"}{header}{'NServiceBus.TimeToBeReceived'}, '00:00:00.0000001', 'one that is over is the shortest there is, not none';
    ok $got{"$p.$_"}{header}{'NServiceBus.DeliverAt'}, "$_ says when it was due" for qw(Late At);
    is $got{"$p.Reply"}{body}, 'the body', 'a reply';
    settled($e, 'sent');
    is $e->stop, 0, 'stops cleanly';
}

sub check_refused {
    my ($t) = @_;
    my $e = endpoint($t, retries => 0);
    my %failing = (key => qr/key/, id => qr/id/, name => qr/name/, nul => 'a NUL byte in a text: type', far => qr/3650 days/, reply => qr/reply/);
    my @tries = (sort keys %failing, 'caught');
    $e->start;
    $e->send($e->{name}, map { message($t, Refused => $_, $_) } @tries);
    alike(reasons($e, 6, 'what was refused is in the error queue'), \%failing, 'with the reason of the host');
    settled($e, 'refused');
    is_deeply [ map { [ seen($e, $_) ] } sort keys %failing ], [ ([]) x 6 ], 'it has no effect';
    is_deeply [ seen($e, 'caught') ], [ 'refused', 'caught 3' ], 'only who sees to it goes on';
    is $e->stop, 0, 'stops cleanly';
}

sub check_statements {
    my ($t) = @_;
    my $e = endpoint($t, retries => 0);
    my %failing = (syntax => 'a statement could not be prepared: error 1', unique => 'a statement failed: error 2067',
        count => 'a statement has another number of parameters', two => 'a statement is not exactly one', none => 'a statement is not exactly one',
        pgsql => qr/no pgsql session/, mysql => qr/no mysql session/, %{ $t->{misstated} });
    $e->start;
    $e->send($e->{name}, message($t, Store => 'store', ''), map { message($t, Misstate => $_, $_) } sort keys %failing);
    alike(reasons($e, scalar keys %failing, 'wrong statements are in the error queue'), \%failing, 'those alone');
    settled($e, 'statements');
    is_deeply [ map { seen($e, $_) } sort keys %failing ], [], 'and nothing of them stays';
    is_deeply [ seen($e, 'store') ], [ $t->{stored} ], 'each kind of parameter is what it is to SQLite';
    is $e->stop, 0, 'stops cleanly';
}

# A file of somebody else's, in another encoding.
sub check_wide {
    my ($t) = @_;
    my $e = endpoint($t, files => 'wide-', encoding => 'UTF-16');
    is(($e->sql('pragma encoding'))[0][0], 'UTF-16le', 'the file is in UTF-16');
    $e->start;
    $e->send($e->{name}, message($t, Store => 'store', ''));
    settled($e, 'wide');
    is_deeply [ seen($e, 'store') ], [ $t->{stored} ], 'texts are in UTF-8';
    is $e->stop, 0, 'stops cleanly';
}

sub check_batches {
    my ($t) = @_;
    my $e = endpoint($t, batch_max => 20, batch_time => '1s');
    my @good = map { "good-$_" } 1 .. 6;
    $e->send($e->{name}, map { message($t, Many => $_, '') } @good);
    $e->start;
    settled($e, 'a batch');
    my %how = map { $_ => [ seen($e, $_) ] } @good;
    is_deeply [ grep { @{ $how{$_} } != 1 } @good ], [], 'each has one effect';
    ok scalar(grep { $how{$_}[0] eq 'in a batch' } @good), 'some in a batch';    # whose type is new is taken alone
    is_deeply [ sort map { $_->{body} } $e->read('sink') ], \@good, 'with what it causes';
    is $e->stop, 0, 'stops cleanly';
    $e->send($e->{name}, map { message($t, Many => $_, $_ eq 'bad' ? 'bad' : '') } 'a', 'bad', 'b');
    $e->start;
    like reasons($e, 1, 'one that throws is in the error queue')->{bad}, qr/^(?:panic: )?one of them is bad$/, 'alone, and with its reason';
    settled($e, 'isolated');
    is_deeply [ map { scalar seen($e, $_) } 'a', 'bad', 'b' ], [ 1, 0, 1 ], 'its neighbours have their effect';
    is $e->stop, 0, 'stops cleanly again';
}

sub check_hooks {
    my ($t) = @_;
    my $e = endpoint($t, with => 'settings = { name = "corner"; };');
    $e->start;
    $e->send($e->{name}, map { message($t, Remember => $_, '') } qw(first second));
    settled($e, 'hooks');
    is_deeply [ map { seen($e, $_) } qw(first second) ], [ map { "corner $_$t->{remembered}" } 1, 2 ], 'what hooks made is there';
    is $e->stop, 0, 'closed';
    my %refused = ('' => [ 78, qr/the setting "name" is empty/ ], closed => [ 69, qr/the shop is closed/ ], %{ $t->{refused_open} });
    for my $name (sort keys %refused) {
        $e->configure(with => qq(settings = { name = "$name"; };));
        my ($code, $text) = $e->run('run');
        is $code, $refused{$name}[0], "\"$name\" is refused";
        like $text, $refused{$name}[1], 'with the reason';
    }
}

# What goes wrong when a module is closed is a line of the log.
sub check_closed {
    my ($t) = @_;
    for my $name (sort keys %{ $t->{closed} }) {
        my $e = endpoint($t, with => qq(settings = { name = "$name"; };));
        $e->start;
        $e->send($e->{name}, message($t, Remember => 'only', ''));
        settled($e, 'closed');
        is $e->stop, 0, "\"$name\" does not end the process otherwise";
        is scalar($e->log_lines(qr/\Q$t->{closed}{$name}/)), 1, 'it is logged';
    }
}

my %cases = (closed => \&check_closed, thrown => \&check_thrown, later => \&check_later, seen => \&check_seen, sent => \&check_sent, refused => \&check_refused,
    statements => \&check_statements, wide => \&check_wide, batches => \&check_batches, hooks => \&check_hooks);

sub run {
    my ($module, $trials, @wanted) = @_;
    my $t = { %$trials, module => $module };
    my ($name) = $module =~ m{([^/]+)$};
    for my $case (@wanted ? grep { $cases{$_} } @wanted : sort keys %cases) {
        subtest "$name: $case", sub { $cases{$case}->($t) };
    }
}

# The example of the documentation, in whichever language: it places an order, refuses what is wrong, puts aside what is dear.
sub run_example {
    my ($module, $dearest) = @_;
    my $e = endpoint({ prefix => 'Example', module => $module }, retries => 0, recover => 'delayed_retries = 1;',
        with => qq(settings = { dearest = "$dearest"; }; delayed_delivery = { by = "store"; };));
    $e->make_queue($_) for qw(orders.review billing);
    $e->sql('drop table if exists orders; create table orders (id text primary key, cents integer, message_id text)');
    my $order = sub { my ($id, @headers) = @_; return { type => 'Sales.PlaceOrder', id => $id, body => '{}', headers => \@headers } };
    $e->start;
    $e->send($e->{name}, $order->('good', [ Order => '42' ], [ Cents => $dearest ]), $order->('dear', [ Order => '43' ], [ Cents => $dearest + 1 ]),
        $order->('odd', [ Order => '44' ], [ Cents => '12.50' ]), $order->('none', [ Order => '45' ]));
    is_deeply reasons($e, 2, 'what is wrong is in the error queue'), { odd => 'the header "Cents" is no number', none => 'no header "Cents"' }, 'with its reason';
    is_deeply reasons($e, 1, 'what is dear', 'orders.review'), { dear => 'an order that is too dear' }, 'is put aside';
    settled($e, 'example');
    is_deeply [ $e->sql('select * from orders') ], [ [ 42, $dearest, 'good' ] ], 'what is good is an order';
    is $e->stop, 0, 'stops cleanly';
    $e->configure(with => 'settings = { dearest = "much"; };');
    my ($code, $text) = $e->run('run');
    is $code, 78, 'a setting that is no number is refused';
    like $text, qr/the setting "dearest" is no number/, 'with the reason';
}

1;
