# SPDX-License-Identifier: Apache-2.0
#
# Handler modules in other languages than C, built by the tests that run them, out of a source tree that may be read-only.
#
#   Languages::compilers();                                  # of C++, those that are there
#   Languages::build_cxx('g++', 'x.cc', 'x.so', 'sqlite3');  # what went wrong, '' if nothing did
#   Languages::has_cargo() or skip ...;
#   Languages::cargo('build', '--manifest-path', ...);       # likewise; what is built lies below target_dir()
#
# Where CI is set all of it has to be there.
package Languages;
use strict;
use warnings;

our $build  = $ENV{top_builddir} || die "top_builddir is not set: run this through make\n";
our $source = $ENV{top_srcdir}   || die "top_srcdir is not set: run this through make\n";
our @strict = qw(-Wall -Wextra -Wpedantic -Wconversion -Werror);

sub is_there { my ($name) = @_; return system("command -v $name >/dev/null 2>&1") == 0 }

sub compilers {
    my @found = grep { is_there($_) } qw(g++ clang++);
    die "g++ and clang++ are not both there\n" if $ENV{CI} && @found < 2;
    return @found;
}

# The output of a command that failed; "" of one that did not.
sub failure_of {
    my (@command) = @_;
    my $pid = open my $out, '-|' // die "fork: $!\n";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        open STDIN, '<', '/dev/null';
        exec @command or print "$command[0]: $!\n" and exit 1;
    }
    my $text = join '', <$out>;
    close $out and return '';
    return "@command\n$text";
}

sub flags_of {
    my (@packages) = @_;
    return map { my $text = `pkg-config --cflags --libs $_ 2>/dev/null`; split ' ', $text || "-l$_" } @packages;
}

sub build_cxx {
    my ($compiler, $file, $module, @packages) = @_;
    return failure_of($compiler, '-std=c++17', '-g', @strict, "-I$source/include", "-I$source", '-shared', '-fPIC', '-Wl,-z,defs', $file, '-o', $module, flags_of(@packages));
}

# Without its headers and its code: only whether it compiles.
sub compile_cxx {
    my ($compiler, $standard, $file, @packages) = @_;
    return failure_of($compiler, "-std=$standard", @strict, "-I$source/include", "-I$source", '-fsyntax-only', $file, grep { !/^-l/i } flags_of(@packages));
}

# ---- Rust ------------------------------------------------------------------------------
sub has_cargo {
    return 1 if is_there('cargo');
    die "cargo is not there\n" if $ENV{CI};
    return 0;
}

sub target_dir { return "$build/bindings/target" }
sub example_of { my ($name) = @_; return target_dir() . "/debug/examples/lib$name.so" }
sub module_of { my ($name) = @_; return target_dir() . "/debug/lib$name.so" }

# Nothing is fetched, nothing is written beside the sources.
sub cargo {
    my ($verb, @arguments) = @_;
    local $ENV{CARGO_TARGET_DIR} = target_dir();
    local $ENV{RUSTFLAGS} = $ENV{CI} ? '-D warnings' : '';    # a later compiler knows more of them
    return failure_of('cargo', $verb, '--quiet', '--offline', @arguments);
}

1;
