#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# RabbitMQ's two topologies: where things arrive that an endpoint sends, and from where they reach it, looked at
# from outside. The peers of the direct topology are queues without exchanges, bound to amq.topic as .NET does. And
# what `waybill install` leaves in the broker is what NServiceBus leaves there for the same handlers (tests/captures).
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use JSON::PP;
use Test::More;
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq));
my $n = 'NServiceBus';
my $amqp;

sub one { my ($e, $queue, $what) = @_; my ($got) = $e->collect($queue, 1, $what); return $got || { header => {} } }
sub bind_topic { my ($queue, $key) = @_; $amqp->call($amqp->{channel}, 50, 20, "\0\0" . join('', map { Amqp::short($_) } $queue, 'amq.topic', $key) . "\0" . Amqp::table()) }
sub has_exchange { my ($name) = @_; return eval { $amqp->call($amqp->{channel}, 40, 10, "\0\0" . Amqp::short($name) . Amqp::short('fanout') . "\x03" . Amqp::table()); 1 } ? 1 : 0 }
sub body_of { my ($e, $queue, $what) = @_; return one($e, $queue, $what)->{body} // 'nothing' }

# Sends, replies, error copies: to queues that have no exchange.
sub check_sends {
    my ($e, $address) = @_;
    my $what = "$e->{name}, to $address";
    $e->send($e->{name}, { id => "$what 1", do => "send $address T.T hello" });
    is body_of($e, 'plain', "$what: a send arrives"), 'hello', "$what: as it was";
    $e->send($e->{name}, { id => "$what 2", do => 'reply T.T yes', headers => [ [ "$n.ReplyToAddress" => $address ] ] });
    is body_of($e, 'plain', "$what: a reply arrives"), 'yes', "$what: as it was";
    is(($e->run('send', '--to', $address, '--type', 'T.T', '--body', 'cli'))[0], 0, "$what: waybill send");
    is body_of($e, 'plain', "$what: its message arrives"), 'cli', "$what: as it was";

    $e->send($e->{name}, { id => "$what 3", do => 'fail unrecoverable no', headers => [ [ "$n.ReplyToAddress" => $address ] ] });
    my $got = one($e, $e->{name} . '-failed', "$what: a failed message is in the error queue");
    is_deeply [ $got->{reply_to}, @{ $got->{header} }{ "$n.FailedQ", "$n.ReplyToAddress" } ], [ $address, $e->{name}, $address ], "$what: with its addresses";
    $e->send($e->{name}, { id => "$what 4", do => 'send ' . $address . 's T.T lost' });
    $got = one($e, $e->{name} . '-failed', "$what: one that sends to nobody as well");
    like $got->{header}{"$n.ExceptionInfo.Message"}, qr/could not dispatch to "\Q${address}\Es": there is no queue "plains": is the receiving endpoint installed\?/, "$what: with the reason";
}

sub check_events {
    my ($e) = @_;
    $amqp->declare($_) for qw(net both middle);
    bind_topic(net => 'Test-Base.Test-IThing.Test-Also.#');
    bind_topic(both => $_) for 'Test-Base.#', 'Test-Also.#', 'Test-Base.Test-IThing.#';
    bind_topic(middle => 'Test-IThing.#');
    $e->send('sales', { id => 'tell', do => 'publish Test.Also news' });
    my ($got) = one($e, 'net', 'an event reaches who handles its type');
    is_deeply [ $got->{body}, $got->{header}{$Endpoint::types}, $got->{header}{BCC} ], [ 'news', 'Test.Also;Test.IThing;Test.Base', undef ], 'with all its types, and no trace of how';
    is body_of($e, 'both', 'who handles several of its types gets it'), 'news', 'as it was';
    is body_of($e, 'middle', 'who handles a type in the middle as well'), 'news', 'as it was';
    $e->wait_for('and the publisher itself', sub { $e->effects($got->{id}) == 1 });
    is scalar($e->read('both')), 0, 'each queue gets it once';

    my @message = ({ id => 'from-net', type => 'Test.Also', headers => [ [ $Endpoint::types => 'Test.Also, Peer;Test.IThing, Peer;Test.Base, Peer' ] ] }, '');
    $amqp->publish('amq.topic', 'Test-Base.Test-IThing.Test-Also', @message);
    $e->wait_for('an event of .NET is handled', sub { $e->effects('from-net') == 1 });
    $amqp->publish('amq.topic', 'Test-I.Test-B.Test-I.Test-Batch', { id => 'by-key', headers => [ [ $Endpoint::types => 'Test.Batch, Peer' ] ] }, '');
    $e->wait_for('and one by the routing key that is configured', sub { $e->effects('by-key') == 1 });
    bind_topic(net => 'Test-Wrapped`1[[X, Version=1-0]].#');
    $e->read($_) for qw(net both);    # what .NET published
    $e->send('sales', { id => 'wrap', do => 'publish Test.Wrapped paper' });
    is body_of($e, 'net', 'an event reaches who knows it by that key'), 'paper', 'as it was';
    is body_of($e, 'both', 'and who handles its base, which the key leaves out'), 'paper', 'as it was';
    my $waiting = $e->pending;    # of the sends to nobody
    $e->send('sales', { id => 'alone', do => 'publish T.Unheard news' });
    $e->wait_for('an event nobody subscribed to is no error', sub { $e->effects('alone') == 1 && $e->pending == $waiting });
}

# ---- what install leaves ----------------------------------------------------------------
my $rows = <<'END';
Plain = fun P({resource, _, _, N}) -> N; P(L) when is_list(L) -> maps:from_list([{K, V} || {K, _, V} <- L]); P(V) -> V end,
Rows = fun(L) -> [maps:from_list([{K, Plain(V)} || {K, V} <- R]) || R <- L] end,
Arguments = [durable, auto_delete, arguments],
Json = fun
    J(T) when T =:= true; T =:= false; is_integer(T) -> io_lib:format("~p", [T]);
    J(T) when is_atom(T) -> [34, atom_to_list(T), 34];
    J(T) when is_binary(T) -> [34, T, 34];
    J(T) when is_list(T) -> ["[", lists:join(",", [J(E) || E <- T]), "]"];
    J(T) when is_map(T) -> ["{", lists:join(",", [[J(K), ":", J(V)] || {K, V} <- maps:to_list(T)]), "}"]
end,
ok = file:write_file("FILE", Json(#{
    queues => Rows(rabbit_amqqueue:info_all(<<"VHOST">>, [name | Arguments])),
    exchanges => Rows(rabbit_exchange:info_all(<<"VHOST">>, [name, type, internal | Arguments])),
    bindings => Rows(rabbit_binding:info_all(<<"VHOST">>, [source_name, destination_name, destination_kind, routing_key, arguments]))})).
