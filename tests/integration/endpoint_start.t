#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Starting and stopping: one clear line and the right exit code for what is wrong; nothing
# lost by a clean stop.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq));
my $number = 0;

# The run ends with that code; one line says why; nothing was created, nothing ran.
sub refused {
    my ($e, $what, $code, $pattern) = @_;
    my ($got, $text) = $e->run('run');
    my @lines = split /\n/, $text;
    is $got, $code, "$e->{pair}: $what: exit code";
    my @why = grep { $_ =~ $pattern } @lines;
    is scalar(@why), 1, "$e->{pair}: $what: one line says why" or diag $text;
    is scalar(@lines), 1, "$e->{pair}: $what: and no other" or diag $text;
}

sub endpoint { my ($pair, %o) = @_; return Endpoint->new($pair, name => 'start' . ++$number, %o) }
sub installed { my $e = endpoint(@_); $e->install; return $e }

sub check_configuration {
    my ($pair) = @_;
    refused(endpoint($pair, concurrency => 0), 'an option out of range', 78, qr/:\d+: endpoint "start\d+": option "concurrency" = 0 /);
    refused(endpoint($pair, with => 'batch_maximum = 10;'), 'an unknown option', 78, qr/did you mean "batch_max"/);
    refused(endpoint($pair, mode => 'none', retries => 0), 'a conflict', 78, qr/outbox/);
    refused(endpoint($pair, mode => 'sends_atomic_with_receive', outbox => '', one_file => 1), 'a file that would wait for itself', 78,
        qr/where one would wait for the other; put them on two, or use .*"transaction_scope"/) if $pair =~ /sqlite/;
    refused(endpoint($pair, handlers => '/nowhere/orders.so'), 'no handler module', 78, qr{there is no handler module "/nowhere/orders\.so"});
    my $copy = "$Endpoint::work/untrusted.so";
    Endpoint::write_file($copy, Endpoint::read_file(Endpoint::module('script')));
    chmod 0666, $copy;
    refused(endpoint($pair, handlers => $copy), 'a handler module that others may write', 78, qr/untrusted\.so/);
    refused(endpoint($pair, handlers => Endpoint::module('empty')), 'a module without handlers', 78, qr/does not export "wb_handlers"/);
    local $ENV{AMQP_PASSWORD};
    delete $ENV{AMQP_PASSWORD};
    refused(endpoint($pair), 'a secret that is not there', 78, qr/AMQP_PASSWORD/) if $pair =~ /amqp/;
}

# Transactions and the outbox exclude each other: whatever the plugins, both verbs say so before
# anything is connected (there is nobody at port 1), with what would work.
sub check_transactions {
    my $kafka = -e "$Endpoint::build/plugins/transport/kafka/.libs/kafka.so";
    my %transport = (amqp => 'plugin = "amqp"; host = "127.0.0.1"; port = 1;', $kafka ? (kafka => 'plugin = "kafka"; brokers = "127.0.0.1:1";') : ());
    my $outbox = qr/transaction_mode = "sends_atomic_with_receive" does not go with the outbox enabled in line 6\b.*; use transaction_mode = "receive_only", or enabled = false in outbox$/m;
    # not "none" either, where failed messages are to be retried
    my $not_offered = qr/transaction_mode = "sends_atomic_with_receive" is not offered by transport "amqp"; use "receive_only"$/m;
    my %reasons = (amqp => { with => [ $outbox, $not_offered ], without => [$not_offered] }, kafka => { with => [$outbox], without => [] });
    for my $name (sort keys %transport) {
        for my $side (sort keys %{ $reasons{$name} }) {
            my $e = endpoint('amqp+pgsql', mode => 'sends_atomic_with_receive', outbox => $side eq 'with' ? 'enabled = true;' : '', store => 'port = 1;');
            my $text = Endpoint::read_file($e->{conf});
            Endpoint::write_file($e->{conf}, $text =~ s/port = \d+; user/user/r =~ s/transport = \{.*?\};/transport = { $transport{$name} };/r);
            conflicts($e, "$name, sends_atomic_with_receive, $side outbox", $_, @{ $reasons{$name}{$side} }) for qw(check run);
        }
    }
}

# The verb reports these conflicts, all of line 2, and nothing else; a check without any is good.
sub conflicts {
    my ($e, $what, $verb, @reasons) = @_;
    return if !@reasons && $verb eq 'run';
    my ($code, $text) = $e->run($verb);
    my @lines = split /\n/, $text;
    is $code, @reasons ? 78 : 0, "$verb: $what: exit code";
    is scalar(@lines), scalar(@reasons), "$verb: $what: nothing else" if @reasons;
    like $text, qr/^\Q$e->{conf}\E:2: endpoint "$e->{name}": $_/m, "$verb: $what: says where, what, and what would work" for @reasons;
}

