#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Kafka as careful people configure it: certificates on both sides, SASL, a user that may what the
# manual says and nothing else. One broker for all cases, with a listener for each certificate;
# arguments choose some.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../integration", "$FindBin::Bin/../hostile", $FindBin::Bin;
use Endpoint;
use Peer;
use Authority;
use KafkaRights;
use PrivateServer;
use Secure;
use Test::More;
use Time::HiRes qw(sleep);

my $password = Secure::secret('CLERK_PASSWORD');
$ENV{WRONG_PASSWORD} = 'another';
$ENV{KAFKA_PREFIX} = 'safe';
my $work = Endpoint::work_dir();
my $ours = Authority->new("$work/ours", 'Waybill tests');
my $others = Authority->new("$work/others", 'Somebody else');
my %shown = $ours->servers($others);
my $mutual = $ours->issue('mutual', cn => 'mutual');
my $impostor = $others->issue('impostor', cn => 'mutual');
my %port;
my $broker = start_broker();
my $rights = KafkaRights->new($ENV{KAFKA_BROKERS});
my $e = Peer->new('kafka+sqlite', retries => 1);
my $name = $e->{name};
my ($sink, $error) = map { $e->address($_) } qw(sink error);

sub start_broker {
    my @tls = sort keys %shown;
    @port{ @tls, qw(mutual login clear) } = PrivateServer::free_ports(@tls + 3);
    my $properties = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:ANONYMOUS\n";
    my $present = sub {
        my ($listener, $files) = @_;
        my $both = "$work/$listener.pem";
        Endpoint::write_file($both, join '', map { Endpoint::read_file("$files.$_") } qw(key pem));
        $properties .= "listener.name.$listener.ssl.keystore.type=PEM\nlistener.name.$listener.ssl.keystore.location=$both\n";
    };
    $present->($_, $shown{$_}) for @tls;
    $present->($_, $shown{right}) for qw(mutual login);
    $properties .= "listener.name.mutual.$_\n" for 'ssl.client.auth=required', 'ssl.truststore.type=PEM', 'ssl.truststore.location=' . $ours->pem,
        'ssl.principal.mapping.rules=RULE:^CN=(.*?)$/$1/';
    my $module = 'org.apache.kafka.common.security';
    for my $listener (qw(login clear)) {
        $properties .= "listener.name.$listener.$_\n" for 'sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
            qq(plain.sasl.jaas.config=$module.plain.PlainLoginModule required user_clerk="$password";),
            map { "$_.sasl.jaas.config=$module.scram.ScramLoginModule required;" } qw(scram-sha-256 scram-sha-512);
    }
    my %protocol = ((map { $_ => 'SSL' } @tls, 'mutual'), login => 'SASL_SSL', clear => 'SASL_PLAINTEXT');
    my $started = PrivateServer->start('kafka', configuration => $properties, environment => {
        WB_KAFKA_LISTENERS => join(',', map { "\U$_\E://localhost:$port{$_}" } sort keys %port),
        WB_KAFKA_PROTOCOLS => join(',', map { "\U$_\E:$protocol{$_}" } sort keys %port),
        WB_KAFKA_FORMAT => join ' ', map { "--add-scram $_=[name=clerk,password=$password]" } qw(SCRAM-SHA-256 SCRAM-SHA-512),
    });
    return $started->enter_environment;
}

sub transport {
    my ($listener, @options) = @_;
    my $address = $listener ? "localhost:$port{$listener}" : $ENV{KAFKA_BROKERS};
    $e->configure(transport_group => qq(transport = { plugin = "kafka"; brokers = "$address"; partitions = 2; session_timeout = "6s"; @options };));
}
sub trusting { my ($authority) = @_; return sprintf 'tls = "on"; tls_ca_file = "%s";', $authority->pem }
sub showing { my ($files) = @_; return qq(tls_cert_file = "$files.pem"; tls_key_file = "$files.key";) }
sub as_clerk { my ($mechanism) = @_; return qq(sasl_mechanism = "$mechanism"; user = "clerk"; password = "env:CLERK_PASSWORD";) }

# ---- TLS ------------------------------------------------------------------------------
sub tls_is_verified {
    transport('right', trusting($ours));
    Secure::works($e, 'the right name');
    for (['wrong', 'of another name', 'name'], ['expired', 'expired', 'expired'], ['stranger', 'signed by an unknown authority', 'tls_ca_file']) {
        my ($which, $what, $word) = @$_;
        transport($which, trusting($ours));
        Secure::refused($e, "the broker's certificate is $what", 77, qr/certificate.*tls_ca_file.*expired.*name/);
    }
    transport(undef, trusting($ours));
    Secure::refused($e, 'TLS is not offered', 69, qr/TLS/);
}

