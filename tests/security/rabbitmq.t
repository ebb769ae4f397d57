#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# RabbitMQ as careful people configure it: certificates on both sides, an account that may what the
# manual says and nothing else, a disk that is full. One broker for all cases; arguments choose some.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../integration", "$FindBin::Bin/../hostile", $FindBin::Bin;
use Endpoint;
use Peer;
use Authority;
use PrivateServer;
use Secure;
use Test::More;
use Time::HiRes qw(sleep);

my $password = Secure::secret('CLERK_PASSWORD');
$ENV{WRONG_PASSWORD} = 'another';
my $work = Endpoint::work_dir();
my $ours = Authority->new("$work/ours", 'Waybill tests');
my $others = Authority->new("$work/others", 'Somebody else');
my %shown = $ours->servers($others);
my $clerk = $ours->issue('clerk', cn => 'clerk');
my $impostor = $others->issue('impostor', cn => 'clerk');
my ($tls_port) = PrivateServer::free_ports(1);
my $broker = start_broker();
my $e = Peer->new('amqp+sqlite');

sub start_broker {
    File::Copy::copy("$shown{right}.$_", "$work/shown.$_") for qw(pem key);
    return PrivateServer->start('rabbitmq', shown => "$work/shown",
        environment => { WB_RABBITMQ_PLUGINS => 'rabbitmq_auth_mechanism_ssl' }, configuration => <<END)->enter_environment;
listeners.ssl.1 = 127.0.0.1:$tls_port
ssl_options.cacertfile = @{[ $ours->pem ]}
ssl_options.certfile = $work/shown.pem
ssl_options.keyfile = $work/shown.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
ssl_cert_login_from = common_name
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = AMQPLAIN
auth_mechanisms.3 = EXTERNAL
END
}

sub as_clerk { return 'user = "clerk"; password = "env:CLERK_PASSWORD";' . join '', @_ }

my $plain = qq(host = "$ENV{AMQP_HOST}"; port = $ENV{AMQP_PORT};);
sub transport { my (@options) = @_; $e->configure(transport_group => qq(transport = { plugin = "amqp"; @options };)) }

# Of clerk: three regular expressions, as rabbitmqctl set_permissions takes them.
sub permit {
    my ($configure, $write, $read) = @_;
    $broker->erlang(sprintf 'rabbit_auth_backend_internal:set_permissions(<<"clerk">>, <<"/">>, <<"%s">>, <<"%s">>, <<"%s">>, <<"tests">>)',
        $configure, $write, $read);
}

# ---- TLS ------------------------------------------------------------------------------
my $names = 'host = "localhost"; port = ' . $tls_port . '; tls = "on";';
sub trusting { my ($authority) = @_; return sprintf 'tls_ca_file = "%s";', $authority->pem }
sub showing { my ($files) = @_; return qq(tls_cert_file = "$files.pem"; tls_key_file = "$files.key";) }

sub tls_is_verified {
    transport(as_clerk(), $names, trusting($ours), showing($clerk));
    Secure::works($e, 'the right name');
    for (['wrong', 'another name'], ['expired', 'expired'], ['stranger', 'signed by an unknown authority']) {
        my ($which, $what) = @$_;
        $broker->present($shown{$which});
        Secure::shows($tls_port, undef, $shown{$which});
        Secure::refused($e, "the broker's certificate is $what", 77, qr/certificate is not trusted.*tls_ca_file.*expired.*name/);
    }
    $broker->present($shown{right});
    transport(as_clerk(), qq(host = "localhost"; port = $ENV{AMQP_PORT}; tls = "on";), trusting($ours));
    Secure::refused($e, 'TLS is not offered', 69, qr/localhost.*TLS/);
}

sub certificates_are_asked_for {
    transport(as_clerk(), $names, trusting($ours));
    Secure::refused($e, 'no certificate of ours', 69, qr/tls_cert_file/);
    transport(as_clerk(), $names, trusting($ours), showing($impostor));
    Secure::refused($e, "a certificate of another authority", 69, qr/tls_cert_file/);
    transport($names, trusting($ours), showing($clerk), 'sasl = "external";');
    Secure::works($e, 'EXTERNAL');
}