# What librdkafka does not take, or takes and we do not, by itself or beside the rest: both verbs name
# the option before anything is connected.
sub check_properties {
    return if !-e "$Endpoint::build/plugins/transport/kafka/.libs/kafka.so";
    my $far = 'kafka.example:9092';
    my @wrong = (['max.poll.interval.ms=1000'], ['retries=0'], ['acks=0'], ['nosuch=1'], ['linger.ms=abc'], ['topic.blacklist=.*'],
        ['enable.ssl.certificate.verification=false', $far], ['ssl.endpoint.identification.algorithm=none', $far]);
    for (@wrong) {
        my ($property, $brokers) = @$_;
        my ($name) = $property =~ /^([^=]+)/;
        my $e = endpoint('amqp+pgsql');
        my $transport = sprintf 'transport = { plugin = "kafka"; brokers = "%s"; properties = [ "client.rack=r", "%s" ]; };', $brokers // '127.0.0.1:1', $property;
        Endpoint::write_file($e->{conf}, Endpoint::read_file($e->{conf}) =~ s/transport = \{.*?\};/$transport/r);
        refused($e, "$property: run", 78, qr/properties: \\?"\Q$name\E\\?"/);
        my ($code, $text) = $e->run('check');
        is $code, 78, "$property: check: exit code";
        like $text, qr/^\Q$e->{conf}\E:\d+: endpoint "$e->{name}": transport "kafka": properties: "\Q$name\E"/, "$property: check: says where and what";
    }
}

