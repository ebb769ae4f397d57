#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What `waybill new` writes builds and passes at once: a handler on each persistence and each transport, after nothing but where the
# servers are was said; plugins load under their names.
use strict;
use warnings;
use Test::More;
use lib "$ENV{top_srcdir}/tests/integration";
use Endpoint;

Endpoint::under_servers(qw(pgsql mariadb rabbitmq kafka));
$ENV{WAYBILL} = my $waybill = "$Endpoint::build/waybill";
$ENV{WAYBILL_PLUGIN_DIR} = "$Endpoint::build/plugins";
$ENV{MYSQL_PWD} = $ENV{MYSQL_PASSWORD};
my $work = Endpoint::work_dir();
chdir $work or die "$work: $!\n";

# What is not installed: pkg-config knows all but Waybill.
Endpoint::write_file("$work/pkg-config", <<"END");
#!/bin/sh
for word; do
    shift
    test "\$word" = waybill || set -- "\$@" "\$word"
done
echo "-I$Endpoint::source/include \$(pkg-config "\$@")"
END
chmod 0755, "$work/pkg-config";

sub run { my (@command) = @_; my $text = `@command 2>&1 </dev/null`; return ($? >> 8, $text) }
sub succeeds {
    my ($what, @command) = @_;
    my ($code, $text) = run(@command);
    is $code, 0, $what or diag $text;
    return $text;
}

# ---- handlers --------------------------------------------------------------------------------------------
my %where = (
    sqlite => '',
    amqp   => qq(host = "$ENV{AMQP_HOST}"; port = $ENV{AMQP_PORT}; vhost = "$ENV{AMQP_VHOST}"; user = "$ENV{AMQP_USER}"; password = "env:AMQP_PASSWORD";),
    kafka  => qq(brokers = "$ENV{KAFKA_BROKERS}"; partitions = 1;),
    pgsql  => '',
    mysql  => qq(host = "$ENV{MYSQL_HOST}"; port = $ENV{MYSQL_PORT}; user = "$ENV{MYSQL_USER}"; password = "env:MYSQL_PASSWORD"; database = "$ENV{MYSQL_DATABASE}";),
);
my $client = qq(mariadb -N -h "$ENV{MYSQL_HOST}" -P $ENV{MYSQL_PORT} -u "$ENV{MYSQL_USER}" "$ENV{MYSQL_DATABASE}");

# As a reader of the project's README does it.
sub say_where {
    my ($name, @plugins) = @_;
    my $conf = Endpoint::read_file("$name/$name.conf");
    for my $plugin (grep { $where{$_} } @plugins) {
        $conf =~ s/(plugin = "$plugin";)[^}]*\}/$1 $where{$plugin} }/ or die "no $plugin in $conf";
    }
    Endpoint::write_file("$name/$name.conf", $conf);
    my $try = Endpoint::read_file("$name/try");
    $try =~ s/mariadb [^;]*/$client/;
    Endpoint::write_file("$name/try", $try);
}

for my $pair ([qw(sqlite sqlite)], [qw(amqp pgsql)], [qw(kafka mysql)]) {
    my ($transport, $persistence) = @$pair;
    my $name = ($ENV{KAFKA_PREFIX} // 'new') . "-$transport";
    $name = 'order' if $transport eq 'sqlite';    # a word of SQL
    my @options = $transport eq 'sqlite' ? () : ('--transport', $transport, '--persistence', $persistence);
    like succeeds("$transport and $persistence: a project", $waybill, 'new', 'handler', $name, @options), qr{^\Q$name\E/README\.md }, 'which says what to read';
    is join(' ', sort map { s{.*/}{}r } glob "$name/*"), join(' ', sort 'Makefile', 'README.md', "$name.c", "$name.conf", 'tables.sql', 'try'), 'its files';
    unlike join('', map { Endpoint::read_file($_) } glob "$name/*"), qr/\@[A-Z]+\@/, 'nothing is left to fill in';
    succeeds('its module is built', 'make', '-C', $name, qq("PKG_CONFIG=$work/pkg-config"), '"CFLAGS=-Wall -Wextra -Werror"');
    succeeds('waybill check takes the configuration as it is', $waybill, 'check', '-c', "$name/$name.conf");
    say_where($name, @$pair);
    like succeeds('make check', 'make', '-C', $name, 'check', qq("PKG_CONFIG=$work/pkg-config"), '"CFLAGS=-Wall -Wextra -Werror"'), qr/sent twice and handled once/, 'handled once';
    like succeeds('and again', 'make', '-C', $name, 'check', qq("PKG_CONFIG=$work/pkg-config")), qr/sent twice and handled once/, 'as often as one likes';
}

# The longest name, in all of the longest settings.
my $long = 'l' . 'o' x 38 . 'g';
succeeds('forty characters', $waybill, 'new', 'handler', $long, '--persistence', 'mysql');
like Endpoint::read_file("$long/$long.conf"), qr/database = "$long"; \};/, 'nothing is cut';
like Endpoint::read_file("$long/try"), qr/^sql\(\) \{ mariadb .* $long; \}/m, 'there, too';

