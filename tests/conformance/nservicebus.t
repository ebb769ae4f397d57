#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# nservicebus.md says where each of NServiceBus's tests is asked here: what it names is there, and every row names a
# test or says why not.
use strict;
use warnings;
use Test::More;

my $top = $ENV{top_srcdir};
sub text { my ($path) = @_; local $/; open my $file, '<', $path or return; return scalar <$file> }

my $rows = 0;
for my $line (split /\n/, text("$top/tests/conformance/nservicebus.md") // die "nservicebus.md: $!\n") {
    my ($theirs, $here) = $line =~ /^\| (.+?) \| (.+) \|$/ or next;
    next if $theirs eq 'theirs';
    $rows++;
    my @named = $here =~ /`([\w.\/]+\.\w+)`: "([^"]+)"/g;
    my @wrong;
    while (my ($file, $words) = splice @named, 0, 2) {
        my $text = text($file =~ /^core\// ? "$top/$file" : "$top/tests/$file");
        push @wrong, "$file: $words" if !defined $text || index($text, $words) < 0;
    }
    push @wrong, 'neither a test nor a reason' if $here !~ /: "/ && $here !~ /^(does not apply|the same)/;
    ok !@wrong, $theirs or diag join "\n", @wrong;
}
cmp_ok $rows, '>', 70, "$rows rows";
done_testing;
