# SPDX-License-Identifier: Apache-2.0
#
# What all stores have in common: the tables of the handlers in effects-*.c, the endpoint's
# pending rows, and its delayed messages where the store keeps them (`delays`).
package Store;
use strict;
use warnings;

sub new { my ($class, %self) = @_; return bless \%self, $class }
sub has_outbox { return $_[0]{mode} eq 'receive_only' }

sub make_tables {
    my ($self) = @_;
    my $serial = $self->serial;
    $self->sql(<<END);
create table effects (n $serial, msg_id varchar(255) not null, seq int not null, body_hash varchar(16) not null,
    variant varchar(16) not null, pid int not null, attempt int not null);
create table ledger (msg_id varchar(255) not null, account varchar(32) not null, amount int not null);
END
}

# Tables that trials share are empty again; what a trial that went wrong left pending is not
# sent in the next one.
sub empty_tables {
    my ($self) = @_;
    $self->sql(join ' ', 'truncate table effects; truncate table ledger;', map { "delete from $_;" } $self->own_tables);
}

sub effects {
    my ($self) = @_;
    return map { { id => $_->[0], hash => $_->[1], attempt => $_->[2], variant => $_->[3], pid => $_->[4] } }
        $self->sql('select msg_id, body_hash, attempt, variant, pid from effects order by n');
}

sub ledger {
    my ($self) = @_;
    return map { { id => $_->[0], amount => $_->[1] } } $self->sql('select msg_id, amount from ledger');
}

sub own_tables {
    my ($self) = @_;
    return ($self->has_outbox ? $self->pending_table : (), $self->{delays} ? $self->delayed_table : ());
}

sub delayed_table { my ($self) = @_; return $self->pending_table =~ s/_pending$/_delayed/r }
sub operation_table { return $_[0]->delayed_table }
sub pending_table { my ($self) = @_; return $self->{endpoint} . '_pending' }

# Deduplication records: how many.
sub records { my ($self) = @_; return ($self->sql("select count(*) from @{[ $self->pending_table =~ s/_pending$/_dedup/r ]}"))[0][0] }

# Pending rows, and delayed messages, as text in which a message id can be found.
sub pending {
    my ($self) = @_;
    my @queries = $self->has_outbox ? "select @{[ $self->hex('operations') ]} from @{[ $self->pending_table ]};" : ();
    push @queries, "select @{[ $self->hex('operation') ]} from @{[ $self->operation_table ]};" if $self->{delays};
    return @queries ? join("\n", map { pack 'H*', $_->[0] } $self->sql("@queries")) : '';
}

# What a dead process has taken is everybody's: as if half a minute had passed.
sub end_leases {
    my ($self) = @_;
    $self->sql("update @{[ $self->delayed_table ]} set @{[ $self->no_lease ]}") if $self->{delays};
}
sub no_lease { return 'taken_by = null, taken_until = 0' }

sub attempts {
    my ($self) = @_;
    return scalar grep { $_->[0] =~ /^574241/ } $self->sql("select @{[ $self->hex('operations') ]} from @{[ $self->pending_table ]}");
}

# Who was killed behind an acknowledgement took the mark along that would have removed a record of attempts: that
# goes in a day.
sub state {
    my ($self, $trial) = @_;
    my $pending = join ' + ', 0, map { "(select count(*) from $_)" } $self->own_tables;
    my ($counts) = $self->sql("select (select count(distinct msg_id) from effects), $pending");
    $counts->[1] -= $self->attempts if $trial->{killed_behind};
    return (effects => $counts->[0], pending => $counts->[1]);
}

1;
