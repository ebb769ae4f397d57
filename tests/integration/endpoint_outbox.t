#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# waybill outbox: what an outbox keeps is told, what is pending is listed and dispatched, what is old is
# removed, on each persistence, with no endpoint running and beside one.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq), Endpoint::has_mysql() ? 'mariadb' : ());
my $types = 'NServiceBus.EnclosedMessageTypes';

sub outbox { my ($e, @arguments) = @_; return $e->run('outbox', @arguments) }
sub json {
    my ($e, @arguments) = @_;
    my ($code, $text) = outbox($e, @arguments, '--json');
    my $json = join "\n", grep { !/^(?:waybill: |\d{4}-\d\d-\d\dT.* level=)/ } split /\n/, $text;
    die "outbox @arguments: $code: $text" if $json eq '';
    return ($code, JSON::PP->new->decode($json));
}
sub stats { my ($e, @arguments) = @_; return (json($e, 'stats', @arguments))[1] }
sub batches { my ($e, @arguments) = @_; return map { $_->{batch} } @{ (json($e, 'pending', @arguments))[1] } }

# ---- rows, made without the code under test ---------------------------------------------------------
sub table {
    my ($e, $which) = @_;
    return $e->{pair} =~ /mysql/ ? "`$e->{name}_$which`" : $e->{pair} =~ /pgsql/ ? qq("$e->{name}_$which") : qq("waybill_$e->{name}_$which");
}
sub bytes { my ($e, $bytes) = @_; my $hex = unpack 'H*', $bytes; return $e->{pair} =~ /pgsql/ ? "'\\x$hex'" : "x'$hex'" }
# The number of a batch so many seconds old; SQLite stores it with its sign bit flipped.
sub number { my ($age) = @_; return (int((time - $age) * 1000) - 1577836800000) << 22 | int rand 4194303 }
sub column { my ($e, $number) = @_; return $e->{pair} eq 'sqlite' ? "($number - 9223372036854775807 - 1)" : $number }
sub put_row { my ($e, $number, $bytes) = @_; $e->sql('insert into ' . table($e, 'pending') . ' (batch, operations) values (' . column($e, $number) . ', ' . bytes($e, $bytes) . ')') }
sub put_rows {    # all of them two hours old; so many a statement as a command line holds
    my ($e, @rows) = @_;
    while (my @some = splice @rows, 0, 20) {
        $e->sql('insert into ' . table($e, 'pending') . ' (batch, operations) values ' . join ', ', map { '(' . column($e, number(7200)) . ', ' . bytes($e, $_) . ')' } @some);
    }
}
sub key { my ($e) = @_; return $e->{pair} =~ /mysql/ ? 'id' : 'key' }
sub put_records {
    my ($e, $age, @ids) = @_;
    $e->sql('insert into ' . table($e, 'dedup') . ' (' . key($e) . ', batch) values '
          . join ', ', map { '(' . bytes($e, $_) . ', ' . column($e, number($age)) . ')' } @ids);
}
sub text { return pack('V', length $_[0]) . "$_[0]\0" }
# Of core/message/operations.h: a group of one operation that is as the endpoint itself writes it.
sub example {
    my ($e) = @_;
    $e->start;
    $e->send($e->{name}, { id => 'cause', do => 'send nowhere T.Out example-body' });
    $e->wait_for('a message whose send nobody takes', sub { $e->depth('error') == 1 });
    is $e->stop, 0, "$e->{pair}: it stops cleanly";
    $e->read('error');
    my ($bytes) = grep { /example-body/ } $e->pending;
    $e->sql('delete from ' . table($e, 'pending'));
    return $bytes;
}

# ---- cases --------------------------------------------------------------------------------------------

sub check_empty {
    my ($e) = @_;
    my $s = stats($e);
    is_deeply [ $s->{endpoint}, $s->{records}{count}, $s->{records}{is}, $s->{records}{oldest}, $s->{pending}{operations}, $s->{pending}{oldest} ],
        [ $e->{name}, 0, 'exact', undef, 0, undef ], "$e->{pair}: an empty outbox in numbers";
    is_deeply [ json($e, 'pending') ], [ 0, [] ], "$e->{pair}: nothing is pending";
    is_deeply [ json($e, 'sweep') ], [ 0, { sent => 0, parked => 0, unreadable => 0, left => 0, parked_in_all => 0 } ], "$e->{pair}: nothing to sweep";
    is_deeply [ json($e, 'cleanup') ], [ 0, { removed => 0, another_cleans_up => JSON::PP::false } ], "$e->{pair}: nor to clean up";
}

