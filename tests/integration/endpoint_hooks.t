#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Hooks of handler modules in the real program: their order, their threads, their pairs, whatever
# ends; what a refusal ends, and what it says; what becomes of what they do wrong. And the handler of all types that no
# other takes.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;
use Session;

my $pair = 'sqlite+sqlite';
my $number = 0;
my $modules = join '", "', map { Endpoint::module("hooks_$_") } qw(one two);

sub endpoint {
    my ($settings, %o) = @_;
    return Endpoint->new($pair, name => 'hooked' . ++$number, handlers => $modules, with => $settings ? "settings = { $settings };" : '', %o);
}
sub installed { my $e = endpoint(@_); $e->install; return $e }

sub calls { my ($e, $pattern) = @_; return grep { /$pattern/ } split /\n/, Endpoint::read_file($e->{trace}) }
sub hooks { my ($e) = @_; return map { /^(\w+) (\w+)/ ? "$1 $2" : () } grep { !/ handle / } calls($e, qr/./) }
sub forget { my ($e) = @_; unlink $e->{trace} }

# Every close of its open, and in the end nothing is open.
sub in_pairs {
    my ($e, $what) = @_;
    for my $module (qw(one two)) {
        my %count;
        $count{$_}++ for map { /^$module (\w+)/ ? $1 : () } calls($e, qr/./);
        is $count{worker_close} // 0, $count{worker_open} // 0, "$what: $module: workers in pairs";
        is $count{close} // 0, $count{open} // 0, "$what: $module: the module in pairs";
    }
    is_deeply [ calls($e, qr/WRONG/) ], [], "$what: and all as promised";
}

sub check_check {
    my $e = endpoint('limit = "7";');
    my ($code, $text) = $e->run('check');
    is $code, 0, 'check: right settings' or diag $text;
    is_deeply [ hooks($e) ], [ 'one check', 'two check' ], 'check: nothing is opened';
    forget($e);
    $e = endpoint('limit = "many";');
    for my $verb (qw(check run)) {
        $e->install if $verb eq 'run';
        forget($e);
        ($code, $text) = $e->run($verb);
        is $code, 78, "$verb: a wrong setting";
        like $text, qr/\Q$e->{conf}\E:2: .*handler module "[^"]*hooks_one\.so": the setting "limit" = "many" is no number/, "$verb: says where and what";
        is_deeply [ grep { !/check/ } hooks($e) ], [], "$verb: nothing is opened";
    }
    like $text, qr/is no number \(its settings are in line 3\)$/m, 'run: and where its settings are';
    $e = endpoint('limit = 7;');
    ($code, $text) = $e->run('check');
    is $code, 78, 'settings are texts';
    like $text, qr/option "settings" = \(hidden\) is not a string/, 'and that is said';
}

sub check_refused {
    my $e = installed('refuse_open = "two";');
    my ($code, $text) = $e->run('run');
    is $code, 69, 'open: NOT_CONNECTED is an exit code of its own';
    like $text, qr/endpoint "$e->{name}": \Q$e->{conf}\E:2: handler module "[^"]*hooks_two\.so": the bank does not answer/, 'open: file, line and reason';
    like $text, qr/msg="module one opens" endpoint=$e->{name}$/m, 'open: a hook may log';
    is_deeply [ hooks($e) ], [ 'one check', 'two check', 'one open', 'two open', 'one close' ], 'open: what was opened before is closed';
    is_deeply [ calls($e, qr/WRONG/) ], [], 'open: all as promised';
}

# A neighbour that refuses keeps all from starting; what was opened is closed.
sub check_neighbour {
    my $refusing = endpoint('refuse_open = "one";');
    my $e = installed('', beside => [$refusing]);
    $e->send($e->{name}, { id => 'early', type => 'Hooks.one' });
    my ($code) = $e->run('run');
    is $code, 69, 'a neighbour refuses: nobody starts';
    is_deeply [ grep { !/check/ } hooks($e) ], [ 'one open', 'two open', 'one open', 'two close', 'one close' ], 'a neighbour refuses: what was open is closed';
    is scalar(calls($e, qr/ handle /)), 0, 'a neighbour refuses: nothing was handled';
}

