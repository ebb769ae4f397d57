#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Messages that are due later, sent by handlers and the command line, and delayed retries: on each
# pair, in each mode, kept by the store or by the broker. Not early, not lost, once each; what dies or
# is refused in between.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq mariadb));
my $n = 'NServiceBus';

# A second is RabbitMQ's unit, and what the command line waits for.
sub early { my ($since, $seconds) = @_; return time - $since < $seconds - 0.05 }

# So many messages wait in the store.
sub waiting {
    my ($e) = @_;
    my $table = $e->{pair} =~ /mysql/ ? "`$e->{name}_delayed`" : $e->{pair} =~ /pgsql/ ? qq("$e->{name}_delayed") : qq("waybill_$e->{name}_delayed");
    return ($e->sql("select count(*) from $table"))[0][0];
}

sub check_sends {
    my ($e, $label) = @_;
    my $since = time;
    $e->send($e->{name}, { id => 'ask', do => [ 'delay 1000', 'send sink T.Later later', 'send sink T.Now now' ] });
    my ($now) = $e->collect('sink', 1, "$label: what is not delayed is sent at once");
    is $now->{body}, 'now', "$e->{pair}: $label: that alone";
    is $now->{header}{"$n.DeliverAt"}, undef, "$e->{pair}: $label: which is due at no time";
    my ($later) = $e->collect('sink', 1, "$label: the other follows");
    ok !early($since, 1), "$e->{pair}: $label: not early";
    is $later->{body}, 'later', "$e->{pair}: $label: as it was sent";
    like $later->{header}{"$n.DeliverAt"}, qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z$/, "$e->{pair}: $label: and says when it was due";
    is $later->{header}{"$n.RelatedTo"}, 'ask', "$e->{pair}: $label: and what it is related to";

    $e->send($e->{name}, { id => 'past', do => [ 'at 1000000000', 'send sink T.Past past' ] });
    my ($past) = $e->collect('sink', 1, "$label: a time that has come is no delay");
    is $past->{body}, 'past', "$e->{pair}: $label: it arrives";
}

sub check_command_line {
    my ($e, $label) = @_;
    my $since = time;
    my ($code, $text) = $e->run('send', '--to', 'sink', '--type', 'T.Line', '--body', '"line"', '--delay', '1s', '--id', 'line-1');
    is_deeply [ $code, $text ], [ 0, "1 sent\n" ], "$e->{pair}: $label: the command line sends with a delay";
    my ($got) = $e->collect('sink', 1, "$label: which arrives");
    ok !early($since, 1), "$e->{pair}: $label: not early either";
    is_deeply [ @$got{qw(id body)} ], [ 'line-1', '"line"' ], "$e->{pair}: $label: as it was sent";
}

sub check_retries {
    my ($e, $label) = @_;
    my ($again, $hopeless, $final, $patient) = map { "$e->{name}-$_" } qw(again hopeless final patient);    # others have these tables, too
    my $since = time;
    $e->send($e->{name}, { id => $again, do => [ 'later 2 retry not yet', 'send sink T.Done done' ], body => "the \0 body", headers => [ [ mine => 'kept' ] ] },
        { id => $hopeless, do => 'fail retry never', body => "another \0 body", headers => [ [ mine => 'kept' ] ] },
        { id => $final, do => 'fail unrecoverable at once' });
    my ($done) = $e->collect('sink', 1, "$label: handled by its second delayed retry");
    is $done->{header}{"$n.RelatedTo"}, $again, "$e->{pair}: $label: that one";
    ok time - $since >= ($label =~ /broker/ ? 2.9 : 0.85), "$e->{pair}: $label: each was later than the one before";
    $since = time;
    $e->send($e->{name}, { id => $patient, do => [ 'after 1 2000 the bank is closed', 'send sink T.Done patient' ], body => 'the body' });
    ($done) = $e->collect('sink', 1, "$label: handled after the time that its handler wanted");
    is $done->{header}{"$n.RelatedTo"}, $patient, "$e->{pair}: $label: it is that one";
    ok time - $since >= 2, "$e->{pair}: $label: not before";
    is scalar($e->attempts($patient)), 2, "$e->{pair}: $label: without immediate retries";
    my %moved = map { $_->{id} => $_ } $e->collect('error', 2, "$label: those that cannot be handled are moved");
    is_deeply [ sort keys %moved ], [ $final, $hopeless ], "$e->{pair}: $label: those";
    is scalar($e->attempts($hopeless)), 3 * (1 + $e->{retries}), "$e->{pair}: $label: after all attempts of three times";
    is scalar($e->attempts($final)), 1, "$e->{pair}: $label: what is unrecoverable has one";
    my $copy = $moved{$hopeless} || { header => {} };
    is $copy->{body}, "another \0 body", "$e->{pair}: $label: the body is the first's";
    is_deeply [ @{ $copy->{header} }{ 'mine', "$n.Retries", "$n.FailedQ" } ], [ 'kept', undef, $e->{name} ],
        "$e->{pair}: $label: and its headers";
    is $e->effects($again), 1, "$e->{pair}: $label: one effect";
    is $e->effects($hopeless), 0, "$e->{pair}: $label: none of what failed";
}

