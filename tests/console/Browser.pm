# SPDX-License-Identifier: Apache-2.0
#
# A browser, told what to do by WebDriver: Debian's chromium and chromium-driver, and what of Perl is everywhere.
#
#   my $browser = Browser->new($directory);          # a fresh profile in it
#   $browser->go('http://127.0.0.1:9464/');
#   $browser->wait_for('#groups', sub { ... });      # elements that match, once the condition holds
#   $browser->click('#groups a');
#   is $browser->text('h1'), 'Failed messages';
#   $browser->screenshot("$directory/failures.png");
#
# Whoever made one ends it: when it is destroyed the browser and its driver are gone.
package Browser;
use strict;
use warnings;
use File::Temp ();
use HTTP::Tiny;
use IO::Socket::INET;
use JSON::PP ();
use MIME::Base64 ();
use POSIX ();
use Time::HiRes qw(sleep time);

my $json = JSON::PP->new->utf8->allow_nonref;

sub is_there { return !grep { my $name = $_; !grep { -x "$_/$name" } split /:/, $ENV{PATH} } qw(chromium chromedriver) }

sub new {
    my ($class, $directory, $port) = @_;
    my $self = bless { directory => $directory, port => $port, owner => $$ }, $class;
    mkdir $directory;
    # a socket is in it, and the names of those are short
    my $tmp = File::Temp::tempdir('browser-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    $self->{driver} = fork // die "fork: $!\n";
    if (!$self->{driver}) {
        setpgrp 0, 0;    # the browser, too: it is ended with its driver
        $ENV{HOME} = $ENV{XDG_CONFIG_HOME} = $ENV{XDG_CACHE_HOME} = $directory;
        $ENV{TMPDIR} = $tmp;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$directory/driver.log";
        open STDERR, '>&', \*STDOUT;
        exec 'chromedriver', "--port=$port" or POSIX::_exit(99);
    }
    $self->{http} = HTTP::Tiny->new(timeout => 120, keep_alive => 1);
    $self->{url} = "http://127.0.0.1:$port";
    $self->begin;
    return $self;
}

sub begin {
    my ($self) = @_;
    my $end = time + 60;
    until (eval { $self->call('GET', '/status')->{ready} }) {
        die "chromedriver does not answer: $@" if time > $end;
        sleep 0.1;
    }
    # The tests run as root in a container: there the browser's own sandbox cannot be had. It shows nothing but our pages.
    my @arguments = ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-extensions', '--disable-background-networking', '--disable-component-update',
        '--no-first-run', '--disable-sync', '--no-default-browser-check', '--hide-scrollbars', '--force-device-scale-factor=1', "--user-data-dir=$self->{directory}/profile", '--window-size=1280,900');
    my $session = $self->call('POST', '/session', { capabilities => { alwaysMatch => { 'goog:chromeOptions' => { args => \@arguments }, 'goog:loggingPrefs' => { browser => 'ALL' } } } });
    $self->{session} = "/session/$session->{sessionId}";
}

# One more, of the same driver, which has to live longer.
sub another {
    my ($self, $directory) = @_;
    mkdir $directory;
    my $other = bless { %$self, directory => $directory, driver => 0, session => undef, http => HTTP::Tiny->new(timeout => 120, keep_alive => 1) }, ref $self;
    $other->begin;
    return $other;
}

sub call {
    my ($self, $method, $path, $given) = @_;
    my $body = $method eq 'POST' ? $json->encode($given || {}) : undef;
    my $answer = $self->{http}->request($method, $self->{url} . $path, defined $body ? { content => $body, headers => { 'Content-Type' => 'application/json' } } : {});
    my $value = eval { $json->decode($answer->{content})->{value} };
    die "$method $path: " . (ref $value eq 'HASH' && $value->{message} ? "$value->{error}: " . (split /\n/, $value->{message})[0] : "$answer->{status} $answer->{content}") . "\n" if !$answer->{success};
    return $value;
}
sub of_session { my ($self, $method, $path, $given) = @_; return $self->call($method, "$self->{session}$path", $given) }