# ---- plugins ---------------------------------------------------------------------------------------------
my %sources = (transport => 'carrier.c', persistence => 'plugin.c file.c transaction.c outbox.c');
my %libraries = (transport => '', persistence => '-llmdb');
for my $kind (qw(transport persistence)) {
    succeeds("a $kind", $waybill, 'new', 'plugin', $kind, 'carrier', '--directory', $kind);
    my @named = grep { Endpoint::read_file($_) =~ /\bnull|_LMDB_|(?<![<\[b])lmdb/ } glob "$kind/*";
    is "@named", '', 'nothing has the old name';
    succeeds('it builds', "cd $kind && mkdir -p $kind &&", "cc -std=c11 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -I$Endpoint::source/include $sources{$kind} $libraries{$kind} -o $kind/carrier.so");
    local $ENV{WAYBILL_PLUGIN_DIR} = "$work/$kind";
    like succeeds('it loads', $waybill, 'plugins', '--describe', 'carrier'), qr/carrier/, 'under its name';
}

# ---- what is refused --------------------------------------------------------------------------------------
my %own = map { s{.*/}{}r => 1 } grep { -d } glob "$Endpoint::source/plugins/{transport,persistence}/*";
my @own = sort keys %own;
cmp_ok scalar @own, '>=', 5, "plugins of Waybill: @own";
my @cases = (
    [ 73, 'handler order', qr/cannot make the directory "order"/, 'what is there is not written over' ],
    [ 73, 'handler other --directory none/such', qr/cannot make the directory "none\/such"/, 'a directory that cannot be' ],
    [ 64, 'handler Order', qr/"Order" is no name for this/, 'a name that queues and tables have not' ],
    [ 64, 'plugin transport my-own', qr/"my-own" is no name/, 'nor functions' ],
    [ 64, "handler \"'\"", qr/is no name/, 'a quotation mark' ],
    [ 64, "handler \"o'k\"", qr/is no name/, 'behind a letter, too' ],
    [ 64, 'handler l' . 'o' x 40, qr/40 at most/, 'one that is too long' ],
    (map { my $name = $_; map { [ 64, "plugin $_ $name", qr/"$name" is a plugin of Waybill/, "the name of one that is there: $_ $name" ] } qw(transport persistence) } @own),
    [ 64, 'handler x --persistence oracle', qr/"oracle" is not sqlite, pgsql or mysql/, 'a persistence that is not there' ],
    [ 64, 'handler x --transport mqtt', qr/"mqtt" is not sqlite, amqp or kafka/, 'a transport that is not there' ],
    [ 64, 'plugin observer x', qr/"observer" is not transport or persistence/, 'a kind that is none' ],
    [ 64, 'plugin transport x --persistence sqlite', qr/only a handler/, 'what plugins have not' ],
    [ 64, 'plugin x', qr/say new handler NAME/, 'a plugin of no kind' ],
    [ 64, 'handler a b', qr/say new handler NAME/, 'a handler of too many' ],
    [ 64, 'saga x', qr/"saga" is not handler or plugin/, 'something else' ],
);
for (@cases) {
    my ($wanted, $arguments, $words, $what) = @$_;
    my ($code, $text) = run("$waybill new $arguments");
    ok $code == $wanted && $text =~ $words, $what or diag "$code $text";
}
is join(' ', grep { -e } @own, qw(Order my-own x other a b)), '', 'and nothing is left of it';
my ($code, $text) = run("sh -c \"trap '' XFSZ; ulimit -f 1; exec $waybill new handler full\"");
ok $code == 73 && $text =~ m{cannot write "full/[^"]+": File too large}, 'a file that cannot be written' or diag "$code $text";
ok !-e 'full', 'nothing is left of that either';

done_testing;
