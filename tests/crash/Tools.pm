# SPDX-License-Identifier: Apache-2.0
#
# Running the suite's own tools, and reading what they print: lines of columns separated by
# tabs; those of the sinks are messages.
package Tools;
use strict;
use warnings;
use POSIX ();

# Run a command with text on stdin; its lines of output. Dies when it fails.
sub run {
    my ($input, @command) = @_;
    open my $in, '+>', undef or die "temporary file: $!\n";
    syswrite $in, $input;
    sysseek $in, 0, 0;
    my $pid = open my $out, '-|' // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<&', $in or POSIX::_exit(99);
        exec { $command[0] } @command or POSIX::_exit(98);
    }
    my @lines = <$out>;
    close $out or die "@command: status $?\n";
    chomp @lines;
    return @lines;
}

sub rows { return map { [ split /\t/, $_, -1 ] } @_ }

sub messages {    # lines of the sinks
    my @messages;
    for (rows(@_)) {
        my ($queue, $id, $digest, $body, $reason) = @$_;
        my %message = (queue => $queue, id => $id, digest => $digest, reason => $reason);
        @message{qw(cause ordinal hash)} = $body =~ /^cause=(\S+) ordinal=(\d+) hash=(\w+)/ if $queue eq 'sink';
        $message{cause} //= $body if $queue eq 'sink';
        $message{$_} //= 0 for qw(ordinal hash);
        push @messages, \%message;
    }
    return @messages;
}

# One of the servers that the tests share, told to do something.
sub server {
    my ($verb, $kind, @arguments) = @_;
    my $dir = ($ENV{CRASH_SERVERS} || $ENV{WB_SERVER_DIR}) . "/$kind";
    system("$Crash::source/tests/support/server", $verb, $dir, @arguments) == 0 or die "server $verb $dir failed\n";
}

1;
