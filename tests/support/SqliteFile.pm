# SPDX-License-Identifier: Apache-2.0
#
# SQL on SQLite files, by one process of tests/crash/sql-sqlite for each program that asks: to start one for each question costs more
# than the answer.
package SqliteFile;
use strict;
use warnings;
use POSIX ();

my %server;    # of this process alone: a child that asks has its own

sub start {
    my ($build) = @_;
    pipe my $theirs, my $questions or die "pipe: $!\n";
    pipe my $answers, my $theirs_too or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN,  '<&', $theirs     or POSIX::_exit(99);
        open STDOUT, '>&', $theirs_too or POSIX::_exit(99);
        exec "$build/tests/crash/sql-sqlite" or POSIX::_exit(98);
    }
    $questions->autoflush(1);
    %server = (of => $$, pid => $pid, questions => $questions, answers => $answers);
}

# Its rows, each an array of columns. Dies when it fails.
sub ask {
    my ($build, $file, $text) = @_;
    local $SIG{PIPE} = 'IGNORE';
    utf8::downgrade($text);
    start($build) unless ($server{of} // 0) == $$;
    print { $server{questions} } "$file\t@{[ length $text ]}\n$text" or die "sql-sqlite: $!\n";
    my ($size, $reason) = (readline($server{answers}) // '') =~ /^(\d+)\t(.*)$/ or die "sql-sqlite ended\n";
    my $rows = '';
    while (length $rows < $size) {
        read $server{answers}, $rows, $size - length $rows, length $rows or die "sql-sqlite ended\n";
    }
    die "$reason: ", substr($text, 0, 200), "\n" if length $reason;
    return map { [ split /\t/, $_, -1 ] } $rows =~ /(.*)\n/g;
}

# It ends when nobody can ask it any more.
END {
    if (($server{of} // 0) == $$) {
        local $?;
        close $server{questions};
        waitpid $server{pid}, 0;
    }
}

1;
