# SPDX-License-Identifier: Apache-2.0
#
# The oracle: compares what is in queues and tables with what the messages asked for. It
# reads everything itself; nothing here comes from the endpoint under test.
#
# Invariants, with the numbers of the test plan:
#   1 loss      every injected message has its effect or lies in the error queue; and only
#               messages that were ordered to fail lie there
#   2 zombie    each committed effect has all of its outgoing messages in the sink; those that
#               no broker takes are pending, and the message lies in the error queue, unless the
#               sweeper may park them while it is tried again (`parked_first`)
#   3 ghost     each outgoing message has a committed effect, also right after a crash
#   4 double    one effect and one ledger entry a message, with the body that was sent;
#               the ledger adds up
#   5 identity  copies of an outgoing message are the same bytes under the same id
#     copy      no copies at all, where sends are one transaction with the receive
#   6 order     where keys have an order: effects, and the first copies of outgoing messages,
#               are in the order in which the messages of their key were injected
#   7 early     nothing arrives before it is due: what was sent with a delay, a delayed retry
#     audit     where copies of what was handled are asked for, each effect has one, and nothing else
#   9 acknowledge  right after a crash, a message that left the queue has its outgoing
#               messages in the sink, or still pending
package Oracle;
use strict;
use warnings;
use Time::Local qw(timegm);

our @invariants = qw(loss zombie ghost double identity copy order early audit acknowledge);

# @return a list of [ invariant, text ]; "trouble" is what kept the trial from ending well.
# Invariants that the pair does not promise, or the trial sees to that they do not hold, are
# left out: `waived`.
sub judge {
    my ($trial) = @_;
    $trial->drain;
    my $facts = {
        model   => { map { $_->{id} => $_ } $trial->expected },
        arrivals => [ sort { $a->{time} <=> $b->{time} } $trial->arrivals ],
        effects => [ $trial->{pair}->effects($trial) ],
        ledger  => [ $trial->{pair}->ledger($trial) ],
        pending => $trial->{pair}->pending($trial),
        increment => $trial->{increment},
        parked_first => $trial->{parked_first},
        audited   => $trial->{audit} ? counted(map { $_->{id} } grep { $_->{queue} eq 'audit' } @{ $trial->{drained} }) : undef,
        sink    => [ grep { $_->{queue} eq 'sink' } @{ $trial->{drained} } ],
        errors  => { map { $_->{id} => $_ } grep { $_->{queue} eq 'error' } @{ $trial->{drained} } },
    };
    my %waived = map { $_ => 1 } $trial->{pair}->waived, @{ $trial->{waived} };
    return grep { !$waived{ $_->[0] } } (
        map({ [ 'trouble', $_ ] } @{ $trial->{log} }),
        check_loss($facts), $trial->{delays} ? check_left($facts) : (), check_zombies($facts), check_ghosts($facts), check_doubles($facts),
        check_identity($facts), check_copies($facts), check_order($facts),
        check_arrivals($facts), check_early($facts), check_audit($facts), map({ check_crash($facts, $_) } @{ $trial->{crashes} }));
}

sub counted {
    my %count;
    $count{$_}++ for @_;
    return \%count;
}

sub outgoing_by_cause {    # cause => { ordinal => [ messages ] }
    my %by;
    push @{ $by{ $_->{cause} }{ $_->{ordinal} } }, $_ for @_;
    return \%by;
}

sub missing_outgoing {     # ordinals that a message asked for and $sent lacks
    my ($message, $sent) = @_;
    return grep { !$sent->{ $message->{id} }{$_} } 1 .. $message->{outgoing};
}

# What was to be late may be due by the time that it is sent at all: then it is refused at once, and that is the
# failure of its cause, whose operation stays pending.
sub is_refused_at_once {
    my ($facts, $cause) = @_;
    return $facts->{errors}{$cause} && index($facts->{pending}, $cause) >= 0;
}

# Killed again and again while it is tried again, a message may come back when the sweeper has parked what it sent:
# that is reported then, and the message is done with.
sub is_parked_first {
    my ($facts, $message) = @_;
    return $facts->{parked_first} && $message->{order} eq 'nowhere' && index($facts->{pending}, $message->{id}) >= 0;
}

sub check_loss {
    my ($facts) = @_;
    my $effects = counted(map { $_->{id} } @{ $facts->{effects} });
    my @bad;
    for my $message (sort { $a->{seq} <=> $b->{seq} } values %{ $facts->{model} }) {
        my $failed = $facts->{errors}{ $message->{id} };
        next if $message->{fails} && $message->{cause} && is_refused_at_once($facts, $message->{cause});
        next if $message->{order} =~ /^astray/ && is_refused_at_once($facts, $message->{id}) && $effects->{ $message->{id} };
        push @bad, [ 'loss', "$message->{id} has no effect and is not in the error queue" ]
            if !$effects->{ $message->{id} } && !$failed;
        push @bad, [ 'loss', "$message->{id} is in the error queue: $failed->{reason}" ]
            if $failed && !$message->{fails};
        push @bad, [ 'loss', "$message->{id} should be in the error queue (ordered to $message->{order})" ]
            if !$failed && $message->{fails} && !($effects->{ $message->{id} } && is_parked_first($facts, $message));
    }
    push @bad, map { [ 'loss', "the error queue holds $_, which nobody sent" ] }
        grep { !$facts->{model}{$_} } sort keys %{ $facts->{errors} };
    return @bad;
}

