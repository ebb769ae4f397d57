# SPDX-License-Identifier: Apache-2.0
#
# Outages of the broker and the database of an endpoint, in every order: it waits with one line for
# each, and recovers by itself; messages sent before and after take effect once.
#
#   Outages::all($endpoint, 'rabbitmq', 'pgsql');
package Outages;
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;
use Servers;

my ($e, $broker, $database);
my %back = (broker => qr/"the broker is back"/, database => qr/"the database is back"/);
my %away = (broker => qr/"the broker is away"/, database => qr/"the database is away"/);
my (@sent, $lines);
my $started = time;    # the broker
my $count = 0;

sub kind { return $_[0] eq 'broker' ? $broker : $database }
sub crash { my ($what) = @_; $e->forget_broker if $what eq 'broker' && $e->can('forget_broker'); Servers::server('crash', kind($what)) }
sub restart { my ($what) = @_; Servers::server('restart', kind($what)); $started = time if $what eq 'broker' }

# RabbitMQ writes the state of its quorum queues each five seconds: killed sooner it may come back with
# queues that never find a leader.
sub settle { my $left = $started + 6 - time; sleep $left if $left > 0 }

sub put {
    my ($many) = @_;
    my @messages = map { { id => 'm' . ++$count, do => "sleep 2\nsend @{[ $e->address('sink') ]} T.Out m$count" } } 1 .. $many;
    $e->put(@messages);
    push @sent, map { $_->{id} } @messages;
}

