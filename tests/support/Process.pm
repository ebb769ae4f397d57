# SPDX-License-Identifier: Apache-2.0
#
# What a test may know of an endpoint's process from outside.
package Process;
use strict;
use warnings;

# Whoever has not come that far yet ends by SIGTERM as any program does, and not in order. Nor has a child of this one that is
# about to become an endpoint: perl forks with every signal blocked.
sub waits_for_sigterm {
    my ($pid) = @_;
    return 0 if (readlink "/proc/$pid/exe" // '') eq readlink "/proc/$$/exe";
    open my $file, '<', "/proc/$pid/status" or return 1;    # it has ended
    my ($blocked) = map { /^SigBlk:\s*(\w+)/ } <$file>;
    return !defined $blocked || hex(substr $blocked, -4) & 1 << 14;
}

1;