sub certificates_are_asked_for {
    documented(\&KafkaRights::allow, 'mutual');
    transport('mutual', trusting($ours), showing($mutual));
    Secure::works($e, 'a certificate of ours');
    transport('mutual', trusting($ours));
    Secure::refused($e, 'no certificate of ours', 77, qr/tls_cert_file/);
    transport('mutual', trusting($ours), showing($impostor));
    Secure::refused($e, 'a certificate of another authority', 77, qr/tls_cert_file/);
}

# librdkafka before 2.6.1 sends a nonce twice, which Kafka took until 3.9.
my $can_scram = system('pkg-config --atleast-version=2.6.1 rdkafka') == 0;

# ---- logins ---------------------------------------------------------------------------
sub logins {
    documented(\&KafkaRights::allow, 'clerk');
    for my $mechanism (qw(plain scram-sha-256 scram-sha-512)) {
        transport('login', trusting($ours), as_clerk($mechanism));
        if ($mechanism =~ /scram/ && !$can_scram) {
            Secure::refused($e, "$mechanism with an old library", 77, qr/before 2\.6\.1.*Kafka 4\.0/);
            next;
        }
        Secure::works($e, $mechanism);
        transport('login', trusting($ours), as_clerk($mechanism) =~ s/CLERK_PASSWORD/WRONG_PASSWORD/r);
        Secure::refused($e, "$mechanism, wrong password", 77, qr/uthentication.*check user and password/);
    }
}

# ---- what the manual says that `waybill run` needs --------------------------------------
sub needed { return ([ topic => $name, 'read' ], [ topic => 'Test.', 'read', prefixed => 1 ], [ group => $name, 'read' ], [ topic => $sink, 'write' ], [ topic => $error, 'write' ]) }
sub documented { my ($change, $user) = @_; $rights->$change($user, @$_) for needed() }

sub each_right_at_the_start {
    documented(\&KafkaRights::allow, 'clerk');
    transport('clear', as_clerk('plain'));
    Secure::works($e, 'the documented rights');
    for ([ group => $name, 'read', qr/group "\Q$name\E".*grant READ.*kafka-acls/ ], [ topic => $name, 'read', qr/topic "\Q$name\E".*grant (?:the user )?READ on the topic.*kafka-acls/ ]) {
        my $sentence = pop @$_;
        $rights->forbid('clerk', @$_);
        Secure::refused($e, "no $_->[2] on the $_->[0]", 77, $sentence);
        if ($_->[0] eq 'topic') {
            $rights->allow('clerk', topic => $name, 'write');
            Secure::refused($e, "no read on the topic, but write", 77, $sentence);
            $rights->forbid('clerk', topic => $name, 'write');
        }
        $rights->allow('clerk', @$_);
    }
    Secure::refused($e, 'install without create', 77, qr/topic "\Q$name\E".*grant the user CREATE.*kafka-acls/, 'install');
    $rights->allow('clerk', topic => $_->[0], 'create', prefixed => $_->[1]) for [ $name ], [ $error ], [ 'Test.', 1 ];
    Secure::succeeds($e, 'install with what it needs', 'install');
    $rights->forbid('clerk', topic => $_->[0], 'create', prefixed => $_->[1]) for [ $name ], [ $error ], [ 'Test.', 1 ];
}

sub rights_are_waited_for {
    documented(\&KafkaRights::allow, 'clerk');
    transport('clear', as_clerk('plain'));
    $rights->forbid('clerk', topic => $sink, 'write');
    my $case = Secure::waits($e, 'no write', "send $sink T.T waits", qr/topic .*\Q$sink\E.*write.*kafka-acls/i);
    $rights->allow('clerk', topic => $sink, 'write');
    Secure::goes_on($case);
    $rights->allow('clerk', topic => "$ENV{KAFKA_PREFIX}.", 'write', prefixed => 1);
    $case = Secure::waits($e, 'no create for an event', "publish $ENV{KAFKA_PREFIX}.Placed event", qr/topic .*Placed.*CREATE.*kafka-acls/);
    $rights->allow('clerk', topic => "$ENV{KAFKA_PREFIX}.", 'create', prefixed => 1);
    $e->wait_for('no create for an event: goes on when it is granted', sub { $e->waiting == 0 });
    Secure::stops($e, 'no create for an event');
    ok !$e->read($error), 'and nothing is in the error topic';
    $rights->allow('clerk', topic => $error, 'describe');
    $rights->forbid('clerk', topic => $error, 'write');
    $case = Secure::waits($e, 'no write to the error topic', 'fail unrecoverable because', qr/topic .*\Q$error\E.*write.*kafka-acls/i);
    $rights->allow('clerk', topic => $error, 'write');
    my $copy = Secure::goes_on($case, $error);
    is $copy->{id}, $case->{message}{id}, 'it is in the error topic';
    ok !exists $copy->{header}{'Waybill.Trimmed'}, 'and its copy is whole';
}

