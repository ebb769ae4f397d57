#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# RabbitMQ drops a message that comes back too often. On the worst days of endpoints whose queues have
# limits of 5, of 20 or none, by argument, by policy or as shipped, with outbox and without, one worker
# and three, nothing is dropped: every message is handled or in the error queue.
#
#   delivery_limits.t [SCENARIO...]       refused poison alarms unmovable; LIMITS=arg5,own: these limits only
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Test::More;
use Time::HiRes qw(sleep time);
use Amqp;
use Peer;
use Servers;

$ENV{WB_RABBITMQ_PLUGINS} = 'rabbitmq_management';
Servers::start('pgsql', 'rabbitmq');

# A queue with neither is as shipped: 20 from RabbitMQ 4.0 on, none before. `own` is made by `waybill
# install`. Policies are seen through the management interface alone; without, Waybill stays below 20.
my @limits = (
    { name => 'own', own => 1 },
    { name => 'shipped' },
    { name => 'arg5', argument => 5, retries => 3 },
    { name => 'arg20', argument => 20 },
    { name => 'policy5', policy => 5, retries => 3, managed => 1 },
    { name => 'policy20', policy => 20, managed => 1 },
    { name => 'unseen20', policy => 20 },
);
my %wanted = map { $_ => 1 } split /,/, $ENV{LIMITS} // '';
@limits = grep { $wanted{ $_->{name} } } @limits if %wanted;
my $outbox = 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";';

