# SPDX-License-Identifier: Apache-2.0
#
# A server of the test's own (tests/support/server), with more in its configuration, and how it
# is told things while it runs.
#
#   my $broker = PrivateServer->start('rabbitmq', configuration => $text, environment => { .. });
#   $broker->keep($file, 'ca.pem');                         # a copy that its account may read
#   $broker->present($certificate);                         # what it shows from now on
#
# Its addresses are in %ENV, as with-servers gives them. It is ended with the test.
package PrivateServer;
use strict;
use warnings;
use File::Copy ();
use POSIX ();
use Time::HiRes qw(sleep time);
use Endpoint;
use Test::More;

my $tool = "$Endpoint::source/tests/support/server";
my %account = (pgsql => 'postgres', mariadb => 'mysql');
my %shown = (pgsql => 'server', mariadb => 'tls/server');
my @running;

END {
    my $status = $?;
    system $tool, 'stop', $_->{dir} for @running;
    $? = $status;
}

sub free_ports {
    my ($count) = @_;
    my @ports = split ' ', `$Endpoint::source/tests/support/free-port @{[ Endpoint::work_dir() ]} $count`;
    die "no free port\n" if @ports != $count;
    return @ports;
}

sub start {
    my ($class, $kind, %how) = @_;
    my $self = bless { kind => $kind, dir => Endpoint::work_dir() . "/$kind", shown => $how{shown} // $shown{$kind} }, $class;
    local %ENV = (%ENV, %{ $how{environment} || {} });
    delete $ENV{WB_SERVER_CONFIGURATION};
    if ($how{configuration}) {
        $ENV{WB_SERVER_CONFIGURATION} = Endpoint::work_dir() . "/$kind.conf";
        Endpoint::write_file($ENV{WB_SERVER_CONFIGURATION}, $how{configuration});
    }
    my $code = system($tool, 'start', $kind, $self->{dir}) >> 8;
    unlink $ENV{WB_SERVER_CONFIGURATION} if $how{configuration};    # it may hold passwords
    if ($code == 77 && !$ENV{CI}) { plan skip_all => "$kind is not installed"; }
    die "$kind did not start\n" if $code;
    push @running, $self;
    return $self;
}

sub enter_environment {
    my ($self) = @_;
    my %variables = `$tool env $self->{dir}` =~ /^(\w+)='([^']*)'/mg;
    @ENV{ keys %variables } = values %variables;
    return $self;
}

sub data { my ($self) = @_; return Endpoint::read_file("$self->{dir}/data") =~ s/\s+$//r }
sub restart { my ($self) = @_; system($tool, 'restart', $self->{dir}) == 0 or die "$self->{kind} did not start again\n" }

# A copy of a file in the server's data, which its account may read, and nobody else.
sub keep {
    my ($self, $from, $name) = @_;
    my $to = $name =~ m{^/} ? $name : $self->data . "/$name";
    File::Copy::copy($from, "$to.new") or die "$to: $!\n";
    chmod 0600, "$to.new";
    if ($> == 0 && $account{ $self->{kind} }) {
        my (undef, undef, $uid, $gid) = getpwnam $account{ $self->{kind} };
        chown $uid, $gid, "$to.new";
    }
    rename "$to.new", $to or die "$to: $!\n";
    return $to;
}

# From now on it shows this certificate: `files` without .pem and .key.
sub present {
    my ($self, $files) = @_;
    $self->keep("$files.$_", "$self->{shown}.$_") for qw(pem key);
    my $reload = "reload_$self->{kind}";
    $self->$reload;
}

sub reload_pgsql {
    my ($self) = @_;
    my ($pid) = Endpoint::read_file($self->data . '/db/postmaster.pid') =~ /^(\d+)/;
    kill 'HUP', $pid;
}
sub reload_mariadb { my ($self) = @_; $self->administer('flush ssl') }
sub reload_rabbitmq { my ($self) = @_; $self->erlang('ssl:clear_pem_cache()') }

# MariaDB's administrator comes through the socket.
sub administer {
    my ($self, $sql) = @_;
    open my $client, '-|', qw(mariadb --no-defaults --host=localhost --protocol=SOCKET --skip-ssl -N -B), '--user=' . getpwuid($>),
        '--socket=' . $self->data . '/socket', '-e', $sql or die "mariadb: $!\n";
    my @rows = <$client>;
    close $client or die "sql failed: $sql\n";
    return @rows;
}

# RabbitMQ: the value of an expression, as Erlang writes it; one that returns ok; one that is true.
sub value {
    my ($self, $expression) = @_;
    my $data = $self->data;
    my %port = Endpoint::read_file("$data/ports") =~ /(dist|epmd)_port=(\d+)/g;
    my $cookie = Endpoint::read_file("$data/.erlang.cookie");
    my $input = Endpoint::work_dir() . '/erlang';
    Endpoint::write_file($input, "$expression.\n");
    my $answer = `HOME=$data ERL_EPMD_PORT=$port{epmd} erl_call -h tests$$ -address localhost:$port{dist} -c $cookie -e <$input 2>&1`;
    unlink $input;
    return $answer =~ /^\{ok, (.*)\}\s*$/s ? $1 : die "erl_call: $answer\n";
}
sub erlang { my ($self, $expression) = @_; my $value = $self->value($expression); die "erl_call: $value\n" if $value ne 'ok' }
sub answers { my ($self, $expression) = @_; return $self->value($expression) eq 'true' ? 1 : 0 }

1;
