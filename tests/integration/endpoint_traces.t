#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Traces through the observer otlp: what follows from what over two endpoints, failed attempts, a crash between dispatch and mark,
# sampling; a receiver that is away, refuses, asks for patience or hangs, which no message waits for; TLS and a token.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use JSON::PP;
use Time::HiRes qw(sleep time);
use Endpoint;

plan skip_all => 'built without the otlp plugin' if !$ENV{CI} && !-e "$Endpoint::build/plugins/observer/otlp/otlp.la";

my $dir = Endpoint::work_dir();
my ($port, $secure) = split ' ', `"$Endpoint::source/tests/support/free-port" "$dir" 2`;
my $receiver;

# ---- the receiver ------------------------------------------------------------------------
sub receive {
    my (@more) = @_;
    unlink "$dir/ready";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        exec 'python3', "$Endpoint::source/tests/support/otlp-receiver", @more ? $secure : $port, $dir, @more or POSIX::_exit(99);
    }
    my $end = time + 20;
    sleep 0.05 until -e "$dir/ready" || time > $end;
    return $receiver = $pid;
}
sub silence { kill 'KILL', $receiver if $receiver; waitpid $receiver, 0 if $receiver; undef $receiver }
END { my $status = $?; silence(); $? = $status }
sub behave { my ($how) = @_; Endpoint::write_file("$dir/behave.new", $how); rename "$dir/behave.new", "$dir/behave" }
sub lines_of { my ($name) = @_; return split /\n/, Endpoint::read_file("$dir/$name") }
sub forget { unlink map { "$dir/$_" } qw(spans requests faults) }

