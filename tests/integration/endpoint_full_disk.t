#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A full disk under an endpoint on SQLite, the queue's, the data's, or both: it waits. Nothing
# goes to the error queue though there are no retries, log and memory stay small, and when
# there is room again every message is handled.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use SmallDisk;
BEGIN { SmallDisk::own_space() }
use Endpoint;

use constant { MESSAGES => 300, FULL => 3 };

# Where copies of the files are, when nobody can read them where they are.
our $copies;

# Queue and data have a directory each; with one file, or one disk, it is the same.
{
    no warnings 'redefine';
    my $environment = \&Endpoint::environment;
    *Endpoint::environment = sub { return ($environment->(@_), SmallDisk::environment()) };
    *Endpoint::Sqlite::queue_file = sub { return ($copies // $_[0]{queue_dir}) . '/queue.db' };
    *Endpoint::Sqlite::store_file = sub { return $_[0]{mode} eq 'transaction_scope' ? $_[0]->queue_file : ($copies // $_[0]{store_dir}) . '/store.db' };
}

sub memory {    # of a process, in MiB
    my ($pid) = @_;
    return Endpoint::read_file("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m ? $1 / 1024 : 0;
}

# A reader of a file on a full disk may find no room for what readers share: it asks again. If that
# room is gone for good, since the endpoint has no connection open for want of it, nobody writes either.
sub patiently {
    my ($e, $ask) = @_;
    for (1 .. 50) {
        my $answer = eval { $ask->() };
        return $answer if defined $answer;
        sleep 0.1;
    }
    local $copies = Endpoint::work_dir() . '/copies';
    system('rm', '-rf', $copies) == 0 && mkdir $copies or die "$copies: $!\n";
    my %files = map { $_ => 1 } grep { !/-shm$/ } map { glob "$_/*.db*" } $e->{queue_dir}, $e->{store_dir};
    system('cp', keys %files, $copies) == 0 or die "cp failed\n";
    return $ask->();
}
sub depth { my ($e, $queue) = @_; return patiently($e, sub { $e->depth($queue) }) }

# Until nothing left the queue for a second. (Handlers may go on: where queue and data are not
# in one transaction they are called again.)
sub stands_still {
    my ($e) = @_;
    my ($count, $since) = (depth($e, 'orders'), time);
    while (time - $since < 1) {
        sleep 0.05;
        my $now = depth($e, 'orders');
        ($count, $since) = ($now, time) if $now != $count;
    }
    return $count;
}

# Log that was used before is written again without room.
sub cut_logs { my ($e) = @_; Endpoint::Sqlite::run_sql($_, 'pragma wal_checkpoint(truncate)') for $e->queue_file, $e->store_file }

my $case = 0;

sub full_disk {
    my ($what, $full, %settings) = @_;
    my $base = Endpoint::work_dir() . '/case' . ++$case;
    mkdir $base or die "$base: $!\n";
    my %disks = map { $_ => SmallDisk->new("$base/$_", $_ eq $full ? '64m' : '512m') } $full eq 'both' ? 'both' : qw(queue store);
    my $where = sub { my ($name) = @_; return $disks{$name} ? "$base/$name" : "$base/both" };
    my $e = Endpoint->new('sqlite+sqlite', name => 'orders', retries => 0, concurrency => 2, queue_dir => $where->('queue'),
        store_dir => $where->('store'), %settings);
    my @ids = map { sprintf 'm%03d', $_ } 1 .. MESSAGES;
    my @do = ('sql insert into blobs values(zeroblob(20000))', 'send sink T.Done done', 'sleep 2');
    $e->install;
    $e->sql('create table blobs (b)');
    $e->send('orders', map { { id => $_, body => 'x' x 5000, do => $_ =~ /50$/ ? [ 'sql insert into blobs values(zeroblob(6000000))', @do ] : \@do } } @ids);
    cut_logs($e);
    my $pid = $e->start;
    $e->wait_for("$what: some are handled", sub { $e->effects >= 20 });
    $disks{$full}->fill;
    my ($left, $now, $lines);
    for (1 .. 10) {    # small ones may find room in a log that is written from its start again
        $left = stands_still($e);
        $lines = $e->log_lines('.');
        sleep FULL;
        $now = depth($e, 'orders');
        last if $now == $left;
    }
    cmp_ok $left, '>', 0, "$what: it stands still";
    is $now, $left, "$what: it waits";
    cmp_ok patiently($e, sub { $e->effects }), '>=', MESSAGES - $left, "$what: what left the queue has had its effect";
    ok $e->is_alive, "$what: it is alive";
    ok scalar($e->log_lines(qr/level=(?:error|warning) .*reason=".*(?:disk is full|disk I\/O error|No space left|unable to open)/)), "$what: a line says why";
    is depth($e, 'error'), 0, "$what: nothing is in the error queue while the disk is full";
    cmp_ok $e->log_lines('.') - $lines, '<', 40, "$what: the log is small";
    cmp_ok memory($pid), '<', 200, "$what: memory is small";
    $disks{$full}->free;
    $e->wait_for("$what: all are handled", sub { $e->effects >= MESSAGES && $e->depth('orders') == 0 }, 60);
    is_deeply [ $e->not_once(@ids) ], [], "$what: once each" if $e->{mode} ne 'sends_atomic_with_receive';
    my %sent = map { $_->{id} => 1 } $e->collect('sink', MESSAGES, "$what: all is sent");
    is scalar(keys %sent), MESSAGES, "$what: by each";
    is $e->stop, 0, "$what: stops cleanly";
    is $e->depth('error'), 0, "$what: nothing is in the error queue";
    $_->free for values %disks;
}

# Whoever starts on it finds no room for what readers share: one sentence, which says so.
sub starts {
    my ($what) = @_;
    my $base = Endpoint::work_dir() . "/start-$what";
    mkdir $base or die "$base: $!\n";
    my %disks = map { $_ => SmallDisk->new("$base/$_", '4m') } qw(queue store);
    my $e = Endpoint->new('sqlite+sqlite', name => 'orders', queue_dir => "$base/queue", store_dir => "$base/store");
    $e->install;
    $disks{$what}->fill;
    for my $verb (qw(run install)) {
        my ($code, $text) = $e->run($verb);
        is $code, 69, "$verb on a full disk, the $what\'s";
        like $text, qr/^waybill: endpoint "orders": could not .* in "$base\/$what\/$what\.db": database or disk is full: free space on its file system$/m, 'says so';
        is scalar(() = $text =~ /^waybill: /mg), 1, 'once';
    }
    $disks{$what}->free;
    is +($e->run('uninstall'))[0], 0, 'when there is room again all is well';
}

my %outbox = (mode => 'receive_only');
my %atomic = (mode => 'sends_atomic_with_receive', outbox => '');
my %scope  = (mode => 'transaction_scope', outbox => '');
full_disk("outbox, the queue's", 'queue', %outbox);
full_disk("outbox, the data's",  'store', %outbox);
full_disk('outbox, both',        'both',  %outbox);
full_disk("sends_atomic, the queue's", 'queue', %atomic);
full_disk("sends_atomic, the data's",  'store', %atomic);
full_disk('sends_atomic, both',        'both',  %atomic);
full_disk('transaction_scope',         'both',  %scope);
starts($_) for qw(queue store);
done_testing;