# An event goes to the topics of its bases as well, and to each once, however often it is tried: without any right
# nobody can tell whether somebody has subscribed; with DESCRIBE alone the refusal comes with the record.
sub rights_on_bases_are_waited_for {
    my ($type, $base, $nobody) = map { "$ENV{KAFKA_PREFIX}_$_" } qw(Derived PrivateBase NobodysBase);
    documented(\&KafkaRights::allow, 'clerk');
    $e->make_queue($_) for $type, $base;
    $rights->allow('clerk', topic => $_, 'write') for $type, $nobody;
    $e->configure(with => qq(types = ( { type = "$type"; bases = [ "$base", "$nobody" ]; } );));
    transport('clear', as_clerk('plain'));
    for (['no right on a base', 0], ['describe alone on a base', 1]) {
        my ($what, $early) = @$_;
        $rights->forbid('clerk', topic => $base, 'write');
        $rights->allow('clerk', topic => $base, 'describe') if $early;
        my $case = Secure::waits($e, $what, "publish $type event", qr/topic .*\Q$base\E.*WRITE.*kafka-acls/);
        sleep 5;    # a few tries
        is scalar(my @own = $e->read($type)), $early, "$what: its own topic has it" . ($early ? ' once' : ' not yet');
        $rights->allow('clerk', topic => $base, 'write');
        $e->wait_for("$what: goes on when it is granted", sub { $e->waiting == 0 && push @{ $e->{got} }, $e->read($base) });
        is scalar(@{ delete $e->{got} || [] }) + (my @late = $e->read($base)), 1, "$what: the base has it once";
        is scalar(@own = $e->read($type)), 1 - $early, "$what: its own topic has it once";
        is scalar(my @lines = $e->log_lines(qr/base has no topic.*\Q$nobody\E/)), 1, "$what: one line for a base that may not be made";
        Secure::stops($e, $what);
    }
    ok !$e->read($error), 'and nothing is in the error topic';
    $e->configure(with => '');
}

# A topic is waited for; what else a worker meets ends it, and it is started again until it works.
sub rights_that_are_taken_away {
    documented(\&KafkaRights::allow, 'clerk');
    transport('clear', as_clerk('plain'));
    my $case = Secure::runs($e, 'read on the topic is taken away');
    $rights->forbid('clerk', topic => $name, 'read');
    $e->wait_for("$case->{what}: it says so", sub { $e->log_lines(qr/the broker (?:is away|cannot be used).*topic .*\Q$name\E.*grant.*READ.*kafka-acls/) });
    $rights->allow('clerk', topic => $name, 'read');
    Secure::deliver($e, $case->{message});
    Secure::goes_on($case, undef, qr/^(?:0|77)$/);    # 77 while it is not known that all is well again
    $e->configure(mode => 'sends_atomic_with_receive', outbox => '');
    $case = Secure::waits($e, 'no write on transactional ids', "send $sink T.T waits", qr/gave up.*transactional ids.*kafka-acls/i);
    $rights->allow('clerk', transaction => "$name.", 'write', prefixed => 1);
    Secure::goes_on($case, undef, qr/^(?:0|77)$/);
    $e->configure(mode => 'receive_only', outbox => 'enabled = true;');
}

my %cases = (tls => \&tls_is_verified, mutual => \&certificates_are_asked_for, logins => \&logins,
    start => \&each_right_at_the_start, waits => \&rights_are_waited_for, bases => \&rights_on_bases_are_waited_for,
    taken => \&rights_that_are_taken_away);
transport();
$e->install;
$cases{$_}->() for @ARGV ? @ARGV : qw(tls mutual logins start waits bases taken);
Secure::keeps_secrets();
done_testing;
