# SPDX-License-Identifier: Apache-2.0
#
# A program with sessions (session_client.c), driven line by line.
#
#   my $p = Session->new($endpoint, { WAYBILL_CRASH => 'session_committed:1' });
#   is $p->say('open a order-1'), 'OK';
#   $p->end;     # its exit code, or "signal N"
package Session;
use strict;
use warnings;
use IO::Handle;
use POSIX ();
use Endpoint;

my %alive;
END { my $status = $?; kill 'KILL', keys %alive; waitpid $_, 0 for keys %alive; $? = $status }

sub program { my ($e) = @_; return "$Endpoint::build/tests/integration/session_client" . ($e->{pair} =~ /mysql/ ? '_mysql' : '') }

sub new {
    my ($class, $e, $environment, @endpoint) = @_;
    pipe my $his_in, my $in or die "pipe: $!\n";
    pipe my $out, my $his_out or die "pipe: $!\n";
    my $log = "$e->{dir}/session.log";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        %alive = ();
        %ENV = (%ENV, $e->environment, SESSION_LOG => $log, %{ $environment || {} });
        open STDIN, '<&', $his_in or POSIX::_exit(99);
        open STDOUT, '>&', $his_out or POSIX::_exit(99);
        open STDERR, '>>', "$e->{dir}/session.stderr";
        exec program($e) or POSIX::_exit(98);
    }
    $in->autoflush(1);
    $alive{$pid} = 1;
    my $self = bless { pid => $pid, in => $in, out => $out, log => $log, e => $e }, $class;
    my $opened = $self->say(join ' ', 'endpoint', $e->{conf}, @endpoint ? @endpoint : $e->{name});
    $self->{opened} = $opened;
    return $self;
}

sub hear {
    my ($self) = @_;
    my $line = readline $self->{out};
    chomp $line if defined $line;
    return $line;
}

sub tell { my ($self, $line) = @_; local $SIG{PIPE} = 'IGNORE'; print { $self->{in} } "$line\n"; return }
sub say  { my ($self, $line) = @_; $self->tell($line); return $self->hear }

# Several lines; the answers that are not OK.
sub all { my ($self, @lines) = @_; return grep { $_ ne 'OK' } map { $self->say($_) // 'gone' } @lines }

sub end {
    my ($self, $signal) = @_;
    kill $signal, $self->{pid} if $signal;
    close $self->{in};
    1 while defined $self->hear;
    waitpid $self->{pid}, 0;
    delete $alive{ $self->{pid} };
    return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

sub log_lines { my ($self, $pattern) = @_; return grep { /$pattern/ } split /\n/, Endpoint::read_file($self->{log}) }

1;
