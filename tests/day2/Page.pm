# SPDX-License-Identifier: Apache-2.0
#
# A page of doc/day2 is followed as a reader would: its files are written, its commands run in their order, on
# servers of the test's own, and what it shows of their output has to be in it.
#
#   Page::follow('retention', 'pgsql', 'rabbitmq');      # kinds of with-servers
#   Page::follow('managed-pgsql', sub { ... });          # starts a server of its own, and returns more environment
#
# README.md has what the fences and comments of a page mean. Everything happens in a directory that stands for
# /etc/waybill of the machine "node1"; ssh, scp, systemctl, journalctl and rabbitmqctl are those in bin/.
package Page;
use strict;
use warnings;
use Cwd ();
use File::Path ();
use POSIX ();
use Time::HiRes qw(sleep time);
use Test::More;
use Endpoint;

my $limit = 40;    # seconds until what a page waits for has come

# ---- reading -----------------------------------------------------------------------------

# [ kind, argument, text, line ]: kinds are sh, conf, c, sql (files), output, run, until.
sub steps_of {
    my ($text) = @_;
    my (@steps, $open, $line);
    for (split /\n/, $text) {
        $line++;
        if ($open) {
            if ($open->[0] eq 'comment' ? s/\s*-->\s*$// : /^```\s*$/) {
                $open->[2] .= "$_\n" if $open->[0] eq 'comment';
                push @steps, comment($open);
                undef $open;
            }
            else { $open->[2] .= "$_\n" }
        }
        elsif (/^```(\w+)\s*(.*?)\s*$/) { $open = [ $1, $2, '', $line ] }
        elsif (/^<!-- (run|until): (.*?)\s*-->\s*$/) { push @steps, [ $1, '', "$2\n", $line ] }
        elsif (/^<!-- (run|until):\s*(.*)$/) { $open = [ 'comment', $1, "$2\n", $line ] }
        elsif (/^```/) { die "line $line: a fence without a word: nobody would try what it says\n" }
    }
    die "a fence or comment does not end\n" if $open;
    return @steps;
}

sub comment {
    my ($step) = @_;
    return $step->[0] eq 'comment' ? [ $step->[1], '', $step->[2], $step->[3] ] : $step;
}

# ---- the machine ---------------------------------------------------------------------------

# What stands in a page for the addresses of a reader's servers.
sub addressed {
    my ($text) = @_;
    my %private = (
        'host = "mq.example.com"; user = "orders"; password = "env:AMQP_PASSWORD";' =>
            sub { qq(host = "$ENV{AMQP_HOST}"; port = $ENV{AMQP_PORT}; vhost = "$ENV{AMQP_VHOST}"; user = "$ENV{AMQP_USER}"; password = "env:AMQP_PASSWORD";) },
        'host = "db.example.com"; user = "orders"; password = "env:MYSQL_PASSWORD"; database = "orders";' =>
            sub { qq(host = "$ENV{MYSQL_HOST}"; port = $ENV{MYSQL_PORT}; user = "$ENV{MYSQL_USER}"; password = "env:MYSQL_PASSWORD"; database = "$ENV{MYSQL_DATABASE}";) },
        'host = "localhost"; password = "env:AMQP_PASSWORD";' =>
            sub { qq(host = "$ENV{AMQP_HOST}"; port = $ENV{AMQP_PORT}; vhost = "$ENV{AMQP_VHOST}"; user = "$ENV{AMQP_USER}"; password = "env:AMQP_PASSWORD";) },
        'host=localhost dbname=shop' => sub { "host=$ENV{PGHOST} port=$ENV{PGPORT} dbname=shop" },
        'host = "mq.example.com";' => sub { qq(host = "localhost"; port = $ENV{TLS_PORT};) },
        'host = "db.example.com";' => sub { qq(host = "$ENV{TLS_HOST}"; port = $ENV{TLS_PORT};) },
        'host=db.example.com' => sub { "host=$ENV{TLS_HOST} port=$ENV{TLS_PORT}" },
        '127.0.0.1:9464' => sub { "127.0.0.1:$ENV{HTTP_PORT}" },
        'brokers = "k1.example.com:9093,k2.example.com:9093";' => sub { qq(brokers = "localhost:$ENV{TLS_PORT}";) },
    );
    for my $public (sort { length $b <=> length $a || $a cmp $b } keys %private) {
        $text =~ s/\Q$public\E/$private{$public}->()/ge;
    }
    return $text;
}

