# SPDX-License-Identifier: Apache-2.0
#
# One endpoint, all kinds of Kinds.pm and good messages among them, and what has to hold then:
# each kind met its expectation, each good message was handled once and its message is out, the
# process lives on small memory and a short log, and stops in time with nothing left behind.
#
#   Suite::main([ 'amqp+pgsql', name => 'alone', concurrency => 1, around => 0 ], ...);
#
# around: good messages before and after each bad one; apart: the kinds that want that. The rest is
# Peer's. HOSTILE_EACH=1 gives
# each kind an endpoint of its own, so that one kind's harm hides no other's; arguments name
# kinds.
package Suite;
use strict;
use warnings;
use Time::HiRes qw(sleep time);
use Test::More;
use Kinds;
use Peer;

our $exception = 'NServiceBus.ExceptionInfo';
my $stop_max = 10;    # seconds, of a shutdown_timeout of 5

sub main {
    my (@runs) = @_;
    Endpoint::under_servers(Peer::servers_of(map { $_->[0] } @runs));
    for (@runs) {
        my ($pair, %o) = @$_;
        next if $ENV{HOSTILE_RUN} && $ENV{HOSTILE_RUN} ne $o{name};
        if ($ENV{HOSTILE_EACH}) { each_alone($pair, %o) }
        else { run($pair, %o, kinds => [@ARGV]) }
    }
    done_testing;
}

sub each_alone {
    my ($pair, %o) = @_;
    my $i = 0;
    my $table = Peer->new($pair, %o, name => "$o{name}-table");
    $table->install;
    for my $name (@ARGV ? @ARGV : map { $_->{name} } Kinds::of($table)) {
        run($pair, %o, name => "$o{name}-" . ++$i, around => 3, patience => 8, kinds => [$name]);
    }
}

# ---- one run ---------------------------------------------------------------------------
sub run {
    my ($pair, %o) = @_;
    my $patience = $o{patience} || 25;
    my $e = Peer->new($pair, body_max => '1MiB', shutdown_timeout => '5s', retries => 2, %o);
    my $what = "$pair $o{name}";
    $e->{error_queue} = $e->address("$o{name}.error");
    $e->configure;
    $e->install;
    $e->sql('delete from effects');
    my %only = map { $_ => 1 } @{ $o{kinds} || [] };
    my @kinds = grep { %only ? $only{ $_->{name} } : !$_->{apart} == !$o{apart} } Kinds::of($e);
    my @good;
    my @messages = arrange($e, $o{around}, \@good, @kinds);
    $e->inject($e->{name}, @messages);
    my $refused = grep { $_->{refused} } @messages;
    my $started = time;
    $e->start;
    my $errors = watch($e, $patience, \@good, \@kinds);
    note sprintf '%s: %d kinds, %d of their messages refused by the broker, %d good ones; %.1f s', $what, scalar @kinds, $refused, scalar @good, time - $started;
    judge_process($e, $what, scalar(@messages) - @good);
    judge_stop($e, $what, staying(@kinds));
    push @$errors, $e->error;
    judge_kinds($e, $what, $errors, @kinds);
    judge_good($e, $what, @good);
    return $e;
}

# Good ones around each kind's messages, which stay together, and those that come far behind.
# On Kafka all of a kind are in one partition.
sub arrange {
    my ($e, $around, $good, @kinds) = @_;
    my (@messages, @far);
    my $partition = 0;
    my $add = sub {
        for (1 .. $_[0]) {
            push @$good, sprintf '%s-good-%05d', $e->{name}, 1 + @$good;
            push @messages, { %{ $e->good($good->[-1]) }, partition => $partition };
        }
    };
    for my $kind (@kinds) {
        $partition = ($partition + 1) % $e->partitions if $e->can('partitions');
        $add->($around);
        $_->{partition} = $partition for @{ $kind->{messages} };
        push @{ $_->{far} ? \@far : \@messages }, $_ for @{ $kind->{messages} };
        $add->($around);
    }
    $add->(10);
    push @messages, @far;
    $add->(10);
    return @messages;
}

