# SPDX-License-Identifier: Apache-2.0
#
# A private certificate authority, by openssl.
#
#   my $ours = Authority->new("$dir/ours", 'Waybill tests');
#   my $file = $ours->issue('right', cn => 'localhost', names => 'DNS:localhost,IP:127.0.0.1');
#   # "$file.pem", "$file.key" (PKCS #8, without a password); the authority's own is $ours->pem
#
# expired => 1 makes one whose time was over in 2020. P-256 keys take no time.
package Authority;
use strict;
use warnings;
use File::Path ();

sub run {
    my ($self, @command) = @_;
    my $log = "$self->{dir}/openssl.log";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', $log;
        open STDERR, '>&', \*STDOUT;
        exec 'openssl', @command or POSIX::_exit(99);
    }
    waitpid $pid, 0;
    die "openssl @command failed, see $log\n" if $?;
}

sub write_file {
    my ($path, $text) = @_;
    open my $file, '>', $path or die "$path: $!\n";
    print $file $text;
    close $file or die "$path: $!\n";
}

my @key = qw(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes);

sub new {
    my ($class, $dir, $name) = @_;
    my $self = bless { dir => $dir }, $class;
    File::Path::make_path("$dir/issued");
    write_file("$dir/index", '');
    write_file("$dir/ca.cnf", <<END);
[ca]
default_ca = authority
[authority]
database = $dir/index
new_certs_dir = $dir/issued
certificate = $dir/ca.pem
private_key = $dir/ca.key
default_md = sha256
rand_serial = yes
unique_subject = no
policy = anything
[anything]
commonName = supplied
END
    $self->run(qw(req -x509), @key, qw(-days 30 -subj), "/CN=$name", '-keyout', "$dir/ca.key", '-out', $self->pem);
    return $self;
}

sub pem { my ($self) = @_; return "$self->{dir}/ca.pem" }

sub issue {
    my ($self, $name, %about) = @_;
    my $file = "$self->{dir}/$name";
    my $names = $about{names} ? "subjectAltName = $about{names}\n" : '';
    write_file("$file.ext", "basicConstraints = critical,CA:false\n$names");
    $self->run('req', @key, '-subj', "/CN=$about{cn}", '-keyout', "$file.key", '-out', "$file.csr");
    my @time = $about{expired} ? qw(-startdate 20200101000000Z -enddate 20200201000000Z) : qw(-days 30);
    $self->run(qw(ca -batch -notext -config), "$self->{dir}/ca.cnf", '-extfile', "$file.ext", @time, '-in', "$file.csr", '-out', "$file.pem");
    chmod 0600, "$file.key";
    return $file;
}

# The certificates that servers show, by what is wrong with them; `others` sign one, too.
sub servers {
    my ($self, $others) = @_;
    my %right = (cn => 'localhost', names => 'DNS:localhost,DNS:127.1,IP:127.0.0.1');
    return (
        right    => $self->issue('right', %right),
        wrong    => $self->issue('wrong', cn => 'elsewhere.example', names => 'DNS:elsewhere.example'),
        expired  => $self->issue('expired', %right, expired => 1),
        stranger => $others->issue('stranger', %right),
    );
}

1;