# ---- the endpoints -----------------------------------------------------------------------
sub transport_of {
    my ($limit, $more) = @_;
    return ($limit->{managed} ? qq(management = "$ENV{AMQP_MANAGEMENT}"; ) : '') . ($more // '');
}

sub endpoint {
    my ($limit, $with, $workers) = @_;
    my $name = join '-', $limit->{name}, $with ? 'outbox' : 'plain', $workers;
    return Peer->new('amqp+pgsql', name => $name, error_queue => "$name.error", outbox => $with, concurrency => $workers, batch_max => 10,
        retries => $limit->{retries} // 5, shutdown_timeout => '5s', limit => $limit, transport => transport_of($limit));
}

my @endpoints = map { my $limit = $_; map { my $with = $_; map { endpoint($limit, $with, $_) } 1, 3 } $outbox, '' } @limits;

# Somebody else made the queue, unless it is our own.
sub make_queue {
    my ($e) = @_;
    my $limit = $e->{limit};
    Servers::policy($e->{name}, 'delivery-limit' => $limit->{policy}) if $limit->{policy};
    return if $limit->{own};
    $e->amqp->declare($e->{name}, [ 'x-queue-type' => 'quorum' ], $limit->{argument} ? [ 'x-delivery-limit' => [ I => pack 'N', $limit->{argument} ] ] : ());
}

sub make_all {
    my $first = $endpoints[0];
    my $amqp = $first->amqp;
    $_->{amqp} = $amqp for @endpoints;
    make_queue($_) for @endpoints;
    $first->together(@endpoints[ 1 .. $#endpoints ]);
    $first->install;
    $first->configure;
}

# ---- where everything is -----------------------------------------------------------------
my (%effects, %moved, %cut, %out);    # by id: how often it was handled, came to the error queue (and not whole), is out

sub look {
    my ($any) = @_;
    %effects = map { pack('H*', $_->[0]) => $_->[1] } $any->sql('select id, count(*) from effects group by id');
    $out{ $_->{body} }{ $_->{id} }++ for $any->read('sink');
    for my $e (@endpoints) {
        for (eval { $e->error }) { $moved{ $_->{id} }++; $cut{ $_->{id} }++ if $_->{header}{'Waybill.Trimmed'} }
    }
}
sub is_found { my ($id) = @_; return $effects{$id} || $moved{$id} }
sub names { return map { $_->{id} } @_ }

# Handled, and what it sent is out; bad ones in the error queue.
sub is_done {
    my ($e) = @_;
    return !(grep { !$moved{$_} } names(@{ $e->{bad} })) && !grep { !$moved{$_} && !($effects{$_} && $out{$_}) } names(@{ $e->{good} });
}

# Look until all are done, doing something in between.
sub wait_for_all {
    my ($seconds, $meanwhile) = @_;
    my $end = time + $seconds;
    for (;;) {
        look($endpoints[0]);
        my @open = grep { !is_done($_) } @endpoints;
        return 1 if !@open;
        return 0 if time > $end;
        for (1 .. 10) { $meanwhile->(@endpoints) if $meanwhile; sleep 0.03 }
    }
}

# With the outbox nobody is blamed for others, and nothing happens twice.
sub judge {
    my ($what, $e) = @_;
    my @good = names(@{ $e->{good} });
    my @bad = names(@{ $e->{bad} });
    my @lost = grep { !is_found($_) } @good, @bad;
    $what = "$what: $e->{name}";
    is_deeply \@lost, [], "$what: nothing is lost" or diag join "\n", ($e->lines)[ -6 .. -1 ];
    is_deeply [ grep { !$moved{$_} || $effects{$_} } @bad ], [], "$what: bad ones are in the error queue, without effect";
    is_deeply [ grep { $effects{$_} && !$moved{$_} && keys %{ $out{$_} || {} } != 1 } @good ], [], "$what: what the others sent is out";
    is_deeply [ grep { ($effects{$_} || 0) != 1 } @good ], [], "$what: and they were handled once" if $e->{outbox};
    my @blamed = grep { $moved{$_} } @good;
    is_deeply \@blamed, [], "$what: they alone" if $e->{outbox};
    note sprintf '%s: %d good, %d of them blamed, %d bad', $what, scalar @good, scalar @blamed, scalar @bad;
}

sub start_all { $_->start for @endpoints }
sub stop_all {
    my ($what) = @_;
    my @pids = map { splice @{ $_->{processes} } } @endpoints;
    kill 'TERM', @pids;
    is_deeply [ map { $endpoints[0]->await_exit($_) // 'does not end' } @pids ], [ map { 0 } @endpoints ], "$what: all stop cleanly";
    is_deeply [ grep { $_->left } @endpoints ], [], "$what: and leave nothing";
}

sub begin { my ($e) = @_; $e->{good} = []; $e->{bad} = [] }
sub send_to {
    my ($e, $scenario, $count, $do, @bad) = @_;
    my @good = map { my $id = sprintf '%s-%s-%03d', $scenario, $e->{name}, ++$e->{sent}; { id => $id, do => "$do\nsend sink Hostile.Sent $id" } } 1 .. $count;
    push @{ $e->{good} }, @good;
    push @{ $e->{bad} }, @bad;
    # bad ones amid the others
    my @all = @good;
    splice @all, int @all * ($_ + 1) / (@bad + 1) + $_, 0, $bad[$_] for 0 .. $#bad;
    $e->send($e->{name}, @all);
}

# ---- refused ------------------------------------------------------------------------------
# A limit that leaves no room for the retries is refused at start, where it can be seen.
sub refused {
    for my $e (grep { ($_->{limit}{retries} // 5) == 3 && $_->{concurrency} == 1 } @endpoints) {
        $e->configure(retries => 5);
        my ($code, $text) = $e->run('run');
        is $code, 72, "refused: $e->{name}: five retries under a limit of 5";
        like $text, qr/queue "$e->{name}" drops a message that comes back more than 5 times .*set immediate_retries to 3 or less/, "refused: $e->{name}: one line says so";
        $e->configure(retries => 3);
    }
}

# ---- poison -------------------------------------------------------------------------------
# Handlers that end the process, started again each time; with others in hand.
my $deaths_max = 80;

sub start_again {
    for my $e (@_) {
        next if $e->is_alive || $e->{deaths} > $deaths_max;
        $e->{deaths}++;
        $e->{processes} = [];
        $e->start;
    }
}

sub poison {
    for my $e (@endpoints) {
        begin($e);
        $e->{deaths} = 0;
        send_to($e, 'poison', 30, 'sleep 3', map { { id => "killer-$_-$e->{name}", do => "sleep 20\nkill" } } 1 .. ($e->{concurrency} > 1 ? 3 : 2));
    }
    start_all();
    ok wait_for_all(120, \&start_again), 'poison: in the end all is done';
    for my $e (@endpoints) {
        judge('poison', $e);
        cmp_ok $e->{deaths}, '<=', $deaths_max, "poison: $e->{name}: it lives";
        note "poison: $e->{name}: $e->{deaths} deaths";
    }
    stop_all('poison');
}

# ---- alarms -------------------------------------------------------------------------------
# The broker takes nothing, in several alarms that follow each other, longer than twenty windows of confirms
# take. What is in hand stays there, and what receives stays connected.
my $window = 3;    # s; starved for as long, a worker takes the broker for one that confirms nothing

sub receivers { my ($e, $all) = @_; return [ sort @{ $all->{"waybill $e->{name} (receive)"} // [] } ] }
sub all_receive { my ($all) = @_; return !grep { @{ receivers($_, $all) } != $_->{concurrency} } @endpoints }

sub alarms {
    # time enough that a worker takes several, however busy the machine is with all of them
    $_->configure(batch_time => '200ms', transport => transport_of($_->{limit}, qq(confirm_timeout = "@{[ 1000 * $window ]}ms";))) for @endpoints;
    begin($_) for @endpoints;
    start_all();
    send_to($_, 'alarm', 40, 'sleep 1') for @endpoints;    # from these workers learn to take many
    ok wait_for_all(30), 'alarms: all is well before';
    my %early = map { $_ => 1 } map { names(@{ $_->{good} }) } @endpoints;    # while so many start, a confirm may take too long
    my $before = Servers::connections();
    for (my $tries = 0; $tries < 100 && !all_receive($before); $tries++) { sleep 0.2; $before = Servers::connections() }
    my @pids = map { @{ $_->{processes} } } @endpoints;
    kill 'STOP', @pids;    # nobody is done before the last has something to do
    send_to($_, 'alarm', 60 * $_->{concurrency}, 'sleep 8') for @endpoints;
    kill 'CONT', @pids;
    sleep 0.1;
    for my $on ([ 'memory' ], [ 'disk' ], [ 'memory', 'disk' ], [ 'disk' ], [ 'memory' ]) {
        Servers::alarm_on($_) for @$on;
        sleep 5 * $window;
        $_->{in_hand} //= in_hand($_) for @endpoints;
        Servers::alarm_off($_) for @$on;
    }
    ok wait_for_all(60), 'alarms: all is done when they are over';
    my $after = Servers::connections();
    for my $e (@endpoints) {
        judge('alarms', $e);
        cmp_ok $e->{in_hand}, '>=', 2 * $e->{concurrency}, "alarms: $e->{name}: the first found messages in its hands";
        is scalar @{ receivers($e, $before) }, $e->{concurrency}, "alarms: $e->{name}: each worker receives on a connection";
        is_deeply receivers($e, $after), receivers($e, $before), "alarms: $e->{name}: and on the same at the end";
        is_deeply [ grep { (my @calls = $e->attempts($_)) != 1 } grep { !$early{$_} } names(@{ $e->{good} }) ], [], "alarms: $e->{name}: each was handled at its first delivery";
    }
    stop_all('alarms');
    $_->configure(batch_time => undef, transport => transport_of($_->{limit})) for @endpoints;
}

# Neither handled nor in the queue.
sub in_hand {
    my ($e) = @_;
    my %called = map { $_ => 1 } Endpoint::read_file($e->{trace}) =~ /^call (\w+) /mg;
    my $waiting = grep { !$called{ unpack 'H*', $_ } } names(@{ $e->{good} });
    return $waiting - $e->depth($e->{name});
}

# ---- unmovable ----------------------------------------------------------------------------
# The error queue is full, then deleted. Bad ones wait, others go on; when it takes again, they come.
sub bad { my ($e, $why, $count) = @_; return map { { id => "bad-$why-$_-$e->{name}", type => 'Hostile.Nobody', body => 'bad' } } 1 .. $count }
sub are_good_done { my ($e) = @_; return !grep { !($effects{$_} && $out{$_}) } names(@{ $e->{good} }) }

sub go_on {
    my ($why) = @_;
    my $end = time + 30;
    my @open;
    do { sleep 0.2; look_beside_errors(); @open = grep { !are_good_done($_) } @endpoints } while @open && time < $end;
    is_deeply [ map { $_->{name} } @open ], [], "unmovable: $why: the others are handled";
    sleep 4;    # and it goes on refusing
    is_deeply [ map { $_->{name} } grep { !$_->is_alive } @endpoints ], [], "unmovable: $why: the processes live";
}
sub look_beside_errors {
    %effects = map { pack('H*', $_->[0]) => $_->[1] } $endpoints[0]->sql('select id, count(*) from effects group by id');
    $out{ $_->{body} }{ $_->{id} }++ for $endpoints[0]->read('sink');
}

sub unmovable {
    begin($_) for @endpoints;
    Servers::policy($_->{error_queue}, 'max-length' => 1, overflow => 'reject-publish') for @endpoints;
    start_all();
    send_to($_, 'full', 20, 'sleep 1', bad($_, 'full', 4)) for @endpoints;
    go_on('full error queue');
    ok wait_for_all(60), 'unmovable: emptied, the error queue gets them one after the other';
    for my $e (@endpoints) {
        $e->amqp->delete($e->{error_queue});
        $e->amqp->delete_exchange($e->{error_queue});
    }
    send_to($_, 'gone', 20, 'sleep 1', bad($_, 'gone', 4)) for @endpoints;
    go_on('no error queue');
    $_->make_queue($_->{error_queue}) for @endpoints;
    ok wait_for_all(60), 'unmovable: made again, it gets them';
    judge('unmovable', $_) for @endpoints;
    is_deeply [ sort keys %cut ], [], 'unmovable: whole: nothing was too large';
    stop_all('unmovable');
}

make_all();
my %scenarios = (refused => \&refused, poison => \&poison, alarms => \&alarms, unmovable => \&unmovable);
for (@ARGV ? @ARGV : qw(refused poison alarms unmovable)) {
    my $started = time;
    $scenarios{$_}->();
    note sprintf '%s: %.1f s', $_, time - $started;
}
done_testing;
