#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A primary of PostgreSQL dies under load, and its synchronous standby is promoted after a while:
# until then the endpoint waits and says why, then it goes on, and every message has one effect. Once
# with both hosts in the configuration, once with one address that the standby takes over.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Time::HiRes qw(sleep time);
use Endpoint;

package Endpoint::Cluster;
our @ISA = ('Endpoint::SqlitePgsql');
sub persistence_text {
    my ($self) = @_;
    my @ports = @{ $self->{ports} };
    my $hosts = join ',', ('127.0.0.1') x @ports;
    return qq(persistence = { plugin = "pgsql"; conninfo = "host=$hosts port=@{[ join ',', @ports ]} )
        . qq(user=$ENV{PGUSER} dbname=$ENV{PGDATABASE}"; connect_timeout = "2s"; };);
}

package main;
my %running;

sub server { return system("$Endpoint::source/tests/support/server", @_) >> 8 }
END { my $status = $?; server('stop', $_) for values %running; $? = $status }

# Its port; the environment is that of the server.
sub start_server {
    my ($kind, $name) = @_;
    my $dir = Endpoint::work_dir() . "/$name";
    my $code = server('start', $kind, $dir);
    plan skip_all => 'PostgreSQL is not installed' if $code == 77 && !$ENV{CI};
    BAIL_OUT("$kind did not start") if $code;
    $running{$name} = $dir;
    $ENV{$1} = $2 while `$Endpoint::source/tests/support/server env '$dir'` =~ /^(\w+)='(.*)';/mg;
    return $ENV{PGPORT};
}

sub crash { my ($name) = @_; server('crash', $running{$name}); server('stop', delete $running{$name}) }

my $e;
my $round = 0;

# A standby of the server in the environment, which waits for it at each commit.
sub add_standby {
    my ($name) = @_;
    my $primary = $ENV{PGPORT};
    my $port    = start_server('pgstandby', $name);
    local $ENV{PGPORT} = $primary;
    $e->sql($_) for "alter system set synchronous_standby_names = '*'", 'select pg_reload_conf()';
    $e->wait_for("$name is synchronous", sub { ($e->sql("select count(*) from pg_stat_replication where sync_state = 'sync'"))[0][0] == 1 });
    return $port;
}

# It waits for nobody: what it was told while it was a copy.
sub promote {
    my ($port) = @_;
    $ENV{PGPORT} = $port;
    $e->sql('select pg_promote()');
    $e->sql($_) for 'alter system reset synchronous_standby_names', 'select pg_reload_conf()';
}

# 600 messages, and in the middle of them $fail_over; the standby then takes no writes for two seconds.
sub under_load {
    my ($what, $pattern, $fail_over, $port) = @_;
    my $lines = () = $e->log_lines(qr/./);
    my @ids = map { "r$round-$_" } 1 .. 600;
    $round++;
    $e->send('orders', map { { id => $_, do => "sleep 2\nsend sink T.Out $_" } } @ids);
    my $before = $e->effects;
    $e->wait_for("$what: busy", sub { $e->effects > $before + 100 });
    $fail_over->();
    $ENV{PGPORT} = $port;
    my $new = sub { my @all = $e->log_lines(qr/./); return @all[ $lines .. $#all ] };
    $e->wait_for("$what: a line says what is awaited", sub { scalar grep { /the database (?:is away|cannot be used).*$pattern/ } $new->() }, 40);
    my $handled = $e->effects;
    sleep 2;
    is $e->effects, $handled, "$what: a standby is not written to";
    cmp_ok $handled, '<', $before + 600, "$what: there is something left to do";
    ok $e->is_alive, "$what: the endpoint lives";
    promote($port);
    my $promoted = time;
    $e->wait_for("$what: every message has its effect", sub { !$e->not_once(@ids) }, 60);
    diag sprintf '%s: %d of 600 at the crash; all %.1f s after the promotion', $what, $handled - $before, time - $promoted;
    $e->wait_for("$what: all is sent", sub { $e->pending == 0 && $e->depth('orders') == 0 }, 40);
    my %out;
    $out{ $_->{body} }{ $_->{id} } = 1 for $e->read('sink');
    is_deeply [ grep { keys %{ $out{$_} || {} } != 1 } @ids ], [], "$what: its message is out, under one id";
    is_deeply [ $e->not_once(@ids) ], [], "$what: and one effect only";
    is $e->depth('error'), 0, "$what: nothing is in the error queue";
    cmp_ok scalar(grep { !/housekeeping|swept/ } $new->()), '<=', 16, "$what: few lines in the log" or diag join "\n", $new->();
}

my $primary = start_server('pgsql', 'first');
$e = Endpoint::Cluster->new('sqlite+pgsql', concurrency => 2, ports => [$primary], 
    outbox => 'enabled = true; cleanup_interval = "2s"; sweep_after = "1s";');    # marks may be lost with the server
my $standby = add_standby('second');
$ENV{PGPORT} = $primary;
$e->configure(ports => [ $primary, $standby ]);
$e->install;
$e->start;
under_load('two hosts', qr/read-only/, sub { crash('first') }, $standby);

# One address: what is behind it is a standby for a while, which takes connections and refuses to write.
$e->stop;
$e->configure(ports => [$standby]);
add_standby('third');
$ENV{PGPORT} = $standby;
$e->start;
under_load('one address', qr/./, sub {
    my $data = Endpoint::read_file("$running{third}/data") =~ s/\s+$//r;
    crash('second');
    open my $conf, '>>', "$data/db/postgresql.conf" or die "$data: $!\n";
    print $conf "port = $standby\n";
    close $conf;
    open my $environment, '>>', "$running{third}/env" or die "$running{third}: $!\n";
    print $environment "PGPORT='$standby'; export PGPORT\n";
    close $environment;
    server('restart', $running{third});
}, $standby);
is $e->stop, 0, 'it stops cleanly';
done_testing;
