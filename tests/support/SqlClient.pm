# SPDX-License-Identifier: Apache-2.0
#
# SQL on PostgreSQL and MariaDB, by one psql or mariadb for each database that a program asks: to start one for each question, and
# a server's process with it, costs more than the answer.
#
#   my @rows = SqlClient::ask('pgsql', 'select id from effects');     # or 'mysql': [ column, ... ], ...
package SqlClient;
use strict;
use warnings;
use File::Temp ();
use POSIX ();

use constant END_MARK => "\x01end";

# What tells a server from another, its client, what has the client say END_MARK, and how it tells that its connection has ended: psql by
# its exit code, mariadb in words.
my %kinds = (
    pgsql => {
        place   => [qw(PGHOST PGPORT PGUSER PGDATABASE)],
        client  => sub { return qw(psql -X -q -A -t -v ON_ERROR_STOP=1 -F), "\t" },
        end     => '\echo ' . END_MARK,
        is_lost => sub { return $_[0] == 2 },
    },
    mysql => {
        place  => [qw(MYSQL_HOST MYSQL_PORT MYSQL_USER MYSQL_DATABASE)],
        client => sub {
            $ENV{MYSQL_PWD} = $ENV{MYSQL_PASSWORD};
            return qw(mariadb --no-defaults --protocol=TCP --skip-ssl --batch --raw --unbuffered --skip-reconnect --skip-column-names),
                "--host=$ENV{MYSQL_HOST}", "--port=$ENV{MYSQL_PORT}", "--user=$ENV{MYSQL_USER}", $ENV{MYSQL_DATABASE};
        },
        end     => q(select ') . END_MARK . q(';),
        is_lost => sub { return $_[1] =~ /^ERROR (?:1927|2002|2006|2013) /m },
    },
);
my %clients;    # by the server's kind and what it is connected to; of this process alone: a child that asks has its own

sub start {
    my ($kind, $where) = @_;
    pipe my $theirs, my $questions or die "pipe: $!\n";
    pipe my $answers, my $theirs_too or die "pipe: $!\n";
    my $errors = File::Temp->new;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN,  '<&', $theirs     or POSIX::_exit(99);
        open STDOUT, '>&', $theirs_too or POSIX::_exit(99);
        open STDERR, '>&', $errors     or POSIX::_exit(99);
        exec $kinds{$kind}{client}->() or POSIX::_exit(98);
    }
    $questions->autoflush(1);
    return $clients{$where} = { of => $$, pid => $pid, questions => $questions, answers => $answers, errors => $errors };
}

sub errors_of { my ($one) = @_; open my $file, '<', $one->{errors}->filename or return ''; local $/; return readline($file) // '' }

# Rows, or nothing, the client's exit code and what it said: it ends at the first error.
sub try_once {
    my ($kind, $where, $text) = @_;
    my $one = $clients{$where};
    my @rows;
    print { $one->{questions} } "$text\n;\n$kinds{$kind}{end}\n";
    while (defined(my $line = readline $one->{answers})) {
        chomp $line;
        return (0, '', @rows) if $line eq END_MARK;
        push @rows, [ split /\t/, $line, -1 ];
    }
    delete $clients{$where};
    waitpid $one->{pid}, 0;
    return ($? >> 8 || 99, errors_of($one));
}

# Rows of all statements, each an array of columns. Dies when one fails. A connection that was cut since the last question is
# made again. What a text sets, a delimiter of mariadb's too, the next one meets.
sub ask {
    my ($kind, $text) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $where  = join ' ', $kind, map { $_ // '' } @ENV{ @{ $kinds{$kind}{place} } };
    my $is_old = ($clients{$where}{of} // 0) == $$;
    start($kind, $where) unless $is_old;
    my ($code, $said, @rows) = try_once($kind, $where, $text);
    if ($is_old && $code && $kinds{$kind}{is_lost}->($code, $said)) {
        start($kind, $where);
        ($code, $said, @rows) = try_once($kind, $where, $text);
    }
    die "$kind: status $code: $said: ", substr($text, 0, 200), "\n" if $code;
    return @rows;
}

# They end when nobody can ask them any more.
END {
    local $?;
    for my $one (grep { ($_->{of} // 0) == $$ } values %clients) {
        close $one->{questions};
        waitpid $one->{pid}, 0;
    }
}

1;
