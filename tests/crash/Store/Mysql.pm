# SPDX-License-Identifier: Apache-2.0
#
# MariaDB. Trials of a job share a database, the one of `with-servers`.
package Store::Mysql;
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/support";
use SqlClient;
use Store;
use Tools;
our @ISA = ('Store');

sub home     { return "$ENV{MYSQL_HOST}:$ENV{MYSQL_PORT}/$ENV{MYSQL_DATABASE}" }
sub types    { return qw(Crash.Plain Crash.Deferred Crash.Batch) }
sub handlers { return 'effects-mysql' }
sub serial   { return 'bigint primary key auto_increment' }
sub hex      { return "hex($_[1])" }
sub prepare  { $_[0]->empty_tables }
sub no_lease { return "taken_by = '', taken_until = 0" }

sub section {
    return qq(persistence = { plugin = "mysql"; host = "$ENV{MYSQL_HOST}"; port = $ENV{MYSQL_PORT}; )
        . qq(user = "$ENV{MYSQL_USER}"; password = "env:MYSQL_PASSWORD"; database = "$ENV{MYSQL_DATABASE}"; };);
}

sub sql {
    my ($self, $text) = @_;
    return SqlClient::ask('mysql', $text);
}

# ---- faults of the server, for the trials of this job alone
sub cut { Tools::server('cut', 'mariadb', $ENV{MYSQL_DATABASE}) }

1;