# One that waits for its servers waits for what its module needs, too, and its neighbour works meanwhile.
sub check_waiting {
    my $waiting = endpoint('');
    my $until = "$waiting->{dir}/is-there";
    $waiting->configure(with => "start = \"wait\"; settings = { refuse_open = \"two\"; refuse_until = \"$until\"; };");
    my $e = installed('', beside => [$waiting]);
    $e->start;
    $e->wait_for('waiting: it waits for its module', sub {
        $e->log_lines(qr/endpoint waits for its modules to open" endpoint=$waiting->{name} reason=.*hooks_two\.so\\?": the bank does not answer/);
    });
    $e->send($e->{name}, { id => 'meanwhile', type => 'Hooks.one' });
    $e->wait_for('waiting: its neighbour works', sub { calls($e, qr/ handle $e->{name} meanwhile /) });
    $e->wait_for('waiting: it is tried again', sub { calls($e, qr/^two open $waiting->{name}$/) >= 2 });
    Endpoint::write_file($until, '');
    $waiting->send($waiting->{name}, { id => 'at-last', type => 'Hooks.two' });
    $e->wait_for('waiting: it opens, and works', sub { calls($e, qr/ handle $waiting->{name} at-last /) }, 60);
    is $e->stop, 0, 'waiting: ends well';
    is scalar(calls($e, qr/^one open $waiting->{name}$/)), scalar(calls($e, qr/^one close $waiting->{name}$/)), 'waiting: what was open is closed each time';
    is scalar(calls($e, qr/ check $waiting->{name}$/)), 2, 'waiting: its settings were checked once';
    is_deeply [ calls($e, qr/WRONG/) ], [], 'waiting: all as promised';
}

sub check_life {
    my $e = installed('limit = "7";', concurrency => 2);
    my @ids = map { "m-$_" } 1 .. 40;
    $e->start;
    $e->send($e->{name}, map { { id => $_, type => 'Hooks.' . (/[02468]$/ ? 'one' : 'two') } } @ids);
    $e->wait_for('all are handled', sub { calls($e, qr/ handle /) == @ids });
    is $e->stop, 0, 'life: ends well';
    my @hooks = hooks($e);
    is_deeply [ @hooks[ 0 .. 3 ] ], [ 'one check', 'two check', 'one open', 'two open' ], 'life: checked first and once, opened in the order of the file';
    is_deeply [ @hooks[ -2, -1 ] ], [ 'two close', 'one close' ], 'life: closed the other way round';
    is scalar(grep { $_ eq 'one worker_open' } @hooks), 2, 'life: for each worker';
    in_pairs($e, 'life');
}

# Workers give up over a table that is gone, and are started again; the modules stay open.
sub check_restart {
    my $e = installed('', concurrency => 2);
    my $table = "waybill_$e->{name}_dedup";
    $e->start;
    $e->send($e->{name}, { id => 'before', type => 'Hooks.one' });
    $e->wait_for('it works', sub { calls($e, qr/ handle \S+ before /) });
    $e->sql("alter table \"$table\" rename to away");
    $e->send($e->{name}, { id => 'meanwhile', type => 'Hooks.one' });
    $e->wait_for('workers gave up', sub { $e->log_lines(qr/gave up and is started again/) });
    $e->sql("alter table away rename to \"$table\"");
    $e->wait_for('and are started again', sub { calls($e, qr/ handle \S+ meanwhile /) }, 30);
    $e->wait_for('and are well', sub { $e->log_lines(qr/endpoint is well again/) });
    is $e->stop, 0, 'restart: ends well';
    cmp_ok scalar(calls($e, qr/^one worker_open/)), '>', 2, 'restart: workers are opened anew';
    is scalar(calls($e, qr/^one open/)), 1, 'restart: the module is not';
    in_pairs($e, 'restart');
}

