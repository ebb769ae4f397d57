# SPDX-License-Identifier: Apache-2.0
#
# A trial: one endpoint, its messages, and the lives of its process. It knows nothing of
# servers (Pair.pm) and judges nothing (Oracle.pm).
#
#   my $trial = Crash->new(pair => $pair, name => 'x', messages => 40, batch_max => 16);
#   $trial->inject;
#   $trial->start(WAYBILL_CRASH => 'after_commit:3');
#   $trial->await_crash;          # true: it died by SIGKILL; false: it finished first
#   $trial->look_after_crash;     # what the oracle wants to know of this moment
#   $trial->finish;               # run it without faults until nothing is left to do
#   my @violations = Oracle::judge($trial);
package Crash;
use strict;
use warnings;
use POSIX ();
use Time::HiRes qw(sleep time);
use lib "$ENV{top_srcdir}/tests/support";
use Process;

our $build  = $ENV{top_builddir} || die "top_builddir is not set: run this through make\n";
our $source = $ENV{top_srcdir}   || die "top_srcdir is not set: run this through make\n";
our $program  = "$build/waybill-test";
our $patience = $ENV{CRASH_PATIENCE} || 60;    # seconds until a trial that does not end has failed

my $trials = 0;
my %alive;    # all endpoints of this process: none outlives it
END { kill 'KILL', keys %alive }
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);

sub new {
    my ($class, %self) = @_;
    my $self = bless {
        messages => 40, duplicates => 4, batch_max => 16, concurrency => 1, orders => {}, stall => 15, delayed_retries => 0, increment => 1,
        environment => {}, processes => [], crashes => [], drained => [], log => [], notes => [], waived => [], %self
    }, $class;
    $self->{prefix} = sprintf '%s-%x-%d', $self->{name} =~ s/[^a-z0-9]+/-/gr, $$, ++$trials;
    $self->{dir} = $self->{pair}->begin($self);
    $self->{model} = [ map { $self->message($_) } 1 .. $self->{messages} ];
    return $self;
}

# ---- the messages, and what should become of them -------------------------------
sub digest {    # the same as digest.h
    my ($bytes) = @_;
    use integer;
    my $digest = -3750763034362895579;
    $digest = ($digest ^ $_) * 1099511628211 for unpack 'C*', $bytes;
    return sprintf '%016x', ($digest ^ length $bytes) * 1099511628211;
}

sub message {
    my ($self, $seq) = @_;
    my @types = $self->{pair}->types;
    my $order = $self->{orders}{$seq} || '-';
    my $key   = 'k' . $seq % 7;
    my $body  = sprintf 'seq=%d key=%s amount=%d do=%s %s', $seq, $key, $seq * 3 % 101, $order,
        substr 'padding ' x 40, 0, $seq * 37 % 300;
    my $share  = $self->{duplicates};    # in percent
    my $copies = int($seq * $share / 100) > int(($seq - 1) * $share / 100) ? 2 : 1;
    return {
        id => sprintf('%s-%06d', $self->{prefix}, $seq), seq => $seq, key => $key, body => $body,
        amount => $seq * 3 % 101, hash => digest($body), order => $order, copies => $copies,
        type => $types[ $seq % @types ], outgoing => 1 + $seq % 2,
        fails => $order =~ /^(?:reject|abort|exit|leave|nowhere)$/ || ($order =~ /^retry:(\d+)$/ && $1 > $self->{delayed_retries}),
    };
}

# The message that another one sends to its own endpoint, due later: see effects.c.
sub late_message {
    my ($cause) = @_;
    my ($order, $delay) = $cause->{order} =~ /^(later|astray):(\d+)$/ or return;
    my ($seq, $amount) = ($cause->{seq}, $cause->{amount} + 1);
    my $body = "seq=$seq key=l$seq amount=$amount do=late cause=$cause->{id}";
    return { %$cause, id => "$cause->{id}-late", key => "l$seq", body => $body, amount => $amount, hash => digest($body),
        order => 'late', cause => $cause->{id}, delay => $delay / 1000, place => undef, copies => 1, fails => $order eq 'astray' };
}

# What was injected, and what follows from it.
sub expected {
    my ($self) = @_;
    my $count    = $self->{injected} || 0;
    my @injected = @{ $self->{model} }[ 0 .. $count - 1 ];
    return @{ $self->{expected}{$count} ||= [ @injected, map { late_message($_) } @injected ] };
}

# What the handlers noted of each attempt: see effects.h.
sub arrivals {
    my ($self) = @_;
    open my $file, '<', "$self->{dir}/arrivals" or return;
    return map { chomp; my %arrival; @arrival{qw(id time due retries hash headers)} = split /\t/; \%arrival } <$file>;
}

