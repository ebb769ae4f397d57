# SPDX-License-Identifier: Apache-2.0
#
# SQL on PostgreSQL, by one psql for each database that a program asks: to start one for each question, and a server's process with
# it, costs more than the answer.
package Psql;
use strict;
use warnings;
use POSIX ();

use constant END_MARK => "\x01end";
use constant LOST => 2;    # psql's exit code when its connection has ended

my %psql;    # by what it is connected to; of this process alone: a child that asks has its own

sub start {
    my ($where) = @_;
    pipe my $theirs, my $questions or die "pipe: $!\n";
    pipe my $answers, my $theirs_too or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN,  '<&', $theirs     or POSIX::_exit(99);
        open STDOUT, '>&', $theirs_too or POSIX::_exit(99);
        exec qw(psql -X -q -A -t -v ON_ERROR_STOP=1 -F), "\t" or POSIX::_exit(98);
    }
    $questions->autoflush(1);
    return $psql{$where} = { of => $$, pid => $pid, questions => $questions, answers => $answers };
}

# Rows, or nothing and psql's exit code: it ends at the first error.
sub try_once {
    my ($where, $text) = @_;
    my $one = $psql{$where};
    my @rows;
    print { $one->{questions} } "$text\n;\n\\echo ", END_MARK, "\n";
    while (defined(my $line = readline $one->{answers})) {
        chomp $line;
        return (0, @rows) if $line eq END_MARK;
        push @rows, [ split /\t/, $line, -1 ];
    }
    delete $psql{$where};
    waitpid $one->{pid}, 0;
    return $? >> 8 || 99;
}

# Rows of all statements, each an array of columns. Dies when one fails. A connection that was cut since the last question is
# made again.
sub ask {
    my ($text) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $where  = join ' ', map { $_ // '' } @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)};
    my $is_old = ($psql{$where}{of} // 0) == $$;
    start($where) unless $is_old;
    my ($code, @rows) = try_once($where, $text);
    if ($code == LOST && $is_old) {
        start($where);
        ($code, @rows) = try_once($where, $text);
    }
    die "psql: status $code: ", substr($text, 0, 200), "\n" if $code;
    return @rows;
}

# They end when nobody can ask them any more.
END {
    local $?;
    for my $one (grep { ($_->{of} // 0) == $$ } values %psql) {
        close $one->{questions};
        waitpid $one->{pid}, 0;
    }
}

1;
