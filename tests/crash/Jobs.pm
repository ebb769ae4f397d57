# SPDX-License-Identifier: Apache-2.0
#
# Runs trials side by side and reports: TAP, a table, and for each failure the command that
# runs it again.
#
# A trial is a hash with pair, point, shape and nth, whose names joined by "/" identify it,
# and what the script's own function needs. `wanted => 'loss'` turns the verdict round: a
# built-in bug is on, and the trial passes when that invariant is seen violated.
package Jobs;
use strict;
use warnings;
use Fcntl qw(LOCK_EX);
use File::Path ();
use Time::HiRes qw(sleep time);
use Crash;
use Oracle;

sub key { return join '/', map { $_[0]{$_} } qw(pair point shape nth) }

# Kinds of servers that pairs need. A trial's `servers` may name another kind for one.
my %servers = (amqp => 'rabbitmq', kafka => 'kafka', pgsql => 'pgsql', pgbouncer => 'pgbouncer', mysql => 'mariadb');

sub kinds {
    my %kinds;
    for my $spec (@_) {
        my %own = (%servers, %{ $spec->{servers} || {} });
        $kinds{$_} = 1 for grep { $_ } @own{ $spec->{pair} =~ /^(\w+)\+(\w+)/ };
    }
    return sort keys %kinds;
}

# Some pairs alone: CRASH_PAIR="sqlite+sqlite amqp+sqlite".
sub is_wanted {
    my ($pair) = @_;
    my %chosen = map { $_ => 1 } split ' ', $ENV{CRASH_PAIR} || $pair;
    return $chosen{$pair} && Pair::is_built($pair);
}

# Run all trials whose plugins were built, print the report, exit. `private => 1`: each trial
# with servers that nobody else uses, in CRASH_SERVERS, because it kills them.
sub main {
    my ($specs, $run, %options) = @_;
    $specs = [ grep { is_wanted($_->{pair}) } @$specs ];
    if (my ($only) = "@ARGV" =~ /--only (\S+)/) {
        $specs = [ grep { key($_) eq $only } @$specs ];
        die "no such trial: $only\n" unless @$specs;
        $ENV{CRASH_KEEP} = 1;
    }
    if (defined $ENV{CRASH_SLOT}) {
        while (my $spec = $specs->[ take_number("$ENV{CRASH_RESULTS}.taken") ]) {
            start_servers(kinds($spec)) if $options{private};
            work($spec, $run, $ENV{CRASH_SLOT});
            stop_servers();
        }
        exit 0;
    }
    my $dir = $ENV{CRASH_DIR} || "$Crash::build/tests/crash/work";
    File::Path::make_path($dir);
    $ENV{CRASH_RESULTS} = "$dir/results.$$";
    unlink $ENV{CRASH_RESULTS}, "$ENV{CRASH_RESULTS}.taken";
    my $slots = $ENV{CRASH_JOBS} || 2;
    $slots = @$specs if @$specs < $slots;
    $slots = 1 if $options{private};
    my @kinds = $options{private} ? () : kinds(@$specs);
    my @wrapper = @kinds ? ("$Crash::source/tests/support/with-servers", @kinds, '--') : ();
    my @pids = map { start_slot($_, @wrapper) } 0 .. $slots - 1;
    waitpid $_, 0 for @pids;
    my $results = read_results($ENV{CRASH_RESULTS});
    unlink $ENV{CRASH_RESULTS}, "$ENV{CRASH_RESULTS}.taken";
    exit report($specs, $results);
}

# A job has a database and a virtual host of its own, which its trials use in turn.
sub start_slot {
    my ($slot, @wrapper) = @_;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    $ENV{CRASH_SLOT} = $slot;
    open STDOUT, '>&', \*STDERR;
    exec @wrapper, $^X, $0, @ARGV or die "exec: $!\n";
}

# Whoever is free takes the next trial: some take ten times as long as others.
sub take_number {
    my ($name) = @_;
    open my $file, '+>>', $name or die "$name: $!\n";
    flock $file, LOCK_EX or die "$name: $!\n";
    my $number = -s $file;
    syswrite $file, '.';
    return $number;
}

my @running;
sub server { return system("$Crash::source/tests/support/server", @_) == 0 }
sub stop_servers { server('stop', pop @running) while @running }
END { my $status = $?; stop_servers(); $? = $status }

sub start_servers {
    my $dir = $ENV{CRASH_SERVERS} = ($ENV{CRASH_DIR} || "$Crash::build/tests/crash/work") . "/servers.$$";
    File::Path::make_path($dir);
    $ENV{KAFKA_PREFIX} = 'private';
    for my $kind (@_) {
        server('start', $kind, "$dir/$kind") or die "no $kind\n";
        push @running, "$dir/$kind";
        $ENV{$1} = $2 while `$Crash::source/tests/support/server env '$dir/$kind'` =~ /^(\w+)='(.*)';/mg;
    }
}

sub work {
    my ($spec, $run, $slot) = @_;
    my $started = time;
    $spec->{space} = "space$slot";
    my $trial = eval { $run->($spec) };
    my @violations = $trial ? eval { Oracle::judge($trial) } : ();
    push @violations, [ 'trouble', $@ =~ s/\s+/ /gr ] if $@;
    if ($trial && $spec->{wanted}) {
        @violations = grep { $_->[0] eq $spec->{wanted} } @violations;
        @violations = @violations ? () : ([ 'trouble', "the bug $spec->{bug} was not caught: no $spec->{wanted}" ]);
    }
    save($spec, time - $started, $trial, @violations);
    # whoever comes next has to run, and to be told from the one that left something behind
    eval { $trial->end if $trial; 1 } or print STDERR '# ', key($spec), ": $@";
    File::Path::remove_tree($trial->{dir}) if $trial && !@violations && !$ENV{CRASH_KEEP};
}