# Until nothing more is to come, or nothing has come for too long.
sub watch {
    my ($e, $patience, $good, $kinds) = @_;
    my (@errors, $before);
    my $end = time + $patience;
    while (time < $end && $e->is_alive) {
        push @errors, $e->error;
        my %effects = effects($e);
        my $wrong = grep { !is_met($_, found($_, \%effects, \@errors)) } @$kinds;
        my $missing = grep { !$effects{$_} } @$good;
        last if !$wrong && !$missing && $e->waiting == staying(@$kinds);
        my $now = "$wrong $missing @{[ scalar @errors ]}";
        $end = time + $patience if $now ne ($before // '');
        $before = $now;
        sleep 0.2;
    }
    return \@errors;
}

sub staying { return scalar grep { $_->{stays} } map { @{ $_->{messages} } } @_ }
sub effects { my ($e) = @_; return map { pack('H*', $_->[0]) => $_->[1] } $e->sql('select id, count(*) from effects group by id') }

sub kind_of {    # a message in the error queue
    my ($message) = @_;
    my ($told) = grep { $_->[0] eq '!kind' } @{ $message->{headers} };
    return $told->[1] if $told;
    return ($message->{body} // '') =~ /^kind (\S+)/ ? $1 : '?';
}

# ---- what became of a kind -----------------------------------------------------------------
sub found {
    my ($kind, $effects, $errors) = @_;
    my %ids = map { $_->{id} => 1 } grep { defined $_->{id} } @{ $kind->{messages} };
    my $handled = 0;
    $handled += $effects->{$_} || 0 for keys %ids;
    return ($handled, scalar grep { kind_of($_) eq $kind->{name} } @$errors);
}

sub is_met {
    my ($kind, $handled, $moved) = @_;
    my $count = grep { !$_->{refused} } @{ $kind->{messages} };
    return $handled == 0 && $moved == 0 if !$count || $kind->{expect} eq 'absent';
    return $handled == $kind->{expect}[0] && $moved == $kind->{expect}[1] if ref $kind->{expect};
    return $handled == $count && $moved == 0 if $kind->{expect} eq 'handled';
    return $handled == 0 && $moved == $count if $kind->{expect} eq 'error';
    return $handled >= $count && $moved == $count if $kind->{expect} eq 'nowhere';
    return $handled + $moved == $count;
}

# Once each: the reason, and whose it is; the body as it was sent.
sub copy_faults {
    my ($e, $kind, $copy) = @_;
    my @faults;
    my %value;
    push @{ $value{ $_->[0] } }, $_->[1] for @{ $copy->{headers} };
    push @faults, 'another body' unless grep { exists $_->{value} || $_->{row} || ($copy->{body} // '') eq ($_->{body} // '') } @{ $kind->{messages} };
    for ([ 'NServiceBus.FailedQ', qr/^\Q$e->{name}\E$/ ], [ "$exception.ExceptionType", qr/^Waybill\./ ], [ "$exception.Message", qr/./ ]) {
        my ($name, $pattern) = @$_;
        my @values = @{ $value{$name} || [] };
        push @faults, "$name: " . join ' and ', map { "\"$_\"" } @values unless @values == 1 && $values[0] =~ $pattern;
    }
    return @faults;
}

sub judge_kinds {
    my ($e, $what, $errors, @kinds) = @_;
    my %effects = effects($e);
    my %known = map { $_->{name} => 1 } @kinds;
    for my $kind (@kinds) {
        my ($handled, $moved) = found($kind, \%effects, $errors);
        my $expect = ref $kind->{expect} ? "$kind->{expect}[0] handled, $kind->{expect}[1] moved" : $kind->{expect};
        my @reply = $kind->{name} =~ /^reply-to-/ ? () : grep { kind_of($_) eq $kind->{name} } @$errors;
        my @faults = map { copy_faults($e, $kind, $_) } @reply;
        my ($refused) = grep { $_->{refused} } @{ $kind->{messages} };
        note "$kind->{name}: the broker says: $refused->{refused}" if $refused;
        ok is_met($kind, $handled, $moved) && !@faults, "$what: $kind->{name}: $expect"
            or diag "$handled handled, $moved in the error queue of @{[ scalar @{ $kind->{messages} } ]}; ", join '; ', @faults;
    }
    is_deeply [ map { kind_of($_) . ' ' . ($_->{id} // '') } grep { !$known{ kind_of($_) } } @$errors ], [], "$what: nobody else is in the error queue";
}

sub judge_good {
    my ($e, $what, @good) = @_;
    my %effects = effects($e);
    is_deeply [ first_few(grep { ($effects{$_} || 0) != 1 } @good) ], [], "$what: each good one was handled once";
    my %out;
    $out{ $_->{body} // '' }++ for $e->read($e->address('sink'));
    is_deeply [ first_few(grep { ($out{$_} || 0) != 1 } @good) ], [], "$what: and its message is out";
}
sub first_few { return @_ > 5 ? (@_[ 0 .. 4 ], 'and ' . (@_ - 5) . ' more') : @_ }

# ---- the process ---------------------------------------------------------------------------
sub judge_process {
    my ($e, $what, $bad) = @_;
    ok $e->is_alive, "$what: the process lives" or diag join "\n", 'the end of the log:', ($e->lines)[ -5 .. -1 ];
    my $memory = $e->{memory_max} || 96 << 20;
    cmp_ok $e->peak, '<=', $memory, "$what: memory is bounded";
    note sprintf '%s: %.1f MB of memory at most, %d lines of log', $what, $e->peak / 1e6, scalar $e->lines;
    my @lines = $e->lines;
    cmp_ok scalar @lines, '<=', 40 + 6 * $bad, "$what: the log is short";
    cmp_ok -s $e->{log}, '<=', 1000 * @lines, "$what: and its lines are";
    is_deeply [ first_few($e->forged) ], [], "$what: each line is one event of its own";
}

sub judge_stop {
    my ($e, $what, $staying) = @_;
    my $started = time;
    is $e->stop, 0, "$what: stops cleanly";
    cmp_ok time - $started, '<', $stop_max, "$what: in time";
    is $e->left, $staying, "$what: the queue is empty, nothing is in anybody's hands";
}

1;
