#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# waybill delayed: what waits in a store is listed, shown, cancelled and moved in time, also while a poller is at
# work: what was cancelled never arrives, and what was not, does.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use JSON::PP ();
use POSIX qw(strftime);
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

Endpoint::under_servers(qw(pgsql rabbitmq mariadb));

sub delayed { my ($e, @arguments) = @_; return $e->run('delayed', @arguments) }
sub json {
    my ($e, @arguments) = @_;
    my ($code, $text) = delayed($e, @arguments, '--json');
    (my $json = $text) =~ s/^waybill: .*\n//mg;
    die "delayed @arguments: $code: $text" if $json eq '';
    return ($code, JSON::PP->new->decode($json));
}
sub ids { my ($e, @arguments) = @_; return join ' ', map { $_->{id} } @{ (json($e, 'list', @arguments))[1] } }

sub table {
    my ($e) = @_;
    return $e->{pair} =~ /mysql/ ? "`$e->{name}_delayed`" : $e->{pair} =~ /pgsql/ ? qq("$e->{name}_delayed") : qq("waybill_$e->{name}_delayed");
}

sub put {
    my ($e, $id, $delay, $to, @more) = @_;
    my ($code) = $e->run('send', '--to', $to, '--type', 'T.Line', '--body', "body of $id", '--delay', $delay, '--id', $id, @more);
    die "$id is not sent\n" if $code != 0;
}

sub check_looks {
    my ($e) = @_;
    put($e, 'later', '3h', 'sink');
    put($e, 'sooner', '2h', 'sink', '--header', 'mine=kept');
    put($e, 'odd', '1h', 'elsewhere');
    is ids($e), 'odd sooner later', "$e->{pair}: what waits, earliest first";
    is ids($e, '--to', 'sink'), 'sooner later', "$e->{pair}: to one destination";
    is ids($e, '--id', 'later'), 'later', "$e->{pair}: with one id";
    is ids($e, '--limit', 1), 'odd', "$e->{pair}: so many";
    is ids($e, '--due-before', '2000-01-01T00:00:00Z') . ids($e, '--due-from', '2200-01-01T00:00:00Z'), '', "$e->{pair}: of some time";
    is ids($e, '--retries', 1), '', "$e->{pair}: with so many retries";
    my $last = 'where due = (select due from (select max(due) as due from ' . table($e) . ') as latest)';
    $e->sql('update ' . table($e) . " set retries = 2 $last");
    is ids($e, '--retries', 2, '--limit', 1), 'later', "$e->{pair}: so many of those, whatever is due before";
    $e->sql('update ' . table($e) . " set retries = 0 $last");
    is ids($e, '--due-before', '1970-01-01T00:00:00Z'), '', "$e->{pair}: none was due before there was time";
    is((delayed($e, 'list', '--limit', $_))[0], 64, "$e->{pair}: a limit of $_ is none") for 0, '9' x 30;
    my (undef, $text) = delayed($e, 'list');
    like $text, qr/^\d{4}-\d\d-\d\dT[\d:.]+Z +in (59|60) min .* elsewhere  odd$/m, "$e->{pair}: for people";
    my (undef, $all) = json($e, 'show', '--id', 'sooner');
    is_deeply [ map { $all->[0]{$_} } qw(id destination kind body_size retries failures taken_until) ],
        [ 'sooner', 'sink', 'send', length 'body of sooner', 0, 0, undef ], "$e->{pair}: all of one";
    is $all->[0]{headers}{mine}, 'kept', "$e->{pair}: and its headers";
    is((delayed($e, 'show', '--id', 'sooner', '--body'))[1], 'body of sooner', "$e->{pair}: and its body");
    like((delayed($e, 'show', '--id', 'sooner'))[1], qr/^  mine = kept$/m, "$e->{pair}: which people read, too");
    is((delayed($e, 'show', '--id', 'nobody'))[0], 66, "$e->{pair}: nobody is nobody");
}