sub log_of { my @all = split /\n/, Endpoint::read_file($e->{log}); return @all }
sub news { my @all = log_of(); return @all[ $lines .. $#all ] }
sub begin { @sent = (); $lines = my @all = log_of() }
# Without what tells of messages, of the housekeeper (which works once a minute otherwise), and of what servers say when they go.
sub few { my ($what, $most) = @_; my @news = grep { !/housekeeping|swept|parked|resuming|handled by itself|sent alone|fewer partitions|notice from/ } news(); cmp_ok scalar(@news), '<=', $most, "$what: few lines" or diag join "\n", @news; diag "$what: @{[ scalar @news ]} lines" }
sub told { my ($pattern) = @_; return scalar grep { $_ =~ $pattern } news() }

# All that was sent has its effect, once; what it sent is out.
sub complete {
    my ($what) = @_;
    my %out;
    $e->wait_for("$what: every message has its effect", sub { my @n = eval { $e->not_once(@sent) }; !$@ && !@n }, 90);
    $e->wait_for("$what: its message is out, under one id", sub { $out{ $_->{body} }{ $_->{id} } = 1 for $e->read($e->address('sink')); !grep { keys %{ $out{$_} || {} } != 1 } @sent }, 60);
    is_deeply [ $e->not_once(@sent) ], [], "$what: one effect only";
}

# One line when a server goes, one when it comes. Of two that go together one may go and come while
# everybody waits for the other: nobody asked for it, nobody missed it.
sub quiet {
    my ($what) = @_;
    $e->wait_for("$what: a server is back", sub { told($back{broker}) + told($back{database}) });
    for (qw(broker database)) {
        my $server = $_;
        $e->wait_for("$what: a line when the $_ is back for each that it is away", sub { told($back{$server}) == told($away{$server}) });
        cmp_ok told($away{$_}), '<=', 2, "$what: and few" or diag join "\n", news();
    }
    few($what, 10);    # the eight that this allows, and two about what is in doubt
}

# ---- while it runs -----------------------------------------------------------------------
sub goes {    # in this order, and comes back in that one
    my ($gone, $come) = @_;
    my $what = "@$gone away, @$come back";
    settle() if "@$gone" =~ /broker/;
    begin();
    put(60);
    $e->wait_for("$what: busy", sub { $e->effects > $count - 55 }, 40);
    for (@$gone) {
        crash($_);
        put(20) if $gone->[0] eq 'database' && $_ eq 'database';    # somebody asks for it
        sleep 0.5;
    }
    $e->wait_for("$what: it is missed", sub { told($away{ $gone->[0] }) }) if @$gone == 1;
    sleep 1;
    for my $server (@$come) {
        restart($server);
        put(20) if $server eq 'broker';
    }
    put(20) if "@$come" !~ /broker/;
    complete($what);
    quiet($what);
}

sub hangs {
    my ($server) = @_;
    my $what = "the $server hangs";
    begin();
    put(60);
    $e->wait_for("$what: busy", sub { $e->effects > $count - 55 }, 40);
    Servers::hang(kind($server));
    sleep 4;
    ok $e->is_alive, "$what: the endpoint lives";
    Servers::go_on(kind($server));
    put(20);
    complete($what);
    few($what, 6);
}

# ---- at the start ------------------------------------------------------------------------
sub starts_before {    # both are away; they come in this order
    my @come = @_;
    my $what = "started before @come";
    begin();
    settle();
    is $e->stop, 0, "$what: it stops";
    put(20);
    crash($_) for @come;
    $lines = my @all = log_of();
    $e->start;
    $e->wait_for("$what: it waits", sub { told(qr/endpoint waits for its servers to start/) });
    restart($come[0]);
    sleep 1.5;
    ok $e->is_alive && !told(qr/endpoint starts/), "$what: it waits for the other";
    restart($come[1]);
    put(20);
    complete($what);
    is told(qr/endpoint waits for its servers/), 1, "$what: one line that it waits";
    is told(qr/"endpoint starts"/), 1, "$what: one that it starts";
    few($what, 6);
}

# A server that accepts and does not answer: it waits, and a stop ends that at once.
sub stops_at_once {
    my ($server) = @_;
    my $what = "the $server hangs at the start";
    begin();
    is $e->stop, 0, "$what: it stops";
    Servers::hang(kind($server));
    $e->start;
    sleep 1;
    ok $e->is_alive && !told(qr/endpoint starts/), "$what: it waits";
    my $stopped = time;
    is $e->stop, 0, "$what: told to stop it ends, with 0";
    cmp_ok time - $stopped, '<', 4, "$what: at once";    # a connection is waited for much longer
    $e->start;
    sleep 0.5;
    Servers::go_on(kind($server));
    put(5);
    complete($what);
}

# Nobody comes who makes a table: that is said, once the server is there.
sub fails {
    begin();
    is $e->stop, 0, 'a table is missing: it stops';
    $e->rename_table('before', 'away');
    $e->start;
    is $e->await_exit(shift @{ $e->{processes} }), 72, 'a table is missing: no wait, exit code 72';
    is told(qr/waits for its servers/), 0, 'a table is missing: no line about waiting';
    $e->rename_table('away', 'before');
    $e->start;
    $e->wait_for('it is there again: it starts', sub { told(qr/endpoint starts/) });
}

sub all {
    my @cases;
    ($e, $broker, $database, @cases) = @_;
    my ($b, $d) = qw(broker database);
    my %run = (
        broker => sub { goes([$b], [$b]) }, database => sub { goes([$d], [$d]) },
        bdbd => sub { goes([ $b, $d ], [ $b, $d ]) }, bddb => sub { goes([ $b, $d ], [ $d, $b ]) },
        dbbd => sub { goes([ $d, $b ], [ $b, $d ]) }, dbdb => sub { goes([ $d, $b ], [ $d, $b ]) },
        startbd => sub { starts_before($b, $d) }, startdb => sub { starts_before($d, $b) },
        hangb => sub { hangs($b) }, hangd => sub { hangs($d) },
        stopb => sub { stops_at_once($b) }, stopd => sub { stops_at_once($d) }, fails => \&fails,
    );
    $e->start;
    $lines = 0;
    $e->wait_for('it runs', sub { told(qr/endpoint starts/) });
    for (@cases) {
        my $started = time;
        $run{$_}->();
        diag sprintf '%s: %.1f s', $_, time - $started;
    }
    is $e->stop, 0, 'it stops cleanly';
    is scalar($e->read($e->{error_queue} || 'error')), 0, 'nothing is in the error queue';
}

1;
