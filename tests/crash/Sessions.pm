# SPDX-License-Identifier: Apache-2.0
#
# A trial whose messages are sessions of a program (program.c): their ids are keys, which are repeated until it is known that
# they are committed. What a message's handler does a session does, so that the oracle asks the same of it; a key whose
# answer has not come counts as one that is still in the queue. The endpoint runs beside, and sees to what the program left.
#
#   my $trial = Sessions->new(pair => $pair, ..., sessions => 'mode = "store_and_forward";', front => 1);
#   $trial->start;                                          # the endpoint
#   $trial->start_program(WAYBILL_CRASH => 'session_committed:3');
#   $trial->await_program;                                  # true: it died
#   $trial->finish;                                         # all keys, then all that is left
package Sessions;
use strict;
use warnings;
use POSIX ();
use Time::HiRes qw(sleep time);
use Crash;
use Pair;
our @ISA = ('Crash');

my ($OK, $REJECT, $DUPLICATE, $EXPIRED) = (0, 3, 10, 11);
my %installed;

sub new {
    my ($class, %self) = @_;
    my $self = Crash::new($class, %self, waived => [ 'order', @{ $self{waived} || [] } ]);
    $self->accept(@{ $self->{model} });
    install_front($self) if $self->{front};
    return $self;
}

# A send-only endpoint whose sessions use the outbox of the one under test.
sub install_front {
    my ($self) = @_;
    my ($name, $processor) = map { $self->{pair}{transport}->queue($_) } qw(front crash);
    my @sections = map { $_->section } @{ $self->{pair} }{qw(transport store)};
    Pair::write_file("$self->{dir}/front.conf", <<"END");
endpoints = (
  { name = "$name"; send_only = true;
    @sections
    outbox = { enabled = true; };
    session = { $self->{sessions} processor_endpoint = "$processor"; }; }
);
END
    local %ENV = (%ENV, $self->{pair}->environment);
    return if $installed{ join ' ', map { $_->home } @{ $self->{pair} }{qw(transport store)} }++;
    system("'$Crash::program' install -c '$self->{dir}/front.conf' >>'$self->{dir}/endpoint.log' 2>&1") == 0
        or die "install -c $self->{dir}/front.conf failed: see $self->{dir}/endpoint.log\n";
}

# ---- keys ---------------------------------------------------------------------------
# Class and cause of the last answer for each. What was said to be committed stays so. Keys that were told to be closed
# are those of `expired`.
sub answers {
    my ($self) = @_;
    my %answers;
    open my $file, '<', "$self->{dir}/answers" or return {};
    while (<$file>) {
        my ($id, $class, $cause) = /^(\S+)\t(\d+)\t(\d+)$/ or next;
        $self->{closed}{$id} = 1 if $cause == $EXPIRED;
        $answers{$id} = [ $class, $cause ] unless $answers{$id} && is_committed($answers{$id});
    }
    return \%answers;
}

sub is_committed { my ($answer) = @_; return $answer->[0] == $OK || $answer->[0] == $REJECT && $answer->[1] == $DUPLICATE }
sub expired { my ($self) = @_; $self->answers; return sort keys %{ $self->{closed} } }

sub left {
    my ($self) = @_;
    my $answers = $self->answers;
    return grep { !$answers->{ $_->{id} } || !is_committed($answers->{ $_->{id} }) } @{ $self->{model} };
}

# ---- the program ------------------------------------------------------------------------
sub program_path { my ($self) = @_; return "$Crash::build/tests/crash/program-" . ($self->{pair}{store}->handlers =~ s/^effects-//r) }

# Commits all keys that are left, or these.
sub start_program {
    my ($self, %environment) = @_;
    my $life  = ++$self->{lives};
    my $input = "$self->{dir}/keys.$life";
    Pair::write_file($input, join '', $self->lines(@{ delete $environment{keys} || [ $self->left ] }));
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        $self->become(\%environment, $life);
        open STDIN, '<', $input or POSIX::_exit(99);
        open STDOUT, '>>', "$self->{dir}/answers" or POSIX::_exit(99);
        my @endpoint = $self->{front} ? ('front', 'front') : ('endpoint', 'crash');
        exec $self->program_path, "$self->{dir}/$endpoint[0].conf", $self->{pair}{transport}->queue($endpoint[1]) or POSIX::_exit(99);
    }
    return $self->adopt($pid, 'program');
}

# True: a signal ended it.
sub await_program {
    my ($self) = @_;
    my $status;
    $self->wait_for($Crash::patience, sub {
        return 0 unless waitpid($self->{program}, POSIX::WNOHANG()) == $self->{program};
        $status = $?;
        return 1;
    });
    if (!defined $status) {
        push @{ $self->{log} }, "the program has not ended in $Crash::patience s";
        kill 'KILL', $self->{program};
        waitpid $self->{program}, 0;
    }
    $self->disown($self->{program});
    push @{ $self->{log} }, "the program ended with status $status" if ($status // 0) & ~127;
    return ($status // 0) & 127;
}

# ---- what the trial asks ------------------------------------------------------------------
# At a crash: the endpoint may be alive beside the program.
sub await_no_consumers { return 1 }
sub queued { my ($self) = @_; return map { ($_->{id}) x $_->{copies} } $self->left }

# Whatever died runs again, without a fault.
sub keep_alive { my ($self) = @_; $self->start unless $self->reap }

sub commit_rest {
    my ($self) = @_;
    for my $life (1 .. 20) {
        return unless $self->left;
        $self->keep_alive;
        $self->start_program;
        $self->await_program;
        sleep 0.1 if $self->left;
    }
    push @{ $self->{log} }, 'not committed: ' . join ' ', map { $_->{id} } $self->left;
}

sub finish {
    my ($self) = @_;
    $self->commit_rest;
    $self->SUPER::finish;
}

1;