sub check_changes {
    my ($e) = @_;
    my ($code, $text) = delayed($e, 'cancel', '--id', 'odd');
    is_deeply [ $code, $text ], [ 0, "cancelled, it was not sent and will not be: odd to elsewhere\n" ], "$e->{pair}: one is cancelled";
    is((delayed($e, 'cancel', '--id', 'odd'))[0], 66, "$e->{pair}: once");
    is((delayed($e, 'cancel'))[0], 64, "$e->{pair}: which is said");
    is((delayed($e, 'cancel', '--to', 'sink'))[0], 64, "$e->{pair}: of several all is said");
    is ids($e), 'sooner later', "$e->{pair}: and none of them is cancelled";
    is((delayed($e, 'reschedule', '--id', 'later'))[0], 64, "$e->{pair}: so is the time");
    is((delayed($e, 'reschedule', '--id', 'later', @$_))[0], 64, "$e->{pair}: @$_ is too far") for [ '--delay', '3651d' ], [ '--delay', '100000d' ], [ '--at', '2200-01-01T00:00:00Z' ];
    my $then = strftime('%Y-%m-%dT%H:%M:%SZ', gmtime(time + 3600 * 86400));
    is((delayed($e, 'reschedule', '--id', 'later', '--at', $then))[0], 0, "$e->{pair}: one is due at another time");
    is ids($e, '--due-from', $then), 'later', "$e->{pair}: which it has";
    $e->start;
    $e->wait_for('the endpoint is at work', sub { $e->log_lines(qr/msg="endpoint starts"/) });
    my $since = time;
    is((delayed($e, 'reschedule', '--to', 'sink', '--all', '--delay', '0s'))[0], 0, "$e->{pair}: all are due now");
    is join(' ', sort map { $_->{id} } $e->collect('sink', 2, 'both arrive')), 'later sooner', "$e->{pair}: those";
    cmp_ok time - $since, '<', 8, "$e->{pair}: soon";
    is ids($e), '', "$e->{pair}: and wait no longer";
}

# Six hundred come due within a few seconds while somebody cancels what he can.
sub check_race {
    my ($e) = @_;
    my (%cancelled, %arrived);
    $e->send($e->{name}, map { my $part = $_; { id => "race-$part", do => [ map { my $k = $_; ('delay ' . (1500 + ($part * 30 + $k) * 5), "id r$part-$k", "send sink T.Race $part-$k") } 0 .. 29 ] } } 0 .. 19);
    $e->wait_for('all are handled', sub { $e->effects >= 20 });
    $e->wait_for('the first arrive', sub { $e->depth('sink') > 0 });
    my $until = time + 8;
    my ($rounds, $left_alone) = (0, 0);
    while (time < $until) {
        my ($code, $answers) = json($e, 'cancel', '--to', 'sink', '--all', '--limit', 2);
        last if $code == 66 && $rounds;
        $rounds++;
        $cancelled{ $_->{id} }++ for grep { $_->{outcome} eq 'cancelled' } @$answers;
        $left_alone += grep { $_->{outcome} ne 'cancelled' } @$answers;
    }
    $e->wait_for('none waits any more', sub { ids($e) eq '' });
    sleep 1;
    $arrived{ $_->{id} }++ for $e->read('sink');
    is_deeply [ grep { $arrived{$_} } sort keys %cancelled ], [], "$e->{pair}: what was cancelled does not arrive";
    is scalar(keys %cancelled) + keys %arrived, 600, "$e->{pair}: all others do" or diag scalar(keys %cancelled), ' cancelled, ', scalar(keys %arrived), ' arrived';
    cmp_ok scalar(keys %cancelled), '>', 0, "$e->{pair}: some were cancelled";
    diag "$e->{pair}: $rounds rounds, @{[ scalar keys %cancelled ]} cancelled, $left_alone left alone";
}

sub fill {
    my ($e, $count, $id, $due, $retries) = @_;
    $e->sql(qq(with recursive n(i) as (select 1 union all select i + 1 from n where i < $count) insert into "waybill_$e->{name}_delayed" )
          . qq((destination, id, retries, due) select cast('many' as blob), $id, $retries, $due from n));
    $e->sql(qq(insert or ignore into "waybill_$e->{name}_delayed_operation" select row, x'57424f3100' from "waybill_$e->{name}_delayed"));
}

