#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# An endpoint that keeps failed messages, where two things meet: an answer and a failure, many large messages and a server that takes so
# much at once, a message and an endpoint that is too small to keep it, an export and the file that is there.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;
use Failures qw(keeper failures json count ids table failed_in);

my @pairs = ('sqlite+sqlite', 'amqp+pgsql', Endpoint::has_mysql() ? 'sqlite+mysql' : ());
Endpoint::under_servers(qw(pgsql rabbitmq), Endpoint::has_mysql() ? 'mariadb' : ());
my $n  = 'NServiceBus';
my $sc = 'ServiceControl.Retry';

sub status { my ($e, $id) = @_; return join ' ', map { $_->{status} } @{ json($e, 'list', '--id', $id, '--status', 'any') } }

# Whoever handled it says so, as endpoints do: with the same id each time.
sub answer {
    my ($e, $key, $time) = @_;
    $e->send('error', { id => "answer to $key", type => 'T.T', body => '', headers => [ [ "$sc.Successful" => "$time:000000 Z" ], [ "$sc.UniqueMessageId" => $key ], [ "$n.ControlMessageHeader" => 'True' ] ] });
    $e->wait_for('the answer is taken', sub { $e->depth('error') == 0 });
}

# What left twice may fail and be handled: handled is handled, unless it fails behind that.
sub check_answers {
    my ($e) = @_;
    $e->send('error', failed_in('answers', '2026-01-01 00:00:05', 'twice'));
    $e->wait_for('it is kept', sub { count($e, '--id', 'twice') == 1 });
    my $key = json($e, 'list', '--id', 'twice')->[0]{failure};
    answer($e, $key, '2026-01-01 00:00:04');
    is status($e, 'twice'), 'failed', "$e->{pair}: what was handled before it failed again waits";
    answer($e, $key, '2026-01-01 00:00:06');
    $e->wait_for("$e->{pair}: what failed before it was handled is resolved", sub { status($e, 'twice') eq 'resolved' });
    $e->send('error', failed_in('answers', '2026-01-01 00:00:07', 'twice'));
    $e->wait_for('it fails again', sub { status($e, 'twice') eq 'failed' });
    is((failures($e, 'retry', '--id', 'twice'))[0], 0, "$e->{pair}: it is retried again");
    $e->collect('sink', 1, 'and sent');
    answer($e, $key, '2026-01-01 00:00:08');
    $e->wait_for("$e->{pair}: the answer of this time is no duplicate of the last one's", sub { status($e, 'twice') eq 'resolved' });
}

# More bytes than a server takes at once, in fewer messages than a transaction may have. (MariaDB: 16 MiB as it comes.)
sub check_large {
    my ($e) = @_;
    my %body = map { ("large$_" => chr(64 + $_) x (1 << 20)) } 1 .. 20;
    $e->send('error', failed_in('large', '2026-01-01 00:00:01', $_, $body{$_})) for sort keys %body;
    $e->send('error', map { failed_in('large', '2026-01-01 00:00:01', "small$_") } 1 .. 20);
    $e->wait_for('many large ones are kept', sub { count($e, '--of', 'large') == 40 }, 60);
    my ($code, $text) = failures($e, 'retry', '--of', 'large');
    is_deeply [ $code, scalar(() = $text =~ /  retried$/mg) ], [ 0, 40 ], "$e->{pair}: all are retried" or diag $text;
    my @got = $e->collect('sink', 40, 'all are sent');
    is_deeply [ sort map { $_->{id} } @got ], [ sort keys %body, map { "small$_" } 1 .. 20 ], "$e->{pair}: each once";
    is scalar(grep { $_->{body} ne ($body{ $_->{id} } // $_->{id}) } @got), 0, "$e->{pair}: as they came";
    is count($e, '--of', 'large', '--status', 'retrying'), 40, "$e->{pair}: and are marked";
}

# One that is too large for this endpoint, too, stays retryable.
sub check_not_kept {
    my ($e) = @_;
    $e->send('error', failed_in('shop', '2026-01-01 00:00:01', 'huge', 'x' x (3 << 20)));
    my ($got) = $e->collect('kept.error', 1, 'what cannot be kept goes on');
    my %header = %{ $got->{header} };
    is_deeply [ @header{ map { "$n.$_" } qw(FailedQ ProcessingEndpoint ExceptionInfo.Message) } ], [ 'sink', 'shop', 'no' ], "$e->{pair}: with where and why it failed";
    like $header{'Waybill.NotKept'}, qr/^the body has 3145728 bytes, over body_max = 2097152/, "$e->{pair}: and why it was not kept";
    is length $got->{body}, 3 << 20, "$e->{pair}: whole";
}

# Nobody but its owner reads an export, whatever was there before; and what was there stays until the new one is whole.
sub check_files {
    my ($e) = @_;
    my ($file, @large) = ("$e->{dir}/files.jsonl", '--of', 'large', '--status', 'retrying');
    Endpoint::write_file($file, "the only one\n");
    chmod 0644, $file;
    is((failures($e, 'export', @large, '--file', $file))[0], 0, "$e->{pair}: exported over another");
    is sprintf('%o', (stat $file)[2] & 0777), '600', "$e->{pair}: for its owner alone";
    Endpoint::write_file($file, "the only one\n");
    {
        local $e->{file_size} = 2 * 10 * 1024;    # half of it
        is((failures($e, 'export', @large, '--file', $file))[0], 74, "$e->{pair}: more than the disk takes");
    }
    is Endpoint::read_file($file), "the only one\n", "$e->{pair}: what was there is there";
    is_deeply [ glob "$file.*" ], [], "$e->{pair}: with nothing beside it";
    is((failures($e, 'export', @large, '--file', '/dev/null'))[0], 0, "$e->{pair}: a device is written to");
    ok -c '/dev/null', "$e->{pair}: and stays one";
}

for my $pair (@pairs) {
    my $e = Endpoint->new($pair);
    $e->configure(batch_max => 1, beside => [ keeper($e, 'body_max = "2MiB";') ]);
    $e->install;
    $e->start;
    check_answers($e);
    check_large($e);
    check_not_kept($e);
    check_files($e);
    is $e->stop, 0, "$pair: stops cleanly";
}
done_testing;
