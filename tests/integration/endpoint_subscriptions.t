#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What an installation subscribed to and no module handles any more: it is listed, it ends when that is asked for, and what
# somebody else bound never does.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

my @pairs = @ARGV ? @ARGV : ('sqlite+sqlite', 'amqp+pgsql');
Endpoint::under_servers(qw(pgsql rabbitmq)) if grep { /amqp/ } @pairs;

my $both = join '", "', map { Endpoint::module($_) } qw(script shop);
my @shop = map { "Shop.$_" } qw(Answer Ask BaseEvent Fail IThingHappened Order Shipped);

sub still { my ($text) = @_; return [ $text =~ /still subscribed to "([^"]+)", which no module handles any more/g ] }
sub ended { my ($text) = @_; return [ $text =~ /unsubscribed from "([^"]+)", which no module handles any more/g ] }
sub publish { my ($e, $type) = @_; is +($e->run('publish', '--type', $type, '--body', 'x'))[0], 0, "$e->{pair}: $type is published" }

# Between an exchange of somebody and the endpoint's: what install never made.
sub bind_by_hand {
    my ($e) = @_;
    my $amqp = $e->amqp;
    $amqp->call($amqp->{channel}, 40, 10, "\0\0" . Amqp::short('Foreign:Event') . Amqp::short('fanout') . "\x02" . Amqp::table());
    $amqp->call($amqp->{channel}, 40, 30, "\0\0" . Amqp::short('orders') . Amqp::short('Foreign:Event') . Amqp::short('') . "\0" . Amqp::table());
}

# Dies at a crash point, and says so.
sub dies_at {
    my ($e, $point, @arguments) = @_;
    local $e->{program} = 'waybill-test';
    local $ENV{WAYBILL_CRASH} = $point;
    is +($e->run('install', @arguments))[0], 'signal 9', "$e->{pair}: killed at $point";
}

for my $pair (@pairs) {
    my $e = Endpoint->new($pair, handlers => $both);
    dies_at($e, 'subscriptions_noted') if $pair =~ /amqp/;
    $e->install;
    my ($code, $text) = $e->run('install');
    is $code, 0, "$pair: installed";
    unlike $text, qr/subscribed/, "$pair: and all that is subscribed to is handled";
    bind_by_hand($e) if $pair =~ /amqp/;

    $e->configure(handlers => Endpoint::module('script'));
    ($code, $text) = $e->run('install');
    is $code, 0, "$pair: installed without a module";
    is_deeply still($text), \@shop, "$pair: what nobody handles any more is listed";
    like $text, qr/waybill install --unsubscribe ends that/, "$pair: with the remedy";
    publish($e, 'Shop.Shipped');
    $e->wait_for('it still arrives', sub { $e->depth('orders') == 1 });

    dies_at($e, 'unsubscribed', '--unsubscribe');
    ($code, $text) = $e->run('install', '--unsubscribe');
    is $code, 0, "$pair: unsubscribed";
    is_deeply ended($text), $pair =~ /sqlite/ ? [] : \@shop, "$pair: of all of them, if the record says so still";
    ($code, $text) = $e->run('install', '--unsubscribe');
    unlike $text, qr/subscribed/, "$pair: nothing is left of it";
    publish($e, 'Shop.Shipped');
    publish($e, 'Test.Also');
    $e->amqp->publish('Foreign:Event', '', { id => 'foreign' }, '') if $pair =~ /amqp/;
    my $wanted = $pair =~ /amqp/ ? 3 : 2;
    $e->wait_for('what is handled arrives, and what somebody else bound', sub { $e->depth('orders') == $wanted });
    is_deeply [ sort map { $_->{header}{$Endpoint::types} // 'foreign' } $e->read('orders') ], [ sort 'Shop.Shipped', 'Test.Also', $pair =~ /amqp/ ? 'foreign' : () ],
        "$pair: and no more of the others than before";

    $e->configure(handlers => $both);
    is +($e->run('install'))[0], 0, "$pair: the module is back";
    publish($e, 'Shop.Shipped');
    $e->wait_for('and so are its events', sub { $e->depth('orders') == 1 });
    is +($e->run('install', '--print-sql', '--unsubscribe'))[0], 64, "$pair: to print and to change at once is refused";
    next if $pair !~ /amqp/;

    $e->configure(handlers => Endpoint::module('script'), persistence => 0, outbox => '', mode => 'receive_only');
    ($code, $text) = $e->run('install', '--unsubscribe');
    is $code, 69, "$pair: without a persistence nobody keeps a record";
    like $text, qr/nobody knows what it subscribed to/, "$pair: and it says so";
}

done_testing;
