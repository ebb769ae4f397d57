# SPDX-License-Identifier: Apache-2.0
#
# What the tests of this directory ask of an endpoint (tests/integration/Endpoint.pm,
# tests/hostile/Peer.pm): that it refuses to start, with an exit code and one sentence; that it
# works; that it waits, with a sentence, and goes on.
#
#   my $password = Secure::secret('CLERK_PASSWORD');        # in the environment, and never in a log
#   Secure::refused($e, 'wrong name', 77, qr/certificate/);
#   Secure::works($e, 'right name');
#   my $case = Secure::waits($e, 'no privilege', $do, qr/INSERT/); ... Secure::goes_on($case);
#   Secure::keeps_secrets();                                # at the end
package Secure;
use strict;
use warnings;
use File::Find ();
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

my %secrets;
my ($count, $outputs) = (0, '');

# A password of this run alone, also in the environment for env:NAME.
sub secret {
    my ($name) = @_;
    open my $random, '<:raw', '/dev/urandom' or die "random: $!\n";
    read $random, my $bytes, 12;
    $secrets{$name} = 'Pw' . unpack 'H*', $bytes;
    return $ENV{$name} = $secrets{$name};
}

# Run it to its end, which has to come by itself: exit code, what it printed.
sub ends {
    my ($e, $verb, @arguments) = @_;
    my $output = "$e->{dir}/ends-" . ++$count;
    my $pid = $e->spawn($output, $verb, '-c', $e->{conf}, @arguments);
    my $code = $e->await_exit($pid, 30);
    if (!defined $code) {
        kill 'KILL', $pid;
        $code = 'does not end';
        $e->await_exit($pid);
    }
    return ($code, Endpoint::read_file($output));
}

# One line of errors, and it is the sentence.
sub refused {
    my ($e, $what, $code, $sentence, $verb, @arguments) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $started = time;
    my ($ended, $text) = ends($e, $verb || 'run', @arguments);
    my @errors = grep { /^waybill: |level=error|^\Q$e->{conf}\E:\d+: (?!warning: )/ } split /\n/, $text;
    like $ended, ref $code ? $code : qr/^$code$/, "$e->{pair}: $what: exit code $code" or diag $text;
    is scalar @errors, 1, "$e->{pair}: $what: one sentence" or diag $text;
    like $errors[0] // '', $sentence, "$e->{pair}: $what: it says so";
    note sprintf '%.1f s: %s', time - $started, $errors[0] // '';
}

# A verb does what it is to do.
sub succeeds {
    my ($e, $what, $verb) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($code, $text) = ends($e, $verb);
    is $code, 0, "$e->{pair}: $what" or diag $text;
}

sub message {
    my ($do) = @_;
    return { id => 'case-' . ++$count, do => $do };
}

# Whether a process has ended, which is for stop() to find out.
sub has_ended { my ($e) = @_; return grep { Endpoint::read_file("/proc/$_/status") !~ /^State:\s+[^ZX\s]/m } @{ $e->{processes} } }

sub sink { my ($e) = @_; return $e->can('address') ? $e->address('sink') : 'sink' }

sub deliver { my ($e, @messages) = @_; my $way = $e->can('send') || $e->can('inject'); $e->$way($e->{name}, @messages) }

sub stops {
    my ($e, $what, $code) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    like $e->stop, $code // qr/^0$/, "$e->{pair}: $what: stops cleanly";
}

# A message is handled once, and what it sends arrives. The process goes on; the answer is a case
# with another message to send.
sub runs {
    my ($e, $what, $do, $count) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $m = message($do // 'send ' . sink($e) . ' T.T works');
    unlink $e->{log};
    $e->start;
    deliver($e, $m);
    $e->wait_for("$what: works", sub { has_ended($e) || $e->effects($m->{id}) == 1 }, 30);
    $e->collect(sink($e), $count // 1, "$what: what it sends arrives");
    return { endpoint => $e, what => $what, message => message('send ' . sink($e) . ' T.T again') };
}
sub works {
    my ($e, $what, @more) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    runs($e, $what, @more);
    stops($e, $what);
}

# A message meets what is refused: the sentence is in the log, few others are, and nothing is lost.
sub waits {
    my ($e, $what, $do, $sentence) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $m = message($do);
    unlink $e->{log};
    $e->start;
    deliver($e, $m);
    $e->wait_for("$what: it says so", sub { has_ended($e) || $e->log_lines($sentence) }, 30);
    note $_ for $e->log_lines($sentence);
    return { endpoint => $e, what => $what, message => $m };
}

# What was refused is granted: without a restart of the process.
sub goes_on {
    my ($case, $queue, $code) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($e, $what) = @$case{qw(endpoint what)};
    my $started = time;
    my ($out) = $e->collect($queue // sink($e), 1, "$what: goes on when it is granted");
    is $e->effects($case->{message}{id}), 1, "$e->{pair}: $what: handled once" unless $queue;
    cmp_ok scalar $e->log_lines('level=(?:error|warning)'), '<=', 12, "$e->{pair}: $what: few lines"
        or diag join "\n", $e->log_lines('level=(?:error|warning)');
    note sprintf '%.1f s until it goes on', time - $started;
    stops($e, $what, $code);
    return $out;
}

# What the server at that port shows is that certificate.
sub shows {
    my ($port, $protocol, $files) = @_;
    my ($wanted) = Endpoint::read_file("$files.pem") =~ /(-----BEGIN CERT.*?-----END CERTIFICATE-----)/s;
    my @upgrade = $protocol ? ('-starttls', $protocol) : ();
    for (1 .. 200) {
        my $seen = `openssl s_client -connect 127.0.0.1:$port @upgrade </dev/null 2>/dev/null`;
        return if index($seen, $wanted) >= 0;
        sleep 0.05;
    }
    die "the server at port $port does not show $files\n";
}

# No file of this run holds a password, whoever wrote it: the program, librdkafka, a server.
sub keeps_secrets {
    my @told;
    my $look = sub {
        return if !-f $_ || !-s _;
        my $text = Endpoint::read_file($_);
        for my $name (sort keys %secrets) { push @told, "$File::Find::name: $name" if index($text, $secrets{$name}) >= 0 }
    };
    File::Find::find($look, Endpoint::work_dir());
    is_deeply \@told, [], 'no password is in a log, an answer or a file of the endpoint';
}

1;
