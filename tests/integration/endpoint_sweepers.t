#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Two processes sweep the pending rows of one endpoint. What cannot be dispatched is parked by
# one of them: it stays one row, however often both try it, and is sent when it can be.
# And a queue that confirms nothing keeps no row behind it from the sweeper.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq), Endpoint::has_mysql() ? 'mariadb' : ());
my $count = 10;

sub erlang {
    my ($text) = @_;
    my $data = Endpoint::read_file("$ENV{WB_SERVER_DIR}/rabbitmq/data") =~ s/\s+$//r;
    my %port = Endpoint::read_file("$data/ports") =~ /(dist|epmd)_port=(\d+)/g;
    my $cookie = Endpoint::read_file("$data/.erlang.cookie");
    my $answer = `echo '$text' | HOME=$data ERL_EPMD_PORT=$port{epmd} erl_call -h sweepers$$ -address localhost:$port{dist} -c $cookie -e 2>&1`;
    die "erl_call: $answer\n" if $answer !~ /^\{ok, ok\}/;
}
sub queue_process { my ($queue, $do) = @_; erlang(qq({ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"$ENV{AMQP_VHOST}">>, queue, <<"$queue">>)), sys:$do(amqqueue:get_pid(Q)).)) }

# A try takes three seconds, a round six: of two rows for a silent queue, each tried twice, none was left.
sub check_silence {
    my $e = Endpoint->new('amqp+pgsql', name => 'silence', concurrency => 1, retries => 0, transport => 'confirm_timeout = "3s";', outbox => 'enabled = true; cleanup_interval = "6s"; sweep_after = "1s";');
    $e->install;
    $e->make_queue('mute');
    queue_process('mute', 'suspend');
    $e->start;
    $e->send('silence', map { { id => "silent-$_", do => "send mute T.Out silent-$_" } } 1 .. 3);
    $e->wait_for('a row waits for a queue that confirms nothing', sub { $e->log_lines(qr/message stays in hand: what it sends is not confirmed/) }, 60);
    $e->send('silence', { id => 'early', do => 'send later T.Out early' });
    $e->wait_for('another for one that is not there', sub { $e->depth('error') == 1 }, 120);
    $e->make_queue('later');
    my $started = time;
    my @got;
    $e->wait_for('it is sent when there is such a queue, though the other confirms nothing', sub { push @got, $e->read('later'); @got }, 60);
    is $got[0] && $got[0]{body}, 'early', 'silence: complete';
    note sprintf 'sent after %.0f s', time - $started;
    queue_process('mute', 'resume');
    my %out;
    $e->wait_for('what was silent is sent when it confirms again', sub { $out{ $_->{body} }++ for $e->read('mute'); keys %out == 3 && !$e->pending }, 150);
    is_deeply [ sort keys %out ], [ map { "silent-$_" } 1 .. 3 ], 'silence: all of it';
    is_deeply [ map { $_->{id} } $e->collect('error', 1, 'the error queue has the other') ], [ 'early' ], 'silence: and no other';
    ok !$e->not_once('early', map { "silent-$_" } 1 .. 3), 'silence: each message had one effect';
    is $e->stop, 0, 'silence: stops cleanly';
}

check_silence();
for my $pair ('sqlite+pgsql', 'sqlite+sqlite', 'amqp+pgsql', Endpoint::has_mysql() ? 'sqlite+mysql' : ()) {
    my $e = Endpoint->new($pair, batch_max => 1, retries => 0, outbox => 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";');
    $e->install;
    $e->send('orders', map { { id => "bad-$pair-$_", do => "send nowhere T.Out out-$_" } } 1 .. $count);
    $e->start for 1 .. 2;
    $e->wait_for('all are in the error queue', sub { $e->depth('error') == $count });
    my $end = time + 20;
    my $most = 0;
    while (time < $end) { my $rows = $e->pending; $most = $rows if $rows > $most; sleep 0.2 }
    my @rows = $e->pending;
    is_deeply [ map { my $out = "out-$_"; scalar grep { /\Q$out\E(?!\d)/ } @rows } 1 .. $count ], [ (1) x $count ], "$pair: each operation is in one row";
    cmp_ok $most, '<=', 2 * $count, "$pair: or, for a moment, in two";
    my @late = $e->log_lines(qr/level=warning msg="operations stay pending: the sweeper cannot dispatch them" endpoint=orders rows=\d+ oldest_seconds=\d+ parked=\d+ reason=".+"/);
    cmp_ok scalar @late, '>=', 1, "$pair: that they stay pending is said, and why";
    cmp_ok scalar @late, '<=', 2, "$pair: once by each process";
    $e->make_queue('nowhere');
    my %out;
    $end = time + 60;
    do { sleep 0.5; $out{ $_->{body} }{ $_->{id} }++ for $e->read('nowhere') } while $e->pending && time < $end;
    $out{ $_->{body} }{ $_->{id} }++ for $e->read('nowhere');
    is scalar($e->pending), 0, "$pair: none is left when there is a destination";
    is_deeply { map { $_ => scalar keys %{ $out{$_} } } keys %out }, { map { ("out-$_" => 1) } 1 .. $count }, "$pair: which has them all, each with its id";
    is_deeply [ grep { my ($times) = values %{ $out{$_} }; $times > 2 } keys %out ], [], "$pair: once, or twice when both sent";
    $e->wait_for('so is that none does any more', sub { $e->log_lines(qr/level=info msg="operations do not stay pending any more"/) == @late });
    is $e->stop, 0, "$pair: both stop cleanly";
}
done_testing;
