# SPDX-License-Identifier: Apache-2.0
#
# A small AMQP 0-9-1 client, so that tests put anything into RabbitMQ and see every byte of
# what comes out, without a line of the transport under test.
#
#   my $amqp = Amqp->new;                          # the broker of with-servers
#   $amqp->declare('sink'); $amqp->publish('', 'sink', { id => 'a', headers => [ [ n => 'v' ] ] }, $body);
#   my @messages = $amqp->drain('sink');           # { id, type, headers, body, delivery_mode, ... }
#
# Headers are pairs in order, or a string of what is encoded already. A value that is an array is
# [ kind, bytes ] of an AMQP field.
# Every call waits for the broker's answer, publish for its confirmation. A refused call dies
# with the broker's words; the channel is then opened anew.
package Amqp;
use strict;
use warnings;
use IO::Socket::INET;
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Time::HiRes ();

my @properties = qw(content_type content_encoding headers delivery_mode priority correlation_id reply_to
    expiration id timestamp type user app cluster);    # bits 15 downwards

sub new {
    my ($class, %o) = @_;
    my $self = bless { host => $ENV{AMQP_HOST}, port => $ENV{AMQP_PORT}, user => $ENV{AMQP_USER},
        password => $ENV{AMQP_PASSWORD}, vhost => $ENV{AMQP_VHOST}, timeout => 30, %o }, $class;
    $self->{socket} = IO::Socket::INET->new(PeerAddr => "$self->{host}:$self->{port}", Timeout => 5)
        or die "no broker at $self->{host}:$self->{port}: $!\n";
    setsockopt $self->{socket}, IPPROTO_TCP, TCP_NODELAY, 1;
    $self->raw("AMQP\0\0\x09\x01");
    $self->expect(0, 10, 10);
    $self->method(0, 10, 11, table() . short('PLAIN') . long("\0$self->{user}\0$self->{password}") . short('en_US'));
    $self->expect(0, 10, 30);
    $self->method(0, 10, 31, pack 'n N n', 2047, 131072, 0);
    $self->call(0, 10, 40, short($self->{vhost}) . short('') . "\0");
    $self->open_channel;
    return $self;
}

sub open_channel {
    my ($self) = @_;
    $self->{channel}++;
    $self->call($self->{channel}, 20, 10, short(''));
    $self->call($self->{channel}, 85, 10, "\0");
}

# ---- bytes ----------------------------------------------------------------------------
sub short { return pack 'C/a*', $_[0] }
sub long  { return pack 'N/a*', $_[0] }
sub table {
    my @pairs = @_;
    return long(join '', map { short($_->[0]) . field($_->[1]) } @pairs);
}
sub field { my ($value) = @_; return ref $value ? $value->[0] . $value->[1] : 'S' . long($value) }

sub read_field {    # from the front of $$bytes; what is not text comes back as [ kind, value ]
    my ($bytes) = @_;
    my $kind = substr $$bytes, 0, 1, '';
    my $take = sub { my ($n) = @_; return substr $$bytes, 0, $n, '' };
    return $take->(unpack 'N', $take->(4)) if $kind eq 'S';
    my %sizes = (t => 1, b => 1, B => 1, s => 2, u => 2, I => 4, i => 4, l => 8, L => 8, f => 4, d => 8, T => 8, V => 0, D => 5);
    return [ $kind, $take->($sizes{$kind}) ] if exists $sizes{$kind};
    return [ $kind, $take->(unpack 'N', $take->(4)) ];    # x, F, A
}

sub read_table {
    my ($bytes) = @_;
    my @pairs;
    while (length $bytes) {
        my $name = substr $bytes, 0, 1 + ord $bytes, '';
        push @pairs, [ substr($name, 1), read_field(\$bytes) ];
    }
    return \@pairs;
}

# ---- frames ---------------------------------------------------------------------------
sub raw {
    my ($self, $bytes) = @_;
    my $at = 0;
    while ($at < length $bytes) {
        my $size = syswrite $self->{socket}, $bytes, 1 << 20, $at;
        die "writing to the broker: $!\n" unless $size;
        $at += $size;
    }
}

sub read_bytes {
    my ($self, $size) = @_;
    my $bytes = '';
    while (length $bytes < $size) {
        my $bits = '';
        vec($bits, fileno $self->{socket}, 1) = 1;
        select $bits, undef, undef, $self->{timeout} or die "the broker does not answer\n";
        sysread $self->{socket}, $bytes, $size - length $bytes, length $bytes or die "the broker closed the connection\n";
    }
    return $bytes;
}

sub frame { my ($kind, $channel, $payload) = @_; return pack('C n N', $kind, $channel, length $payload) . $payload . "\xCE" }
sub method { my ($self, $channel, $class, $method, $arguments) = @_; $self->raw(frame(1, $channel, pack('n n', $class, $method) . $arguments)) }

sub read_frame {
    my ($self) = @_;
    my ($kind, $channel, $size) = unpack 'C n N', $self->read_bytes(7);
    my $payload = $self->read_bytes($size + 1);
    chop $payload;
    return ($kind, $channel, $payload);
}

sub fail {
    my ($self, $channel, $arguments) = @_;
    my ($code, $text) = unpack 'n C/a', $arguments;
    die "$code $text\n" if $channel == 0;
    $self->method($channel, 20, 41, '');
    $self->open_channel;
    die "$code $text\n";
}

