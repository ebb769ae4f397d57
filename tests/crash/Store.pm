# SPDX-License-Identifier: Apache-2.0
#
# What all stores have in common: the tables of the handlers in effects-*.c, and the
# endpoint's pending rows.
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
    $self->sql('truncate table effects; truncate table ledger;' . ($self->has_outbox ? "delete from @{[ $self->pending_table ]};" : ''));
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

sub pending_table { my ($self) = @_; return $self->{endpoint} . '_pending' }

# Pending rows as text in which a message id can be found.
sub pending {
    my ($self) = @_;
    return '' unless $self->has_outbox;
    return join "\n", map { pack 'H*', $_->[0] }
        $self->sql("select @{[ $self->hex('operations') ]} from @{[ $self->pending_table ]}");
}

sub state {
    my ($self) = @_;
    my $pending = $self->has_outbox ? 'select count(*) from ' . $self->pending_table : 'select 0';
    my ($counts) = $self->sql("select (select count(distinct msg_id) from effects), ($pending)");
    return (effects => $counts->[0], pending => $counts->[1]);
}

1;
