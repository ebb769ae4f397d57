#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The table of waybill-handler(7), row by row: what a handler does wrong, what the host then does, and that the messages
# beside it are handled, once, and what they send is sent, once. A row that lives is handled, one that fails is in the
# error queue, one that kills ends the process: the first time, or each time, until it is in the error queue, too.
#
#   perl endpoint_misdeeds.t kills exit     # only these parts, and in them only rows that are called so
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(time sleep);
use Endpoint;
use Session;

my $has_mysql = Endpoint::has_mysql();
Endpoint::under_servers('pgsql', $has_mysql ? 'mariadb' : ());
my @parts = qw(manual living scope pgsql mysql kills spin descriptors copies log library);
my %only = map { $_ => 1 } @ARGV;
my %wanted = %only;    # rows
delete @wanted{@parts};
my $deadly = qr/its handler seems to end the process/;
my $ends   = 'a handler ends the process';
my $ended  = qr/ended the transaction/;

# ---- among others ----------------------------------------------------------------------------

# The message, and neighbours on both sides of it, in the queue at once. Returns the neighbours' ids.
sub among {
    my ($e, $id, $do, %more) = @_;
    my @ids = map { "$id-beside-$_" } 1 .. 12;
    my @messages = map { { id => $_, do => "send sink T.Out $_" } } @ids;
    my @sends = delete $more{quiet} ? () : "send sink T.Out $id";
    splice @messages, 7, 0, { id => $id, do => [ @$do, @sends ], %more };
    $e->send('orders', @messages);
    return @ids;
}

# These are handled, once, and what each sent is there, once. On MySQL marks ride in the next batch's transaction, and go with
# a session that is given up: then the sweeper sends the same once more.
sub settle {
    my ($e, $what, @ids) = @_;
    $e->wait_for("$what: all are handled, and acknowledged", sub { !$e->not_once(@ids) && $e->depth('orders') == 0 && !$e->pending });
    my (%count, %is_own) = ();
    @is_own{@ids} = ();
    $count{ $_->{body} }++ for grep { $e->{pair} !~ /mysql/ || exists $is_own{ $_->{body} } } $e->read('sink');
    is_deeply [ sort keys %count ], [ sort @ids ], "$e->{pair}: $what: each has sent its message";
    is_deeply [ grep { $count{$_} > 1 } keys %count ], [], "$e->{pair}: $what: once" if $e->{pair} !~ /mysql/;
    is_deeply [ $e->not_once(@ids) ], [], "$e->{pair}: $what: and was handled once";
}

sub traces { my ($e, $pattern) = @_; return grep { /$pattern/ } split /\n/, Endpoint::read_file($e->{trace}) }

# What the row says of trace and log.
sub look_for {
    my ($e, $what, $row) = @_;
    is_deeply [ traces($e, $_) ? () : $_ ], [], "$e->{pair}: $what: the handler saw what it had to" for @{ $row->{trace} || [] };
    is scalar(traces($e, $_)), 0, "$e->{pair}: $what: and nothing else" for @{ $row->{no_trace} || [] };
    is_deeply [ $e->log_lines($_) ? () : $_ ], [], "$e->{pair}: $what: the log says so" for @{ $row->{log} || [] };
    is scalar($e->log_lines($_)), 0, "$e->{pair}: $what: and nothing in another's name" for @{ $row->{no_log} || [] };
}

sub lives {
    my ($e, $id, $row) = @_;
    settle($e, $id, among($e, $id, $row->{do}), $id);
    look_for($e, $id, $row);
}

sub fails {
    my ($e, $id, $row) = @_;
    my @ids = among($e, $id, $row->{do}, quiet => $row->{quiet});
    my ($got) = $e->collect('error', 1, "$id is in the error queue");
    is $got->{id}, $id, "$e->{pair}: $id: alone";
    like $got->{header}{'NServiceBus.ExceptionInfo.Message'}, $row->{fails}, "$e->{pair}: $id: with the reason";
    settle($e, $id, @ids);
    is $e->effects($id), 0, "$e->{pair}: $id: without effect" unless $row->{commits};
    look_for($e, $id, $row);
}

# ---- in one process, one after the other -------------------------------------------------------

