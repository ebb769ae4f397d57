#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The HTTP service of contrib/examples, under a load of requests that are repeated until they are answered, while
# it is killed at each step of a session, and at random: no order without its event, no event without its
# order, one of each for a key, and the same answer each time.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use IO::Socket::INET;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

my $program = "$Endpoint::build/tests/integration/http_orders";
plan skip_all => 'built without libmicrohttpd' unless -x $program || $ENV{CI};
Endpoint::under_servers('pgsql', 'rabbitmq');
$SIG{PIPE} = 'IGNORE';

my $CLIENTS   = 4;
my $KEYS      = 6;     # of each client in a round
my $PATIENCE  = 60;    # seconds until a client gives a key up
my %is_mine;           # pid of a service
END { my $status = $?; kill 'KILL', keys %is_mine; waitpid $_, 0 for keys %is_mine; $? = $status }

# ---- the service ------------------------------------------------------------------------
# Configuration and table are those of the example; the servers are this test's.
sub endpoint {
    my ($mode) = @_;
    my $e = Endpoint->new('amqp+pgsql', name => "shop_$mode");
    my $conf = Endpoint::read_file("$Endpoint::source/contrib/examples/http-orders.conf");
    $conf =~ s/"shop"/"$e->{name}"/;
    $conf =~ s/transport\s*=.*/$e->transport_text/e;
    $conf =~ s/persistence\s*=.*/$e->persistence_text/e;
    $conf =~ s/enabled = true;/enabled = true; sweep_after = "1s"; cleanup_interval = "1s";/;
    $conf =~ s/session\s*= \{/session = { mode = "$mode"; commit_delay_increment = "50ms";/;
    Endpoint::write_file($e->{conf}, $conf);
    my ($code, $text) = $e->run('install');
    is $code, 0, "$e->{name}: the example's configuration installs" or diag $text;
    $e->make_queue('sink');
    subscribe($e, 'Shop:OrderPlaced');
    system('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$Endpoint::source/contrib/examples/http-orders.sql") == 0 or die "psql failed\n";
    return $e;
}

sub subscribe {
    my ($e, $exchange) = @_;
    my $amqp = $e->amqp;
    $amqp->call($amqp->{channel}, 40, 10, "\0\0" . Amqp::short($exchange) . Amqp::short('fanout') . "\x02" . Amqp::table());
    $amqp->call($amqp->{channel}, 50, 20, "\0\0" . Amqp::short('sink') . Amqp::short($exchange) . Amqp::short('') . "\0" . Amqp::table());
}

sub start {
    my ($e, $crash) = @_;
    my $output = "$e->{dir}/$e->{name}.port";
    unlink $output;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        %is_mine = ();
        %ENV = (%ENV, $e->environment, $crash ? (WAYBILL_CRASH => $crash) : ());
        open STDOUT, '>', $output or POSIX::_exit(99);
        open STDERR, '>>', "$e->{dir}/$e->{name}.service" or POSIX::_exit(99);
        exec $program, $e->{conf}, 0 or POSIX::_exit(98);
    }
    return $is_mine{$pid} = $pid;
}

# "signal N" or the exit code; nothing: it runs.
sub has_ended {
    my ($pid, $flags) = @_;
    return unless waitpid($pid, $flags // POSIX::WNOHANG) == $pid;
    delete $is_mine{$pid};
    return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

sub port { my ($e) = @_; return Endpoint::read_file("$e->{dir}/$e->{name}.port") =~ /port (\d+)\n/ ? $1 : undef }

# ---- clients ----------------------------------------------------------------------------
# Status and body; nothing: the connection broke, or there was none.
sub request {
    my ($e, $text) = @_;
    my $port   = port($e) or return;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 10) or return;
    print {$socket} $text;
    my $answer = do { local $/; <$socket> } // '';
    return $answer =~ m{^HTTP/1.1 (\d+) .*?\r\n\r\n(.*)}s ? ($1, $2, $answer) : ();
}

sub post {
    my ($e, $key, $body, $method, $path) = @_;
    return request($e, join "\r\n", ($method // 'POST') . ' ' . ($path // '/orders') . ' HTTP/1.1', 'Host: localhost', 'Connection: close',
        (defined $key ? "Idempotency-Key: $key" : ()), 'Content-Length: ' . length $body, '', $body);
}

sub order { my ($key) = @_; return qq({"item":"$key","quantity":2}) }

# Until it is answered; then once more.
sub insist {
    my ($e, $key) = @_;
    my $end = time + $PATIENCE;
    for my $wanted (qr/^20[01]$/, qr/^200$/) {
        my ($status, $body);
        until (($status, $body) = post($e, $key, order($key)) and $status =~ $wanted) {
            return "$key gave up" . (defined $status ? " with $status" : '') if time > $end || $status && $status != 503;
            sleep 0.02;
        }
        ($wanted, $body) = ($body, $body =~ /"number":(\d+)/ ? $1 : 'none');
        print "$key $status $body\n";
    }
    return;
}

sub client {
    my ($e, $round, $number) = @_;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    %is_mine = ();
    $SIG{$_} = 'DEFAULT' for qw(TERM INT);
    open STDOUT, '>>', "$e->{dir}/$e->{name}.answers.$number" or POSIX::_exit(99);
    my @failed = map { insist($e, "$round-$number-$_") // () } 1 .. $KEYS;
    print STDERR "# $_\n" for @failed;
    close STDOUT;
    POSIX::_exit(@failed ? 1 : 0);
}

# ---- rounds -----------------------------------------------------------------------------
# All clients, while `watch` sees to the service. Returns the clients that failed.
sub load {
    my ($e, $round, $watch) = @_;
    my %clients = map { client($e, $round, $_) => 1 } 1 .. $CLIENTS;
    my $failed = 0;
    while (%clients) {
        for my $pid (keys %clients) {
            next unless waitpid($pid, POSIX::WNOHANG) == $pid;
            $failed++ if $?;
            delete $clients{$pid};
        }
        $watch->();
        sleep 0.01;
    }
    return $failed;
}

# Dies at the third time that it comes to a step. Returns whether it did.
sub killed_at {
    my ($e, $step) = @_;
    my ($died, $failed) = ('', 0);
    my $pid = start($e, "$step:3");
    for (my $round = 0; !$died && $round < 5; $round++) {    # the dispatcher may do for many at once, and come to it rarely
        $failed += load($e, "$step$round", sub {
            my $end = has_ended($pid) // return;
            $died ||= $end;
            $pid = start($e);
        });
    }
    kill 'TERM', $pid;
    my $end = has_ended($pid, 0);
    # what only the dispatcher comes to it may come to at its end
    is $failed, 0, "$e->{name}: $step: each request is answered";
    like $died || $end, qr/^(?:signal 9)$/, "$e->{name}: $step: it was killed there";
    return;
}

sub killed_at_random {
    my ($e, $kills) = @_;
    srand 20261;
    my ($pid, $next, $left) = (start($e), time + 0.3, $kills);
    my $failed = 0;
    for (my $round = 0; $left; $round++) {
        $failed += load($e, "random$round", sub {
            return if time < $next || !$left;
            kill 'KILL', $pid;
            has_ended($pid, 0);
            $left--;
            $pid  = start($e);
            $next = time + 0.1 + rand 0.3;
        });
    }
    is $failed, 0, "$e->{name}: killed $kills times at random, each request is answered";
    kill 'TERM', $pid;
    is has_ended($pid, 0), 0, "$e->{name}: SIGTERM ends it";
}

# In full work: whoever has an answer under way gets it, and nothing is left to be sent.
sub stopped {
    my ($e) = @_;
    my $pid = start($e);
    my ($told, $ended);
    my $failed = load($e, 'stopped', sub {
        kill 'TERM', $pid and $told = 1 if !$told && -s "$e->{dir}/$e->{name}.answers.1" && port($e);
        my $end = has_ended($pid) // return;
        $ended //= $end;
        $pid = start($e);
    });
    is $failed, 0, "$e->{name}: stopped in full work, each request is answered";
    kill 'TERM', $pid;
    my $end = has_ended($pid, 0);
    is $ended // $end, 0, "$e->{name}: and it ends well";
    is scalar($e->pending), 0, "$e->{name}: nothing is pending, though nobody else sends";
}

# ---- the judge --------------------------------------------------------------------------
sub judge {
    my ($e) = @_;
    my (%answers, %events, %orders, %status);
    $e->wait_for('all is sent', sub { !$e->pending && $e->depth($e->{name}) == 0 }, 60);
    for my $file (glob "$e->{dir}/$e->{name}.answers.*") {
        for (split /\n/, Endpoint::read_file($file)) {
            my ($key, $status, $number) = split / /;
            $answers{$key}{$number} = 1;
            $status{$status}++;
        }
        unlink $file;
    }
    $orders{ $_->[0] }{ $_->[1] } = 1 for $e->sql('select key, number from shop_order');
    for my $event ($e->read('sink')) {
        my ($number) = $event->{body} =~ /^\{"number":(\d+)\}$/;
        $events{$number}{ $event->{id} } = 1;
    }
    is_deeply \%answers, \%orders, "$e->{name}: each key has one order, and was answered with its number each time";
    cmp_ok scalar keys %orders, '>', 50, "$e->{name}: there were some: " . keys %orders;
    is_deeply [ sort keys %events ], [ sort map { keys %$_ } values %orders ], "$e->{name}: each order has its event, each event its order";
    is_deeply [ grep { keys %{ $events{$_} } != 1 } keys %events ], [], "$e->{name}: one event, whatever was sent twice";
    cmp_ok $status{201} // 0, '>', 0, "$e->{name}: orders were placed";
    is scalar($e->read('error')), 0, "$e->{name}: nothing is in the error queue" if $e->depth('error');
    $e->sql('delete from shop_order');
}

# ---- what is no order, and what is none any more ------------------------------------------
sub answers {
    my ($e) = @_;
    my $pid = start($e);
    $e->wait_for('it listens', sub { port($e) });
    is((post($e, undef, order('a')))[0], 400, 'without a key');
    is((post($e, 'x' x 201, order('a')))[0], 400, 'with a key that is too long');
    is((post($e, 'a', $_))[0], 400, "what is no order: $_") for '', '{', '[]', '{"item":"tea"}', '{"item":"tea","quantity":0}', '{"item":"te\u0000a","quantity":1}';
    is((post($e, 'a', order('a'), 'GET'))[0], 405, 'no other method');
    is((post($e, 'a', order('a'), 'POST', '/'))[0], 404, 'no other place');
    is((post($e, 'a', '{"item":"' . 'x' x 70000 . '","quantity":1}'))[0], 413, 'no large order');
    my ($status, $placed) = post($e, 'answers', order('answers'));
    is $status, 201, 'an order';
    is_deeply [ (post($e, 'answers', order('answers')))[0, 1] ], [ 200, $placed ], 'again: the same answer';
    is((post($e, 'answers', order('other')))[0], 422, 'its key with another order');
    $e->sql("delete from $e->{name}_dedup");
    is_deeply [ (post($e, 'answers', order('answers')))[0, 1] ], [ 200, $placed ], 'a key that the outbox has forgotten';
    is_unavailable($e);
    kill 'TERM', $pid;
    is has_ended($pid, 0), 0, 'SIGTERM ends it';
    is scalar($e->read('sink')), 2, 'two events';
    $e->sql('delete from shop_order');
}

sub is_unavailable {
    my ($e) = @_;
    $e->sql('alter table shop_order rename to elsewhere');
    my ($status, $body, $all) = post($e, 'away', order('away'));
    is $status, 503, 'no table: not placed';
    like $all, qr/^Retry-After: 1\r$/m, 'to be tried again soon';
    like $body, qr/repeat the request with the same Idempotency-Key/, 'with the same key';
    $e->sql('alter table elsewhere rename to shop_order');
    is((post($e, 'away', order('away')))[0], 201, 'and so it is placed');
}

my @before = qw(session_before_control session_after_control);
my @steps  = qw(session_before_commit commit_sent session_committed session_before_dispatch dispatch_unconfirmed
    session_after_dispatch session_before_mark mark_sent session_after_mark);
my ($control, $store) = map { endpoint($_) } 'control_message', 'store_and_forward';
answers($control);
for my $e ($control, $store) {
    stopped($e) if $e == $store;
    $e->start;    # who sends what a dead service left
    killed_at($e, $_) for $e == $control ? (@before, @steps) : qw(session_before_commit session_committed session_after_dispatch mark_sent);
    killed_at_random($e, 6);
    judge($e);
    is $e->stop, 0, "$e->{name}: waybill run stops";
}
done_testing;
