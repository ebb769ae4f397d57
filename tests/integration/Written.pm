# SPDX-License-Identifier: Apache-2.0
#
# Programs that write messages in SQL (written.py, and some of a few lines), and what differs between the databases
# they do it in. Nothing here goes through Waybill.
#
#   my $p = Written->new($endpoint);
#   $p->say('send', 'sink', 'Test.Written', 'body', 'key');   # the answer
package Written;
use strict;
use warnings;
use IO::Handle;
use IO::Select;
use POSIX ();
use Test::More;
use Endpoint;

my %alive;
END { my $status = $?; kill 'KILL', keys %alive; waitpid $_, 0 for keys %alive; $? = $status }

my $python = '/usr/bin/python3';    # the one that Debian's packages are for

sub pairs { return ('amqp+pgsql', Endpoint::has_mysql() ? 'sqlite+mysql' : (), 'sqlite') }

# The drivers are packages of Debian (contrib/check).
sub need {
    my $mysql = Endpoint::has_mysql();
    my @missing = grep { system($python, '-c', "import $_") != 0 } 'psycopg2', $mysql ? 'pymysql' : ();
    push @missing, grep { !eval "require $_" } 'DBD::Pg', 'DBD::SQLite', $mysql ? 'DBD::mysql' : ();
    return unless @missing;
    BAIL_OUT("a driver is missing: @missing") if $ENV{CI};
    plan skip_all => "a driver is missing: @missing";
}

sub kind { my ($e) = @_; return $e->{pair} =~ /pgsql/ ? 'pgsql' : $e->{pair} =~ /mysql/ ? 'mysql' : 'sqlite' }

# What tables, functions and so on are called, without their ends: as `waybill install --print-sql` shows.
sub prefix {
    my ($e) = @_;
    return $e->{prefix} ||= do {
        my ($code, $text) = $e->run('install', '--sql-api', '--print-sql');
        $text =~ /["`]([^"`]+)_written["`]/ or die "no table of what programs write: $text\n";
        $1;
    };
}

sub quoted { my ($e, $name) = @_; return kind($e) eq 'mysql' ? "`$name`" : qq("$name") }
sub table  { my ($e) = @_; return quoted($e, prefix($e) . '_written') }
sub effect { my ($e, $id) = @_; return "insert into effects values ('$id', 1, 0)" }

# ---- a program in Python ------------------------------------------------------------------
sub new {
    my ($class, $e, @login) = @_;
    pipe my $his_in, my $in or die "pipe: $!\n";
    pipe my $out, my $his_out or die "pipe: $!\n";
    my $name = prefix($e);
    @login = ($e->store_file) if kind($e) eq 'sqlite';
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        %alive = ();
        open STDIN, '<&', $his_in or POSIX::_exit(99);
        open STDOUT, '>&', $his_out or POSIX::_exit(99);
        open STDERR, '>>', "$e->{dir}/python.stderr";
        exec $python, '-E', "$Endpoint::source/tests/integration/written.py", kind($e), $name, @login or POSIX::_exit(98);
    }
    $in->autoflush(1);
    $alive{$pid} = 1;
    return bless { pid => $pid, in => $in, out => $out }, $class;
}

sub tell { my ($self, @fields) = @_; local $SIG{PIPE} = 'IGNORE'; print { $self->{in} } join("\t", @fields), "\n"; return }

# The next answer; nothing if it does not come in time.
sub hear {
    my ($self, $seconds) = @_;
    return if defined $seconds && !IO::Select->new($self->{out})->can_read($seconds);
    my $line = readline $self->{out};
    chomp $line if defined $line;
    return $line;
}
sub say { my ($self, @fields) = @_; $self->tell(@fields); return $self->hear }

sub end {
    my ($self) = @_;
    close $self->{in};
    1 while defined readline $self->{out};
    waitpid $self->{pid}, 0;
    delete $alive{ $self->{pid} };
    return $?;
}

# ---- the database's own client, and Perl -----------------------------------------------------
sub by_client {
    my ($e, $queue, $body) = @_;
    my $send = quoted($e, prefix($e) . '_send');
    return $e->sql("begin; select $send('$queue', 'Test.Written', '$body'); commit") if kind($e) eq 'pgsql';
    return $e->sql("start transaction; call $send('$queue', 'Test.Written', '$body', null, null, \@id); commit") if kind($e) eq 'mysql';
    my $text = "begin; insert into $send (id, destination, type, body) values ('from-the-client', '$queue', 'Test.Written', '$body'); commit";
    return system('sqlite3', '-bail', '-cmd', '.timeout 10000', $e->store_file, $text) == 0 || die "sqlite3 failed\n";
}

