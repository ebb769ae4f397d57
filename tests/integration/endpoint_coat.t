#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Handlers in C++ over <waybill/waybill.hpp>: what they throw and return, what they see and send, their statements, batches
# and hooks. The module is built by each compiler that is there, without a warning, and run.
#
#   endpoint_coat.t [CASE...]
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/bindings";
use Test::More;
use Endpoint;
use Languages;
use Trials;

my @compilers = Languages::compilers() or plan skip_all => 'no C++ compiler';
my $source  = "$Endpoint::source/tests/integration/endpoint_coat.cc";
my $example = "$Endpoint::source/contrib/examples/orders.cc";
my $odd     = 'something was thrown that is no std::exception';

my %trials = (
    prefix => 'Coat',
    thrown => { runtime => 'the order is upside down', odd => $odd, number => $odd },
    more   => [ [ Nested => 'nested', '' ], [ Return => 'returned', 'reject' ], [ Return => 'fine', '' ], [ Return => 'emptied', 'emptied' ], [ Number => 'as-c', 'reject' ], [ Number => 'fine-too', '' ] ],
    of_more   => { nested => 'too deepd', returned => 'returned: no', emptied => qr/./, 'as-c' => 'as in C' },
    misstated => { large => qr/^a statement does not take a parameter: error \d+$/ },
    stored    => "it's 42 half null 00FF 1 null -5 textintegerrealblob",
    remembered   => '',
    closed => { 'ends badly' => 'thrown while the module was closed: the shutters are stuck', 'ends oddly' => 'something was thrown while the module was closed' },
    refused_open => { unchecked => [ 78, qr/the setting "name" is a joke/ ], throws => [ 78, qr/the shop is on fire/ ] },
);

for my $compiler (@compilers) {
    my $module = Endpoint::work_dir() . "/coat-$compiler.so";
    is Languages::build_cxx($compiler, $source, $module, 'sqlite3'), '', "$compiler: the module is built, without a warning" or next;
    Trials::run($module, \%trials, @ARGV);
    for my $file ($source, $example) {
        my ($name) = $file =~ m{([^/]+)$};
        is Languages::compile_cxx($compiler, $_, $file, 'sqlite3'), '', "$compiler: $name as $_" for qw(c++17 c++20);
    }
}
my $module = Endpoint::work_dir() . '/orders.so';
is Languages::build_cxx($compilers[0], $example, $module, 'sqlite3'), '', 'the example is built';
subtest 'example', sub { Trials::run_example($module, 5000) };
done_testing;
