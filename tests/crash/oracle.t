#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The oracle is right when it is silent about a good outcome and names the broken invariant
# of each bad one. Queues and tables are made up here; no server, no endpoint.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/crash";
use Test::More;
use Crash;
use Oracle;

package Pair::MadeUp;
sub types { return qw(A B) }
sub begin { return '.' }
sub end     { }
sub waived  { return @{ $_[0]{waived} } }
sub effects { return @{ $_[0]{effects} } }
sub ledger  { return @{ $_[0]{ledger} } }
sub drain   { return splice @{ $_[0]{queued} } }
sub pending { return $_[0]{pending} // '' }

package main;

sub outgoing {
    my ($message, $ordinal) = @_;
    return { queue => 'sink', id => "out-$message->{id}-$ordinal", digest => 'same', reason => '',
        cause => $message->{id}, ordinal => $ordinal, hash => $message->{hash} };
}

# A trial that went well, to be spoiled: six messages, the fourth ordered to be rejected.
sub good_trial {
    my $pair  = bless { effects => [], ledger => [], queued => [], waived => [qw(copy order)] }, 'Pair::MadeUp';
    my $trial = Crash->new(pair => $pair, name => 'made-up', messages => 6, duplicates => 50, orders => { 4 => 'reject' });
    $trial->{injected} = 6;
    for my $message (@{ $trial->{model} }) {
        if ($message->{fails}) {
            push @{ $pair->{queued} }, { queue => 'error', id => $message->{id}, digest => 'x', reason => 'rejected' };
            next;
        }
        push @{ $pair->{effects} }, { id => $message->{id}, hash => $message->{hash} };
        push @{ $pair->{ledger} },  { id => $message->{id}, amount => $message->{amount} };
        push @{ $pair->{queued} }, map { outgoing($message, $_) } 1 .. $message->{outgoing};
    }
    return $trial;
}

# Right after a crash: nothing acknowledged, some of it done.
sub crash_of {
    my ($trial, %facts) = @_;
    my %queued = map { $_->{id} => $_->{copies} } @{ $trial->{model} };
    return { sink => [], queued => \%queued, effects => [], pending => '', injected => 6, %facts };
}

sub seen {    # the invariants named after spoiling a good trial
    my ($spoil) = @_;
    my $trial = good_trial();
    $spoil->($trial, $trial->{pair}, @{ $trial->{model} });
    my %seen = map { $_->[0] => 1 } Oracle::judge($trial);
    return join ' ', sort keys %seen;
}

is seen(sub { }), '', 'a good outcome';
is seen(sub { push @{ $_[1]{queued} }, outgoing($_[2], 1) }), '', 'a copy of an outgoing message, the same in every byte';
is seen(sub { $_[1]{queued}[0]{queue} = 'elsewhere' }), 'zombie', 'an outgoing message is missing';
is seen(sub { pop @{ $_[1]{effects} }; pop @{ $_[1]{ledger} } }), 'ghost loss', 'an effect is missing, its messages are out';
is seen(sub { push @{ $_[1]{effects} }, $_[1]{effects}[0] }), 'double', 'a second effect';
is seen(sub { pop @{ $_[1]{ledger} } }), 'double', 'half of a transaction';
is seen(sub { $_[1]{ledger}[1]{amount}++ }), 'double', 'the ledger does not add up';
is seen(sub { $_[1]{effects}[0]{hash} = 'other' }), 'double', 'an effect of another body';
is seen(sub { push @{ $_[1]{queued} }, { %{ outgoing($_[2], 1) }, digest => 'other' } }), 'identity', 'a copy that differs';
is seen(sub { push @{ $_[1]{queued} }, { %{ outgoing($_[2], 1) }, id => 'other' } }), 'identity', 'a copy under another id';
sub strict {    # keys with an order, and no copies
    my ($pair) = @_;
    $pair->{waived} = [];
    @$_{qw(key place)} = ('k', $_->{seq}) for @_[ 1 .. $#_ ];
}
is seen(sub { strict(@_[ 1 .. $#_ ]) }), '', 'no copies, and the keys in order';
is seen(sub { strict(@_[ 1 .. $#_ ]); push @{ $_[1]{queued} }, outgoing($_[2], 1) }), 'copy', 'a copy where none is promised';
is seen(sub { strict(@_[ 1 .. $#_ ]); @{ $_[1]{effects} } = reverse @{ $_[1]{effects} } }), 'order', 'effects out of order';
is seen(sub { strict(@_[ 1 .. $#_ ]); @{ $_[1]{queued} } = reverse @{ $_[1]{queued} } }), 'order',
    'outgoing messages out of order';
is seen(sub { push @{ $_[1]{queued} }, outgoing($_[3], 2) }), 'ghost', 'an outgoing message nobody asked for';
is seen(sub { @{ $_[1]{queued} } = grep { $_->{queue} ne 'error' } @{ $_[1]{queued} } }), 'loss', 'a rejected message is gone';
is seen(sub { push @{ $_[1]{queued} }, { queue => 'error', id => $_[2]{id}, digest => 'x', reason => 'why' } }), 'loss',
    'a good message in the error queue';
sub refuse {    # the broker takes no outgoing message of this one
    my ($pair, $message) = @_;
    $message->{fails} = 1;
    @{ $pair->{queued} } = grep { ($_->{cause} // '') ne $message->{id} } @{ $pair->{queued} };
    push @{ $pair->{queued} }, { queue => 'error', id => $message->{id}, digest => 'x', reason => 'no such queue' };
}
is seen(sub { refuse(@_[1, 2]); $_[1]{pending} = "..$_[2]{id}.." }), '', 'what cannot be sent is pending and reported';
is seen(sub { refuse(@_[1, 2]) }), 'zombie', 'what cannot be sent is reported, but no longer pending';
sub park_first {    # and the sweeper was there before the last retry
    my ($trial, $pair, $message) = @_;
    refuse($pair, $message);
    @{ $pair->{queued} } = grep { $_->{id} ne $message->{id} } @{ $pair->{queued} };
    ($message->{order}, $trial->{parked_first}, $pair->{pending}) = ('nowhere', 1, "..$message->{id}..");
}
is seen(\&park_first), '', 'what cannot be sent is parked before its message is given up';
is seen(sub { park_first(@_); $_[0]{parked_first} = 0 }), 'loss zombie', 'where nobody sweeps it is not reported';
is seen(sub { park_first(@_); $_[1]{pending} = '' }), 'loss zombie', 'what cannot be sent is not even parked';
is seen(sub { park_first(@_); $_[2]{order} = 'reject' }), 'loss zombie', 'what is refused itself is in the error queue';
is seen(sub { push @{ $_[0]{log} }, 'it hung' }), 'trouble', 'a trial that did not end well';

is seen(sub { push @{ $_[0]{crashes} }, crash_of($_[0]) }), '', 'a crash before anything was done';
is seen(sub { push @{ $_[0]{crashes} }, crash_of($_[0], sink => [ outgoing($_[2], 1) ]) }), 'ghost',
    'at the crash a message was out before its effect';
is seen(sub { my $c = crash_of($_[0]); $c->{queued}{ $_[2]{id} }--; push @{ $_[0]{crashes} }, $c }), 'acknowledge',
    'at the crash a message was acknowledged before its effect';
is seen(sub {
    my $c = crash_of($_[0], effects => [ { id => $_[2]{id} } ]);
    $c->{queued}{ $_[2]{id} }--;
    push @{ $_[0]{crashes} }, $c;
}), 'acknowledge', 'at the crash a message was acknowledged before it was dispatched';
is seen(sub {
    my $c = crash_of($_[0], effects => [ { id => $_[2]{id} } ], pending => "..$_[2]{id}..");
    $c->{queued}{ $_[2]{id} }--;
    push @{ $_[0]{crashes} }, $c;
}), '', 'at the crash its outgoing messages were still pending';

# ---- what is due later: the first sends a late message, the second has a delayed retry
sub arrival {
    my ($message, $time, %other) = @_;
    return { id => $message->{id}, time => $time, due => '', retries => 0, hash => $message->{hash}, headers => 'same', %other };
}
sub late_trial {
    my ($trial, $pair, $first, $second) = @_;
    $first->{order} = 'later:1000';
    my ($late) = Crash::late_message($first);
    push @{ $pair->{effects} }, { id => $late->{id}, hash => $late->{hash} };
    push @{ $pair->{ledger} },  { id => $late->{id}, amount => $late->{amount} };
    push @{ $pair->{queued} }, map { outgoing($late, $_) } 1 .. $late->{outgoing};
    $trial->{made_up} = [
        arrival($first, 100.0), arrival($second, 100.1), arrival($second, 101.2, retries => 1),
        arrival($late, 101.5, due => '1970-01-01 00:01:41:000000 Z'),
    ];
    no warnings 'redefine';
    *Crash::arrivals = sub { @{ $_[0]{made_up} || [] } };
    return $late;
}
sub seen_late {
    my ($spoil) = @_;
    return seen(sub { my $late = late_trial(@_); $spoil->($_[0]{made_up}, $late, @_) });
}
sub without { my ($list, $id) = @_; @$list = grep { $_->{id} ne $id } @$list }

is seen_late(sub { }), '', 'a late message and a delayed retry';
is seen_late(sub { push @{ $_[0] }, { %{ $_[0][3] }, time => 140 } }), '', 'a late message came again, the same in every byte';
is seen_late(sub { $_[0][3]{time} = 100.999 }), 'early', 'a late message came early';
is seen_late(sub { $_[0][3]{due} = '' }), 'early', 'a late message does not say when it is due';
is seen_late(sub { @{ $_[0][3] }{qw(due time)} = ('1970-01-01 00:01:40:500000 Z', 102) }), 'early', 'a late message was due too early';
is seen_late(sub { $_[0][2]{time} = 100.9 }), 'early', 'a delayed retry came early';
is seen_late(sub { $_[0][2]{hash} = 'other' }), 'identity', 'a delayed retry has another body';
is seen_late(sub { $_[0][2]{headers} = 'other' }), 'identity', 'a delayed retry has other headers';
is seen_late(sub { push @{ $_[0] }, { %{ $_[0][3] }, time => 140, due => '1970-01-01 00:01:42:000000 Z' } }), 'identity',
    'a copy of a late message is due at another time';
is seen_late(sub { without($_[3]{effects}, $_[1]{id}); without($_[3]{ledger}, $_[1]{id}); @{ $_[3]{queued} } = grep { ($_->{cause} // '') ne $_[1]{id} } @{ $_[3]{queued} } }),
    'loss', 'a late message is lost';
is seen_late(sub { push @{ $_[3]{effects} }, $_[3]{effects}[-1] }), 'double', 'a late message took effect twice';

is seen_late(sub { $_[2]{delays} = 'store'; $_[3]{pending} = "..$_[1]{id}.." }), 'loss', 'a late message is left over';
sub refuse_late {    # whoever sends it late finds nobody
    my ($pair, $first, $late) = @_;
    $first->{order} = 'astray:1000';
    without($pair->{$_}, $late->{id}) for qw(effects ledger);
    @{ $pair->{queued} } = grep { ($_->{cause} // '') ne $late->{id} } @{ $pair->{queued} };
}
sub reported { return { queue => 'error', id => $_[0], digest => 'x', reason => 'no such queue' } }
is seen_late(sub { refuse_late(@_[ 3, 4, 1 ]); pop @{ $_[0] }; push @{ $_[3]{queued} }, reported($_[1]{id}) }), '',
    'a message nobody receives is in the error queue';
is seen_late(sub { refuse_late(@_[ 3, 4, 1 ]); pop @{ $_[0] } }), 'loss', 'a message nobody receives is gone';
is seen_late(sub { refuse_late(@_[ 3, 4, 1 ]); pop @{ $_[0] }; push @{ $_[3]{queued} }, reported($_[4]{id}); $_[3]{pending} = "..$_[4]{id}.." }), '',
    'it was due when it was sent: its cause is in the error queue, and it is pending';
is seen_late(sub { refuse_late(@_[ 3, 4, 1 ]); pop @{ $_[0] }; push @{ $_[3]{queued} }, reported($_[4]{id}) }), 'loss',
    'its cause is in the error queue, and it is not pending';

sub audited { my ($trial, $pair, @ids) = @_; $trial->{audit} = 1; push @{ $pair->{queued} }, map { { queue => 'audit', id => $_, digest => 'x' } } @ids }
my @handled = map { $_ - 1 } 1 .. 3, 5, 6;
is seen(sub { my ($trial, $pair, @model) = @_; audited($trial, $pair, map { $_->{id} } @model[@handled]) }), '', 'audit copies of what was handled';
is seen(sub { my ($trial, $pair, @model) = @_; audited($trial, $pair, map { $_->{id} } @model[ @handled[ 1 .. 4 ] ]) }), 'audit', 'an audit copy is missing';
is seen(sub { my ($trial, $pair, @model) = @_; audited($trial, $pair, map { $_->{id} } @model) }), 'audit', 'an audit copy of what was not handled';

sub stored_trial {    # the first message's effect is there, it left the queue, and its late message is where?
    my ($where, %crash) = @_;
    return seen(sub {
        my ($trial, $pair, $first) = @_;
        my $late = late_trial(@_);
        my $c = crash_of($trial, effects => [ { id => $first->{id} } ], sink => [ map { outgoing($first, $_) } 1 .. $first->{outgoing} ], %crash);
        $c->{queued}{ $first->{id} } = 0;
        $where->($c, $late);
        push @{ $trial->{crashes} }, $c;
    });
}
is stored_trial(sub { $_[0]{pending} = "..$_[1]{id}.." }), '', 'at the crash the store had the late message';
is stored_trial(sub { $_[0]{queued}{ $_[1]{id} } = 1 }), '', 'at the crash the late message was in the queue';
is stored_trial(sub { }), 'acknowledge', 'at the crash the late message was nowhere';
is stored_trial(sub { }, hides_delayed => 1), '', 'at the crash the broker had it, where nobody sees it';
done_testing;
