# SPDX-License-Identifier: Apache-2.0
#
# A pair of transport and persistence: "amqp+pgsql", "sqlite+sqlite/file". Each half is a
# file of its own (Transport/, Store/) and knows nothing of the other; what they have
# in common is here: the configuration, and how the suite reaches queues and tables
# without the endpoint.
#
#   Pair->named('amqp+pgsql', $space)    $space: a name for what trials share, one a job
#
# A transport: home, section (of the configuration), queue (its own name for one), environment
#   (what the handlers have to know of these names), keeps_order, installed, prepare, inject, drain,
#   peek, take_all, lead_to_sink, state (ready, consumers, errors).
# A store: home, section, types, handlers, prepare, make_tables, effects, ledger, pending, state
#   (effects, pending); see Store.pm.
# Where there are connections, cut breaks them; where there are none, file names what to lock.
# `home` is what queues or tables lie in: installed once, then used by trial after trial.
package Pair;
use strict;
use warnings;
use File::Path ();
use Tools;

my %modes = (    # what follows a "/" in a pair's name
    ''     => { mode => 'receive_only' },
    file   => { mode => 'receive_only',      one_file => 1 },
    scope  => { mode => 'transaction_scope', one_file => 1 },
    atomic => { mode => 'sends_atomic_with_receive' },
);

sub split_name {
    my ($name) = @_;
    my ($transport, $store, $mode) = $name =~ m{^(\w+)\+(\w+)(?:/(\w+))?$} or die "no such pair: $name\n";
    $mode //= $store eq 'none' ? 'atomic' : '';    # an outbox needs a store
    return ($transport, $store, $modes{$mode} || die "no such pair: $name\n");
}

sub named {
    my ($class, $name, $space) = @_;
    my ($transport, $store, $mode) = split_name($name);
    my $self = bless { name => $name, space => $space, %$mode }, $class;
    $self->{transport} = half("Transport::\u$transport", $mode);
    $self->{store}     = half("Store::\u$store", $mode);
    $self->{root} = ($ENV{CRASH_DIR} || "$Crash::build/tests/crash/work") . "/$space";
    File::Path::make_path($self->{root});
    return $self;
}

sub half {
    my ($class, $mode) = @_;
    require( $class =~ s{::}{/}r . '.pm' );
    return $class->new(%$mode);
}

sub is_built {
    my ($transport, $store) = split_name($_[0]);
    my $plugin = $store eq 'pgbouncer' ? 'pgsql' : $store;
    my @plugins = ("transport/$transport", $store eq 'none' ? () : "persistence/$plugin");
    return @plugins == grep { -e "$Crash::build/plugins/$_/@{[ m{(\w+)$} ]}.la" } @plugins;
}

sub has_outbox { my ($name) = @_; return (split_name($name))[2]{mode} eq 'receive_only' }

# What the pair does not promise: see Oracle.pm.
sub waived {
    my ($self) = @_;
    my @waived = $self->{transport}->keeps_order ? () : 'order';
    push @waived, 'copy'   if $self->{mode} eq 'receive_only';
    push @waived, 'double' if $self->{mode} eq 'sends_atomic_with_receive';
    return @waived;
}

# ---- configuration: the endpoint under test, and the endpoint whose queue collects what
#      it sends
sub write_file {
    my ($path, $text) = @_;
    open my $file, '>', $path or die "$path: $!\n";
    print $file $text;
    close $file or die "$path: $!\n";
}

sub module { return "$Crash::build/tests/crash/.libs/$_[0].so" }

sub configuration {
    my ($self, $trial) = @_;
    my $outbox = $self->{mode} eq 'receive_only' ? 'true' : 'false';
    # Kills and looks into the queue count as deliveries; only `poison` wants them to add up.
    my $retries = $trial->{retries} // 20;
    my $recoverability = "recoverability = { immediate_retries = $retries; "
        . qq(delayed_retries = $trial->{delayed_retries}; delay_increment = "@{[ $trial->{increment} * 1000 ]}ms"; delay_jitter = 0; )
        . ($trial->{delays} ? 'on_failure = "delay"; ' : '')    # of messages with a key, too
        . qq(error_queue = "@{[ $self->{transport}->queue('error') ]}"; };);
    my $delays = $trial->{delays} ? qq(delayed_delivery = { by = "$trial->{delays}"; };) : '';
    my $session = $trial->{sessions} ? "session = { $trial->{sessions} };" : '';
    my $retention = $trial->{retention} ? qq(retention = "$trial->{retention}";) : '';
    my $by = join ', ', map { qq("$_") } @{ $trial->{by} || [] };    # how what came before is known
    $by &&= "by = [$by];";
    my $apart = $trial->{apart} ? $self->apart_section($trial) : '';
    my $deduplication = $by || $apart ? "deduplication = { $by $apart };" : '';
    my $audit  = $trial->{audit} ? qq(audit = { queue = "@{[ $self->{transport}->queue('audit') ]}"; };) : '';
    return (<<END, <<END);
