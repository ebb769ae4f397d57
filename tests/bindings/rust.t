#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The crate `waybill`: its own tests and its layout beside that of the C headers, then modules that are built with it, and run.
# Sources may be read-only, and nothing is fetched.
#
#   rust.t [CASE...]
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/bindings";
use Test::More;
use Endpoint;
use Languages;
use Trials;

Languages::has_cargo() or plan skip_all => 'cargo is not installed';
my $crate = "$Endpoint::source/bindings/rust/Cargo.toml";
my $tests = "$Endpoint::source/tests/bindings/rust/Cargo.toml";

my %trials = (
    prefix => 'Rust',
    thrown => {
        panic => 'panic: the order is upside down', made => 'panic: order 7 is upside down', odd => 'panic: without a text', evil => 'panic: without a text',
        index => qr/^panic: index out of bounds/, borrow => qr/^panic: .*already.*borrowed/, error => 'invalid digit found in string',
    },
    misstated => { left => 'panic: with a statement that is open' },
    stored    => " true it's 42 true true 00FF 1 true -5 textintegerrealblob true",
    remembered   => ' false',
    closed => { 'ends badly' => 'panic while the module was closed: the shutters are stuck' },
    refused_open => { unchecked => [ 78, qr/panic: the setting "name" is a joke/ ], panics => [ 78, qr/panic: the shop is on fire/ ] },
);

# What the C compiler says of the headers.
my $layout = Endpoint::work_dir() . '/layout';
Endpoint::write_file($layout, scalar `'$Endpoint::build/bindings/layout'`);
$ENV{WAYBILL_LAYOUT} = $layout;
is Languages::cargo('test', '--locked', '--features', 'sqlite', '--lib', '--tests', '--manifest-path', $crate), '', 'tests of the crate, its layout among them';

# That the comparison would notice.
Endpoint::write_file($layout, Endpoint::read_file($layout) =~ s/^(field wb_outgoing key) \d+/$1 7/mr);
like Languages::cargo('test', '--locked', '--features', 'sqlite', '--test', 'layout', '--manifest-path', $crate), qr/field wb_outgoing key 7 8/, 'another offset is noticed';

is Languages::cargo('build', '--locked', '--lib', '--manifest-path', $crate), '', 'the crate without features';
is Languages::cargo('build', '--locked', '--lib', '--manifest-path', $tests), '', 'the module is built, without a warning' or BAIL_OUT('no module');
Trials::run(Languages::module_of('trials'), \%trials, @ARGV);

is Languages::cargo('build', '--locked', '--features', 'sqlite', '--example', 'orders', '--manifest-path', $crate), '', 'the example is built';
subtest 'example', sub { Trials::run_example(Languages::example_of('orders'), 5000) };

# The project of the guide, in its words but for where the crate is.
subtest 'guide' => sub {
    my $guide = Endpoint::read_file("$Endpoint::source/doc/guide.md");
    my ($manifest) = $guide =~ /^```toml\n(.*?)^```/ms;
    my ($code) = $guide =~ /^```rust\n(.*?)^```/ms;
    ok $manifest =~ s{path = "[^"]*/bindings/rust"}{path = "$Endpoint::source/bindings/rust"}, 'it names the crate' or return;
    my $dir = Endpoint::work_dir() . '/guide';
    mkdir $_ or die "$_: $!\n" for $dir, "$dir/src";
    Endpoint::write_file("$dir/Cargo.toml", $manifest);
    Endpoint::write_file("$dir/src/lib.rs", $code);
    is Languages::cargo('build', '--release', '--manifest-path', "$dir/Cargo.toml"), '', 'it is built' or return;
    my $e = Trials::endpoint({ prefix => 'Guide', module => Languages::target_dir() . '/release/liborders.so' });
    $e->sql('drop table if exists orders; create table orders (id integer primary key, body text, message_id text)');
    $e->start;
    $e->send($e->{name}, map { { type => 'Sales.PlaceOrder', id => $_->[0], body => $_->[1] } } [ 'first', '{"order": 1}' ], [ 'first', '{"order": 1}' ], [ 'none', '' ]);
    is_deeply Trials::reasons($e, 1, 'what is empty is in the error queue'), { none => 'an order without a body' }, 'with its reason';
    Trials::settled($e, 'guide');
    is_deeply [ $e->sql('select body, message_id from orders') ], [ [ '{"order": 1}', 'first' ] ], 'one order, though it came twice';
    is $e->stop, 0, 'stops cleanly';
};
done_testing;
