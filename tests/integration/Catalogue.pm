# SPDX-License-Identifier: Apache-2.0
#
# What an endpoint's database calls by its name: every table, index, constraint, sequence, trigger, view, routine and type, with
# the text of each, and statistics; whatever catalogue says so.
#
#   my @names = Catalogue::named($e, 'orders');    # sorted: the catalogue and the name in it
#   $e->sql($_) for Catalogue::others($e, 'orders');    # tables of other installations, and what an operator makes on them
package Catalogue;
use strict;
use warnings;

# Not in the middle of another name, but "_orders_dedup" is the type of an array of orders_dedup.
sub pattern { return "(^|[^a-z0-9_\$])_?$_[0]_" }

sub kind { my ($e) = @_; return $e->{pair} =~ /(\w+)$/ ? $1 : die "no pair\n" }

sub named {
    my ($e, $name) = @_;
    my $find = { sqlite => \&in_sqlite, pgsql => \&in_pgsql, mysql => \&in_mysql }->{ kind($e) };
    my @found = sort { $a cmp $b } $find->($e, $name);
    return @found;
}

sub others { my ($e, $name) = @_; my $make = { pgsql => \&pgsql_others, sqlite => \&sqlite_others }->{ kind($e) }; return $make ? $make->($name) : () }

# ---- PostgreSQL: each name and each text of each catalogue
my $pgsql_columns;
sub in_pgsql {
    my ($e, $name) = @_;
    my @columns = $e->sql(q(select c.relname, a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid where c.relkind = 'r' and a.attnum > 0
        and c.relnamespace = 'pg_catalog'::regnamespace and a.atttypid in ('name'::regtype, 'text'::regtype) and c.relname <> 'pg_attribute'));
    $pgsql_columns //= join ' union all ', map { qq(select '$_->[0].$_->[1] ' || substr(regexp_replace("$_->[1]"::text, '\\s+', ' ', 'g'), 1, 80) as it from pg_catalog."$_->[0]" where "$_->[1]"::text ~ '%s') } @columns;
    my $pattern = pattern($name);
    return map { $_->[0] } $e->sql($pgsql_columns =~ s/%s/$pattern/gr), $e->sql("select endpoint from waybill_endpoints where endpoint = '$name'");
}

# Those of endpoints that read from Kafka or keep failures, a column of another way to number, and what is an operator's.
sub pgsql_others {
    my ($name) = @_;
    my $bytes = q(bytea not null default '');
    return (qq(create table "${name}_positions" (partition bytea not null constraint "${name}_position_key" primary key, position bigint not null, batch bigint not null)),
        qq(create table "${name}_failed" (id bytea not null constraint "${name}_failed_pkey" primary key, status bigint not null, attempts bigint not null, failed_at bigint, changed_at bigint, summary $bytes, message $bytes, number bigserial check (number > 0))),
        qq(insert into "${name}_failed" (id, status, attempts, failed_at, changed_at) values ('x', 1, 1, 1, 1)),
        qq(create index "${name}_failed_listed" on "${name}_failed" (failed_at, id)), qq(create index "${name}_failed_changed" on "${name}_failed" (changed_at)),
        qq(create unique index on "${name}_pending" (batch, octet_length(operations))), qq(alter table "${name}_dedup" add check (batch <> 0)));
}

# ---- SQLite: its schema, and what counters and statistics say of it
sub in_sqlite {
    my ($e, $name) = @_;
    my @tables = map { $_->[0] } $e->sql(q(select name from sqlite_schema where name in ('sqlite_sequence', 'sqlite_stat1', 'sqlite_stat4')));
    my %column = (sqlite_sequence => 'name', map { $_ => "tbl || ' ' || coalesce(idx, '')" } qw(sqlite_stat1 sqlite_stat4));
    return map { $_->[0] } $e->sql(qq(select type || ' ' || name from sqlite_schema where instr(name || ' ' || tbl_name || ' ' || coalesce(sql, ''), 'waybill_${name}_')
        union all select part from waybill_schema where part like '%:$name')),
        map { $e->sql("select distinct '$_ ' || $column{$_} from $_ where instr($column{$_}, 'waybill_${name}_')") } @tables;
}

sub sqlite_others {
    my ($name) = @_;
    return (qq(insert into "waybill_${name}_dedup" (batch, key) values (1, x'01')), 'analyze');
}

# ---- MySQL and MariaDB
my @mysql = map { [ split ' ' ] } 'information_schema.tables table_name', 'information_schema.statistics table_name', 'information_schema.statistics index_name',
    'information_schema.table_constraints table_name', 'information_schema.table_constraints constraint_name', 'information_schema.check_constraints table_name',
    'information_schema.check_constraints constraint_name', 'information_schema.routines routine_name', 'information_schema.routines routine_definition',
    'information_schema.parameters specific_name', 'information_schema.triggers trigger_name', 'information_schema.events event_name',
    'information_schema.innodb_sys_tables name', 'mysql.procs_priv routine_name';
sub in_mysql {
    my ($e, $name) = @_;
    my @parts = map { "select concat('$_->[0] ', substr(regexp_replace($_->[1], '\\\\s+', ' '), 1, 80)) from $_->[0] where $_->[1] regexp '(^|[^a-z0-9_\$])${name}_'" } @mysql;
    return map { $_->[0] } $e->sql(join ' union all ', @parts), $e->sql("select endpoint from waybill_endpoints where endpoint = '$name'");
}

1;
