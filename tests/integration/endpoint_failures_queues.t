#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# An endpoint that keeps what comes to several error queues: what failed is there once, whichever it came to and whoever was
# killed; one that is full starves no other; and what is retried goes back once to the queue that it failed in.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use JSON::PP ();
use Test::More;
use Peer;

my $has_kafka = -e "$Endpoint::build/tests/hostile/kafka-peer" && Endpoint::has_mysql();
my @pairs = @ARGV ? @ARGV : ('sqlite+sqlite', 'amqp+pgsql', 'amqp+sqlite', Endpoint::has_mysql() ? 'sqlite+mysql' : (), $has_kafka ? 'kafka+mysql' : ());
Endpoint::under_servers(Peer::servers_of(@pairs));
my $n = 'NServiceBus';

# It alone lives here: nobody handles anything.
{
    no warnings 'redefine';
    *Endpoint::group = sub {
        my ($e) = @_;
        my $from = join ', ', map { qq("$_") } @{ $e->{from} };
        return qq(  { name = "$e->{name}"; failures = { from = [$from]; };\n    concurrency = 2; batch_max = 10;\n)
            . qq(    outbox = { enabled = true; sweep_after = "1s"; cleanup_interval = "1s"; };\n    @{[ $e->transport_text ]}\n    @{[ $e->persistence_text ]} });
    };
}

sub json {
    my ($e, @arguments) = @_;
    my ($code, $text) = $e->run('failures', @arguments, '--json');
    (my $json = $text) =~ s/^(?:waybill: |\d{4}-).*\n//mg;
    die "failures @arguments: $code: $text" if $json eq '';
    return JSON::PP->new->decode($json);
}

# What waits for the endpoint in one of its queues; on Kafka for its group, which is called as the first one.
sub waiting {
    my ($e, $queue) = @_;
    return $e->depth($queue) if $e->{pair} !~ /kafka/;
    my (undef, $line) = $e->tool('', 'crash/sink-kafka', 'depth', $e->{from}[0], $queue);
    return (split /\t/, $line)[1];
}
sub all_waiting { my ($e) = @_; my $sum = 0; $sum += waiting($e, $_) for @{ $e->{from} }; return $sum }

# Ids with a letter of their error queue; they failed in the queue of that letter.
sub failed {
    my ($e, $letter, $number) = @_;
    return { id => "$letter$number", key => 'k', type => "T.$letter", body => "body $letter$number \0\xff", headers => [ [ mine => "kept $letter$number" ], [ "$n.FailedQ" => $e->{"sink_$letter"} ],
        [ "$n.ProcessingEndpoint" => "Of.$letter" ], [ "$n.TimeOfFailure" => sprintf('2026-01-01 00:%02d:%02d:000000 Z', $number / 60 % 60, $number % 60) ], [ "$n.ExceptionInfo.Message" => 'no' ] ] };
}
sub put {
    my ($e, $letter, @numbers) = @_;
    $e->inject($e->{"queue_$letter"}, map { failed($e, $letter, $_) } @numbers);
    return map { "$letter$_" } @numbers;
}
sub kept { my ($e, @which) = @_; return sort map { $_->{id} } @{ json($e, 'list', @which) } }