# What nobody receives goes to the error queue, and back to where it was sent if it is retried.
sub check_unknown {
    my ($e, $label) = @_;
    $e->send($e->{name}, { id => 'stray', do => [ 'delay 1000', 'send nowhere T.Stray stray', 'delay 1000', 'send sink T.Good good' ] });
    my ($good) = $e->collect('sink', 1, "$label: a neighbour arrives");
    my ($stray) = $e->collect('error', 1, "$label: what has no destination is in the error queue");
    is_deeply [ $stray->{body}, $stray->{header}{"$n.FailedQ"} ], [ 'stray', 'nowhere' ], "$e->{pair}: $label: with its destination";
}

# The process dies while messages wait, and again while they are sent.
sub check_deaths {
    my ($e, $label) = @_;
    $e->send($e->{name}, map { { id => "dies-$_", do => [ 'delay 700', "send sink T.Dies $_" ] } } 1 .. 40);
    $e->wait_for("$label: 40 are handled", sub { $e->effects >= 40 && waiting($e) == 40 });
    $e->stop('KILL');
    sleep 1;
    $e->start;
    my %seen = map { $_->{body} => 1 } $e->collect('sink', 40, "$label: all arrive though the process died");
    is scalar(keys %seen), 40, "$e->{pair}: $label: each";
    $e->wait_for("$label: and none waits any more", sub { waiting($e) == 0 });
}

# The broker delays from now on, and rows still wait in the store: whoever renames its table for a while, also when it is looked for
# first, keeps none of them from being sent. As if it were looked for each half second.
sub check_change {
    my ($e) = @_;
    $e->install;
    $e->start;
    $e->send('moved', { id => 'kept', do => [ 'delay 8000', 'send sink T.Soon soon', 'delay 16000', 'send sink T.Late late' ] });
    $e->wait_for('change: two wait in the store', sub { waiting($e) == 2 });
    my $started = time;
    is $e->stop, 0, 'change: it stops';
    $e->configure(with => '');
    $e->install;
    $e->sql('alter table moved_delayed rename to elsewhere');
    local $ENV{WAYBILL_PERIOD} = 500;
    $e->start;
    $e->wait_for('change: the endpoint is at work', sub { $e->log_lines(qr/"endpoint starts"/) == 2 });
    sleep 2;
    $e->sql('alter table elsewhere rename to moved_delayed');
    my ($soon) = $e->collect('sink', 1, 'change: what is due is sent though the table was not there at first');
    is $soon->{body}, 'soon', 'change: that one';
    cmp_ok time - $started, '>', 7, 'change: when it is due';
    is scalar($e->log_lines(qr/delayed message store/)), 0, 'change: nothing is said of a table that may never have been there';
    $e->sql('alter table moved_delayed rename to elsewhere');
    $e->wait_for('change: it is, where something was seen to wait', sub { $e->log_lines(qr/level=warning msg="what may wait in the delayed message store cannot be sent, and is looked for again" endpoint=moved .*moved_delayed/) });
    sleep 2;
    $e->sql('alter table elsewhere rename to moved_delayed');
    my ($late) = $e->collect('sink', 1, 'change: and that is sent, too');
    is $late->{body}, 'late', 'change: the other one';
    $e->wait_for('change: which is told', sub { $e->log_lines(qr/"what waits in the delayed message store can be sent again" endpoint=moved/) });
    is scalar($e->log_lines(qr/delayed message store/)), 2, 'change: a line for each';
    is $e->stop, 0, 'change: it stops';
}

sub check {
    my ($e, $label, %only) = @_;
    $e->install;
    unlink $e->{trace};
    $e->start;
    check_sends($e, $label);
    check_command_line($e, $label);
    check_retries($e, $label) unless $e->{mode} eq 'none';
    check_unknown($e, $label) if $label !~ /broker/;
    check_deaths($e, $label) if $only{deaths};
    is $e->stop, 0, "$e->{pair}: $label: it stops cleanly";
}

my $retries = sub { my ($increment) = @_; return qq(delayed_retries = 2; delay_increment = "$increment"; delay_jitter = 0;) };
my %store = (retries => 1, recover => $retries->('300ms'));
my $by_store = 'delayed_delivery = { by = "store"; };';

check(Endpoint->new('sqlite', %store), 'outbox', deaths => 1);
check(Endpoint->new('sqlite', %store, name => 'orders', files => 'plain-', outbox => ''), 'plain', deaths => 1);
check(Endpoint->new('sqlite', name => 'orders', files => 'none-', outbox => '', mode => 'none', retries => 0), 'none');
check(Endpoint->new('sqlite', %store, files => 'scope-', outbox => '', mode => 'transaction_scope', scope => 1), 'scope');
check(Endpoint->new('sqlite+mysql', %store, retries => 0, batch_max => 1), 'store', deaths => 1);
check(Endpoint->new('amqp+pgsql', %store, with => $by_store), 'store', deaths => 1);
check_change(Endpoint->new('amqp+pgsql', name => 'moved', program => 'waybill-test', with => $by_store));
check(Endpoint->new('amqp+pgsql', name => 'native', retries => 1, recover => $retries->('1s')), 'broker');
done_testing;