# More than one call changes, and what one id has several of.
sub check_many {
    my ($e) = @_;
    fill($e, 600, q(cast('m' || i as blob)), 7_000_000_000_000_000, 0);
    my ($code, $text) = delayed($e, 'reschedule', '--to', 'many', '--all', '--at', '2031-01-01T00:00:00Z');
    is_deeply [ $code, scalar(() = $text =~ /^rescheduled: /mg) ], [ 0, 600 ], 'more than one call takes are moved';
    ($code, $text) = delayed($e, 'cancel', '--to', 'many', '--all');
    is_deeply [ $code, scalar(() = $text =~ /^cancelled, /mg), ids($e) ], [ 0, 600, '' ], 'and cancelled';
    my $table = table($e);
    my $now = time;
    fill($e, 1, q(x'00ff415c'), int(($now - 5400) * 1e6), 0);
    ($code, $text) = delayed($e, 'list');
    like $text, qr/^\S+ +9[01] min ago .* many  \\x00\\xffA\\x5c$/m, 'what is due, and bytes that are no text, for people';
    is_deeply [ map { @{$_}{qw(id id_hex)} } @{ (json($e, 'list'))[1] } ], [ undef, '00ff415c' ], 'and for programs';
    is((delayed($e, $_))[0], 64, "$_ says which, though one alone waits") for 'cancel', 'show';
    is((delayed($e, 'reschedule', '--delay', '1s'))[0], 64, 'so does reschedule');
    is((delayed($e, 'list', @$_))[0], 64, "list is not told @$_") for [ '--delay', '1s' ], [ '--at', '2031-01-01T00:00:00Z' ];
    is((delayed($e, 'reschedule', '--to', 'many', '--delay', '1s', '--at', '2031-01-01T00:00:00Z'))[0], 64, 'one time, not two');
    is((delayed($e, 'cancel', '--to', 'many'))[0], 0, 'the only one of a destination');
    fill($e, 1, q(cast('twin' as blob)), 7_000_000_000_000_000, $_) for 0, 1;
    is((delayed($e, 'show', '--id', 'twin', '--body'))[0], 64, 'of two the body of one is not shown');
    $e->sql(qq(create trigger sent before delete on $table when old.retries = 0 begin delete from $table where row = old.row; end));
    ($code, my $answers) = json($e, 'cancel', '--id', 'twin', '--all');
    is_deeply [ $code, map { "$_->{retries} $_->{outcome}" } @$answers ], [ 75, '0 gone', '1 cancelled' ], 'one of two was sent meanwhile';
    fill($e, 1, q(cast('twin' as blob)), 7_000_000_000_000_000, $_) for 0, 1;
    ($code, $answers) = json($e, 'cancel', '--id', 'twin', '--retries', 0);
    is_deeply [ $code, map { $_->{outcome} } @$answers ], [ 75, 'gone' ], 'that another retry waits is another matter';
    $e->sql('drop trigger sent');
    is((delayed($e, 'cancel', '--id', 'twin', '--all'))[0], 0, 'which can be cancelled');
}

# Somebody has taken it, and is not heard of again.
sub check_taken {
    my ($e) = @_;
    put($e, 'taken', '1h', 'sink');
    $e->sql(qq(update "waybill_$e->{name}_delayed" set owner = x'41', leased_until = 1000));
    my ($code, $answers) = json($e, 'cancel', '--id', 'taken');
    is_deeply [ $code, $answers->[0]{outcome}, $answers->[0]{taken_until} ], [ 75, 'taken', '1970-01-01T00:00:00.001Z' ], 'what is taken is left alone';
    is((delayed($e, 'reschedule', '--id', 'taken', '--delay', '0s'))[0], 75, 'and not moved in time');
    like((delayed($e, 'list'))[1], qr/  earlier  +0  +0  sink  taken$/m, 'a time that no store has known is none for people');
}

sub check_later_version {
    my ($e) = @_;
    $e->sql(qq(update "waybill_$e->{name}_delayed" set owner = null, leased_until = 0));
    $e->sql(qq(update "waybill_$e->{name}_delayed_operation" set operation = x'57424f3900'));
    my (undef, $all) = json($e, 'show', '--id', 'taken');
    ok !$all->[0]{is_readable}, 'what a later version wrote is shown as that';
    like((delayed($e, 'show', '--id', 'taken'))[1], qr/^format +"WBO9", which this version cannot read$/m, 'for people, too');
    is((delayed($e, 'show', '--id', 'taken', '--body'))[0], 65, 'it has no body here');
    is((delayed($e, 'cancel', '--id', 'taken'))[0], 0, 'and can be cancelled');
}

sub check {
    my ($e) = @_;
    $e->install;
    $e->make_queue('elsewhere');
    check_looks($e);
    check_changes($e);
    check_race($e);
    is $e->stop, 0, "$e->{pair}: it stops cleanly";
}

my $by_store = 'delayed_delivery = { by = "store"; };';
my $embedded = Endpoint->new('sqlite');
check($embedded);
check_many($embedded);
check_taken($embedded);
check_later_version($embedded);
check(Endpoint->new('sqlite+mysql'));
check(Endpoint->new('amqp+pgsql', with => $by_store));

my $native = Endpoint->new('amqp+pgsql', name => 'native');
$native->install;
my ($code, undef, $said) = delayed($native, 'list');
isnt $code, 0, 'who delays by the broker has no such table';
done_testing;