my %perl = (pgsql => \&perl_of_pgsql, mysql => \&perl_of_mysql, sqlite => \&perl_of_sqlite);

sub by_perl {
    my ($e, $queue, $body, $headers) = @_;
    require DBI;
    return $perl{ kind($e) }->(quoted($e, prefix($e) . '_send'), $queue, $body, $headers, $e);
}

my %attributes = (RaiseError => 1, PrintError => 0, AutoCommit => 0);

sub perl_of_pgsql {
    my ($send, $queue, $body, $headers) = @_;
    my $db = DBI->connect('dbi:Pg:', $ENV{PGUSER}, undef, \%attributes);
    my $statement = $db->prepare("select $send(destination => ?, type => ?, body => ?, headers => ?)");
    $statement->bind_param(3, $body, { pg_type => DBD::Pg::PG_BYTEA() });
    $statement->bind_param(1, $queue);
    $statement->bind_param(2, 'Test.Written');
    $statement->bind_param(4, $headers);
    $statement->execute;
    my ($id) = $statement->fetchrow_array;
    $statement->finish;
    $db->commit;
    $db->disconnect;
    return $id;
}

sub perl_of_mysql {
    my ($send, $queue, $body, $headers) = @_;
    my $db = DBI->connect("dbi:mysql:database=$ENV{MYSQL_DATABASE};host=$ENV{MYSQL_HOST};port=$ENV{MYSQL_PORT}", $ENV{MYSQL_USER},
        $ENV{MYSQL_PASSWORD}, \%attributes);
    $db->do("call $send(?, ?, ?, ?, null, \@id)", undef, $queue, 'Test.Written', $body, $headers);
    my ($id) = $db->selectrow_array('select @id');
    $db->commit;
    $db->disconnect;
    return $id;
}

sub perl_of_sqlite {
    my ($send, $queue, $body, $headers, $e) = @_;
    my $db = DBI->connect('dbi:SQLite:dbname=' . $e->store_file, '', '', \%attributes);
    my $statement = $db->prepare("insert into $send (id, destination, type, body, headers) values ('from-perl', ?, ?, ?, ?)");
    $statement->bind_param(1, $queue);
    $statement->bind_param(2, 'Test.Written');
    $statement->bind_param(3, $body, DBI::SQL_BLOB());
    $statement->bind_param(4, $headers);
    $statement->execute;
    $db->commit;
    $db->disconnect;
    return 'from-perl';
}

# ---- rights ------------------------------------------------------------------------------------
my $roles = 0;

# A role that may connect, and how a program of it logs in.
sub make_role {
    my ($e) = @_;
    my $role = $e->{role} = "clerk_$$" . '_' . ++$roles;
    if (kind($e) eq 'pgsql') {
        $e->sql("create role \"$role\" login");
        return $role;
    }
    $e->sql("create user '$role'\@'%' identified by 'secret'");
    $e->sql("grant select on `effects` to '$role'\@'%'"); # so that it may connect to the database
    return ($role, 'secret');
}

sub drop_role {
    my ($e) = @_;
    return $e->sql("drop user '$e->{role}'\@'%'") if kind($e) eq 'mysql';
    return $e->sql(qq(drop owned by "$e->{role}"; drop role "$e->{role}"));
}

# As the guide says.
sub grant {
    my ($e) = @_;
    my $p = prefix($e);
    if (kind($e) eq 'pgsql') {
        return $e->sql(qq(grant usage on schema public to "$e->{role}"; grant execute on function )
                . qq("${p}_send"(text, text, bytea, jsonb, text), "${p}_send"(text, text, text, jsonb, text), )
                . qq("${p}_publish"(text, bytea, jsonb, text), "${p}_publish"(text, text, jsonb, text), )
                . qq("${p}_claim"(text) to "$e->{role}"));
    }
    $e->sql("grant execute on procedure `${p}_$_` to '$e->{role}'\@'%'") for qw(send publish claim);
}

# ---- connections -----------------------------------------------------------------------------
# Break all to the database but the one that does it.
sub cut {
    my ($e) = @_;
    return $e->sql('select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()')
        if kind($e) eq 'pgsql';
    for my $row ($e->sql('select id from information_schema.processlist where db = database() and id <> connection_id()')) {
        eval { $e->sql("kill $row->[0]") }; # it may have ended by itself
    }
}

# ---- queues ------------------------------------------------------------------------------------
sub drop_queue {
    my ($e, $queue) = @_;
    return $e->amqp->delete($queue) if $e->{pair} =~ /^amqp/;
    delete $e->{numbers}{$queue};
    return $e->query("delete from waybill_queue where name = '$queue'");
}

1;
