# SPDX-License-Identifier: Apache-2.0
#
# An endpoint (tests/integration/Endpoint.pm) on any transport with any persistence, and a peer
# that puts into its queues what no well-behaved client sends.
#
#   my $e = Peer->new('kafka+sqlite', name => 'orders', queues => 2);
#   $e->install;
#   $e->inject($e->{name}, @messages);      # as Kinds.pm describes them
#   $e->start; ... $e->read('error'); ...
#   $e->peak;  $e->lines;                   # bytes of memory, lines of the log
#
# Names of queues are the test's own: address('sink') is what the transport calls it.
package Peer;
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use Endpoint;

our @ISA = ('Endpoint');
our %servers = (amqp => 'rabbitmq', kafka => 'kafka', pgsql => 'pgsql', mysql => 'mariadb');
my $message_id = 'NServiceBus.MessageId';
my $reply_to   = 'NServiceBus.ReplyToAddress';

# The servers that these pairs need, for Endpoint::under_servers.
sub servers_of { my %kinds = map { $_ => 1 } grep { defined } map { $servers{$_} } map { split /\+/ } @_; return sort keys %kinds }

sub new {
    my ($class, $pair, %self) = @_;
    my ($transport, $store) = split /\+/, $pair;
    my $kind = "Peer::\u$transport\u$store";
    no strict 'refs';
    @{"${kind}::ISA"} = ("Peer::Store::\u$store", "Peer::\u$transport", 'Peer') unless @{"${kind}::ISA"};
    $self{name} = $kind->address($self{name} || 'orders');
    $self{error_queue} = $kind->address($self{error_queue} || 'error');
    return Endpoint::new($kind, $pair, %self);
}

sub address { return $_[1] }
sub error { my ($self) = @_; return $self->read($self->{error_queue}) }
# ---- what the process uses ---------------------------------------------------------
sub status { my ($self, $field) = @_; return Endpoint::read_file("/proc/$self->{processes}[0]/status") =~ /^\Q$field\E:\s+(\d+) kB/m ? $1 * 1024 : 0 }
sub peak { return $_[0]->status('VmHWM') }
sub lines { my ($self) = @_; return split /\n/, Endpoint::read_file($self->{log}) }

# Lines that are no whole event of their own, or hold what a terminal would obey.
sub forged { my ($self) = @_; return grep { !/^\d{4}-\d\d-\d\dT[\d:.]+Z? level=(?:error|warning|info|debug) msg=/ || /[\0-\x1f\x7f]/ } $self->lines }

# The headers of a message as its transport carries them, but those that are properties.
sub all_headers {
    my ($self, $m) = @_;
    my @headers = @{ Endpoint::headers_of($m) };
    push @headers, [ $reply_to => $m->{reply} ] if defined $m->{reply};
    return @headers;
}

# A message that nobody minds: the handler inserts a row and sends one, in one of three ways.
sub good {
    my ($self, $id) = @_;
    $self->{good}++;
    my $sink = $self->address('sink');
    return { id => $id, good => 1, do => "send $sink Hostile.Sent $id" } if $self->{good} % 3 == 0;
    return { id => $id, good => 1, do => "publish Hostile.Event $id\nsend $sink Hostile.Sent $id" } if $self->{good} % 3 == 1;
    return { id => $id, good => 1, do => "reply Hostile.Sent $id", reply => $sink };
}

