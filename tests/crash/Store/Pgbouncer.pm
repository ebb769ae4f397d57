# SPDX-License-Identifier: Apache-2.0
#
# PostgreSQL behind PgBouncer in transaction mode, which nobody told the endpoint. The judge asks
# the server itself.
package Store::Pgbouncer;
use strict;
use warnings;
use Store::Pgsql;
use Tools;
our @ISA = ('Store::Pgsql');

sub home { return "pgbouncer:$ENV{PGHOST}:$ENV{PGBOUNCERPORT}/$ENV{PGDATABASE}" }

sub section {
    my ($self) = @_;
    local $ENV{PGPORT} = $ENV{PGBOUNCERPORT};
    return $self->SUPER::section;
}

sub sql {
    my ($self, $text) = @_;
    local $ENV{PGPORT} = $ENV{PGSERVERPORT};
    return $self->SUPER::sql($text);
}

sub cut { Tools::server('cut', 'pgbouncer', $ENV{PGDATABASE}) }

1;