endpoints = (
  { name = "@{[ $self->{transport}->queue('crash') ]}"; handlers = ["@{[ $trial->{handlers} || module($self->{store}->handlers) ]}"];
    concurrency = $trial->{concurrency}; batch_max = $trial->{batch_max}; transaction_mode = "$self->{mode}";
    @{[ $self->{transport}->section ]}
    @{[ $self->{store}->section ]}
    outbox = { enabled = $outbox; cleanup_interval = "1s"; sweep_after = "2s"; $retention $deduplication };
    $delays $audit $session
    $recoverability }
);
END
endpoints = (
  { name = "@{[ $self->{transport}->queue('sink') ]}"; handlers = ["@{[ module('sink') ]}"]; concurrency = 1;
    @{[ $self->{transport}->section ]}
    @{[ $recoverability =~ s/delayed_retries = \d+/delayed_retries = 0/r ]} }
);
END
}

# Where ids go when they are done with: in a file of its own, or in the servers that there are.
sub apart_section {
    my ($self, $trial) = @_;
    my $store = half("Store::\u$trial->{apart}", {});
    $store->{dir} = "$trial->{dir}/apart";
    File::Path::make_path($store->{dir});
    return $store->section =~ s/^persistence = /store = /r;
}

sub write_configuration {
    my ($self, $trial) = @_;
    my ($endpoint, $sink) = $self->configuration($trial);
    write_file("$trial->{dir}/endpoint.conf", $endpoint);
    write_file("$trial->{dir}/sink.conf",     $sink);
}

sub environment { return (WAYBILL_PLUGIN_DIR => "$Crash::build/plugins", $_[0]{transport}->environment) }

my %installed;    # homes of this process

sub install {
    my ($self, $trial) = @_;
    local %ENV = (%ENV, $self->environment);
    my ($transport, $store) = map { $_->home } @$self{qw(transport store)};
    my $apart = ($trial->{apart} // '') eq 'sqlite' ? $trial->{dir} : $trial->{apart} // '-';
    my $both = join ' ', $self->{mode}, $apart, $trial->{delays} // '-', $trial->{audit} // '-', "@{ $trial->{by} || [] }", $transport, $store;
    return if $installed{$both};
    for my $file (qw(endpoint.conf sink.conf)) {
        system("'$Crash::program' install -c '$trial->{dir}/$file' >>'$trial->{dir}/endpoint.log' 2>&1") == 0
            or die "install -c $trial->{dir}/$file failed: see $trial->{dir}/endpoint.log\n";
    }
    $self->{transport}->installed unless $installed{"queues $transport"}++;
    $self->{store}->make_tables   unless $installed{"tables $store"}++;
    $installed{$both} = 1;
}

# A directory for the trial's files, and nothing left over from the trial before.
sub begin {
    my ($self, $trial) = @_;
    my $dir = $trial->{dir} = "$self->{root}/$trial->{prefix}";
    File::Path::make_path($dir);
    @$_{qw(dir trial)} = ($dir, $trial->{prefix}) for @$self{qw(transport store)};
    $self->{store}{endpoint}  = $self->{transport}->queue('crash');
    $self->{transport}{audit} = $trial->{audit};
    $self->{store}{delays}    = ($trial->{delays} // '') eq 'store';
    $self->write_configuration($trial);
    $self->install($trial);
    $_->prepare for @$self{qw(transport store)};
    return $dir;
}
sub end { }

# ---- what is where
sub types        { return $_[0]{store}->types }
sub inject       { my ($self, $trial, @lines) = @_; $self->{transport}->inject(@lines) }
sub drain        { return $_[0]{transport}->drain }
sub peek         { return $_[0]{transport}->peek }
sub take_all     { return $_[0]{transport}->take_all }
sub lead_to_sink { $_[0]{transport}->lead_to_sink }

sub effects      { my ($self, $trial) = @_; return $self->{store}->effects($trial) }
sub ledger       { my ($self, $trial) = @_; return $self->{store}->ledger($trial) }
sub pending      { my ($self, $trial) = @_; return $self->{store}->pending($trial) }
sub end_leases   { $_[0]{store}->end_leases }

# Counts: effects, pending, ready, consumers, errors. With fewer effects than are wanted the transport, whose queues programs look
# at, is not asked: the first two.
sub state {
    my ($self, $trial, $wanted) = @_;
    my %state = $self->{store}->state($trial);
    return \%state if $wanted && $state{effects} < $wanted;
    %state = (%state, $self->{transport}->state);
    $state{errors} += grep { $_->{queue} eq 'error' } @{ $trial->{drained} };
    return \%state;
}

1;