END

sub read_broker {    # the whole of a virtual host
    my ($vhost) = @_;
    my $file = Endpoint::work_dir() . '/broker.json';
    my $text = $rows =~ s/FILE/$file/r =~ s/VHOST/$vhost/gr;
    my $data = Endpoint::read_file("$ENV{WB_SERVER_DIR}/rabbitmq/data") =~ s/\s+$//r;
    my %port = Endpoint::read_file("$data/ports") =~ /(dist|epmd)_port=(\d+)/g;
    my $cookie = Endpoint::read_file("$data/.erlang.cookie");
    my $answer = `echo '$text' | HOME=$data ERL_EPMD_PORT=$port{epmd} erl_call -h topology$$ -address localhost:$port{dist} -c $cookie -e 2>&1`;
    die "erl_call: $answer\n" if $answer !~ /^\{ok, ok\}/;
    return JSON::PP->new->utf8->decode(Endpoint::read_file($file));
}

# Left out: what the broker has by itself.
sub counts { my ($row) = @_; return !grep { ($row->{$_} // 'named') =~ /^(?:amq\..*|)$/ && !($_ eq 'source_name' && $row->{$_} eq 'amq.topic') } qw(name source_name destination_name) }
sub lines { my ($rows) = @_; my $json = JSON::PP->new->canonical->allow_nonref; return [ sort map { $json->encode($_) } grep { counts($_) } @$rows ] }

# Exchanges that no binding to the endpoint comes through: those of types that the peer, not .NET, subscribed to, and
# System:Object, which .NET binds all classes to and nobody here handles.
my @of_others = map { "Shop:$_" } qw(Answer Ask Fail Outer+Inner SagaAsk Wrapper`1);

sub check_install {
    my ($topology, $name) = @_;
    local $ENV{AMQP_VHOST} = "$ENV{AMQP_VHOST}-$topology";
    my $server = "$Endpoint::source/tests/support/server";
    system($server, 'space', "$ENV{WB_SERVER_DIR}/rabbitmq", $ENV{AMQP_VHOST}) == 0 or die "no virtual host\n";
    my $e = Endpoint->new('amqp+pgsql', name => $name, handlers => Endpoint::module('shop'), persistence => 0, outbox => '',
        transport => qq(topology = "$topology";), with => 'commands = [ "Shop.Ask", "Shop.Answer", "Shop.Order", "Shop.Fail" ]; types = ( '
        . '{ type = "Shop.OrderPlaced"; bases = [ "Shop.IThingHappened" ]; }, { type = "Shop.DerivedEvent"; bases = [ "Shop.IThingHappened", "Shop.BaseEvent" ]; } ); audit = { queue = "audit"; };');
    my ($code, $text) = $e->run('install');
    is $code, 0, "$topology: install" or diag $text;
    is(($e->run('install'))[0], 0, "$topology: and once more");
    my $found = read_broker($ENV{AMQP_VHOST});
    system $server, 'unspace', "$ENV{WB_SERVER_DIR}/rabbitmq", $ENV{AMQP_VHOST};
    my $captured = JSON::PP->new->utf8->decode(Endpoint::read_file("$Endpoint::source/tests/captures/topology-$topology.json"));

    my %limit = map { my $limit = delete $_->{arguments}{'x-delivery-limit'}; defined $limit ? ($_->{name} => $limit) : () } @{ $found->{queues} };
    ok !%limit || join(' ', map { "$_ $limit{$_}" } sort keys %limit) eq "$name -1", "$topology: the one argument of ours, on 4.x: our own queue has no delivery limit" or diag explain \%limit;
    my @without = grep { my $n = $_->{name}; !grep { $_->{source_name} eq $n || $_->{destination_name} eq $n } @{ $captured->{bindings} } } grep { counts($_) } @{ $captured->{exchanges} };
    is_deeply [ sort map { $_->{name} } @without ], $topology eq 'direct' ? [] : [ sort @of_others, 'System:Object', 'error', 'audit' ], "$topology: what is left out of the captured exchanges is known";
    $captured->{exchanges} = [ grep { my $n = $_->{name}; !grep { $_ eq $n } @of_others, 'System:Object' } @{ $captured->{exchanges} } ];
    # captured are the bindings that lead to the endpoint; without these the captured copies would have arrived nowhere
    push @{ $captured->{bindings} }, map { { source_name => $_, destination_name => $_, destination_kind => 'queue', routing_key => '', arguments => {} } } qw(error audit)
        if $topology eq 'conventional';
    is_deeply lines($found->{$_}), lines($captured->{$_}), "$topology: $_ are those of NServiceBus" for qw(queues exchanges bindings);
}
check_install(conventional => 'net');
check_install(direct => 'netd');

my $direct = Endpoint->new('amqp+pgsql', name => 'sales', error_queue => 'sales-failed',
    transport => 'topology = "direct"; routing_keys = [ "Test.Batch=Test-I.Test-B.Test-I.Test-Batch", "Test.Wrapped=Test-Wrapped`1[[X, Version=1-0]]" ];',
    with => 'types = ( { type = "Test.Also"; bases = [ "Test.IThing", "Test.Base" ]; }, { type = "Test.Wrapped"; bases = [ "Test.Base" ]; } );');
my $conventional = Endpoint->new('amqp+pgsql', name => 'orders', error_queue => 'queue:orders-failed');
$amqp = $direct->amqp;
$amqp->declare('plain');

my ($code, $text) = $direct->run('run');
is $code, 72, 'direct: what is not installed is not run';
like $text, qr/queue "sales" does not exist: run waybill install/, 'with the remedy';
$_->install for $direct, $conventional;
is_deeply [ map { has_exchange($_) } qw(sales sales-failed orders-failed plain orders) ], [ 0, 0, 0, 0, 1 ], 'exchanges are made for addresses of the conventional topology alone';
$_->start for $direct, $conventional;
check_sends($direct, $_) for 'plain', 'queue:plain';
check_sends($conventional, 'queue:plain');
check_events($direct);
is $_->stop, 0, "$_->{name} stops cleanly" for $direct, $conventional;

$conventional = Endpoint->new('amqp+pgsql', name => 'queue:orders');
($code, $text) = $conventional->run('install');
is $code, 78, 'an endpoint cannot have a name that is an address of its own';
like $text, qr/an endpoint cannot be named "queue:orders": as a destination this is the queue "orders"/, 'with the reason';
done_testing;