# Both are looked for, and whoever misses one is told which.
sub check_missing {
    my ($e) = @_;
    $e->configure(from => [ $e->{queue_a} ]);
    $e->install;
    $e->configure(from => [ $e->{queue_a}, $e->{queue_b} ]);
    my ($code, $text) = $e->run('check');
    is $code, 0, "$e->{pair}: two queues" or diag $text;
    like $text, qr/^  keeps failures from queues \Q$e->{queue_a}, $e->{queue_b}\E, for 30d/m, "$e->{pair}: are printed";
    (undef, $text) = $e->run('check', '--json');
    is_deeply(JSON::PP->new->decode($text)->{endpoints}[0]{failures_from}, [ $e->{queue_a}, $e->{queue_b} ], "$e->{pair}: for programs, too");
    ($code, $text) = $e->run('run');
    is $code, 72, "$e->{pair}: one of them is missing";
    like $text, qr/"\Q$e->{queue_b}\E"[^\n]*run `?waybill install/, "$e->{pair}: and named, with the remedy";
    (undef, $text) = $e->run('doctor', '--json');
    $text =~ s/^(?:waybill: |\d{4}-).*\n//mg;
    ok scalar(grep { $_->{name} eq 'does-not-start' && $_->{text} =~ /"\Q$e->{queue_b}\E"/ } @{ JSON::PP->new->decode($text)->{findings} }), "$e->{pair}: by the doctor, too" or diag $text;
    $e->install;
    $e->make_queue($e->{"sink_$_"}) for qw(a b);
}

# The host is killed while it keeps them, at a step between the commit and the acknowledgement and at any time.
sub check_kept {
    my ($e) = @_;
    my @all = (put($e, 'a', 1 .. 60), put($e, 'b', 1 .. 60));
    {
        local $e->{program} = 'waybill-test';
        for my $point (qw(failure_kept:7 after_commit:2 before_acknowledge:1)) {
            local $ENV{WAYBILL_CRASH} = $point;
            my $pid = $e->start;
            is $e->await_exit($pid) // 'lives', 'signal 9', "$e->{pair}: killed at $point";
            $e->{processes} = [];
        }
    }
    $e->start;
    push @all, put($e, 'b', 61 .. 90);
    $e->stop('KILL');
    push @all, put($e, 'a', 61 .. 90);
    $e->start;
    $e->wait_for('all of both queues are kept', sub { my @kept = kept($e); @kept >= @all && all_waiting($e) == 0 }, 60);
    is_deeply [ kept($e) ], [ sort @all ], "$e->{pair}: each once";
    is_deeply [ map { $_->{count} } @{ json($e, 'group') } ], [ 90, 90 ], "$e->{pair}: those of each queue" or diag explain json($e, 'group');
    is scalar(grep { $_->{attempts} != 1 } @{ json($e, 'list') }), 0, "$e->{pair}: in one attempt";
    my ($one) = @{ json($e, 'show', '--id', 'b7') };
    is_deeply [ @$one{qw(queue endpoint)}, $one->{headers}{mine} ], [ $e->{sink_b}, 'Of.b', 'kept b7' ], "$e->{pair}: with the queue that it failed in";
}

# What is in the first one waits for hours; what comes to the other does not.
sub check_fair {
    my ($e) = @_;
    is $e->stop, 0, "$e->{pair}: stops cleanly";
    put($e, 'a', 1001 .. 2000);
    put($e, 'b', 1001);
    $e->start;
    $e->wait_for('all are kept', sub { all_waiting($e) == 0 && $e->pending == 0 }, 60);
    my ($other) = @{ json($e, 'list', '--id', 'b1001') };
    my $later = grep { $_->{changed_at} gt $other->{changed_at} } @{ json($e, 'list', '--of', 'Of.a') };
    cmp_ok $later, '>', 500, "$e->{pair}: the one of the other queue did not wait for all of the first" if $e->{pair} !~ /kafka/;    # which reads ahead by partitions
}

# Back to where it failed: the command is killed once, nothing of it twice without that.
sub check_retried {
    my ($e) = @_;
    {
        local $e->{program} = 'waybill-test';
        local $ENV{WAYBILL_CRASH} = 'retry_after_commit:1';
        is(($e->run('failures', 'retry', '--of', 'Of.b'))[0], 'signal 9', "$e->{pair}: a retry is killed behind its commit");
    }
    for my $letter (qw(a b)) {
        my ($code, $text) = $e->run('failures', 'retry', '--of', "Of.$letter");
        like $code // 'does not end', qr/^(?:0|66)$/, "$e->{pair}: retried" or diag $text;
    }
    $e->wait_for('nothing is pending', sub { $e->pending == 0 }, 60);
    my %wanted = (a => [ map { "a$_" } 1 .. 90, 1001 .. 2000 ], b => [ map { "b$_" } 1 .. 90, 1001 ]);
    for my $letter (qw(a b)) {
        my @got = $e->read($e->{"sink_$letter"});
        is_deeply [ sort map { $_->{id} } @got ], [ sort @{ $wanted{$letter} } ], "$e->{pair}: those of $letter are back in their queue, each once";
        is scalar(grep { $_->{body} ne "body $_->{id} \0\xff" || $_->{header}{mine} ne "kept $_->{id}" || defined $_->{header}{"$n.FailedQ"} } @got), 0, "$e->{pair}: as they were";
    }
    is_deeply [ kept($e) ], [], "$e->{pair}: none is left";
    is all_waiting($e), 0, "$e->{pair}: none came back to an error queue";
}

sub check_removal {
    my ($e) = @_;
    put($e, 'b', 4000);
    my ($code, $text) = $e->run('uninstall', '--force');    # nobody said what became of those that were retried
    is $code, 0, "$e->{pair}: uninstalled" or diag $text;
    is waiting($e, $e->{queue_b}), 1, "$e->{pair}: an error queue stays, with what is in it" if $e->{pair} !~ /kafka/;
    $e->install;
    $e->start;
    $e->wait_for('what waited there is kept after all', sub { join(' ', kept($e)) eq 'b4000' });
    is $e->stop, 0, "$e->{pair}: stops cleanly";
}

for my $pair (@pairs) {
    my $of = $pair =~ s/\+/-/r;
    my %name = map { $_ => ($pair =~ /^kafka/ ? 'Peer::Kafka' : 'Peer')->address("$_-$of") } qw(error legacy sink-a sink-b);
    my $e = Peer->new($pair, name => 'kept' . $of =~ s{-}{}r, queue_a => $name{error}, queue_b => $name{legacy}, sink_a => $name{'sink-a'}, sink_b => $name{'sink-b'}, from => [ $name{error} ]);
    check_missing($e);
    check_kept($e);
    check_fair($e);
    check_retried($e);
    is $e->stop, 0, "$pair: stops cleanly";
    check_removal($e);
}

# What is refused, before anything is asked.
my $e = Peer->new('sqlite+sqlite', name => 'refused', from => []);
for ([ [] => qr/"failures.from" names 0 queues: .* write from = \["error"\]/ ],
    [ [ 'error', 'error' ] => qr/refused\.conf:2: .*"failures.from" names queue "error" twice/ ],
    [ [ 'error', 'queue:error' ] => qr/names queue "queue:error" twice/ ],
    [ [ map { "q$_" } 1 .. 17 ] => qr/names 17 queues: an endpoint keeps the failures of 1 to 16 error queues/ ],
    [ [ 'error', 'refused.error' ] => qr/"error_queue" = "refused.error" is the endpoint's own queue/ ]) {
    $e->configure(from => $_->[0]);
    my ($code, $text) = $e->run('check');
    is $code, 78, "refused: @{ $_->[0] }";
    like $text, $_->[1], 'with the reason';
}
done_testing;
