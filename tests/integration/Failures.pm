# SPDX-License-Identifier: Apache-2.0
#
# Beside an endpoint whose messages fail one that keeps them, with the same plugins; and what `waybill failures` says of it.
package Failures;
use strict;
use warnings;
use JSON::PP ();
use Exporter 'import';
our @EXPORT_OK = qw(keeper failures json count ids table failed_in);

my $n = 'NServiceBus';

# What an endpoint that is configured now keeps.
our $group = 'failures = { from = ["error"]; };';

# For configure(beside => [ ... ]); the text goes into its group.
sub keeper {
    my ($e, $text) = @_;
    return bless { of => $e, text => $text // '' }, 'Failures::Keeper';
}

package Failures::Keeper {
    sub group {
        my ($self) = @_;
        my $e = $self->{of};
        return qq(  { name = "kept"; $Failures::group $self->{text}\n    concurrency = 2; outbox = { enabled = true; sweep_after = "1s"; cleanup_interval = "1s"; };\n)
            . '    ' . $e->transport_text . "\n    " . $e->persistence_text . ' }';
    }
    sub prepare { }
}

sub failures { my ($e, @arguments) = @_; return $e->run('failures', @arguments) }
sub json {
    my ($e, @arguments) = @_;
    my ($code, $text) = failures($e, @arguments, '--json');
    (my $json = $text) =~ s/^(?:waybill: |\d{4}-).*\n//mg;
    die "failures @arguments: $code: $text" if $json eq '';
    return JSON::PP->new->decode($json);
}
sub count { my ($e, @arguments) = @_; return scalar @{ json($e, 'list', @arguments) } }
sub ids { my ($e, @arguments) = @_; return join ' ', map { $_->{id} } @{ json($e, 'list', @arguments) } }

sub table {
    my ($e) = @_;
    return $e->{pair} =~ /mysql/ ? '`kept_failed`' : $e->{pair} =~ /pgsql/ ? '"kept_failed"' : '"waybill_kept_failed"';
}

# What failed in another endpoint, at that time.
sub failed_in {
    my ($endpoint, $time, $id, $body) = @_;
    return { id => $id, type => 'T.T', body => $body // $id, headers => [ [ "$n.FailedQ" => 'sink' ], [ "$n.ProcessingEndpoint" => $endpoint ], [ "$n.TimeOfFailure" => "$time:000000 Z" ], [ "$n.ExceptionInfo.Message" => 'no' ] ] };
}

1;
