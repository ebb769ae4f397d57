# SPDX-License-Identifier: Apache-2.0
#
# RabbitMQ. Trials of a job share a virtual host, the one of `with-servers`.
package Transport::Amqp;
use strict;
use warnings;
use Tools;

sub new { my ($class, %self) = @_; return bless \%self, $class }
sub queue { return $_[1] }
sub environment { }
sub keeps_order { return 0 }
sub home { return "$ENV{AMQP_HOST}:$ENV{AMQP_PORT}/$ENV{AMQP_VHOST}" }

sub section {
    return qq(transport = { plugin = "amqp"; host = "$ENV{AMQP_HOST}"; port = $ENV{AMQP_PORT}; )
        . qq(vhost = "$ENV{AMQP_VHOST}"; user = "$ENV{AMQP_USER}"; password = "env:AMQP_PASSWORD"; };);
}

sub tool {
    my ($self, @arguments) = @_;
    return Tools::run('', "$Crash::build/tests/crash/sink-amqp", @arguments);
}

# A queue that was deleted leaves its exchange behind: only "mandatory" tells then.
sub installed { $_[0]->tool('lead-nowhere', 'nowhere') }
sub outputs { return (qw(sink error), $_[0]{audit} ? 'audit' : ()) }
sub prepare { my ($self) = @_; $self->tool('drain', 'crash', $self->outputs) }

sub inject {
    my ($self, @lines) = @_;
    Tools::run(join('', @lines), "$Crash::build/tests/crash/inject-amqp", 'crash');
}

sub drain { my ($self) = @_; return Tools::messages($self->tool('drain', $self->outputs)) }
sub peek  { return map { $_->[1] } Tools::rows($_[0]->tool('peek', 'crash')) }
sub take_all { return map { $_->[1] } Tools::rows($_[0]->tool('drain', 'crash')) }
sub lead_to_sink { $_[0]->tool('lead-to-sink', 'nowhere') }

sub state {
    my ($self) = @_;
    my %queue = map { $_->[0] => $_ } Tools::rows($self->tool('depth', qw(crash error)));
    return (ready => $queue{crash}[1], consumers => $queue{crash}[2], errors => $queue{error}[1]);
}

sub cut { Tools::server('cut', 'rabbitmq', $ENV{AMQP_VHOST}) }

1;