sub save {
    my ($spec, $seconds, $trial, @violations) = @_;
    open my $file, '>>', $ENV{CRASH_RESULTS} or die "$ENV{CRASH_RESULTS}: $!\n";
    my @notes = $trial ? @{ $trial->{notes} || [] } : ();
    syswrite $file, join("\t", key($spec), sprintf('%.1f', $seconds), $trial ? Oracle::redundant($trial) : 0,
        $trial ? $trial->{dir} : '-', scalar(@notes), @notes, map { "$_->[0]: $_->[1]" } @violations) . "\n";
}

sub read_results {
    my ($name) = @_;
    my %results;
    open my $file, '<', $name or return \%results;
    while (<$file>) {
        chomp;
        my ($key, $seconds, $redundant, $dir, $notes, @texts) = split /\t/;
        $results{$key} = { seconds => $seconds, redundant => $redundant, dir => $dir,
            notes => [ splice @texts, 0, $notes ], violations => \@texts };
    }
    return \%results;
}

# ---- the report --------------------------------------------------------------------
sub report {
    my ($specs, $results) = @_;
    my (%group, @order, $failed);
    for my $spec (@$specs) {
        my $name = "$spec->{pair} $spec->{point}";
        push @order, $name unless $group{$name};
        push @{ $group{$name} }, $spec;
    }
    print '1..', scalar @order, "\n";
    for my $i (0 .. $#order) {
        my @bad = grep { my $r = $results->{ key($_) }; !$r || @{ $r->{violations} } } @{ $group{ $order[$i] } };
        print @bad ? 'not ok ' : 'ok ', $i + 1, " - $order[$i]", @bad ? why($results->{ key($bad[0]) }) : '', "\n";
        complain($_, $results->{ key($_) }) for @bad;
        $failed++ if @bad;
    }
    print_notes($specs, $results);
    print_table($specs, $results);
    return $failed ? 1 : 0;
}

# The first reason in short, beside the name: often a list of names is all that is left to read.
sub why {
    my ($result) = @_;
    my $text = $result ? $result->{violations}[0] : 'it did not report';
    return ': ' . substr($text =~ s/[^\w .,:()-]+/ /gr, 0, 120);
}

sub last_lines {
    my ($name, $count) = @_;
    open my $file, '<', $name or return;
    chomp(my @lines = <$file>);
    return @lines > $count ? @lines[ -$count .. -1 ] : @lines;
}

sub complain {
    my ($spec, $result) = @_;
    my @texts = $result ? @{ $result->{violations} } : ('it did not report: see above');
    print '# ', key($spec), ":\n";
    print "#   $_\n" for @texts[ 0 .. ($#texts < 5 ? $#texts : 5) ];
    print "#   and ", $#texts - 5, " more\n" if $#texts > 5;
    print map { '#   log:    ' . substr($_, 0, 200) . "\n" } last_lines("$result->{dir}/endpoint.log", 6) if $result;
    print "#   files:  $result->{dir}\n" if $result;
    print "#   replay: top_srcdir=$Crash::source top_builddir=$Crash::build $^X $0 @ARGV --only '", key($spec), "'\n";
}

sub print_notes {
    my ($specs, $results) = @_;
    for my $spec (@$specs) {
        my $result = $results->{ key($spec) } or next;
        print '# ', key($spec), ": $_\n" for @{ $result->{notes} };
    }
}

# Rows are crash points, columns pairs, cells "runs/violations"; "-" is a point the pair
# does not pass.
sub print_table {
    my ($specs, $results) = @_;
    my (%cell, %seen, @pairs, @points, %total);
    for my $spec (@$specs) {
        my ($pair, $point) = @$spec{qw(pair point)};
        push @pairs,  $pair  unless $seen{"pair $pair"}++;
        push @points, $point unless $seen{"point $point"}++;
        my $result = $results->{ key($spec) };
        for my $count ($cell{$point}{$pair} ||= {}, \%total) {
            $count->{runs}++;
            $count->{violations} += $result ? @{ $result->{violations} } : 1;
            $count->{redundant}  += $result ? $result->{redundant}       : 0;
        }
    }
    my $columns = join '', map { sprintf ' %21s', $_ } @pairs;
    printf "# %-23s%s\n", 'runs/violations', $columns;
    for my $point (@points) {
        printf "# %-23s%s\n", $point, join '', map {
            sprintf ' %21s', $cell{$point}{$_} ? "$cell{$point}{$_}{runs}/$cell{$point}{$_}{violations}" : '-' } @pairs;
    }
    printf "# total: %d runs, %d violations; %d outgoing messages sent again, same id and bytes\n",
        map { $total{$_} || 0 } qw(runs violations redundant);
    my ($slowest) = sort { $results->{$b}{seconds} <=> $results->{$a}{seconds} } keys %$results;
    print "# slowest: $slowest, $results->{$slowest}{seconds} s\n" if $slowest;
}

1;