# Several endpoints in one process, started and stopped as the first.
sub together {
    my ($first, @others) = @_;
    my @texts = map { Endpoint::read_file($_->{conf}) =~ /^endpoints = \(\n(.*)^\);/ms ? $1 =~ s/\s+$//r : die "no endpoint in $_->{conf}\n" } $first, @others;
    Endpoint::write_file($first->{conf}, "endpoints = (\n" . join(",\n", @texts) . "\n);\n");
}

# A number of good messages, and what holds when each was handled once and is out. Without the
# outbox, "once" is still what happens while nothing breaks.
sub some_good {
    my ($self, $count) = @_;
    return map { $self->good(sprintf '%s-good-%05d', $self->{name}, ++$self->{numbered}) } 1 .. $count;
}
my %out;    # bodies in the sink, which endpoints of a test may share
sub is_all_good {
    my ($self, $what, $seconds, @good) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @ids = map { $_->{id} } @good;
    return unless $self->wait_for("$what: the good ones are handled", sub { my %done = map { pack('H*', $_->[0]) => 1 } $self->sql('select distinct id from effects'); !grep { !$done{$_} } @ids }, $seconds);
    is_deeply [ $self->not_once(@ids) ], [], "$self->{pair}: $what: each once";
    $self->wait_for("$what: their messages come", sub { $out{ $self->{pair} }{ $_->{body} // '' }++ for $self->read($self->address('sink')); !grep { !$out{ $self->{pair} }{$_} } @ids }, $seconds);
    is_deeply [ grep { ($out{ $self->{pair} }{$_} || 0) != 1 } @ids ], [], "$self->{pair}: $what: their messages are out";
}

# The end of a test: the process lived, on little memory and few lines, and leaves nothing.
sub is_well {
    my ($self, $what, $memory, $lines) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    ok $self->is_alive, "$self->{pair}: $what: the process lives";
    cmp_ok $self->peak, '<=', $memory << 20, "$self->{pair}: $what: memory is bounded by $memory MiB";
    cmp_ok scalar $self->lines, '<=', $lines, "$self->{pair}: $what: and the log by $lines lines" or diag join "\n", ($self->lines)[ -5 .. -1 ];
    note sprintf '%s: %s: %.1f MB, %d lines', $self->{pair}, $what, $self->peak / 1e6, scalar $self->lines;
}
sub stops {
    my ($self, $what, $seconds) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $started = time;
    is $self->stop, 0, "$self->{pair}: $what: stops cleanly";
    cmp_ok time - $started, '<=', $seconds, "$self->{pair}: $what: within $seconds s";
}

# ---- RabbitMQ ------------------------------------------------------------------------
package Peer::Amqp;
use strict;
use warnings;
our @ISA = ('Endpoint::Amqp');

sub properties_of {
    my ($self, $m) = @_;
    my %properties = %{ $m->{properties} || {} };
    my @headers = @{ Endpoint::headers_of($m) };
    unshift @headers, [ $message_id => $m->{id} ] if length($m->{id} // '') > 255;
    $properties{id} //= $m->{id} if length($m->{id} // '') <= 255;
    if (defined $m->{reply} && length $m->{reply} <= 255) { $properties{reply_to} //= $m->{reply} }
    elsif (defined $m->{reply}) { push @headers, [ $reply_to => $m->{reply} ] }
    return { %properties, headers => \@headers };
}

# What the broker refuses cannot do harm: the message gets a note that says so.
sub inject {
    my ($self, $queue, @messages) = @_;
    my @harmless;
    for my $m (@messages, undef) {
        if ($m && $m->{good}) { push @harmless, $m; next }
        $self->amqp->publish_all('', $queue, map { [ $self->properties_of($_), $_->{body} // '' ] } splice @harmless) if @harmless;
        next if !$m || eval { $self->amqp->publish('', $queue, $self->properties_of($m), $m->{body} // ''); 1 };
        $m->{refused} = $@ =~ s/\s+$//r;
        $self->forget_broker;
    }
}
sub waiting { my ($self) = @_; return $self->depth($self->{name}) }
sub left { return $_[0]->waiting }

# From now on the queue has room for so many, and refuses others: by a policy, as operators do it.
sub limit {
    my ($self, $queue, $room) = @_;
    my $server = "$ENV{WB_SERVER_DIR}/rabbitmq";
    my $data = Endpoint::read_file("$server/data") =~ s/\s+$//r;
    my %port = Endpoint::read_file("$data/ports") =~ /(dist|epmd)_port=(\d+)/g;
    my $cookie = Endpoint::read_file("$data/.erlang.cookie");
    my $text = 'ok = rabbit_policy:set(<<"VHOST">>, <<"QUEUE">>, <<"^QUEUE$">>, [{<<"max-length">>, ROOM}, {<<"overflow">>, <<"reject-publish">>}], '
        . '1, <<"queues">>, <<"tests">>).';
    $text =~ s/VHOST/$ENV{AMQP_VHOST}/;
    $text =~ s/QUEUE/$queue/g;
    $text =~ s/ROOM/$room/;
    my $answer = `echo '$text' | HOME=$data ERL_EPMD_PORT=$port{epmd} erl_call -h limit$$ -address localhost:$port{dist} -c $cookie -e 2>&1`;
    die "erl_call: $answer\n" if $answer !~ /^\{ok, ok\}/;
}

# ---- Kafka ---------------------------------------------------------------------------
package Peer::Kafka;
use strict;
use warnings;
our @ISA = ('Peer');

sub address { my ($self, $name) = @_; return "$ENV{KAFKA_PREFIX}_$name" =~ s/^(\Q$ENV{KAFKA_PREFIX}\E_)\1/$1/r }
sub partitions { return 3 }    # topics of types are shared by all who handle them
sub transport_text {
    my ($self) = @_;
    return qq(transport = { plugin = "kafka"; brokers = "$ENV{KAFKA_BROKERS}"; partitions = @{[ $self->partitions ]}; )
        . qq(session_timeout = "6s"; @{[ $self->{transport} // '' ]} };);
}
sub tool {
    my ($self, $input, $tool, @arguments) = @_;
    my $path = "$self->{dir}/kafka-input";
    Endpoint::write_file($path, $input);
    my $command = join ' ', map { "'$_'" } "$Endpoint::build/tests/$tool", @arguments;
    my @lines = `$command <'$path' 2>'$path.error'`;
    chomp @lines;
    my $code = $? >> 8;
    die "$command: ", Endpoint::read_file("$path.error") if $code && $code != 2;
    return ($code == 2 ? Endpoint::read_file("$path.error") =~ s/\s+$//r : '', @lines);
}
sub make_queue { my ($self, $name) = @_; $self->tool('', 'crash/sink-kafka', 'create', 1, $name) }

sub text { my ($text) = @_; return defined $text ? pack 'l<a*', length $text, $text : pack 'l<', -1 }
sub record {
    my ($self, $m) = @_;
    my @headers = $self->all_headers($m);
    unshift @headers, [ $message_id => $m->{id} ] if defined $m->{id};
    my $value = exists $m->{value} ? $m->{value} : $m->{body} // '';
    return pack('C l< q<', $m->{codec} // 0, $m->{partition} // 0, $m->{timestamp} // 0) . text($m->{key}) . text($value)
        . pack('L<', scalar @headers) . join '', map { text($_) } map { @$_ } @headers;
}

# All in one go; only where the broker refuses one is each asked for by itself.
sub inject {
    my ($self, $queue, @messages) = @_;
    my @records = map { $self->record($_) } @messages;
    my @risky = grep { $messages[$_]{risky} } 0 .. $#messages;
    my $from = 0;
    for my $at (@risky, scalar @messages) {
        $self->tool(join('', @records[ $from .. $at - 1 ]), 'hostile/kafka-peer', 'inject', $queue) if $at > $from;
        ($messages[$at]{refused}) = $self->tool($records[$at], 'hostile/kafka-peer', 'inject', $queue) if $at < @messages;
        $from = $at + 1;
    }
}

sub read {    # all there is from where it was read before
    my ($self, $queue) = @_;
    my $places = $self->{places}{$queue} ||= {};
    my (undef, @lines) = $self->tool('', 'hostile/kafka-peer', 'read', $queue, map { "$_=$places->{$_}" } keys %$places);
    return map {
        my ($partition, $offset, @fields) = split /\t/;
        $places->{$partition} = $offset + 1;
        my ($key, $value, @headers) = map { /^:/ ? pack 'H*', substr $_, 1 : undef } @fields;
        my $message = { key => $key, body => $value, headers => [] };
        while (my ($name, $header) = splice @headers, 0, 2) { push @{ $message->{headers} }, [ $name, $header ] }
        $message->{header} = Endpoint::pairs($message);
        $message->{id} = $message->{header}{$message_id};
        $message;
    } @lines;
}
sub waiting { my ($self) = @_; my (undef, $line) = $self->tool('', 'crash/sink-kafka', 'depth', $self->{name}, $self->{name}); return (split /\t/, $line)[1] }
sub depth { die "Kafka counts for a group: see waiting\n" }
sub left { return $_[0]->waiting }

# ---- queues in a SQLite file -----------------------------------------------------------
package Peer::Sqlite;
use strict;
use warnings;
our @ISA = ('Endpoint::Sqlite');

sub blob { return defined $_[0] ? "x'" . unpack('H*', $_[0]) . "'" : 'null' }
# A message may bring columns of its own, as SQL.
sub row {
    my ($self, $number, $m) = @_;
    my @headers = $self->all_headers($m);
    my $headers = $m->{blob} // pack 'V (V/a x V/a x)*', scalar @headers, map { map { $_ // '' } @$_ } @headers;
    my %row = (seq => "(select max((select coalesce(max(seq), 0) from waybill_message_$number where seq < 1000000000), "
            . "(select coalesce(max(last), 0) from waybill_claim where queue = $number and last < 1000000000)) + 1)",
        id => blob($m->{id}), key => blob($m->{key}), headers => blob($headers), body => blob($m->{body} // ''), %{ $m->{row} || {} });
    my @columns = sort keys %row;
    return sprintf "insert into waybill_message_%d (%s) values (%s);\n", $number, join(', ', @columns), join ', ', @row{@columns};
}
sub inject {
    my ($self, $queue, @messages) = @_;
    my $number = $self->number($queue);
    $self->query(join '', "begin immediate;\n", (map { $self->row($number, $_) } @messages), "commit;\n");
    open my $bell, '>>', $self->queue_file . '-sessions' or die "bell: $!\n";
    syswrite $bell, "\n";
}
sub waiting { my ($self) = @_; return $self->depth($self->{name}) }
sub left {    # messages and claims
    my ($self) = @_;
    my $number = $self->number($self->{name});
    return ($self->query("select (select count(*) from waybill_message_$number) + (select count(*) from waybill_claim where queue = $number)"))[0][0];
}

# ---- where business data and outbox are: in front of the transports' own ideas of it ------
package Peer::Store;
use strict;
use warnings;

sub prepare {
    my ($self) = @_;
    $self->sql($self->quietly . 'create table if not exists effects (id text, attempt int, size int)') if $self->{persistence};
    $self->make_queue($self->address('sink'));
}

package Peer::Store::Pgsql;
use strict;
no strict 'refs';
use warnings;
our @ISA = ('Peer::Store');

sub quietly { return 'set client_min_messages = warning; ' }
*$_ = Endpoint::Amqp->can($_) for qw(persistence_text sql pending);

package Peer::Store::Sqlite;
use strict;
no strict 'refs';
use warnings;
our @ISA = ('Peer::Store');

sub quietly { return '' }
*$_ = Endpoint::Sqlite->can($_) for qw(persistence_text sql pending queue_file store_file);

package Peer::Store::Mysql;
use strict;
no strict 'refs';
use warnings;
our @ISA = ('Peer::Store');

sub quietly { return '' }
*$_ = Endpoint::SqliteMysql->can($_) for qw(script persistence_text sql pending);

1;