sub check_worker_refuses {
    my $e = endpoint('', concurrency => 1);
    my $until = "$e->{dir}/until";
    $e->configure(with => "settings = { refuse_worker = \"two\"; refuse_until = \"$until\"; };");
    $e->install;
    $e->send($e->{name}, { id => 'waits', type => 'Hooks.two' });
    $e->start;
    $e->wait_for('a worker that is refused gives up', sub {
        $e->log_lines(qr/gave up and is started again.*hooks_two\.so\\?" does not open for a worker: not yet/);
    });
    is_deeply [ grep { /worker/ } hooks($e) ], [ 'one worker_open', 'two worker_refused', 'one worker_close' ], 'what was opened before is closed';
    Endpoint::write_file($until, '');
    $e->wait_for('it opens, and works', sub { calls($e, qr/ handle \S+ waits /) }, 30);
    $e->wait_for('and is well', sub { $e->log_lines(qr/endpoint is well again/) });
    is $e->stop, 0, 'worker: ends well';
    in_pairs($e, 'worker');
}

# ---- what hooks do wrong ---------------------------------------------------------------------

my @all_hooks = qw(check open worker_open worker_close close);

# Starts it, and stops it once its hooks were called, if it does not end before: its exit code, and its log.
sub life_of {
    my ($settings) = @_;
    my $e = installed($settings);
    my $pid = $e->start;
    my $code;
    $e->wait_for("$settings lives or ends", sub { calls($e, qr/^two worker_open/) || defined($code = $e->await_exit($pid, 0.001)) });
    $code = $e->stop unless defined $code;
    return ($code, $e);
}

sub check_leaving {
    for my $hook (@all_hooks) {
        my ($code, $e) = life_of("misdo = \"one $hook exit\";");
        is $code, 70, "exit() in $hook ends the process with 70";
        is scalar($e->log_lines(qr/level=error msg="a hook ends the process" endpoint=$e->{name} module="?\S+hooks_one\.so"? hook=$hook call=exit\(0\)$/)), 1,
            "exit() in $hook is named";
    }
    for my $hook (qw(open worker_close)) {
        my ($code, $e) = life_of("misdo = \"one $hook leave\";");
        is $code, 70, "pthread_exit() in $hook ends the process with 70";
        is scalar($e->log_lines(qr/msg="a hook ends its thread" endpoint=$e->{name} module=\S+ hook=$hook call=pthread_exit\(\)$/)), 1, "pthread_exit() in $hook is named";
    }
    for my $hook (@all_hooks) {
        my ($code, $e) = life_of("misdo = \"one $hook cancel\";");
        is $code, 0, "pthread_cancel() in $hook does nothing";
        in_pairs($e, "pthread_cancel() in $hook");
    }
    for my $deed (qw(exit leave)) {
        my $e = endpoint("misdo = \"one check $deed\";");
        my ($code, $text) = $e->run('check');
        is $code, 70, "check: $deed ends the process with 70";
        like $text, qr/msg="a hook ends (?:the process|its thread)" endpoint=$e->{name} module=\S+ hook=check call=/, "check: $deed is named";
    }
}

sub check_children {
    for my $hook (@all_hooks) {
        my ($code, $e) = life_of("misdo = \"one $hook fork\";");
        is $code, 0, "fork in $hook: the host goes on, and ends well";
        is_deeply [ calls($e, qr/ child /) ], ['one child 70'], "fork in $hook: the child ends";
        is scalar($e->log_lines(qr/msg="a child process returned from a hook: it ends here" endpoint=$e->{name} module=\S+ hook=$hook call=fork\(\)$/)), 1, "fork in $hook: and says so";
        in_pairs($e, "fork in $hook");
    }
}

sub check_thread {
    my $e = installed('change = "yes";');
    $e->start;
    $e->send($e->{name}, { id => 'm', type => 'Hooks.two' });
    $e->wait_for('thread: it handles', sub { calls($e, qr/ handle \S+ m /) });
    is $e->stop, 0, 'thread: what hooks change is put back, and SIGTERM is an orderly stop';
    in_pairs($e, 'thread');
}

sub check_late {
    for my $hook (qw(open worker_open)) {
        my $e = installed("misdo = \"one $hook keep\";");
        $e->start;
        $e->send($e->{name}, { id => 'm', type => 'Hooks.one' });
        $e->wait_for("late use of $hook: it handles", sub { calls($e, qr/ handle \S+ m /) });
        is $e->stop, 0, "late use of $hook: ends well";
        is_deeply [ calls($e, qr/ late /) ], ['one late 3 ""'], "late use of $hook: is refused";
        is scalar($e->log_lines(qr/msg="a hook's context is used after the hook has returned: refused" endpoint=$e->{name} hook=$hook call=wb_log$/)), 1, "late use of $hook: with a line";
        is scalar($e->log_lines(qr/a stranger's name/)), 0, "late use of $hook: and does nothing";
        in_pairs($e, "late use of $hook");
    }
}

sub check_others {
    my $e = installed('', retries => 0);
    my ($code, $text) = $e->run('check');
    like $text, qr/^  handlers      \* \(all other types, and none\) \(batches\) from .*hooks_two\.so$/m, 'others: check shows the handler';
    is_deeply [ map { $_->[0] } $e->query("select type from waybill_subscription where queue = @{[ $e->number($e->{name}) ]} order by type") ],
        [ 'Hooks.one', 'Hooks.two' ], 'others: nothing is subscribed to for it';
    $e->send($e->{name}, { id => 'own', type => 'Hooks.one' }, { id => 'unknown', type => 'Some.Type, Lib, Version=1.0;Some.Base, Lib' },
        { id => 'half', type => 'Some.Type;Hooks.one, Lib' }, { id => 'none', type => undef }, { id => 'star', type => '*' },
        { id => 'control', type => undef, headers => [ [ 'NServiceBus.ControlMessage', 'True' ] ] });
    $e->start;
    $e->wait_for('others: all are handled', sub { calls($e, qr/ handle /) >= 5 && !$e->depth($e->{name}) });
    is $e->stop, 0, 'others: ends well';
    my %got = map { /^(\w+) handle \S+ (\w+) (.*)$/ ? ($2 => "$1 $3") : () } calls($e, qr/ handle /);
    is_deeply \%got, { own => 'one Hooks.one', unknown => 'two Some.Type', half => 'one Hooks.one', none => 'two ', star => 'two *' },
        'others: what no handler is for, with the first type it names';
    is scalar($e->read('error')), 0, 'others: nothing is in the error queue';
    in_pairs($e, 'others');
}

# A program that runs the endpoint: on the thread that does.
sub check_library {
    my $e = installed('', concurrency => 2);
    my $p = Session->new($e, {}, $e->{name}, 'handlers');
    is_deeply [ hooks($e) ], [], 'library: nothing is opened with the endpoint';
    is $p->say('run'), 'OK', 'library: it runs';
    $e->send($e->{name}, { id => 'm', type => 'Hooks.one' });
    $e->wait_for('library: it handles', sub { calls($e, qr/ handle \S+ m /) });
    $p->tell('quit');
    is_deeply [ $p->hear, $p->hear ], [ 'OK', 'OK' ], 'library: it quits';
    is scalar(calls($e, qr/^\w+ close /)), 2, 'library: and has closed its modules by then';
    is $p->end, 0, 'library: it ends well';
    in_pairs($e, 'library');
    $e = installed('refuse_open = "two";');
    $p = Session->new($e, {}, $e->{name}, 'handlers');
    $p->tell('run');
    my ($refusal) = grep { /answer/ } $p->hear, $p->hear;
    like $refusal // '', qr/hooks_two\.so": the bank does not answer/, 'library: a refusal is the reason for which it does not run';
    $p->end;
    is scalar(calls($e, qr/^one close /)), 1, 'library: and what was opened is closed';
    is_deeply [ calls($e, qr/WRONG/) ], [], 'library: all as promised';
    $e = installed('');
    $e->configure(with => 'settings = { limit = "many"; };');
    $p = Session->new($e, {}, $e->{name}, 'handlers');
    $p->tell($_) for qw(run quit);
    ($refusal) = grep { /limit/ } $p->hear, $p->hear, $p->hear;
    like $refusal // '', qr/\Q$e->{conf}\E:2: .*the setting "limit" = "many" is no number/, 'library: settings are checked, too';
    $p->end;
    is_deeply [ grep { !/check/ } hooks($e) ], [], 'library: before anything is opened';
}

check_check();
check_refused();
check_neighbour();
check_waiting();
check_life();
check_restart();
check_worker_refuses();
check_leaving();
check_children();
check_thread();
check_late();
check_others();
check_library();
done_testing;