sub check_stats {
    my ($e, $row) = @_;
    put_records($e, 8 * 86400, map { "old-$_" } 1 .. 4);
    put_records($e, 7200, map { "new-$_" } 1 .. 3);
    put_records($e, -3600, 'ahead');
    my @numbers = map { number($_) } 18000, 7200, 60;
    put_row($e, $_, $row) for @numbers;
    put_row($e, number(-1800), "WBK1" . pack('V', 2) . text('no such queue') . text($row));
    put_row($e, number(-7200), $row);
    put_row($e, number(1800), 'WBO9 of a later version');
    my $s = stats($e);
    is_deeply [ @{ $s->{records} }{qw(count is)}, map { @{ $s->{records}{$_} }{qw(count is)} } qw(past_retention of_the_future) ],
        [ 8, 'exact', 4, 'exact', 1, 'exact' ], "$e->{pair}: records, those to be removed, those of the future";
    ok $s->{records}{cleanup_is_late}, "$e->{pair}: which a clean-up would have removed by now";
    is_deeply [ map { $s->{pending}{$_} } qw(operations parked unreadable of_the_future is) ], [ 4, 1, 1, 1, 'exact' ], "$e->{pair}: pending rows of each kind";
    cmp_ok abs($s->{pending}{oldest_age_seconds} - 18000), '<', 200, "$e->{pair}: the age of the oldest";
    is $s->{retention_seconds}, 7 * 86400, "$e->{pair}: and the settings";
    ok $s->{records}{bytes} > 0 && $s->{pending}{bytes} > 0, "$e->{pair}: bytes" or diag explain $s;
    is stats($e, '--exact')->{records}{count}, 8, "$e->{pair}: counted to the end";
    my ($code, $text) = outbox($e, 'stats');
    like $text, qr/^  past the retention +4 \(kept for 7d, removed each 10min\): the clean-up does not keep up, or does not run$/m, "$e->{pair}: for people";
    return @numbers;
}

sub check_pending {
    my ($e, $row, @numbers) = @_;
    my (undef, $all) = json($e, 'pending');
    is_deeply [ map { $_->{state} } @$all ], [qw(operations operations unreadable operations parked operations)], "$e->{pair}: pending rows in order";
    is_deeply [ map { $all->[0]{operations}[0]{$_} } qw(kind destination type cause body_size) ], [ 'send', 'nowhere', 'T.Out', 'cause', length 'example-body' ],
        "$e->{pair}: what an operation is";
    is_deeply [ map { $all->[4]{$_} } qw(reason tries) ], [ 'no such queue', 2 ], "$e->{pair}: why one is parked";
    is $all->[4]{operations}[0]{id}, $all->[0]{operations}[0]{id}, "$e->{pair}: and its operations";
    is_deeply [ batches($e, '--limit', 2) ], [ @numbers[ 0, 1 ] ], "$e->{pair}: so many";
    is_deeply [ (batches($e, '--after', $numbers[1], '--limit', 2))[1] ], [ $numbers[2] ], "$e->{pair}: and from there on";
    is_deeply [ batches($e, '--older-than', '1h') ], [ @numbers[ 0, 1 ] ], "$e->{pair}: older ones";
    is_deeply [ map { $_->{state} } @{ (json($e, 'pending', '--parked', '--limit', 1))[1] } ], ['parked'], "$e->{pair}: parked ones";
    my ($code, $text) = outbox($e, 'pending');
    like $text, qr/^batch $numbers[0]  operations, 5 h old\n  send     nowhere  T\.Out  [-\w]{36}$/m, "$e->{pair}: for people";
    like $text, qr/^batch \d+  parked, due in (?:8[5-9]|90) min, tried 2 times: no such queue$/m, "$e->{pair}: with what is parked";
}