sub check_plugins {
    my ($pair) = @_;
    my $dir = "$Endpoint::work/plugins";
    mkdir $_ for $dir, "$dir/transport";
    Endpoint::write_file("$dir/transport/other.so", Endpoint::read_file(Endpoint::module('foreign')));
    chmod 0755, "$dir/transport/other.so";
    my $e = endpoint($pair);
    my $text = Endpoint::read_file($e->{conf});
    my $with = sub { my ($name, $top) = @_; Endpoint::write_file($e->{conf}, $top . $text =~ s/transport = \{ plugin = "\w+".*?\};/transport = { plugin = "$name"; };/sr) };
    $with->('other', qq(plugin_path = ["$dir"];\n));
    refused($e, 'a plugin of another ABI', 78, qr{other\.so".* ABI 2.* ABI 1});
    $with->('amqq', '');
    refused($e, 'no such plugin', 78, qr/there is no transport plugin "amqq" .*did you mean "amqp"/);
}

# Of what else it needs of the broker.
sub check_topology {
    my ($pair) = @_;
    my $e = installed($pair);
    for ([ queue => 'error' ], [ exchange => 'error' ], [ exchange => 'Test:Also' ], [ exchange => $e->{name} ]) {
        my ($kind, $name) = @$_;
        $kind eq 'queue' ? $e->amqp->delete($name) : $e->amqp->delete_exchange($name);
        refused($e, "no $kind $name", 72, qr/$kind "$name" does not exist: run waybill install/);
        my ($code, $text) = $e->run('install');
        is $code, 0, "$pair: which makes it" or diag $text;
    }
}

sub check_not_installed {
    my ($pair) = @_;
    refused(endpoint($pair), 'nothing installed', 72, qr/waybill install/);
    my $e = installed($pair);
    $e->amqp->delete('start' . $number) if $pair =~ /amqp/;
    refused($e, 'no queue', 72, qr/queue "start\d+" does not exist: run waybill install/) if $pair =~ /amqp/;
    check_topology($pair) if $pair =~ /amqp/;
    $e = installed($pair);
    my $table = $pair =~ /pgsql/ ? qq("$e->{name}_pending") : qq("waybill_$e->{name}_pending");
    $e->sql("drop table $table");
    refused($e, 'no table', 72, qr/waybill install/);
}

sub check_amqp_pgsql {
    my $pair = 'amqp+pgsql';
    my $e = endpoint($pair);
    $e->amqp->declare($e->{name}, []);
    refused($e, 'a queue with other arguments', 72, qr/queue "start\d+" .*x-queue-type/);
    my ($code, $text) = $e->run('install');
    is $code, 72, "$pair: install says so, too";
    $e = installed($pair);
    my %wrong = (    # what, exit code, reason
        AMQP_PORT => [ 'no broker', 69, qr/connect to "127\.0\.0\.1" port 1\b/, 1 ], PGPORT => [ 'no database server', 69, qr/PostgreSQL.*port 1\b/, 1 ],
        AMQP_VHOST => [ 'no such virtual host', 72, qr/vhost nowhere not found/, 'nowhere' ], PGDATABASE => [ 'no such database', 72, qr/database "nowhere" does not exist/, 'nowhere' ],
        AMQP_PASSWORD => [ 'a wrong password at the broker', 77, qr/Login was refused.*check user, password/, 'wrong' ],
        AMQP_USER => [ 'a user the broker does not know', 77, qr/Login was refused.*check user, password/, 'nobody' ], PGUSER => [ 'a role that is not there', 77, qr/role "nobody" does not exist/, 'nobody' ],
    );
    for my $name (sort keys %wrong) {
        my ($what, $wanted, $pattern, $value) = @{ $wrong{$name} };
        local $ENV{$name} = $value;
        $e->configure;
        refused($e, $what, $wanted, $pattern);
    }
    $e->configure;
    check_privileges($e);
}

# A role that may log in and nothing else.
sub check_privileges {
    my ($e) = @_;
    my $role = "role_$$";
    $e->sql("create role $role login");
    $e->configure(user => $role);
    refused($e, 'a role without privileges', 77, qr/user "\Q$role\E" lacks privileges on the table .*: grant/);
    $e->sql("drop role $role");
}

# SIGTERM: what is in flight is finished, the rest stays in the queue.
sub check_stop {
    my ($pair) = @_;
    my $e = installed($pair, batch_max => 1);
    $e->send($e->{name}, { id => 'slow', do => "sleep 1000\nsend sink T.Slow x" }, { id => 'waits' });
    $e->start;
    $e->wait_for('a handler runs', sub { $e->attempts('slow') });
    my $stopped = time;
    is $e->stop, 0, "$pair: SIGTERM: exit code 0";
    cmp_ok time - $stopped, '<', 3, "$pair: SIGTERM: soon";
    is $e->effects('slow'), 1, "$pair: SIGTERM: the handler that ran has its effect";
    is scalar($e->read('sink')), 1, "$pair: SIGTERM: and its message is out";
    is_deeply [ map { $_->{id} } $e->read($e->{name}) ], ['waits'], "$pair: SIGTERM: the other one stays in the queue";
    is $e->effects('waits'), 0, "$pair: SIGTERM: untouched";
    is scalar($e->pending), 0, "$pair: SIGTERM: nothing is pending";

    $e->send($e->{name}, { id => 'endless', do => "wait $e->{dir}/gate$number" });
    $e->start;
    $e->wait_for('a handler hangs', sub { $e->attempts('endless') });
    kill 'TERM', @{ $e->{processes} };
    sleep 0.3;
    ok $e->is_alive, "$pair: the first SIGTERM waits for it";
    $stopped = time;
    is $e->stop, 75, "$pair: the second one does not: exit code 75";
    cmp_ok time - $stopped, '<', 1, "$pair: at once";
    is $e->effects('endless'), 0, "$pair: no effect";
    $e->wait_for('the message is in the queue', sub { $e->depth($e->{name}) == 1 }) if $pair =~ /amqp/;
    Endpoint::write_file("$e->{dir}/gate$number", '');
    $e->configure(shutdown_timeout => '300ms');
    $e->start;
    $e->wait_for('and is handled later', sub { $e->effects('endless') == 1 });

    $e->send($e->{name}, { id => 'late', do => "wait $e->{dir}/never" });
    $e->wait_for('a handler hangs again', sub { $e->attempts('late') });
    is $e->stop, 75, "$pair: shutdown_timeout ends it, too";
    ok scalar($e->log_lines(qr/reason=shutdown_timeout/)), "$pair: and the log says so";
}

# Idle, it stops at once.
sub check_idle_stop {
    my ($pair) = @_;
    my $e = installed($pair, concurrency => 4);
    $e->start;
    $e->wait_for('it runs', sub { $e->log_lines(qr/endpoint starts/) });
    sleep 0.5;
    my $stopped = time;
    is $e->stop('INT'), 0, "$pair: SIGINT when idle: exit code 0";
    cmp_ok time - $stopped, '<', 2, "$pair: at once";
}

for my $pair ('amqp+pgsql', 'sqlite+sqlite') {
    check_configuration($pair);
    check_plugins($pair) if $pair =~ /amqp/;
    check_not_installed($pair);
    check_stop($pair);
    check_idle_stop($pair);
}
check_transactions();
check_properties();
check_amqp_pgsql();
done_testing;