# ---- accounts -------------------------------------------------------------------------
sub logins_are_refused {
    transport($plain, 'user = "clerk"; password = "env:WRONG_PASSWORD";');
    Secure::refused($e, 'wrong password', 77, qr/ACCESS_REFUSED.*check user, password/);
    transport($plain, 'user = "nobody"; password = "env:CLERK_PASSWORD";');
    Secure::refused($e, 'no such user', 77, qr/ACCESS_REFUSED.*check user, password/);
    $broker->erlang('rabbit_auth_backend_internal:clear_permissions(<<"clerk">>, <<"/">>, <<"tests">>)');
    transport($plain, as_clerk());
    Secure::refused($e, 'no permissions in the virtual host', 77, qr/NOT_ALLOWED.*vhost.*permissions in this virtual host/);
}

# What the manual says that `waybill run` needs.
my @documented = ('^$', '^(sink|error|Shop:Placed)$', '^orders$');

sub permissions_at_the_start {
    transport($plain, as_clerk());
    permit(@documented);
    $e->amqp->call($e->amqp->{channel}, 40, 10, "\0\0" . Amqp::short('Shop:Placed') . Amqp::short('fanout') . "\x02" . Amqp::table());
    $e->amqp->call($e->amqp->{channel}, 50, 20, "\0\0" . Amqp::short('sink') . Amqp::short('Shop:Placed') . Amqp::short('') . "\0" . Amqp::table());
    Secure::works($e, 'the documented permissions', "send sink T.T out\npublish Shop.Placed event", 2);
    permit('^$', $documented[1], '^$');
    Secure::refused($e, 'no read', 77, qr/queue .orders.*read permission.*set_permissions/);
    permit('^$', '.*', '.*');
    Secure::refused($e, 'install without configure', 77, qr/queue .orders.*configure permission.*set_permissions/, 'install');
    permit(@documented);
    $e->make_queue('vault');
    Secure::refused($e, 'send without write', 77, qr/exchange .vault.*write permission.*set_permissions/, qw(send --to vault --type T.T --body x));
    permit(('^(orders|error|Test:.*|nsb[.]v2[.].*)$') x 3);
    Secure::succeeds($e, 'install with what it needs', 'install');
    permit(@documented);
}

sub permissions_are_waited_for {
    transport($plain, as_clerk());
    permit('^$', '^(error)$', '^orders$');
    my $case = Secure::waits($e, 'no write', 'send sink T.T waits', qr/exchange .sink.*write permission.*set_permissions/);
    permit(@documented);
    Secure::goes_on($case);
    permit('^$', $documented[1] =~ s/Placed/Missing/r, '^orders$');
    $case = Secure::waits($e, 'no configure for an event', 'publish Shop.Missing event', qr/exchange .Shop:Missing.*configure permission.*set_permissions/);
    permit('^Shop:Missing$', $documented[1] =~ s/Placed/Missing/r, '^orders$');
    $e->wait_for('no configure for an event: its exchange is made when it is granted', sub {
        eval { $e->amqp->call($e->amqp->{channel}, 40, 10, "\0\0" . Amqp::short('Shop:Missing') . Amqp::short('fanout') . "\x01" . Amqp::table()) };
        !$@;
    });
    Secure::stops($e, 'no configure for an event');
    is $e->depth('error'), 0, 'and nothing is in the error queue';
    permit('^$', '^(sink)$', '^orders$');
    $case = Secure::waits($e, 'no write to the error queue', 'fail unrecoverable because', qr/exchange .error.*write permission.*set_permissions/);
    permit(@documented);
    my $copy = Secure::goes_on($case, 'error');
    is $copy->{id}, $case->{message}{id}, 'it is in the error queue';
    ok !exists $copy->{header}{'Waybill.Trimmed'}, 'and its copy is whole';
}

# Where somebody else names the destination, as in a reply, one that is forbidden stops nobody: its
# message waits while others are done, and then it is its own failure.
sub a_forbidden_destination_stops_nobody {
    transport($plain, as_clerk());
    $e->configure(retries => 0);
    permit(@documented);
    $e->make_queue('vault');
    $e->read($_) for qw(sink error);
    $e->start;
    $e->send('orders', { id => 'forbidden', do => 'send vault T.T in' });
    my ($good, $moved) = (0);
    my $next = sub {
        return 1 if ($moved) = $e->read('error');
        my $id = 'good-' . ++$good;
        $e->send('orders', { id => $id, do => 'send sink T.T out' });
        return !$e->wait_for("$id is done meanwhile", sub { $e->effects($id) == 1 });
    };
    until ($next->() || $good > 120) { sleep 0.5 }
    is $moved->{id}, 'forbidden', "a forbidden destination: after $good others were done, its message has failed";
    like $moved->{header}{'NServiceBus.ExceptionInfo.Message'}, qr/"vault".*write permission/, 'with the reason';
    cmp_ok scalar($e->log_lines('privilege is missing')), '==', 1, 'and one line told of it before';
    Secure::stops($e, 'a forbidden destination');
    $e->configure(retries => 5);
}