# At the end nothing waits in outbox or delayed message store, but what is reported in the error queue.
sub check_left {
    my ($facts) = @_;
    return map { [ 'loss', "$_ still waits, or what it sent does" ] } sort map { $_->{id} }
        grep { index($facts->{pending}, $_->{id}) >= 0 && !$facts->{errors}{ $_->{cause} // $_->{id} } } values %{ $facts->{model} };
}

sub check_zombies {
    my ($facts) = @_;
    my $sent = outgoing_by_cause(@{ $facts->{sink} });
    my @bad;
    for my $effect (@{ $facts->{effects} }) {
        my $message = $facts->{model}{ $effect->{id} } or next;
        my @missing = missing_outgoing($message, $sent) or next;
        # what no broker takes waits in the outbox for the message's return from the error queue
        my $waits = $message->{fails} && $facts->{errors}{ $message->{id} } && index($facts->{pending}, $effect->{id}) >= 0
            || is_parked_first($facts, $message);
        push @bad, map { [ 'zombie', "$effect->{id} was committed, its outgoing message $_ was never sent" ] } @missing
            unless $waits;
    }
    return @bad;
}

sub check_ghosts {
    my ($facts) = @_;
    my $effects = counted(map { $_->{id} } @{ $facts->{effects} });
    my @bad = map { [ 'ghost', "outgoing message $_->{id} comes from $_->{cause}, which has no effect" ] }
        grep { !$effects->{ $_->{cause} } } @{ $facts->{sink} };
    for my $sent (@{ $facts->{sink} }) {
        my $message = $facts->{model}{ $sent->{cause} } or next;
        push @bad, [ 'ghost', "outgoing message $sent->{id} of $sent->{cause} was not asked for" ]
            if $sent->{ordinal} > $message->{outgoing} || $sent->{hash} ne $message->{hash};
    }
    return @bad;
}

sub check_doubles {
    my ($facts) = @_;
    my $effects = counted(map { $_->{id} } @{ $facts->{effects} });
    my $ledger  = counted(map { $_->{id} } @{ $facts->{ledger} });
    my ($sum, $wanted) = (0, 0);
    my @bad = map { [ 'double', "$_ took effect $effects->{$_} times" ] }
        grep { $effects->{$_} > 1 } sort keys %$effects;
    push @bad, map { [ 'double', "$_ has $effects->{$_} effects and " . ($ledger->{$_} || 0) . ' ledger entries' ] }
        grep { $effects->{$_} != ($ledger->{$_} || 0) } sort keys %$effects;
    push @bad, map { [ 'double', "the ledger has an entry for $_, which has no effect" ] }
        grep { !$effects->{$_} } sort keys %$ledger;
    push @bad, map { [ 'double', "$_->{id} took effect with another body than was sent" ] }
        grep { $facts->{model}{ $_->{id} } && $facts->{model}{ $_->{id} }{hash} ne $_->{hash} } @{ $facts->{effects} };
    $sum    += $_->{amount} for @{ $facts->{ledger} };
    $wanted += $facts->{model}{$_}{amount} // 0 for keys %$effects;
    push @bad, [ 'double', "the ledger adds up to $sum instead of $wanted" ] if $sum != $wanted;
    return @bad;
}

sub check_identity {
    my ($facts) = @_;
    my (%digests, @bad);
    $digests{ $_->{id} }{ $_->{digest} } = 1 for @{ $facts->{sink} };
    push @bad, map { [ 'identity', "copies of outgoing message $_ differ" ] }
        grep { keys %{ $digests{$_} } > 1 } sort keys %digests;
    my $sent = outgoing_by_cause(@{ $facts->{sink} });
    for my $cause (sort keys %$sent) {
        for my $ordinal (sort keys %{ $sent->{$cause} }) {
            my %ids = map { $_->{id} => 1 } @{ $sent->{$cause}{$ordinal} };
            push @bad, [ 'identity', "outgoing message $ordinal of $cause was sent under several ids" ]
                if keys %ids > 1;
        }
    }
    return @bad;
}

sub check_copies {
    my ($facts) = @_;
    my $count = counted(map { "$_->{ordinal} of $_->{cause}" } @{ $facts->{sink} });
    return map { [ 'copy', "outgoing message $_ was sent $count->{$_} times" ] }
        grep { $count->{$_} > 1 } sort keys %$count;
}

# Of each key, each message's first appearance has to come after that of the one before.
sub disorder {
    my ($facts, $what, @ids) = @_;
    my (%seen, %last, @bad);
    for my $message (grep { $_ } map { $facts->{model}{$_} } grep { !$seen{$_}++ } @ids) {
        my $before = $last{ $message->{key} };
        push @bad, [ 'order', "$what of $message->{id} came after that of $before->{id}, key $message->{key}" ]
            if $before && $before->{place} > $message->{place};
        $last{ $message->{key} } = $message;
    }
    return @bad;
}

sub check_order {
    my ($facts) = @_;
    my %sent;
    push @{ $sent{ $_->{ordinal} } }, $_->{cause} for @{ $facts->{sink} };
    return disorder($facts, 'the effect', map { $_->{id} } @{ $facts->{effects} }),
        map { disorder($facts, "outgoing message $_", @{ $sent{$_} }) } sort keys %sent;
}

# However often a message comes, and from wherever it was delayed: the same bytes.
sub check_arrivals {
    my ($facts) = @_;
    my (%seen, @bad);
    for my $arrival (@{ $facts->{arrivals} }) {
        my $first = $seen{ $arrival->{id} } ||= $arrival;
        push @bad, map { [ 'identity', "$arrival->{id} came again with another $_" ] }
            grep { $first->{$_} ne $arrival->{$_} } qw(hash headers due);
    }
    return @bad;
}

my $unsure = 0.05;    # two clocks, read one after the other

sub seconds_of {       # NServiceBus.DeliverAt
    my ($year, $month, $day, @time) = $_[0] =~ /^(\d+)-(\d+)-(\d+) (\d+):(\d+):(\d+):(\d{6}) Z$/ or return;
    return timegm(@time[ 2, 1, 0 ], $day, $month - 1, $year) + $time[3] / 1e6;
}

# A delay counts from the first time that its cause was handled, a delayed retry's from the first try
# before it: later ones find what these have stored.
sub check_early {
    my ($facts) = @_;
    my (%first, @bad);
    for my $arrival (@{ $facts->{arrivals} }) {
        my ($id, $retries) = @$arrival{qw(id retries)};
        $first{$id}{$retries} //= $arrival->{time};
        my $message = $facts->{model}{$id} or next;
        my $due     = seconds_of($arrival->{due});
        my $cause   = $message->{cause} && ($first{ $message->{cause} }{0} // 9e9);
        push @bad, [ 'early', "$id came and does not say when it is due" ] if $message->{delay} && !$due;
        push @bad, [ 'early', sprintf '%s came %.3f s before it was due', $id, $due - $arrival->{time} ]
            if $due && $arrival->{time} < $due;
        push @bad, [ 'early', "$id was due before its delay was over" ]
            if $message->{delay} && $due && $due < $cause + $message->{delay} - $unsure;
        my $earliest = $retries ? ($first{$id}{ $retries - 1 } // 9e9) + $facts->{increment} * $retries - $unsure : 0;
        push @bad, [ 'early', "delayed retry $retries of $id came before its delay was over" ] if $arrival->{time} < $earliest;
    }
    return @bad;
}

# Where copies of what was handled are asked for, they tell of the effects there are.
sub check_audit {
    my ($facts) = @_;
    my $audited = $facts->{audited} or return;
    my $effects = counted(map { $_->{id} } @{ $facts->{effects} });
    return map({ [ 'audit', "$_ has an effect and no audit copy" ] } grep { !$audited->{$_} } sort keys %$effects),
        map({ [ 'audit', "$_ has an audit copy and no effect" ] } grep { !$effects->{$_} } sort keys %$audited);
}

sub check_crash {
    my ($facts, $crash) = @_;
    my @sink    = grep { $_->{queue} eq 'sink' } @{ $crash->{sink} };
    my %failed  = map  { $_->{id} => 1 } grep { $_->{queue} eq 'error' } @{ $crash->{sink} };
    my $effects = counted(map { $_->{id} } @{ $crash->{effects} });
    my $sent    = outgoing_by_cause(@sink);
    my @bad = map { [ 'ghost', "at the crash, outgoing message $_->{id} of $_->{cause} was out without its effect" ] }
        grep { !$effects->{ $_->{cause} } } @sink;
    for my $message (values %{ $facts->{model} }) {
        my $id = $message->{id};
        next if $message->{seq} > $crash->{injected} || $failed{$id};
        next if $message->{cause} && !$effects->{ $message->{cause} };    # nobody has sent it yet
        next if $crash->{hides_delayed} && ($message->{cause} || $message->{order} =~ /^retry/);
        next if ($crash->{queued}{$id} || 0) >= $message->{copies};
        next if index($crash->{pending}, $id) >= 0;
        push @bad, [ 'acknowledge', "at the crash, $id had left the queue without an effect" ]
            unless $effects->{$id};
        push @bad, [ 'acknowledge', "at the crash, $id had left the queue before its outgoing message $_ was out" ]
            for missing_outgoing($message, $sent);
    }
    return @bad;
}

# Copies of outgoing messages beyond the first: allowed, and worth knowing.
sub redundant {
    my ($trial) = @_;
    my $count = counted(map { "$_->{cause} $_->{ordinal}" } grep { $_->{queue} eq 'sink' } @{ $trial->{drained} });
    my $redundant = 0;
    $redundant += $_ - 1 for values %$count;
    return $redundant;
}

1;