sub check_sweep {
    my ($e) = @_;
    my ($code, $done) = json($e, 'sweep', '--older-than', '4h');
    is_deeply [ $code, $done ], [ 75, { sent => 0, parked => 1, unreadable => 0, left => 0, parked_in_all => 2 } ], "$e->{pair}: what no queue takes is parked, younger rows stay";
    $e->make_queue('nowhere');
    ($code, $done) = json($e, 'sweep');
    is_deeply [ $code, $done ], [ 0, { sent => 1, parked => 0, unreadable => 0, left => 0, parked_in_all => 2 } ], "$e->{pair}: one older than sweep_after is sent"
        or diag explain $done;
    ($code, $done) = json($e, 'sweep', '--older-than', '0s', '--parked');
    is_deeply [ $code, $done ], [ 75, { sent => 3, parked => 0, unreadable => 1, left => 0, parked_in_all => 0 } ], "$e->{pair}: then all that can be read"
        or diag explain $done;
    my @out = $e->collect('nowhere', 4, 'four arrive');
    is_deeply [ map { $_->{body} } @out ], [ ('example-body') x 4 ], "$e->{pair}: as they were stored";
    is_deeply [ map { $_->{state} } @{ (json($e, 'pending'))[1] } ], [ 'unreadable', 'operations' ], "$e->{pair}: what a later version wrote, and what is of the future, is left alone";
    $e->sql('delete from ' . table($e, 'pending'));
    is((json($e, 'sweep', '--older-than', '0s'))[0], 0, "$e->{pair}: with nothing left that is said");
}

sub check_cleanup {
    my ($e) = @_;
    is_deeply [ json($e, 'cleanup', '--dry-run') ], [ 0, { would_remove => 4, is => 'exact' } ], "$e->{pair}: what would be removed";
    is_deeply [ json($e, 'cleanup', '--dry-run', '--older-than', '1h', '--force') ], [ 0, { would_remove => 7, is => 'exact' } ], "$e->{pair}: of another age";
    my ($code, $text) = outbox($e, 'cleanup', '--older-than', '1h');
    is $code, 64, "$e->{pair}: less than the retention is refused";
    like $text, qr/less than the retention of endpoint "$e->{name}", 7d: .*--force/, "$e->{pair}: with a reason and a remedy";
    is stats($e)->{records}{count}, 9, "$e->{pair}: and removes nothing (what was parked has a record, too)";
    is_deeply [ json($e, 'cleanup') ], [ 0, { removed => 4, another_cleans_up => JSON::PP::false } ], "$e->{pair}: what is older than the retention is removed";
    is_deeply [ @{ stats($e)->{records} }{qw(count cleanup_is_late)} ], [ 5, JSON::PP::false ], "$e->{pair}: that alone";
    is_deeply [ json($e, 'cleanup', '--older-than', '1h', '--force') ], [ 0, { removed => 3, another_cleans_up => JSON::PP::false } ], "$e->{pair}: by force what is younger, too";
    put_records($e, 8 * 86400, map { "many-$_" } 1 .. 2500);
    is_deeply [ json($e, 'cleanup') ], [ 0, { removed => 2500, another_cleans_up => JSON::PP::false } ], "$e->{pair}: in more than one step";
    is stats($e)->{records}{count}, 2, "$e->{pair}: but for what is parked now, and the one of the future";
}

# A running endpoint holds no row that is not its own for long.
sub check_beside {
    my ($e, $row) = @_;
    $e->make_queue('sink');
    $e->start;
    $e->send($e->{name}, map { { id => "busy-$_", do => "send sink T.Busy busy-$_" } } 1 .. 300);
    put_row($e, number(7200), $row);
    my ($code, $done) = json($e, 'sweep');
    is $code, 0, "$e->{pair}: a sweep beside a running endpoint" or diag explain $done;
    is_deeply [ json($e, 'cleanup') ], [ 0, { removed => 0, another_cleans_up => JSON::PP::false } ], "$e->{pair}: a clean-up, too";
    cmp_ok stats($e)->{records}{count}, '>=', 1, "$e->{pair}: and numbers";
    my %arrived;
    $e->wait_for('all is sent', sub { $arrived{ $_->{body} }{ $_->{id} }++ for $e->read('sink'), $e->read('nowhere'); keys %arrived == 301 });
    is_deeply [ grep { keys %{ $arrived{$_} } != 1 } keys %arrived ], [], "$e->{pair}: each with one id";
    is $e->stop, 0, "$e->{pair}: it stops cleanly";
}