sub go { my ($self, $url) = @_; return $self->of_session('POST', '/url', { url => $url }) }

# The value of a script's body; its arguments are `arguments`.
sub run { my ($self, $script, @arguments) = @_; return $self->of_session('POST', '/execute/sync', { script => $script, args => \@arguments }) }
sub protocol { my ($self, $command, $parameters) = @_; return $self->of_session('POST', '/goog/cdp/execute', { cmd => $command, params => $parameters || {} }) }

# Whether a script's value becomes true; what it was then.
sub wait_for {
    my ($self, $script, $seconds) = @_;
    my $end = time + ($seconds || 40);
    while (time < $end) {
        my $value = eval { $self->run("return $script") };
        return $value if $value;
        sleep 0.1;
    }
    return;
}

sub element {
    my ($self, $selector) = @_;
    my $end = time + 40;
    while (1) {
        my $found = eval { $self->of_session('POST', '/element', { using => 'css selector', value => $selector }) };
        return '/element/' . (values %$found)[0] if $found;
        die "nothing is \"$selector\": $@" if time > $end;
        sleep 0.1;
    }
}

# What is on the page may be put in place anew while it is looked at.
sub again {
    my ($self, $do) = @_;
    my $end = time + 40;
    while (1) {
        my @value = eval { ($do->()) };
        return wantarray ? @value : $value[0] if !$@;
        die $@ if time > $end || $@ !~ /stale element|not interactable|click intercepted|no such element/;
        sleep 0.1;
    }
}
sub click { my ($self, $selector) = @_; return $self->again(sub { $self->of_session('POST', $self->element($selector) . '/click') }) }
sub type  { my ($self, $selector, $text) = @_; return $self->again(sub { $self->of_session('POST', $self->element($selector) . '/value', { text => $text }) }) }
sub text  { my ($self, $selector) = @_; return $self->again(sub { $self->of_session('GET', $self->element($selector) . '/text') }) }

# Keys, to whatever has the focus: "\x{e004}" is Tab, "\x{e007}" Enter, "\x{e00c}" Escape.
sub press {
    my ($self, @keys) = @_;
    return $self->of_session('POST', '/actions', { actions => [ { type => 'key', id => 'keyboard', actions => [ map { ({ type => 'keyDown', value => $_ }, { type => 'keyUp', value => $_ }) } @keys ] } ] });
}

# What the page said of errors since it was asked last: scripts that failed, what its security policy refused.
sub complaints { my ($self) = @_; return map { $_->{message} } grep { $_->{level} eq 'SEVERE' } @{ $self->of_session('POST', '/se/log', { type => 'browser' }) } }

# A width, and a scheme: "light" or "dark".
sub look {
    my ($self, $width, $scheme) = @_;
    $self->protocol('Emulation.setDeviceMetricsOverride', { width => $width, height => 900, deviceScaleFactor => $width < 500 ? 2 : 1, mobile => $width < 500 ? JSON::PP::true : JSON::PP::false });
    $self->protocol('Emulation.setEmulatedMedia', { features => [ { name => 'prefers-color-scheme', value => $scheme } ] });
}

# All of the page, or as much of it as is seen.
sub screenshot {
    my ($self, $path, $is_seen) = @_;
    my ($height) = $self->run($is_seen ? 'return innerHeight' : 'return Math.min(document.documentElement.scrollHeight, 3000)');
    my ($width) = $self->run('return innerWidth');
    my $image = $self->protocol('Page.captureScreenshot', { format => 'png', captureBeyondViewport => JSON::PP::true, clip => { x => 0, y => 0, width => $width, height => $height, scale => 1 } });
    open my $file, '>:raw', $path or die "$path: $!\n";
    print $file MIME::Base64::decode_base64($image->{data});
    close $file or die "$path: $!\n";
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $@, $!);
    return if $$ != $self->{owner};
    $self->{http}{timeout} = 10;
    eval { $self->of_session('DELETE', '') } if $self->{session};
    return if !$self->{driver};
    kill 'KILL', -$self->{driver};
    waitpid $self->{driver}, 0;
}
1;