# libpq's service "orders", and pkg-config's package of what was built.
sub prepare {
    my ($dir) = @_;
    File::Path::make_path(map { "$dir/$_" } qw(node1 node2 bin pc));
    symlink "$Endpoint::build/waybill", "$dir/bin/waybill" or die "$dir/bin/waybill: $!\n";
    Endpoint::write_file("$dir/pc/waybill.pc", "Name: waybill\nDescription: as built\nVersion: 0\nCflags: -I$Endpoint::source/include\n");
    $ENV{PKG_CONFIG_PATH} = "$dir/pc";
    chomp($ENV{HTTP_PORT} = `"$Endpoint::source/tests/support/free-port" "$dir"`);
    $ENV{WAYBILL_PLUGIN_DIR} = "$Endpoint::build/plugins";
    $ENV{PATH} = "$dir/bin:$Endpoint::source/tests/day2/bin:$ENV{PATH}";
    $ENV{examples} = "$Endpoint::source/contrib/examples";
    @ENV{qw(MACHINES BUILD)} = ($dir, $Endpoint::build);
    $ENV{PGSERVICEFILE} = "$dir/services";
    Endpoint::write_file("$dir/services", join '', map { "[$_]\nhost=$ENV{PGHOST}\nport=$ENV{PGPORT}\nuser=$ENV{PGUSER}\ndbname="
        . ($_ eq 'orders' ? $ENV{PGDATABASE} : "$ENV{PGDATABASE}_$_") . "\n" } qw(orders new)) if $ENV{PGPORT};
    $ENV{MYSQL_PWD} = $ENV{MYSQL_PASSWORD} if $ENV{MYSQL_PASSWORD};
    chdir "$dir/node1" or die "$dir/node1: $!\n";
}

# What systemctl started, by its process: those that are still ours.
END {
    my $status = $?;
    if (my $dir = $ENV{MACHINES}) {
        chdir '/';
        for my $file (glob "$dir/node*/*.pid") {
            my ($pid) = Endpoint::read_file($file) =~ /^(\d+)/ or next;
            kill 'KILL', $pid if Endpoint::read_file("/proc/$pid/cmdline") =~ /^waybill\0run\0/;
        }
    }
    $? = $status;
}

# ---- following -------------------------------------------------------------------------------

my $output = '';

sub run {
    my ($text) = @_;
    my $file = "$ENV{MACHINES}/output";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $file or POSIX::_exit(99);
        open STDERR, '>&', \*STDOUT;
        exec 'bash', '-euo', 'pipefail', '-c', $text or POSIX::_exit(99);
    }
    waitpid $pid, 0;
    $output = Endpoint::read_file($file);
    return $? & 127 ? 128 + ($? & 127) : $? >> 8;
}

# Each line of what is shown is in the output, in that order; "..." stands for anything.
sub shows {
    my ($shown) = @_;
    my @lines = split /\n/, $output;
    for my $wanted (grep { /\S/ } split /\n/, $shown) {
        next if $wanted eq '...';
        my $pattern = join '.*', map { quotemeta } split /\.\.\./, $wanted =~ s/\s+$//r, -1;
        shift @lines while @lines && $lines[0] !~ /^$pattern\s*$/;
        return "no line \"$wanted\"" if !@lines;
        shift @lines;
    }
    return '';
}

sub take {
    my ($step) = @_;
    my ($kind, $argument, $text, $line) = @$step;
    my $name = "line $line: " . ($text =~ /^\s*(.{0,100})/ ? $1 : '');
    if ($kind eq 'output') {
        my $problem = shows($text);
        return ok($problem eq '', "line $line: the output is as shown") || diag "$problem\nthe output was:\n$output";
    }
    if ($kind eq 'until') {
        my $end = time + $limit;
        my $code;
        sleep 0.1 while ($code = run($text)) && time < $end;
        return ok(!$code, "$name: comes true") || diag $output;
    }
    if ($kind eq 'sh' || $kind eq 'run') {
        my $code = run(addressed($text));
        my $expected = $argument =~ /^exit=(\d+)$/ ? $1 : 0;
        return is($code, $expected, $name) || diag $output;
    }
    die "line $line: a \"$kind\" without a file\n" if $argument eq '';
    Endpoint::write_file($argument, addressed($text));
    return 1;
}

sub follow {
    my ($name, @kinds) = @_;
    my $server = ref $kinds[0] ? shift @kinds : undef;
    Endpoint::under_servers(@kinds);
    umask 022;
    my %more = $server ? $server->() : ();    # which may change %ENV by itself
    @ENV{ keys %more } = values %more;
    prepare(Cwd::abs_path(Endpoint::work_dir()));
    my @steps = steps_of(Endpoint::read_file("$Endpoint::source/doc/day2/$name.md"));
    ok scalar(grep { $_->[0] eq 'sh' } @steps), "the page \"$name\" has commands";
    for (@steps) {
        next if take($_);
        diag "$_:\n" . join '', map { "  $_\n" } grep { defined } (split /\n/, Endpoint::read_file($_))[ -12 .. -1 ] for glob "$ENV{MACHINES}/node*/*.log";
        last;    # what follows rests on it
    }
    done_testing();
}

1;
