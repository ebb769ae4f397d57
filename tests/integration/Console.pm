# SPDX-License-Identifier: Apache-2.0
#
# Who asks the console without a browser; and an endpoint that keeps failed messages, beside the one that is tested.
#
#   $Console::port = ...;
#   my ($status, $text, $head) = Console::ask('/api/session', method => 'POST', headers => ['Authorization: Bearer ...'], body => '');
package Console;
use strict;
use warnings;
use IO::Socket::INET;

our $port;

sub connection { my ($at) = @_; return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $at, Timeout => 10) }

# Begin to ask, and take the answer: status, text and headers; nothing when nobody answers.
sub begin {
    my ($path, %more) = @_;
    my $at = $more{port} || $port;
    my $body = $more{body} // '';
    my $headers = join '', map { "$_\r\n" } @{ $more{headers} || [] };
    my $socket = connection($at) or return;
    $socket->autoflush(1);
    local $SIG{PIPE} = 'IGNORE';
    print $socket "@{[ $more{method} // 'GET' ]} $path HTTP/1.1\r\nHost: 127.0.0.1:$at\r\nConnection: close\r\nContent-Length: @{[ length $body ]}\r\n$headers\r\n$body";
    return $socket;
}
sub take {
    my ($socket) = @_;
    return ('') if !$socket;
    local $SIG{ALRM} = sub { die "no answer\n" };
    alarm 90;
    my $all = do { local $/; <$socket> } // '';
    alarm 0;
    my ($head, $text) = split /\r\n\r\n/, $all, 2;
    return (($head // '') =~ m{^HTTP/1\.1 (\d+)} ? $1 : '', $text // '', $head // '');
}
sub ask { return take(begin(@_)) }

# `of` an endpoint, with the same plugins; `more` is in its group.
package Keeper;
sub group {
    my ($self) = @_;
    my $e = $self->{of};
    return qq(  { name = "kept"; failures = { from = ["error"]; }; concurrency = 1; outbox = { enabled = true; sweep_after = "1s"; cleanup_interval = "1s"; }; @{[ $self->{more} // '' ]}\n    )
        . $e->transport_text . "\n    " . $e->persistence_text . ' }';
}
sub prepare { }
1;