my @refused = ('3 3 3 3 3 3 3 0 ""');
my @living = (
    sleeps    => { do => ['sleep 300'] },
    nothing   => { do => ['leave 77'], fails => qr/returned 77/ },
    negative  => { do => ['leave -1'], fails => qr/returned -1/ },
    doubtful  => { do => ['leave 4'], fails => qr/returned 4/ },
    fatal     => { do => ['leave 6'], fails => qr/returned 6/ },
    'fail-ok' => { do => ['misdo fail-ok'] },
    late      => { do => ['misdo keep'] },
    'use-late' => { do => ['misdo use-kept'], trace => [qr/^late $refused[0]$/], no_log => [qr/a line in a stranger's name/],
        log => [qr/used after the handler has returned: refused" endpoint=orders type=Test.Do call=wb_log$/] },
    foreign   => { do => ['misdo foreign'], trace => [qr/^foreign $refused[0]$/], no_log => [qr/a line in a stranger's name/],
        log => [qr/used by another thread than its own: refused" endpoint=orders type=Test.Do call=wb_log$/] },
    fork      => { do => ['misdo fork'], trace => [ qr/^child 3 0$/, qr/^fork 70$/ ],
        log => [ qr/used in a child process: refused" endpoint=orders type=Test.Do call=\S+$/, qr/a child process returned from a handler: it ends here" .*message_id=fork / ] },
    'fork-exit' => { do => ['misdo fork-exit 5'], trace => [qr/^exits 5$/] },
    vfork     => { do => ['misdo vfork 6'], trace => [qr/^vfork 6$/] },
    'fork-exec' => {},
    cancel    => { do => ['misdo pthread_cancel'] },
    jump      => { do => ['misdo longjmp'] },
    errno     => { do => ['misdo errno'] },
    memory    => { do => ['misdo memory'], fails => qr/^out of memory$/ },
    leak      => { do => ['misdo leak'] },
    stdout    => { do => ['misdo stdout'] },
    unblock   => { do => ['misdo unblock'] },
    mask      => { do => ['misdo tell-mask'], trace => [qr/^mask 1$/], no_trace => [qr/^mask 0/] },
    locale    => { do => ['misdo locale'], trace => [qr/^locale \S+ 1$/] },
    uselocale => { do => ['misdo tell-locale'], trace => [qr/^uselocale 1$/], no_trace => [qr/^uselocale 0/] },
    chdir     => { do => ['misdo chdir'] },
    umask     => { do => ['misdo umask'] },
    signals   => { do => ['misdo signals'] },
    streams   => { do => ['misdo close-streams'] },
    thread    => { do => ['misdo thread'], no_log => [qr/a line in a stranger's name/] },
);

my %misuse = (
    # on one file, where the connection is the transport's: what is refused is the acknowledgement, or the store's
    scope => {
        'breaks-queue' => { do => [ map { "ignore create trigger breaks_$_ before delete on waybill_message_$_ begin delete from nowhere; end" } 1 .. 3 ], quiet => 1,
            fails => qr/no such table: main.nowhere/ },
        'drops-delayed' => { do => [ 'sql drop table waybill_orders_delayed', 'delay 1000', 'send sink T.Out never' ], quiet => 1, fails => qr/no such table/,
            no_log => [qr/database session refuses.*waybill_orders_delayed/] },
    },
    # on two files
    apart => { 'drops-table' => { do => ['sql drop table waybill_orders_pending'], fails => qr/no such table/ } },
    sqlite => {
        statement => { do => ['misdo statement'] },
        'leaves-behind' => { do => ['misdo leave-behind'] },
        'leaves-forbidden' => { do => ['misdo leave-behind authorizer'] },
        'leaves-ignored' => { do => ['misdo leave-behind ignorer'] },
        'leaves-read-only' => { do => ['sql pragma query_only=1'] },
        'leaves-exclusive' => { do => ['sql pragma locking_mode=exclusive'] },
        'leaves-full' => { do => ['sql pragma max_page_count=1'] },
        'leaves-in-front' => { do => [ map { "ignore create temp trigger in_front_$_ before insert on $_ begin select raise(ignore); end" }
            qw(waybill_orders_dedup waybill_orders_pending waybill_message_1 waybill_message_2 waybill_message_3 waybill_claim) ] },
        commits => { do => ['sql commit'], fails => qr/transaction/ },
        'rolls-back' => { do => ['sql rollback'], fails => $ended },
        'commits-and-begins' => { do => [ 'ignore commit', 'sql begin' ], fails => $ended },
        'rolls-back-and-begins' => { do => ['sql rollback; begin immediate'], fails => $ended },
        closes => { do => ['misdo close'], fails => qr/closed the connection/ },
        'closes-all' => { do => ['misdo close all'], fails => qr/closed the connection/ },
    },
    pgsql => {
        unread => { do => ['unread select 1'], fails => qr/unread/ },
        unawaited => { do => ['misdo send-unread select 1'], fails => qr/unread/ },
        'unawaited-commit' => { do => ['misdo send-unread commit'], fails => qr/unread|$ended/, commits => 1 },
        'unawaited-rollback' => { do => ['misdo send-unread rollback'], fails => qr/unread|$ended/ },
        commits => { do => ['sql commit'], fails => $ended, commits => 1 },
        'rolls-back' => { do => ['sql rollback'], fails => $ended },
        'commits-and-begins' => { do => ['sql commit; begin'], fails => $ended, commits => 1 },
        'rolls-back-and-begins' => { do => ['sql rollback; begin'], fails => $ended },
        closes => { do => ['misdo close'], fails => qr/closed the connection/ },
        resets => { do => ['misdo reset'], fails => qr/reset/ },
        'commits-and-closes' => { do => [ 'sql commit', 'misdo close' ], fails => $ended, commits => 1 },
        'fork-exec' => {},
    },
    mysql => {
        unread => { do => ['unread select 1'], fails => qr/unread/ },
        unawaited => { do => ['misdo send-unread select 1'], fails => qr/unread/ },
        'unawaited-commit' => { do => ['misdo send-unread commit'], fails => qr/unread|$ended/, commits => 1 },
        'unawaited-rollback' => { do => ['misdo send-unread rollback'], fails => qr/unread|$ended/ },
        commits => { do => ['sql commit'], fails => $ended, commits => 1 },
        'rolls-back' => { do => ['sql rollback'], fails => $ended },
        'commits-and-begins' => { do => [ 'sql commit', 'again begin' ], fails => $ended, commits => 1 },
        'rolls-back-and-begins' => { do => [ 'sql rollback', 'again begin' ], fails => $ended },
        closes => { do => ['misdo close'], fails => qr/closed the connection/ },
        resets => { do => ['misdo reset'], fails => qr/reset/ },
        'locks-tables' => { do => ['sql lock tables effects write'], fails => $ended, commits => 1 },
        'commits-and-closes' => { do => [ 'sql commit', 'misdo close' ], fails => $ended, commits => 1 },
        'fork-exec' => {},
    },
);

# What a program that a handler starts inherits is the standard three and what the test gave them.
sub check_inherited {
    my ($e) = @_;
    my $file = "$e->{dir}/inherited";
    lives($e, 'fork-exec', { do => ["misdo fork-exec $file"], trace => [qr/^exec 0$/] });
    is_deeply [ grep { /socket:|\.db/ } split /\n/, Endpoint::read_file($file) ], [], "$e->{pair}: fork-exec: a program that is started gets none of the host's descriptors";
}

sub check_living {
    my ($pair, $settings, @rows) = @_;
    my $e = Endpoint->new($pair, retries => 1, batch_max => 20, batch_time => '300ms',
        outbox => 'enabled = true; cleanup_interval = "1s"; sweep_after = "1s";', %$settings);
    $e->install;
    $e->start;
    while (my ($id, $row) = splice @rows, 0, 2) {
        next if %wanted && !$wanted{$id};
        $id eq 'fork-exec' ? check_inherited($e) : $row->{fails} ? fails($e, $id, $row) : lives($e, $id, $row);
    }
    ok $e->is_alive, "$e->{pair}: the process lives";
    is $e->stop, 0, "$e->{pair}: and stops cleanly, with a handler's thread still running";
    return $e;
}

sub check_table {
    my $e = check_living('sqlite+sqlite', {}, @living, %{ $misuse{sqlite} }, %{ $misuse{apart} });
    return if %wanted;
    ok scalar($e->log_lines(qr/a descriptor was closed that is the program's: it is \/dev\/null now" descriptor="standard $_"/)), "streams: $_ was closed, which is told"
        for qw(output error);
    ok scalar($e->log_lines(qr/stops: finishing what is in flight/)), 'streams: the log goes on';
    is scalar($e->log_lines(qr/\Q$ends\E|a handler ends its thread/)), 0, 'no child was taken for the host';
    cmp_ok scalar($e->log_lines(qr/type=Test.Do call=wb_log/)), '<', 10, 'thread: a thread that goes on asking does not flood the log';
}

# ---- the process dies -----------------------------------------------------------------------------

my %kills = (
    segv    => { do => ['misdo segv'], code => 'signal 11', each_time => 1 },
    abort   => { do => ['misdo abort'], code => 'signal 6' },
    throw   => { do => [], type => 'Test.Throw', code => 'signal 6' },
    recurse => { do => ['misdo recurse'], code => 'signal 11' },
    alarm   => { do => ['misdo alarm'], code => 'signal 14' },
    jumps   => { do => [ 'misdo leave-place', 'misdo longjmp-outside' ], code => 'signal 6' },
    exit    => { do => ['misdo exit 0'], code => 70, each_time => 1, call => 'exit(0)' },
    _exit   => { do => ['misdo _exit 0'], code => 70, call => '_exit(0)' },
    _Exit   => { do => ['misdo _Exit 3'], code => 70, call => '_Exit(3)' },
    quick   => { do => ['misdo quick_exit 0'], code => 70, call => 'quick_exit(0)' },
    errx    => { do => ['misdo errx 0'], code => 70, call => 'exit()' },
    beside  => { do => ['misdo thread-exit 0'], code => 70, line => qr/level=error msg="a library or a module's own thread ends the process" call=exit\(0\)$/ },
    leave   => { do => ['misdo pthread_exit'], code => 70, each_time => 1, call => 'pthread_exit()' },
);

# The exit code; nothing when a message is in the error queue instead.
sub next_end {
    my ($e, $pid) = @_;
    my ($end, $code) = (time + 60);
    until (defined($code = $e->await_exit($pid, 0.05)) || $e->depth('error')) {
        die "neither ended nor failed in a minute\n" if time > $end;
    }
    $e->{processes} = [] if defined $code;
    return $code;
}

sub check_named {
    my ($e, $id, $row, $deaths) = @_;
    return unless $row->{call};
    my @lines = $e->log_lines(qr/a handler ends (?:the process|its thread)" endpoint=orders message_id=\Q$id\E type=Test.Do call=\Q$row->{call}\E$/);
    is scalar(@lines), $deaths, "$e->{pair}: $id: each time a line names the message";
    is scalar(traces($e, qr/^atexit/)), 0, "$e->{pair}: $id: nothing was called that is for the end of the process";
}

sub dies_once {
    my ($e, $id, $row) = @_;
    my @do = $row->{type} ? () : ("once $e->{dir}/$id", @{ $row->{do} });
    my @ids = among($e, $id, \@do, $row->{type} ? (type => $row->{type}) : ());
    is next_end($e, $e->start), $row->{code}, "$e->{pair}: $id: the process ends";
    check_named($e, $id, $row, 1);
    is scalar($e->log_lines($row->{line})), 1, "$e->{pair}: $id: a line says how" if $row->{line};
    $e->start;
    # what follows `once` is not done the second time; and the one that throws has no script
    $e->wait_for("$id: all are handled", sub { !$e->not_once(@ids, $row->{type} ? () : $id) && $e->depth('orders') == 0 && !$e->pending });
    is_deeply [ sort map { $_->{body} } $e->read('sink') ], [ sort @ids ], "$e->{pair}: $id: its neighbours have sent theirs, once";
    is $e->depth('error'), 0, "$e->{pair}: $id: one death is not enough for the error queue";
    is $e->stop, 0, "$e->{pair}: $id: stops cleanly";
}

sub dies_each_time {
    my ($e, $id, $row) = @_;
    my @ids = among($e, $id, $row->{do});
    my ($deaths, $code) = (0);
    while (defined($code = next_end($e, $e->start))) {
        is $code, $row->{code}, "$e->{pair}: $id: the process ends";
        last if ++$deaths > 12;
    }
    cmp_ok $deaths, '>', 1, "$e->{pair}: $id: $deaths times";
    my ($got) = $e->collect('error', 1, "$id is in the error queue");
    is $got->{id}, $id, "$e->{pair}: $id: alone";
    like $got->{header}{'NServiceBus.ExceptionInfo.Message'}, $deadly, "$e->{pair}: $id: as its deaths";
    check_named($e, $id, $row, $deaths);
    settle($e, $id, @ids);
    is $e->stop, 0, "$e->{pair}: $id: stops cleanly";
}

# The module in C++, or nothing where no compiler is.
sub throwing_module {
    my ($dir) = @_;
    my $module = "$dir/throws.so";
    my @compiler = split ' ', $ENV{CXX} || 'c++';
    return $module if system("@compiler -std=c++17 -shared -fPIC -I'$ENV{top_srcdir}/include' '$ENV{top_srcdir}/tests/integration/endpoint_throws.cc' -o '$module' >'$dir/compiler' 2>&1") == 0;
    return;
}

sub check_kills {
    my $e = Endpoint->new('sqlite+sqlite', retries => 1, batch_max => 20, batch_time => '300ms');
    my $throws = throwing_module($e->{dir});
    $ENV{WB_THROWN} = "$e->{dir}/thrown";
    $e->configure(handlers => Endpoint::module('script') . ($throws ? qq(", "$throws) : ''));
    $e->install;
    for my $id (sort keys %kills) {
        next if %wanted && !$wanted{$id};
        SKIP: {
            skip 'no C++ compiler', 1 if $id eq 'throw' && !$throws;
            $kills{$id}{each_time} ? dies_each_time($e, $id, $kills{$id}) : dies_once($e, $id, $kills{$id});
        }
    }
}

# ---- it does not come back ---------------------------------------------------------------------------

# Others go on (in SQLite its transaction would have the file); a line says that it takes too long; a stop ends in time, as if by a
# kill, and the message comes again.
sub check_spin {
    my $e = Endpoint->new('sqlite+pgsql', retries => 1, concurrency => 2, batch_max => 1, shutdown_timeout => '500ms', with => 'handler_time_limit = "1s";');
    $e->install;
    my $gate = "$e->{dir}/gate";
    my @ids = among($e, 'spins', ["misdo spin $gate"]);
    $e->start;
    $e->wait_for('spins: its neighbours are handled meanwhile', sub { !$e->not_once(@ids) });
    $e->wait_for('spins: a line says so', sub { $e->log_lines(qr/a handler takes longer than handler_time_limit.*type=Test.Do/) });
    is $e->stop, 75, 'spins: a stop ends the process all the same, and says that something was left';
    Endpoint::write_file($gate, '');
    $e->start;
    $e->wait_for('spins: all are handled', sub { !$e->not_once(@ids, 'spins') && $e->depth('orders') == 0 && !$e->pending });
    my %sent = map { $_->{body} => 1 } $e->read('sink');    # twice where another worker was killed as it had just sent
    is_deeply [ sort keys %sent ], [ sort @ids, 'spins' ], 'spins: each has sent its message';
    is $e->stop, 0, 'spins: stops cleanly';
}

# No descriptors are left: what is open goes on.
sub check_descriptors {
    my $e = Endpoint->new('sqlite+sqlite', retries => 1, batch_max => 20, batch_time => '300ms');
    $e->install;
    my @ids = among($e, 'descriptors', ['misdo descriptors']);
    $e->start;
    $e->wait_for('descriptors: all are handled', sub { !$e->not_once(@ids, 'descriptors') && $e->depth('orders') == 0 });
    is $e->stop, 0, 'descriptors: stops cleanly';
    $e->start;
    settle($e, 'descriptors', @ids, 'descriptors');
    is $e->stop, 0, 'descriptors: stops cleanly again';
}

# The log's file is opened anew, and nothing is lost: not even the line of the handler that closed it.
sub check_log {
    my $e = Endpoint->new('sqlite+sqlite', files => 'log-', top => qq(log_file = "run.log";\n));
    my $own = "$e->{dir}/run.log";
    my $lines = sub { my ($pattern) = @_; return scalar grep { /$pattern/ } split /\n/, Endpoint::read_file($own) };
    $e->install;
    $e->start;
    $e->wait_for('log: it starts', sub { -e $own && $lines->(qr/endpoint starts/) });
    $e->send('orders', { id => 'closes-log', do => [ 'misdo close-log', 'fail unrecoverable no' ] });
    $e->wait_for('log: what a handler closed is opened anew', sub { $lines->(qr/message moved to the error queue.* message_id=closes-log /) == 1 });
    $e->wait_for('log: with a line', sub { $lines->(qr/level=error msg="the log file was closed by a handler: it was opened anew"$/) == 1 });
    is $e->stop, 0, 'log: stops cleanly';
}

# Whoever reads the database beside the host, and closes it last as far as locks can tell, must leave its log and what is in it.
sub check_copies {
    my $e = Endpoint->new('sqlite+sqlite', files => 'copies-', batch_max => 20, batch_time => '300ms');
    $e->install;
    $e->start;
    my @ids = among($e, 'copies', [ map { "misdo copy $_" } $e->queue_file, $e->store_file ]);
    settle($e, 'copies', @ids, 'copies');
    my @later = among($e, 'copies-closes', ['misdo close']);
    my ($got) = $e->collect('error', 1, 'copies: a connection is opened anew');
    is $got->{id}, 'copies-closes', 'copies: a connection is opened anew';
    settle($e, 'copies: later', @later);
    $e->stop('KILL');
    is_deeply [ $e->not_once(@ids, 'copies', @later) ], [], 'copies: nothing is lost by a kill';
    $e->start;
    settle($e, 'copies: after a kill', among($e, 'copies-then', []), 'copies-then');
    is $e->stop, 0, 'copies: stops cleanly';
}

# ---- in somebody's program --------------------------------------------------------------------------

# libwaybill says what happened, and leaves it to the program.
sub check_library {
    my $e = Endpoint->new('sqlite+sqlite', name => 'hosted', retries => 1, files => 'hosted-');
    $e->install;
    my %says = (exit => 'a handler ends the process', thread => 'a handler ends its thread', starts => 'endpoint gave up and is started again after a pause');
    my $log_of = sub { my ($p, $text) = @_; return scalar grep { /\Q$text\E/ } split /\n/, Endpoint::read_file($p->{log}) };

    my $p = Session->new($e, {}, 'hosted', 'handlers');
    is $p->say('run'), 'OK', 'library: a program runs its handlers';
    $e->send('hosted', { id => 'leaves', do => [ "once $e->{dir}/leaves", 'misdo pthread_exit' ] });
    $e->wait_for('library: a thread that a handler ended is replaced', sub { !$e->not_once('leaves') });
    is $log_of->($p, $says{thread}), 1, 'library: a line says so';
    is $log_of->($p, $says{starts}), 1, 'library: and that its worker is started again';
    $e->send('hosted', { id => 'exits', do => [ "once $e->{dir}/exits", 'misdo exit 3' ] });
    is $p->hear, undef, 'library: exit() ends the program';
    is $p->end, 3, 'library: with its own code';
    is $log_of->($p, $says{exit}), 1, 'library: a line names the message';
    is scalar(traces($e, qr/^atexit/)), 1, 'library: what the program registered is called';
    $e->start;
    $e->wait_for('library: it is handled when it comes again', sub { !$e->not_once('exits') });
    is $e->stop, 0, 'library: stops cleanly';
}

# ---- the table ----------------------------------------------------------------------------------------

# Each entry of the manual names its rows, and each row has an entry.
sub check_manual {
    my %named = map { $_ => 1 } map { /^\.\\" rows: (.*)/ ? split(' ', $1) : () } split /\n/, Endpoint::read_file("$ENV{top_srcdir}/doc/waybill-handler.7");
    my %living = @living;
    my %rows = map { $_ => 1 } keys %living, keys %kills, (map { keys %$_ } values %misuse), qw(spins descriptors copies);
    is_deeply [ sort keys %named ], [ sort keys %rows ], 'waybill-handler(7) has the rows that are tested here';
    cmp_ok scalar(keys %rows), '>=', 30, 'thirty and more';
}

my %parts = (
    manual => \&check_manual, living => \&check_table, kills => \&check_kills, spin => \&check_spin, descriptors => \&check_descriptors, copies => \&check_copies, log => \&check_log, library => \&check_library,
    scope => sub { check_living('sqlite+sqlite', { mode => 'transaction_scope', outbox => '', files => 'scope-', with => 'delayed_delivery = { by = "store"; };' }, %{ $misuse{sqlite} }, %{ $misuse{scope} }) },
    pgsql => sub { check_living('sqlite+pgsql', {}, %{ $misuse{pgsql} }) },
    mysql => sub { check_living('sqlite+mysql', {}, %{ $misuse{mysql} }) if $has_mysql },
);
for my $part (@parts) {
    $parts{$part}->() if !@ARGV || $only{$part};
}
done_testing;