# Two processes sweep one backlog: they share it, and send nothing twice.
sub check_shared {
    my ($e, $row) = @_;
    my $rows = 200;
    $e->configure(outbox => 'enabled = true; sweep_after = "1s"; cleanup_interval = "1s";');
    put_rows($e, map { my $n = $_; $row =~ s/example-body/sprintf 'example-%04d', $n/er } 1 .. $rows);
    $e->start for 1 .. 2;
    my %arrived;
    $e->wait_for('two processes have swept a backlog', sub { $arrived{ $_->{body} }++ for $e->read('nowhere'); keys %arrived >= $rows && !$e->pending }, 60);
    is $e->stop, 0, "$e->{pair}: both stop cleanly";
    $arrived{ $_->{body} }++ for $e->read('nowhere');
    is_deeply [ grep { $arrived{$_} != 1 } sort keys %arrived ], [], "$e->{pair}: each row was sent once";
}

sub check_usage {
    my ($e) = @_;
    for ([ 'list' ], [ 'stats', '--force' ], [ 'pending', '--limit', 0 ], [ 'pending', '--limit', -1 ], [ 'pending', '--after', 'x' ], [ 'sweep', '--limit', 2 ],
        [ 'sweep', '--older-than', '1' ], [ 'cleanup', '--exact' ], [ 'cleanup', '--parked' ], [ 'pending', '--older-than', '-1s' ], [], [ 'stats', 'pending' ]) {
        is((outbox($e, @$_))[0], 64, "$e->{pair}: outbox @$_ is no way to ask");
    }
    is((outbox($e, 'stats', '-e', 'nobody'))[0], 64, "$e->{pair}: nor is an endpoint that is none");
}

# Somebody holds the lock of the clean-up all the time.
sub check_kept_out {
    my ($e) = @_;
    my $holder = $e->hold_clean_up or return;
    put_records($e, 8 * 86400, 'kept');
    my $since = time;
    my ($code, $said) = json($e, 'cleanup');
    is_deeply [ $code, $said ], [ 75, { removed => 0, another_cleans_up => JSON::PP::true } ], "$e->{pair}: that another cleans up is said";
    cmp_ok time - $since, '<', 60, "$e->{pair}: in time";
    close $holder;
    is_deeply [ json($e, 'cleanup') ], [ 0, { removed => 1, another_cleans_up => JSON::PP::false } ], "$e->{pair}: when it has ended the rest is removed";
}
# The connection of a client that took it; it ends with its input.
sub Endpoint::hold_clean_up {
    my ($e) = @_;
    return if $e->{pair} !~ /pgsql/;
    my $hash = -3750763034362895579;
    { use integer; $hash = ($hash ^ ord) * 1099511628211 for split //, "waybill cleanup/public/$e->{name}"; }
    open my $psql, '|-', 'psql', '-X', '-q', '-A', '-t', '-o', "$e->{dir}/held" or die "psql: $!\n";
    $psql->autoflush(1);
    print $psql "select pg_advisory_lock(($hash)::bigint);\n\\! touch $e->{dir}/is_held\n";
    $e->wait_for('somebody cleans up', sub { -e "$e->{dir}/is_held" });
    return $psql;
}

sub check_without {
    my ($e) = @_;
    put_row($e, number(7200), 'WBO1');
    $e->configure(outbox => '');
    my ($code, $text) = outbox($e, 'pending');
    is $code, 0, "$e->{pair}: what was stored while the outbox was on is listed";
    like $text, qr/has no outbox: this is what was stored before/, "$e->{pair}: and that it is off";
    is((json($e, 'sweep'))[0], 0, "$e->{pair}: and swept");
    is_deeply [ batches($e) ], [], "$e->{pair}: so that nothing is left";
    $e->configure(persistence => 0);
    is((outbox($e, 'stats'))[0], 78, "$e->{pair}: without a persistence there is none");
}

for my $pair ('sqlite', 'amqp+pgsql', Endpoint::has_mysql() ? 'sqlite+mysql' : ()) {
    # whose own sweeper and cleaner have nothing to do meanwhile
    my $e = Endpoint->new($pair, retries => 0, outbox => 'enabled = true; sweep_after = "1h"; cleanup_interval = "10min";');
    is((outbox($e, 'stats'))[0], 72, "$pair: without tables that is said");
    $e->install;
    check_usage($e);
    check_empty($e);
    my $row = example($e);
    $e->sql('delete from ' . table($e, 'dedup'));
    check_pending($e, $row, check_stats($e, $row));
    check_sweep($e);
    check_cleanup($e);
    check_kept_out($e);
    check_beside($e, $row);
    check_shared($e, $row);
    check_without($e);
}
done_testing;