# The arguments of one of the methods given as "class.method"; returned messages are noted.
sub expect_any {
    my ($self, @wanted) = @_;
    for (;;) {
        my ($kind, $channel, $payload) = $self->read_frame;
        next if $kind != 1;
        my ($class, $method) = unpack 'n n', $payload;
        my $arguments = substr $payload, 4;
        return ("$class.$method", $arguments) if grep { $_ eq "$class.$method" } @wanted;
        $self->fail($channel, $arguments) if "$class.$method" eq '20.40' || "$class.$method" eq '10.50';
        $self->{returned}++ if "$class.$method" eq '60.50';
    }
}
sub expect { my ($self, undef, $class, $method) = @_; return ($self->expect_any("$class.$method"))[1] }
sub call { my ($self, $channel, $class, $method, $arguments) = @_; $self->method($channel, $class, $method, $arguments); return $self->expect($channel, $class, $method + 1) }

# ---- queues and exchanges ---------------------------------------------------------------
sub declare {
    my ($self, $queue, @arguments) = @_;
    @arguments = ([ 'x-queue-type' => 'quorum' ]) unless @arguments;
    return $self->call($self->{channel}, 50, 10, "\0\0" . short($queue) . "\x02" . table(grep { @$_ } @arguments));
}
sub depth {    # messages ready and consumers, or nothing when there is no such queue
    my ($self, $queue) = @_;
    my $ok = eval { $self->call($self->{channel}, 50, 10, "\0\0" . short($queue) . "\x01" . table()) } // return;
    my (undef, $ready, $consumers) = unpack 'C/a N N', $ok;
    return wantarray ? ($ready, $consumers) : $ready;
}
sub delete { my ($self, $queue) = @_; $self->call($self->{channel}, 50, 40, "\0\0" . short($queue) . "\0") }
sub delete_exchange { my ($self, $name) = @_; $self->call($self->{channel}, 40, 20, "\0\0" . short($name) . "\0") }

# ---- messages ---------------------------------------------------------------------------
sub encode_properties {
    my ($p) = @_;
    my ($flags, $bytes) = (0, '');
    for my $i (0 .. $#properties) {
        my ($name, $value) = ($properties[$i], $p->{ $properties[$i] });
        next unless defined $value;
        $flags |= 1 << 15 - $i;
        $bytes .= $name eq 'headers' ? (ref $value ? table(@$value) : long($value)) : $name =~ /^(?:delivery_mode|priority)$/ ? pack('C', $value)
            : $name eq 'timestamp' ? pack('Q>', $value) : short($value);
    }
    return pack('n', $flags) . $bytes;
}

sub decode_properties {
    my ($bytes) = @_;
    my $flags = unpack 'n', substr $bytes, 0, 2, '';
    my %p = (headers => []);
    for my $i (0 .. $#properties) {
        next unless $flags & 1 << 15 - $i;
        my $name = $properties[$i];
        if ($name eq 'headers') { $p{$name} = read_table(substr substr($bytes, 0, 4 + unpack('N', $bytes), ''), 4) }
        elsif ($name =~ /^(?:delivery_mode|priority)$/) { $p{$name} = unpack 'C', substr $bytes, 0, 1, '' }
        elsif ($name eq 'timestamp') { $p{$name} = unpack 'Q>', substr $bytes, 0, 8, '' }
        else { $p{$name} = substr substr($bytes, 0, 1 + ord $bytes, ''), 1 }
    }
    return \%p;
}

# Many messages, each [ properties, body ], in one go; all are confirmed when it returns.
sub publish_all {
    my ($self, $exchange, $key, @messages) = @_;
    my $channel = $self->{channel};
    local $self->{returned} = 0;
    for (@messages) {
        my ($properties, $body) = @$_;
        my $bytes = frame(1, $channel, pack('n n n', 60, 40, 0) . short($exchange) . short($key) . "\x01");
        $bytes .= frame(2, $channel, pack('n n Q>', 60, 0, length $body) . encode_properties({ delivery_mode => 2, %$properties }));
        for (my $at = 0; $at < length $body; $at += 131064) {
            $bytes .= frame(3, $channel, substr $body, $at, 131064);
        }
        $self->raw($bytes);
    }
    my %open = map { (++$self->{sent}{$channel} => 1) } @messages;
    while (%open) {
        my ($name, $arguments) = $self->expect_any('60.80', '60.120');
        die "the broker refused a message\n" if $name eq '60.120';
        my ($tag, $multiple) = unpack 'Q> C', $arguments;
        delete @open{ $multiple ? grep { $_ <= $tag } keys %open : $tag };
    }
    die "no queue for $exchange/$key\n" if $self->{returned};
}
sub publish { my ($self, $exchange, $key, $properties, $body) = @_; $self->publish_all($exchange, $key, [ $properties, $body ]) }

sub get {    # the next message, acknowledged; nothing when the queue is empty
    my ($self, $queue) = @_;
    my $channel = $self->{channel};
    $self->method($channel, 60, 70, "\0\0" . short($queue) . "\0");
    my ($name, $arguments) = $self->expect_any('60.71', '60.72');
    return if $name eq '60.72';
    my (undef, undef, $header) = $self->read_frame;
    my $size = unpack 'x4 Q>', $header;
    my %message = (%{ decode_properties(substr $header, 12) }, body => '');
    @{ $message{headers} } = grep { $_->[0] ne 'x-delivery-count' } @{ $message{headers} };
    $message{body} .= ($self->read_frame)[2] while length $message{body} < $size;
    $self->method($channel, 60, 80, substr($arguments, 0, 8) . "\0");
    return \%message;
}

sub drain {
    my ($self, $queue) = @_;
    my @messages;
    while (my $message = $self->get($queue)) { push @messages, $message }
    return @messages;
}

sub close { my ($self) = @_; eval { $self->call(0, 10, 50, pack('n', 200) . short('') . "\0\0\0\0") }; CORE::close($self->{socket}) }

1;
