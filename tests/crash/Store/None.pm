# SPDX-License-Identifier: Apache-2.0
#
# No persistence: what is sent is the effect.
package Store::None;
use strict;
use warnings;
use Store;
our @ISA = ('Store');

sub home     { return '-' }
sub section  { return '' }
sub types    { return qw(Crash.Plain Crash.Batch) }
sub handlers { return 'effects-none' }
sub has_outbox  { return 0 }
sub make_tables { }
sub prepare     { }

# The first one of each: events have a topic of their own, and become visible at another time.
sub effects {
    my ($self, $trial) = @_;
    my %seen;
    return map { { id => $_->{cause}, hash => $_->{hash}, attempt => 1, variant => 'none', pid => 0 } }
        grep { $_->{queue} eq 'sink' && $_->{ordinal} == 1 && !$seen{ $_->{cause} }++ } @{ $trial->{drained} };
}

sub ledger {    # as it would be
    my ($self, $trial) = @_;
    my %amount = map { $_->{id} => $_->{amount} } @{ $trial->{model} };
    return map { { id => $_->{id}, amount => $amount{ $_->{id} } // 0 } } $self->effects($trial);
}

sub state {
    my ($self, $trial) = @_;
    $trial->drain;
    return (effects => scalar(() = $self->effects($trial)), pending => 0);
}

1;