# RabbitMQ looks when a consumer begins: with the next connection.
sub permissions_that_are_taken_away {
    transport($plain, as_clerk());
    permit(@documented);
    my $case = Secure::runs($e, 'read is taken away');
    permit('^$', $documented[1], '^$');
    $broker->erlang('[exit(C, kill) || C <- rabbit_networking:connections(), '
        . '{user, <<"clerk">>} <- rabbit_networking:connection_info(C, [user])], ok');
    $e->forget_broker;
    $e->wait_for('read is taken away: it says so', sub { $e->log_lines(qr/gave up.*queue .orders.*read permission.*set_permissions/) });
    permit(@documented);
    $e->send('orders', $case->{message});
    Secure::goes_on($case, undef, qr/^(?:0|77)$/);    # 77 while it is not known that all is well again
}

# ---- the disk -------------------------------------------------------------------------
sub disk { my ($limit) = @_; $broker->erlang("rabbit_disk_monitor:set_disk_free_limit($limit)") }
sub is_alarmed { return $broker->answers('lists:any(fun({{resource_limit, disk, _}, _}) -> true; (_) -> false end, rabbit_alarm:get_alarms())') }
sub await_alarm {
    my ($wanted) = @_;
    for (1 .. 200) {
        return if is_alarmed() == $wanted;
        sleep 0.1;
    }
    die "the broker's disk alarm does not change\n";
}

# Business data is committed while the broker takes nothing; what it causes leaves when there is room,
# also after the process was killed in between.
sub the_disk_is_full {
    my @ids = map { "full-$_" } 1 .. 40;
    transport($plain, as_clerk());
    permit(@documented);
    $e->read('sink');
    $e->send('orders', map { { id => $_, do => "send sink T.T $_" } } @ids);
    my $limit = $broker->value('rabbit_disk_monitor:get_disk_free_limit()');
    disk('"100000GB"');
    await_alarm(1);
    $e->start;
    $e->wait_for('the disk is full: it says so', sub { $e->log_lines('level=warning .*blocks publishing') });
    $e->wait_for('the disk is full: handlers run', sub { $e->effects('full-1') });
    $e->stop('KILL');
    $e->start;
    $e->wait_for('the disk is full: after a kill, too', sub { $e->log_lines('blocks publishing') > 1 });
    my $warnings = () = $e->log_lines('level=(?:warning|error)');
    disk($limit);
    await_alarm(0);
    my %out;
    $e->forget_broker;
    $e->wait_for('there is room: everything arrives', sub { $out{ $_->{body} }++ for $e->read('sink'); keys %out == @ids }, 60);
    is_deeply [ sort keys %out ], [ sort @ids ], 'what was sent, and nothing else';
    is_deeply [ $e->not_once(@ids) ], [], 'each was handled once';
    is $e->depth('error'), 0, 'nothing is in the error queue';
    cmp_ok $warnings, '<=', 8, 'few lines' or diag join "\n", $e->log_lines('level=(?:warning|error)');
    Secure::stops($e, 'there is room');
}

my %cases = (tls => \&tls_is_verified, mutual => \&certificates_are_asked_for, logins => \&logins_are_refused,
    start => \&permissions_at_the_start, waits => \&permissions_are_waited_for,
    forbidden => \&a_forbidden_destination_stops_nobody, taken => \&permissions_that_are_taken_away, disk => \&the_disk_is_full);
$broker->erlang(qq(rabbit_auth_backend_internal:add_user(<<"clerk">>, <<"$password">>, <<"tests">>)));
permit('.*', '.*', '.*');
transport($plain);
$e->install;
$cases{$_}->() for @ARGV ? @ARGV : qw(tls mutual logins start waits forbidden taken disk);
Secure::keeps_secrets();
done_testing;