sub spans { return map { decode_json($_) } lines_of('spans') }
sub span { my ($name, $id) = @_; return grep { $_->{name} eq $name && $_->{attributes}{'messaging.message.id'} eq $id } spans() }
sub is_sampled { my ($message) = @_; return ($message->{header}{traceparent} // '') =~ /-01$/ }

# ---- the endpoints -----------------------------------------------------------------------
sub observer { my ($more) = @_; return qq(observer = { plugin = "otlp"; url = "http://127.0.0.1:$port/v1/traces"; interval = "50ms"; @{[ $more // '' ]} };) }
my $billing = Endpoint->new('sqlite+sqlite', name => 'billing', with => observer(q(service_name = "Invoices";)));
my $e = Endpoint->new('sqlite+sqlite', program => 'waybill-test', with => observer(), beside => [$billing]);
my ($code, $text) = $e->run('check');
is $code, 0, 'it is right' or diag $text;
like $text, qr/^  observer +otlp \d/m, 'and check names it';
$e->install;
receive();
$e->start;

# ---- a trace over two endpoints ----------------------------------------------------------------
$e->send('orders', { id => 'first', do => [ 'header do send sink T.Out hello', 'send billing Test.Do x' ] });
my ($out) = $e->collect('sink', 1);
$e->wait_for('four spans', sub { spans() == 4 });
is_deeply [ lines_of('faults') ], [], 'nothing is against the protocol';
my ($root) = span('process orders', 'first');
my ($second) = grep { $_->{name} eq 'process billing' } spans();
my ($first_send) = grep { $_->{name} eq 'send billing' } spans();
my ($last_send) = grep { $_->{name} eq 'send sink' } spans();
is $root->{parentSpanId}, undef, 'the first begins it';
is_deeply [ map { $_->{traceId} } $first_send, $second, $last_send ], [ ($root->{traceId}) x 3 ], 'all are of one trace';
is $first_send->{parentSpanId}, $root->{spanId}, 'what it sends is below it';
is $second->{parentSpanId}, $first_send->{spanId}, 'who handles that is below the sending';
is $last_send->{parentSpanId}, $second->{spanId}, 'and so on';
is $out->{header}{traceparent}, "00-$root->{traceId}-$last_send->{spanId}-01", 'the message says so itself';
is_deeply [ map { $_->{kind} } $root, $first_send ], [ 5, 4 ], 'consumer and producer';
is_deeply [ map { $_->{resource}{'service.name'} } $root, $second ], [ 'orders', 'Invoices' ], 'each has its service';
is_deeply [ @{ $first_send->{attributes} }{qw(messaging.destination.name waybill.message.type messaging.operation.type messaging.message.body.size)} ],
    [ 'billing', 'Test.Do', 'send', '1' ], 'and attributes';
cmp_ok $second->{startTimeUnixNano}, '>=', $root->{startTimeUnixNano}, 'one after the other';

# ---- a trace that a peer began ----------------------------------------------------------------------
my ($trace, $span) = ('0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331');
forget();
$e->send('orders', { id => 'peer', headers => [ [ traceparent => "00-$trace-$span-01" ], [ tracestate => 'x=1' ], [ baggage => 'b=2' ] ], do => 'send sink T.Out peer' });
($out) = $e->collect('sink', 1);
$e->wait_for('two spans', sub { spans() == 2 });
is_deeply [ map { @{$_}{qw(traceId parentSpanId)} } span('process orders', 'peer') ], [ $trace, $span ], 'its trace goes on';
like $out->{header}{traceparent}, qr/^00-$trace-(?!$span)[0-9a-f]{16}-01$/, 'in what is sent';
is_deeply [ @{ $out->{header} }{qw(tracestate baggage)} ], [ 'x=1', 'b=2' ], 'with what else it says';
forget();
$e->send('orders', { id => 'unsampled', headers => [ [ traceparent => "00-$trace-$span-00" ] ], do => 'send sink T.Out u' },
    { id => 'nonsense', headers => [ [ traceparent => "00-$trace-0000000000000000-01" ], [ tracestate => 'x=1' ], [ baggage => 'b=2' ] ], do => 'send sink T.Out n' });
my @out = sort { $a->{body} cmp $b->{body} } $e->collect('sink', 2);
$e->wait_for('two spans', sub { spans() == 2 });
is_deeply [ map { $_->{attributes}{'messaging.message.id'} } grep { $_->{kind} == 5 } spans() ], ['nonsense'], 'what a peer does not keep is not kept here';
like $out[1]{header}{traceparent}, qr/^00-$trace-[0-9a-f]{16}-00$/, 'and its trace goes on, unkept';
unlike $out[0]{header}{traceparent}, qr/$trace/, 'what is no trace is none';
is_deeply [ @{ $out[0]{header} }{qw(tracestate baggage)} ], [ undef, 'b=2' ], 'nor is its state; baggage is another matter';

# ---- attempts that fail ------------------------------------------------------------------------------
forget();
$e->send('orders', { id => 'bad', do => [ 'sleep 100', 'until 3 retry not "yet"', 'send sink T.Out late' ] });
$e->collect('sink', 1);
$e->wait_for('two that failed, one that did not, and what it sent', sub { spans() == 4 });
my @tries = span('process orders', 'bad');
is_deeply [ map { [ @{ $_->{attributes} }{qw(waybill.attempt error.type)}, @{ $_->{status} || {} }{qw(code message)} ] } @tries ],
    [ (map { [ $_, 'handling_failed', 2, 'not "yet"' ] } 1, 2), [ 3, undef, undef, undef ] ], 'each with its attempt and its reason';
my ($slow) = grep { $_->{attributes}{'waybill.attempt'} == 1 } @tries;
my $took = $slow->{endTimeUnixNano} - $slow->{startTimeUnixNano};
ok $took >= 0.1e9 && $took < 20e9, 'which began when its handler did' or diag $took;
my %ids = map { $_->{spanId} => 1 } @tries;
is keys %ids, 3, 'each has a span of its own';
is_deeply [ map { $_->{traceId} } @tries ], [ ($tries[0]{traceId}) x 3 ], 'in one trace';
is((grep { $_->{name} eq 'send sink' } spans())[0]{parentSpanId}, $tries[2]{spanId}, 'what is sent is below the one that took effect');
forget();
$e->send('orders', { id => "byte \xc3\xa4\xff", do => "fail unrecoverable foreign \xfe" });
$e->wait_for('bytes that are no text', sub { spans() == 1 });
is((spans())[0]{attributes}{'messaging.message.id'}, "byte \x{e4}?", 'become question marks, and no others');
is_deeply [ lines_of('faults') ], [], 'and the request is right';
is $e->depth('error'), 1, 'moved, and not told of as sent' if $e->can('depth');

forget();
$e->send('orders', { id => 'given up', do => 'discard enough' });
$e->send('orders', { id => 'behind' });
$e->wait_for('what is discarded', sub { span('process orders', 'behind') == 1 });
is_deeply [ map { [ $_->{attributes}{'waybill.attempt'}, $_->{status}{message} ] } span('process orders', 'given up') ], [ [ 1, 'enough' ] ], 'is an attempt that failed, and no more';

# ---- a crash between dispatch and mark ---------------------------------------------------------------
is $e->stop, 0, 'it stops';
forget();
{
    local $ENV{WAYBILL_CRASH} = 'before_mark:1';
    $e->start;
    $e->send('orders', { id => 'twice', do => 'send sink T.Out twice' });
    $e->wait_for('it dies', sub { !$e->is_alive });
}
$e->stop;
@out = $e->read('sink');
$e->start;
push @out, $e->collect('sink', 1, 'it is sent once more');
is_deeply [ map { $_->{header}{traceparent} } @out ], [ ($out[0]{header}{traceparent}) x 2 ], 'the same span';
$e->wait_for('which is told of', sub { grep { $_->{name} eq 'send sink' } spans() });
my ($again) = grep { $_->{name} eq 'send sink' } spans();
is $out[0]{header}{traceparent}, "00-$again->{traceId}-$again->{spanId}-01", 'with its ids';

# ---- a receiver that does not take what it gets -----------------------------------------------------------
forget();
behave('503 1');
$e->send('orders', { id => 'patience' });
$e->wait_for('it is asked again', sub { lines_of('requests') >= 2 });
my @requests = map { decode_json($_) } lines_of('requests');
cmp_ok $requests[1]{at} - $requests[0]{at}, '>=', 0.9, 'after the time that it asked for';
is $requests[1]{client}, $requests[0]{client}, 'on the same connection';
behave('200');
$e->wait_for('and takes it then', sub { span('process orders', 'patience') == 1 });
is scalar($e->log_lines('spans are not taken')), 1, 'one line tells of it';
$e->wait_for('one of the end', sub { $e->log_lines('spans are taken again') });
behave('400');
$e->send('orders', { id => 'refused' });
$e->wait_for('what is refused is dropped', sub { $e->log_lines('the receiver refused the spans') && $e->log_lines('spans were dropped') });
behave('partial 9223372036854775807');
$e->send('orders', { id => 'partial' });
$e->wait_for('what is refused in part, too', sub { span('process orders', 'partial') == 1 });
for my $how (qw(cut endless)) {
    my $from = time;
    behave($how);
    $e->send('orders', { id => $how });
    $e->wait_for("what is taken with an answer that is $how", sub { span('process orders', $how) >= 1 });
    behave('200');
    $e->send('orders', { id => "behind $how" });
    $e->wait_for('is taken', sub { span('process orders', "behind $how") == 1 });
    is scalar(span('process orders', $how)), 1, 'once';
    cmp_ok time - $from, '<', 8, 'and not listened to for long';
}
forget();
$e->send('orders', { id => 'after' });
$e->wait_for('and the next goes', sub { span('process orders', 'after') == 1 });

# ---- one that hangs: nobody waits for it ------------------------------------------------------------------
is $e->stop, 0, 'it stops';
my @dropped = $e->log_lines('spans were dropped');
is scalar(@dropped), 2, 'what was refused in part is counted, at the end at the latest' or diag join "\n", @dropped;
unlike join("\n", @dropped), qr/spans=\d{4}/, 'nobody refuses more than he got';
$e->configure(with => observer('queue_max = 20; batch_max = 10;'));
behave('hang');
$e->start;
my @ids = map { "beside $_" } 1 .. 300;
$e->send('orders', map { { id => $_, do => 'send sink T.Out x' } } @ids);
$e->wait_for('300 are handled beside it', sub { $e->not_once(@ids) == 0 });
forget();
my $before = () = $e->log_lines('spans are taken again');
behave('200');
$e->wait_for('it takes them', sub { (() = $e->log_lines("spans are taken again")) > $before });
$e->send('orders', { id => 'behind them' });
$e->wait_for('and what is behind them', sub { span('process orders', 'behind them') == 1 });
cmp_ok scalar(spans()), '<', 60, 'a few had been kept';
my $from = time;
is $e->stop, 0, 'it stops';
cmp_ok time - $from, '<', 6, 'within a second or so';
like join("\n", $e->log_lines('spans were dropped')), qr/spans=\d{3}/, 'a line says how many spans there are not';
behave('hang');

# ---- who refuses them refuses them, however his answer ends --------------------------------------------------
behave('200');
$e->configure(with => observer());
$e->start;
for my $how ('cut 400', 'endless 413') {
    $before = () = $e->log_lines('the receiver refused the spans');
    behave($how);
    $e->send('orders', { id => $how });
    $e->wait_for("$how: they are dropped", sub { (() = $e->log_lines('the receiver refused the spans')) > $before });
    behave('200');
    $e->send('orders', { id => "behind $how" });
    $e->wait_for('and what is behind them is taken', sub { span('process orders', "behind $how") == 1 });
    is scalar(span('process orders', $how)), 0, 'they are not';
}
is $e->stop, 0, 'it stops';
behave('hang');

# ---- nor do several endpoints, one after the other --------------------------------------------------------
my @more = map { Endpoint->new('sqlite+sqlite', name => "more$_", with => observer()) } 1 .. 6;
$e->configure(with => observer(), shutdown_timeout => '1s', beside => [ $billing, @more ]);
$e->install;
$e->start;
$e->send($_->{name}, { id => "of $_->{name}" }) for $e, @more;
$e->wait_for('each has handled a message', sub { !grep { $e->effects("of $_->{name}") != 1 } $e, @more });
$from = time;
is $e->stop, 0, 'all of them stop';
cmp_ok time - $from, '<', 4, 'in one second';
$e->configure(shutdown_timeout => undef, beside => [$billing]);
behave('200');

# ---- nor for who asks for its address -----------------------------------------------------------------------
{
    no warnings 'redefine';
    my $environment = \&Endpoint::environment;
    local *Endpoint::environment = sub { return ($environment->(@_), LD_PRELOAD => "$ENV{top_builddir}/tests/integration/.libs/slow_names.so") };
    $e->configure(with => observer('allow_insecure = true;') =~ s/127\.0\.0\.1/slow.example/r);
    $e->start;
    $e->send('orders', { id => 'nameless' });
    $e->wait_for('it is handled', sub { $e->effects('nameless') == 1 });
    sleep 0.3;    # it is asked for
    $from = time;
    is $e->stop, 0, 'it stops';
    cmp_ok time - $from, '<', 5, 'before there is an answer';
}

# ---- one that is not there, and comes --------------------------------------------------------------------
silence();
forget();
$e->configure(with => observer());
$e->start;
$e->send('orders', { id => 'early' });
$e->wait_for('it is handled', sub { $e->effects('early') == 1 });
$e->wait_for('and a line says that nobody takes its span', sub { $e->log_lines('spans are not taken.*(?:onnect|refused)') > 0 });
receive();
$e->wait_for('who is there then', sub { span('process orders', 'early') == 1 });
is $e->stop, 0, 'it stops';

# ---- one that comes while a long pause has not ended ------------------------------------------------------
forget();
behave('503 60');
$e->start;
$e->send('orders', { id => 'in a pause' });
$e->wait_for('it is asked', sub { lines_of('requests') >= 1 });
behave('200');
is $e->stop, 0, 'it stops';
is scalar(span('process orders', 'in a pause')), 1, 'and tries once more';

# ---- nothing but the end has it sent ----------------------------------------------------------------------
forget();
$e->configure(with => observer('interval = "60s";') =~ s/interval = "50ms"; //r);
$e->start;
$e->send('orders', { id => 'at the end' });
$e->wait_for('it is handled', sub { $e->effects('at the end') == 1 });
is scalar(spans()), 0, 'it waits for others';
is $e->stop, 0, 'it stops';
is scalar(span('process orders', 'at the end')), 1, 'what waits is sent at the end';

# ---- one in so many ----------------------------------------------------------------------------------------
forget();
$e->configure(with => observer('one_in = 4;'));
$e->start;
@ids = map { "one $_" } 1 .. 80;
$e->read('sink');
$e->send('orders', map { { id => $_, do => 'send sink T.Out x' } } @ids);
@out = $e->collect('sink', 80);
is $e->stop, 0, 'what waits is sent at the end';
my $kept = grep { $_->{kind} == 5 } spans();
cmp_ok $kept, '>', 5, 'some are kept';
cmp_ok $kept, '<', 45, 'not all';
is scalar(grep { is_sampled($_) } @out), $kept, 'and what they send says so';
is_deeply [ sort map { $_->{header}{traceparent} } grep { is_sampled($_) } @out ], [ sort map { "00-$_->{traceId}-$_->{spanId}-01" } grep { $_->{kind} == 4 } spans() ],
    'their sendings are told of, no others';

# ---- refused before anything runs ---------------------------------------------------------------------------
for my $case ([ 'url = "ftp://127.0.0.1/"', 'url is no URL' ], [ 'url = "http://collector.example:4318/v1/traces"', 'url would send spans to another machine in clear text' ],
    [ 'headers = { A = "1\nB: 2"; }', 'headers: "A" has a value of more than one line' ],
    [ 'headers = { content-length = "3"; }', 'headers: "content-length" is set by the plugin itself' ], [ 'tls_ca_file = "/nowhere"', 'tls_ca_file' ], [ 'batch_max = 9000', 'queue_max = 8192 is less' ],
    [ 'one_in = 0', 'one_in' ]) {
    my ($option, $reason) = @$case;
    my $group = observer("$option;");
    $group =~ s/url = "[^"]*"; (?=.*url)//;
    $e->configure(with => $group);
    ($code, $text) = $e->run('check');
    is $code, 78, "$option is refused";
    like $text, qr/:\d+: .*\Q$reason/, 'with the reason';
}
$e->configure(with => observer('url = "http://collector.example:4318/v1/traces"; allow_insecure = true;') =~ s/url = "[^"]*"; (?=.*url)//r);
is +($e->run('check'))[0], 0, 'unless it is allowed';
$e->configure(with => 'observer = { plugin = "sqlite"; };');
($code, $text) = $e->run('check');
is $code, 78, 'a plugin of another kind is none';
like $text, qr/there is no observer plugin "sqlite"/, 'with the reason';

# ---- TLS, and a token ---------------------------------------------------------------------------------------
silence();
system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=collector -addext subjectAltName=IP:127.0.0.1 -keyout '$dir/key.pem' -out '$dir/cert.pem' >'$dir/openssl' 2>&1");
forget();
receive("$dir/cert.pem", "$dir/key.pem");
$ENV{TRACES_TOKEN} = 'Bearer hush-hush';
my $tls = observer('headers = { Authorization = "env:TRACES_TOKEN"; };') =~ s{http://127\.0\.0\.1:$port}{https://127.0.0.1:$secure}r;
$e->configure(with => $tls);
$e->start;
$e->send('orders', { id => 'stranger' });
$e->wait_for('who is not known is not told', sub { $e->log_lines('spans are not taken.*certificate') });
is $e->stop, 0, 'it stops';
is_deeply [ lines_of('requests') ], [], 'nothing was sent';
$e->configure(with => $tls =~ s/interval/tls_ca_file = "$dir\/cert.pem"; interval/r);
$e->start;
$e->send('orders', { id => 'friend' });
$e->wait_for('who is, is', sub { span('process orders', 'friend') == 1 });
is decode_json((lines_of('requests'))[0])->{headers}{Authorization}, 'Bearer hush-hush', 'with the token';
behave('partial 1 you said hush-hush');
$e->send('orders', { id => 'echo' });
$e->wait_for('who repeats it is not quoted', sub { $e->log_lines('what it says repeats a secret') > 0 });
behave('200');
is $e->stop, 0, 'it stops';
is_deeply [ grep { /hush/ } $e->log_lines('.') ], [], 'which no line has';
done_testing;
