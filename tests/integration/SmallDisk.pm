# SPDX-License-Identifier: Apache-2.0
#
# Small disks of a test's own that can be filled: file systems in memory where mounting is
# permitted, else a library in front of write() that says that there is no room.
#
#   SmallDisk::own_space();                     # first thing: nobody else sees the mounts
#   my $disk = SmallDisk->new($directory, '64m');
#   $disk->fill; ...; $disk->free;
#   %ENV = (%ENV, SmallDisk::environment());    # of a process that is to meet them
package SmallDisk;
use strict;
use warnings;

my @disks;

sub own_space {
    return if $ENV{WB_OWN_SPACE};
    for my $how ([ '-m' ], [ '-r', '-m' ]) {
        next if system("unshare @$how true 2>/dev/null") != 0;
        $ENV{WB_OWN_SPACE} = 'mounts';
        exec 'unshare', @$how, $^X, $0, @ARGV;
    }
    $ENV{WB_OWN_SPACE} = 'none';
}

sub new {
    my ($class, $directory, $size) = @_;
    mkdir $directory or die "$directory: $!\n";
    my $mounted = $ENV{WB_OWN_SPACE} eq 'mounts' && system("mount -t tmpfs -o size=$size none $directory 2>/dev/null") == 0;
    my $self = bless { directory => $directory, mounted => $mounted }, $class;
    push @disks, $self;
    return $self;
}

sub environment {
    my @shims = grep { !$_->{mounted} } @disks;
    return @shims ? (LD_PRELOAD => "$ENV{top_builddir}/tests/integration/.libs/full_disk.so", WB_DISKS => join ':', map { $_->{directory} } @shims) : ();
}

sub fill {
    my ($self) = @_;
    open my $file, '>', "$self->{directory}/filler" or die "filler: $!\n";
    return if !$self->{mounted};
    my $block = "\1" x 4096;
    1 while syswrite $file, $block;
}

sub free { my ($self) = @_; unlink "$self->{directory}/filler" }

END {
    my $status = $?;
    for (grep { $_->{mounted} } @disks) { system "umount -l $_->{directory}" }
    $? = $status;
}
1;
