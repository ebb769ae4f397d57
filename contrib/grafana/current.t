#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What is made of the table of metrics is what would be made of it now; and what is asked for there, in panels and alert rules, are
# metrics of the table.
use strict;
use warnings;
use Test::More;
use JSON::PP;

my $top     = $ENV{top_srcdir}   // '.';
my $build   = $ENV{top_builddir} // '.';
my $json    = `$build/waybill help metrics --json`;
my $metrics = decode_json($json);
cmp_ok scalar(@$metrics), '>', 20, 'there is a table';

sub content { my ($path) = @_; open my $file, '<', $path or die "$path: $!\n"; local $/; return scalar <$file> }

sub made {
    my (@what) = @_;
    open my $pipe, '-|', 'sh', '-c', qq("$build/waybill" help metrics --json | perl "$top/contrib/grafana/generate" @what) or die "sh: $!\n";
    local $/;
    return scalar <$pipe>;
}

my %files = (dashboard => "$top/contrib/grafana/waybill.json", alerts => "$top/contrib/grafana/waybill-alerts.yml", "manual $top/doc/waybill.1" => "$top/doc/waybill.1");
ok made($_) eq content($files{$_}), "$files{$_} is as the table has it (else: make doc-metrics)" for sort keys %files;

# ---- names --------------------------------------------------------------------------
my %known = map { ($_->{name} => 1) } @$metrics;
my %suffixes = (counter => ['_total'], info => ['_info'], histogram => [qw(_bucket _count _sum)], summary => [qw(_count _sum)], gauge => [''], stateset => ['']);
my %samples = map { my $m = $_; map { ("$m->{name}$_" => 1) } @{ $suffixes{ $m->{type} } } } @$metrics;
is scalar(keys %known), scalar(@$metrics), 'each name is there once';
for my $metric (@$metrics) {
    like $metric->{name}, qr/^waybill_[a-z]+(_[a-z]+)*$/, "$metric->{name}: a name as Prometheus wants it";
    like $metric->{name}, qr/_\Q$metric->{unit}\E$/, "$metric->{name}: its unit is behind it" if $metric->{unit};
    unlike $metric->{name}, qr/_(total|count|sum|bucket|info|created)$/, "$metric->{name}: and nothing that samples have there";
    like $metric->{help}, qr/^[A-Z].*\.$/, "$metric->{name}: its help is a sentence";
}
my $dashboard = decode_json(content($files{dashboard}));
my @asked = map { map { $_->{expr} } @{ $_->{targets} } } @{ $dashboard->{panels} };
push @asked, map { $_->{query} } @{ $dashboard->{templating}{list} };
push @asked, content($files{alerts}) =~ /expr: '(.*)'$/mg;
my %unknown = map { ($_ => 1) } grep { !$samples{$_} && !$known{$_} } map { /\b(waybill_\w+)/g } @asked;
is_deeply [ sort keys %unknown ], [], 'panels and alert rules ask for what is there';
cmp_ok scalar(grep { $_->{alert} } @$metrics), '==', scalar(() = content($files{alerts}) =~ /- alert: Waybill/g), 'each alert is a rule';
my ($job) = content("$top/contrib/grafana/README.md") =~ /job_name: (\w+)/;
like content($files{alerts}), qr/WaybillIsNotThere\n +expr: '.* or up\{job="$job"\} == 0'/, 'one that is gone is told of while others answer';
done_testing;
