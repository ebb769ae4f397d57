#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The table of rules in README.md: every test it names is there, and every rule has one or says why not.
use strict;
use warnings;
use Test::More;

my $tests = "$ENV{top_srcdir}/tests";
sub read_file { my ($path) = @_; open my $file, '<', $path or return; local $/; return scalar <$file> }

my @rules = read_file("$tests/captures/README.md") =~ /^\| (\d+\.\d+ \|.*) \|$/mg;
is scalar(@rules), 38, 'all rules';
for (@rules) {
    my ($number, $rule, $named) = split / \| /;
    my @named = $named =~ /`([^`]+\.[ct]: [^`]+)`/g;
    ok @named || $named =~ /^(?:differs|not done|not here|not needed): ./, "rule $number has a test, or a reason";
    for (@named) {
        my ($path, $case) = split /: /, $_, 2;
        ok index(read_file("$tests/$path") // '', $case) >= 0, "rule $number: $_";
    }
}
done_testing;
