# SPDX-License-Identifier: Apache-2.0
#
# Kafka. Trials of a job share topics whose names begin with the KAFKA_PREFIX of `with-servers`;
# what lies behind a group's committed offset is its queue.
package Transport::Kafka;
use strict;
use warnings;
use IO::Socket::INET;
use Tools;

my $partitions = 3;
my $reader = 'crash-oracle';    # the oracle's own group: its place in the sink and the error queue

sub new { my ($class, %self) = @_; return bless \%self, $class }
sub keeps_order { return 1 }
sub prefix { return "$ENV{KAFKA_PREFIX}_" }
sub queue  { my ($self, $name) = @_; return $self->prefix . $name }
sub home   { return "$ENV{KAFKA_BROKERS}/$ENV{KAFKA_PREFIX}" }
sub nowhere { my ($self) = @_; return $self->queue("nowhere-$self->{trial}") }
sub environment { my ($self) = @_; return (CRASH_PREFIX => $self->prefix, CRASH_NOWHERE => $self->nowhere) }

# A process that is killed keeps its place in the group until session_timeout is over, for its
# successor or, if there is none, for nobody.
sub section {
    my ($self) = @_;
    return qq(transport = { plugin = "kafka"; brokers = "$ENV{KAFKA_BROKERS}"; partitions = $partitions; )
        . qq(session_timeout = "2s"; };);
}

sub tool {
    my ($self, $verb, $group, @queues) = @_;
    my @lines = Tools::run('', "$Crash::build/tests/crash/sink-kafka", $verb, $group, map { $self->queue($_) } @queues);
    return map { substr $_, length $self->prefix } @lines;
}
sub group { my ($self) = @_; return $self->queue('crash') }

# The topic of events is not the one of the sink's handler: that name has no prefix.
sub installed { my ($self) = @_; $self->tool('create', $partitions, 'Crash.Happened') }

sub prepare {
    my ($self) = @_;
    $self->expel;
    $self->tool('skip', $self->group, 'crash');
    $self->tool('skip', $reader, $self->outputs);
}
sub outputs { return (qw(sink Crash.Happened error), $_[0]{audit} ? 'audit' : ()) }

# The places of processes that have ended are given up at once: offsets are committed from
# outside only when nobody is in the group. Such is the request LeaveGroup of version 1.
sub expel {
    my ($self) = @_;
    my @members = Tools::run('', "$Crash::build/tests/crash/sink-kafka", 'members', $self->group, $self->queue('crash')) or return;
    my $broker = IO::Socket::INET->new(PeerAddr => $ENV{KAFKA_BROKERS}, Timeout => 10) or die "$ENV{KAFKA_BROKERS}: $!\n";
    for (@members) {
        my $request = pack 'n n N n/a* n/a* n/a*', 13, 1, 1, 'tests', $self->group, $_;
        print $broker pack 'N/a*', $request;
        $broker->flush;
        sysread $broker, my $answer, 4096 or die "LeaveGroup: no answer\n";
    }
}

# Connections of one user cannot be told from another's. A process that stands still loses
# its partitions to others when its session has timed out.
sub cut { sleep 3 }

# The broker that leads a partition of the input queue.
sub leader {
    my ($self) = @_;
    for (split /,/, $ENV{KAFKA_BROKERS}) {
        my ($line) = eval { Tools::run('', "$Crash::source/tests/support/kafka-metadata", $_, $self->queue('crash')) } or next;
        return $1 if $line =~ /^(\d+)/;
    }
    die "nobody knows the leader\n";
}

sub inject {
    my ($self, @lines) = @_;
    Tools::run(join('', @lines), "$Crash::build/tests/crash/inject-kafka", $self->queue('crash'));
}

sub drain {
    my ($self) = @_;
    my @nowhere = $self->{found} ? ("nowhere-$self->{trial}") : ();
    my @lines = $self->tool('drain', $reader, $self->outputs, @nowhere);
    return Tools::messages(map { s/^(?:Crash\.Happened|nowhere-[^\t]*)\t/sink\t/r } @lines);
}
sub peek { my ($self) = @_; return map { $_->[1] } Tools::rows($self->tool('peek', $self->group, 'crash')) }

sub take_all {
    my ($self) = @_;
    $self->expel;
    return map { $_->[1] } Tools::rows($self->tool('drain', $self->group, 'crash'));
}

sub lead_to_sink {    # the destination that was not there
    my ($self) = @_;
    $self->tool('create', $partitions, "nowhere-$self->{trial}");
    $self->{found} = 1;
}

# The error queue is counted by its messages, offsets have gaps where transactions end; and when the queue is empty: a client's start
# for each look takes more of a processor than what is looked at.
sub state {
    my ($self) = @_;
    my ($depth) = Tools::rows($self->tool('depth', $self->group, 'crash'));
    return (ready => $depth->[1], consumers => 0, errors => $depth->[1] ? 0 : scalar $self->tool('peek', $reader, 'error'));
}

1;
