# SPDX-License-Identifier: Apache-2.0
#
# Servers of a test's own, which it may kill, stop the work of, or set policies in.
#
#   Servers::start('pgsql', 'rabbitmq');          # side by side; then they are in the environment
#   Servers::server('crash', 'pgsql');            # a verb of tests/support/server
#   Servers::hang('rabbitmq'); Servers::go_on('rabbitmq');     # stopped as a debugger stops it: connections stay, nobody answers
#   Servers::erlang('rabbit_alarm:set_alarm(...)');    # in the broker; 30 ms
#   Servers::policy('orders', 'delivery-limit' => 5);
#   Servers::connections()->{'waybill orders (receive)'};    # [ '<0.512.0>' ]
#
# They end with the test. One that is not installed skips it.
package Servers;
use strict;
use warnings;
use Test::More;
use Endpoint;

my %running;

sub dir { my ($kind) = @_; return Endpoint::work_dir() . "/$kind" }
sub server { my ($verb, $kind) = @_; return system("$Endpoint::source/tests/support/server", $verb, $verb eq 'start' ? $kind : (), dir($kind)) >> 8 }

END { my $status = $?; go_on($_), server('stop', $_) for keys %running; $? = $status }

# Its processes: the first one, and all it started.
sub processes {
    my ($kind) = @_;
    my $data = Endpoint::read_file(dir($kind) . '/data') =~ s/\s+$//r;
    my %parent = map { Endpoint::read_file($_) =~ /^(\d+) \(.*\) \S+ (\d+)/s ? ($1 => $2) : () } glob '/proc/[0-9]*/stat';
    my @found = grep { $parent{$_} && Endpoint::read_file("/proc/$_/cmdline") =~ /\Q$data\E/ } map { Endpoint::read_file($_) =~ /^(\d+)/ ? $1 : () } map { "$data/$_" } 'db/postmaster.pid', 'pid', '1/pid';
    for my $pid (@found) { push @found, grep { $parent{$_} == $pid } keys %parent }    # grows while it is walked
    return @found;
}
sub hang { my ($kind) = @_; kill 'STOP', processes($kind) }
# Who started it as another user stops with it, and goes on with nobody.
sub starters {
    my @parents = map { Endpoint::read_file("/proc/$_/stat") =~ /^\d+ \(.*\) \S+ (\d+)/s ? $1 : () } @_;
    return grep { Endpoint::read_file("/proc/$_/comm") eq "runuser\n" } @parents;
}
sub go_on { my ($kind) = @_; my @processes = processes($kind); kill 'CONT', @processes, starters(@processes) }

sub start {
    my %pids;
    Endpoint::work_dir();    # made here, not by one of those below
    for my $kind (@_) {
        my $pid = fork // die "fork: $!\n";
        if (!$pid) { POSIX::_exit(server('start', $kind)) }
        $pids{$kind} = $pid;
    }
    for my $kind (sort keys %pids) {
        waitpid $pids{$kind}, 0;
        my $code = $? >> 8;
        $running{$kind} = 1 unless $code;
        plan skip_all => "$kind is not installed" if $code == 77 && !$ENV{CI};
        BAIL_OUT("$kind did not start") if $code;
        my $text = `$Endpoint::source/tests/support/server env '@{[ dir($kind) ]}'`;
        $ENV{$1} = $2 while $text =~ /^(\w+)='(.*)';/mg;
    }
}

# ---- RabbitMQ ------------------------------------------------------------------------
my $calls = 0;    # the broker may not have forgotten the name of the one before

sub evaluate {
    my ($text) = @_;
    my $data = Endpoint::read_file(dir('rabbitmq') . '/data') =~ s/\s+$//r;
    my %port = Endpoint::read_file("$data/ports") =~ /(dist|epmd)_port=(\d+)/g;
    my $cookie = Endpoint::read_file("$data/.erlang.cookie");
    my $answer = `echo '$text' | HOME=$data ERL_EPMD_PORT=$port{epmd} erl_call -h test$$-@{[ ++$calls ]} -address localhost:$port{dist} -c $cookie -e 2>&1`;
    die "erl_call: $answer\n" if $answer !~ /^\{ok, /;
    return $answer;
}

sub erlang {    # text that returns ok
    my $answer = evaluate(@_);
    die "erl_call: $answer\n" if $answer ne '{ok, ok}';
}

# Alarms of memory or disk are set and cleared; several can be on at once.
sub alarm_on { my ($resource) = @_; erlang("rabbit_alarm:set_alarm({{resource_limit, $resource, node()}, []}).") }
sub alarm_off { my ($resource) = @_; erlang("rabbit_alarm:clear_alarm({resource_limit, $resource, node()}).") }

# What operators set for a queue; text values are bytes. Later ones replace earlier ones.
sub policy {
    my ($queue, @settings) = @_;
    my @terms;
    while (my ($name, $value) = splice @settings, 0, 2) { push @terms, "{<<\"$name\">>, " . ($value =~ /^-?\d+$/ ? $value : "<<\"$value\">>") . '}' }
    erlang("rabbit_policy:set(<<\"$ENV{AMQP_VHOST}\">>, <<\"$queue\">>, <<\"^$queue\$\">>, [" . join(', ', @terms) . '], 1, <<"queues">>, <<"tests">>).');
}

# Those that clients have now, each by its process in the broker: one that is opened again has another. (The
# broker's log is no list: it leaves lines out when there are many.)
sub connections {    # -> { what the client calls it => [ process, ... ] }
    my $answer = evaluate(<<'END' =~ s/\n/ /gr);
lists:flatten([ io_lib:format("~p ~s;", [ Pid, Name ]) || [ { pid, Pid }, { client_properties, All } ] <-
  rabbit_networking:connection_info_all([ pid, client_properties ]), is_list(All),
  { longstr, Name } <- [ rabbit_misc:table_lookup(All, <<"connection_name">>) ] ]).
END
    my %found;
    push @{ $found{$2} }, $1 while $answer =~ /(<[\d.]+>) ([^;]+);/g;
    return \%found;
}

1;