# Copies of a message lie apart, so that one is often in another batch than the other; or
# side by side, so that two processes get them at the same time.
sub with_copies {
    my ($self, @model) = @_;
    return map { ($_) x $_->{copies} } @model if $self->{adjacent};
    my @again = grep { $_->{copies} > 1 } @model;
    my $half = int($#model / 2);
    return (@model[ 0 .. $half ], @again, @model[ $half + 1 .. $#model ]);
}

sub lines {
    my ($self, @model) = @_;
    return map { "$_->{id}\t$_->{type}\t@{[ $_->{body} // q() ]}\n" } $self->with_copies(@model);
}

sub inject {
    my ($self, @model) = @_;
    @model = @{ $self->{model} } unless @model;
    $self->{pair}->inject($self, $self->lines(@model));
    $self->accept(@model);
}

# These are in the queue, or will be.
sub accept {
    my ($self, @model) = @_;
    $_->{place} ||= ++$self->{places} for $self->with_copies(@model);    # of the first copy
    $self->{injected} += @model;
}

# For queues that must run dry in between: the first part now, a part each time the
# endpoint has caught up, and inject_rest for what is left.
sub inject_slowly {
    my ($self, $parts) = @_;
    my @model = @{ $self->{model} };
    my $size = POSIX::ceil(@model / $parts);
    $self->{parts} = [ map { [ splice @model, 0, $size ] } 1 .. $parts ];
    $self->inject_part;
}
sub inject_part {
    my ($self) = @_;
    my $part = shift @{ $self->{parts} || [] } or return 0;
    $self->inject(@$part) if @$part;
    return 1;
}
sub inject_rest { my ($self) = @_; 1 while $self->inject_part }

# ---- processes --------------------------------------------------------------------
sub start {
    my ($self, %environment) = @_;
    my $life = ++$self->{lives};
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        $self->become(\%environment, $life);
        exec { $program } $program, 'run', '-c', "$self->{dir}/endpoint.conf" or POSIX::_exit(99);
    }
    $alive{$pid} = 1;
    push @{ $self->{processes} }, $pid;
    return $pid;
}

# What a new process has of the trial: its environment, and the log to write to.
sub become {
    my ($self, $environment, $life) = @_;
    %alive = ();
    %ENV = (%ENV, $self->{pair}->environment, %{ $self->{environment} }, %$environment);
    $ENV{CRASH_ARRIVALS} = "$self->{dir}/arrivals" if $self->{delays};
    open STDOUT, '>>', "$self->{dir}/endpoint.log" or POSIX::_exit(99);
    open STDERR, '>&', \*STDOUT;
    open STDIN, '<', '/dev/null';
    print "---- life $life: @{[ map { qq($_=$environment->{$_}) } sort keys %$environment ]}\n";
    STDOUT->flush;
}

# A process that is no endpoint's, known as $self->{$name}, and none any more.
sub adopt  { my ($self, $pid, $name) = @_; $alive{$pid} = 1; return $self->{$name} = $pid }
sub disown { my ($self, $pid) = @_; delete $alive{$pid} }

sub reap {    # forget processes that ended; how they ended is in {ends}
    my ($self) = @_;
    my @left;
    for my $pid (@{ $self->{processes} }) {
        if (waitpid($pid, POSIX::WNOHANG()) != $pid) { push @left, $pid; next }
        push @{ $self->{ends} }, $?;
        delete $alive{$pid};
    }
    $self->{processes} = \@left;
    return scalar @left;
}

# Poll until the condition holds; false when $seconds have passed. Whoever looks for longer than he rests takes the processor
# from what he waits for.
sub wait_for {
    my ($self, $seconds, $condition, $pause) = @_;
    my $end = time + $seconds;
    while (1) {
        my $began = time;
        return 1 if $condition->();
        return 0 if time > $end;
        my ($least, $took) = ($pause || 0.02, time - $began);
        sleep($took > 1 ? 1 : $took > $least ? $took : $least);
    }
}

sub log_says {    # whether a line of the endpoint's log holds the text
    my ($self, $text) = @_;
    open my $file, '<', "$self->{dir}/endpoint.log" or return 0;
    return scalar grep { index($_, $text) >= 0 } <$file>;
}

sub kill_all {
    my ($self, $signal) = @_;
    $self->wait_for(10, sub { $self->reap; !grep { !Process::waits_for_sigterm($_) } @{ $self->{processes} } }) if $signal eq 'TERM';
    kill $signal, @{ $self->{processes} };
    return $self->wait_for(30, sub { !$self->reap });
}

# True when the process died of a signal, or a handler left it; false when all was done first.
sub await_crash {
    my ($self) = @_;
    my ($looked, $done) = (time, 0);
    $self->{ends} = [];
    my $over = $self->wait_for($patience, sub {
        return 1 unless $self->reap;
        return 0 if time - $looked < 0.2;
        $looked = time;
        return 0 unless $self->is_quiescent;
        return !$self->inject_part;
    });
    push @{ $self->{log} }, "neither crashed nor finished in $patience s" unless $over;
    return scalar grep { $_ & 127 || $_ >> 8 == 70 } @{ $self->{ends} } if @{ $self->{ends} };
    $self->kill_all('KILL') unless $over;
    return 0;
}

# True when the process stands still at its crash point ("...:stop").
sub await_stop {
    my ($self) = @_;
    my $looked = time;
    return $self->wait_for($patience, sub {
        return 1 if $self->has_stopped;
        return 0 if time - $looked < 0.2;
        $looked = time;
        $self->inject_part if $self->is_quiescent;
        return 0;
    });
}
sub has_stopped {
    my ($self, $pid) = @_;
    $pid //= $self->{processes}[-1];
    open my $file, '<', "/proc/$pid/stat" or return 0;
    return <$file> =~ /\) T /;
}
sub go_on { my ($self) = @_; kill 'CONT', @{ $self->{processes} } }

# The queues only when the tables have all, or do not move.
sub look {
    my ($self) = @_;
    $self->{stands} ||= time - ($self->{moved} // time) > 3;
    return $self->{pair}->state($self, $self->{stands} ? 0 : scalar grep { !$_->{fails} } $self->expected);
}

# Everything handled or in the error queue, nothing left in queue or outbox.
sub is_quiescent {
    my ($self, $state) = @_;
    $state //= $self->look;
    my @expected = $self->expected;
    my $known = grep { !$_->{fails} } @expected;
    my $fails = @expected - $known;
    my $stuck = grep { $_->{order} =~ /^nowhere/ } @{ $self->{model} };    # pending, and stay so
    my $astray = grep { $_->{order} =~ /^astray/ } @{ $self->{model} };    # may stay so
    return $state->{effects} >= $known && $state->{errors} >= $fails && !$state->{ready}
        && $state->{pending} <= $stuck + $astray && $self->stays($state->{pending} - $stuck);
}

# What went astray is pending for good if it was refused at once; what is only late goes away.
sub stays {
    my ($self, $left) = @_;
    return 1 if $left <= 0;
    $self->{left} = [ $left, time ] if !$self->{left} || $self->{left}[0] != $left;
    return time - $self->{left}[1] > 3;
}

# Quiescent, or nothing has moved for so long that it never will be.
sub is_over {
    my ($self) = @_;
    my $state = eval { $self->look } or return 0;
    my $now = join ' ', map { "$_=$state->{$_}" } sort keys %$state;
    @$self{qw(moved last)} = (time, $now) if $now ne ($self->{last} // '');
    return $self->is_quiescent($state) || time - $self->{moved} > $self->{stall};
}

# The endpoint without faults until it is done. A clean stop gives back what was prefetched
# in the meantime, so there may be another round.
sub finish {
    my ($self, $processes) = @_;
    for my $round (1 .. 5) {
        $self->{ends} = [];
        $self->{moved} = time;
        my $wanted = ($processes || 1) - $self->reap;
        $self->start for 1 .. $wanted;
        my $done = $self->wait_for($self->{patience} || $patience, sub { !$self->reap || $self->is_over }, 0.1);
        $self->kill_all('TERM') or $self->kill_all('KILL');
        my @bad = grep { $_ != 0 } @{ $self->{ends} };
        push @{ $self->{log} }, "a clean stop ended with status $bad[0]" if @bad;
        return if $self->is_quiescent;
        last if !$done || @bad || time - $self->{moved} > $self->{stall};
    }
    push @{ $self->{log} }, "not finished: $self->{last}";
}

# What is where right after a crash, for invariants 3 and 9. The sink is read before the
# effects: an outgoing message seen here must have its effect there.
sub look_after_crash {
    my ($self) = @_;
    my $pair = $self->{pair};
    $self->await_no_consumers or push @{ $self->{log} }, 'the broker still sees a consumer of a dead process';
    # An endpoint may live beside the program that died, and go on meanwhile: in this order it only makes what
    # is looked for more.
    my %queued;
    $queued{$_}++ for $self->queued;
    my $pending = $pair->pending($self);
    $self->drain;
    push @{ $self->{crashes} }, {
        sink => [ @{ $self->{drained} } ], queued => \%queued,
        effects => [ $pair->effects($self) ], pending => $pending,
        injected => $self->{injected}, hides_delayed => ($self->{delays} // '') eq 'transport',
    };
    $pair->end_leases;
}

sub await_no_consumers { my ($self) = @_; return $self->wait_for(10, sub { !$self->{pair}->state($self)->{consumers} }, 0.05) }
sub queued { my ($self) = @_; return $self->{pair}->peek($self) }

sub drain {
    my ($self) = @_;
    my @new = $self->{pair}->drain($self);
    push @{ $self->{drained} }, @new;
    return @new;
}

sub end {
    my ($self) = @_;
    $self->kill_all('KILL') if $self->reap;
    $self->{pair}->end($self);
}

1;
