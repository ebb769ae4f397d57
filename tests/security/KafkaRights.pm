# SPDX-License-Identifier: Apache-2.0
#
# Kafka's access control lists, by its protocol: what takes a Java machine's start with kafka-acls.
#
#   my $rights = KafkaRights->new("127.0.0.1:$port");      # a listener whose users are super users
#   $rights->allow('clerk', topic => 'orders', 'read');
#   $rights->forbid('clerk', topic => 'orders', 'read');   # takes that one away
#   $rights->allow('clerk', transaction => 'orders.', 'write', prefixed => 1);
package KafkaRights;
use strict;
use warnings;
use IO::Socket::INET;

my %resource  = (topic => 2, group => 3, cluster => 4, transaction => 5);
my %operation = (read => 3, write => 4, create => 5, describe => 8, configs => 10, idempotent => 12);

sub new {
    my ($class, $address) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => $address, Timeout => 5) or die "no broker at $address: $!\n";
    return bless { socket => $socket }, $class;
}

sub string { return pack 'n/a*', $_[0] }

sub take {
    my ($self, $size) = @_;
    my $bytes = '';
    while (length $bytes < $size) { sysread $self->{socket}, $bytes, $size - length $bytes, length $bytes or die "the broker closed the connection\n" }
    return $bytes;
}

# Version 1 of a request, which has one element; both answers begin with its error.
sub ask {
    my ($self, $key, $element) = @_;
    my $request = pack('n n N n', $key, 1, ++$self->{number}, 0xffff) . pack('N', 1) . $element;
    syswrite $self->{socket}, pack 'N/a*', $request;
    my $answer = $self->take(unpack 'N', $self->take(4));
    my (undef, undef, $count, $error, $size) = unpack 'N N N n n', $answer;
    die "the broker refuses: error $error\n" if $error;
    return $answer;
}

sub allow {
    my ($self, $user, $kind, $name, $operation, %how) = @_;
    $self->ask(30, pack('C', $resource{$kind}) . string($name) . pack('C', $how{prefixed} ? 4 : 3) . string("User:$user") . string('*')
            . pack('C C', $operation{$operation}, 3));
}
sub forbid {
    my ($self, $user, $kind, $name, $operation, %how) = @_;
    $self->ask(31, pack('C', $resource{$kind}) . string($name) . pack('C', $how{prefixed} ? 4 : 3) . string("User:$user") . string('*')
            . pack('C C', $operation{$operation}, 3));
}

1;
