#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A destination that is missing: each message fails six times, and the log stays readable. What it says
# accounts for every message and every try.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;
use Time::HiRes qw(time);

my ($count, $tries) = (300, 5);

# Lines of a text, and what they say was like them.
sub counted {
    my ($e, $text) = @_;
    my $sum = 0;
    $sum += /more_like_this=(\d+)/ ? $1 : 1 for $e->log_lines(qr/msg="$text".*nowhere/);
    return $sum;
}

my $e = Endpoint->new('sqlite+sqlite', concurrency => 2, retries => $tries);
$e->install;
$e->send('orders', map { { id => "bad-$_", do => 'send nowhere T.Bad x' } } 1 .. $count);
my $began = time;
$e->start;
my %failed;
$e->wait_for("all $count are in the error queue", sub { $failed{ $_->{id} } = 1 for $e->read('error'); keys %failed == $count }, 120);
$e->wait_for('each is told, while it runs', sub { counted($e, 'message moved to the error queue') == $count }, 10);
$e->wait_for('and each try', sub { counted($e, 'message failed and is retried') == $count * $tries }, 10) or diag Endpoint::read_file($e->{log});
my $seconds = time - $began;
my @lines = $e->log_lines(qr/nowhere/);
cmp_ok scalar(@lines), '<=', 2 * (5 + $seconds + 1), 'in a few lines a second';
cmp_ok scalar($e->log_lines('.')), '<=', 4 * (5 + $seconds + 1), 'whatever else is told meanwhile';
my ($first) = grep { /moved to the error queue/ } @lines;
like $first, qr/message_id=bad-\d+ .*reason="could not dispatch to \\"nowhere\\": /, 'the first with its message';
my ($sum) = grep { /moved to the error queue.*more_like_this/ } @lines;
like $sum, qr/level=error msg="message moved to the error queue" endpoint=orders .*reason="could not dispatch to \\"nowhere\\": .*more_like_this=\d+$/, 'the sum with its reason';
unlike $sum, qr/message_id|attempts/, 'and no message';

# Another reason is told at once, and what was counted is told when the process ends.
$e->send('orders', { id => 'other', do => 'fail unrecoverable of its own' }, map { { id => "last-$_", do => 'send nowhere T.Bad x' } } 1 .. 20);
$e->wait_for('all are moved', sub { $failed{ $_->{id} } = 1 for $e->read('error'); keys %failed == $count + 21 }, 60);
is scalar($e->log_lines(qr/moved to the error queue.*message_id=other .*of its own/)), 1, 'another reason has a line of its own';
is $e->stop, 0, 'it stops';
is counted($e, 'message moved to the error queue'), $count + 20, 'every message is accounted for at the end';
done_testing;
