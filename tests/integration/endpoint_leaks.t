#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What a message holds stays in the message: databases quote values in their errors, and ids may hold any
# bytes. Neither the log, nor the error queue's headers, nor what a verb prints has any of it.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

my $has_mysql = Endpoint::has_mysql();
Endpoint::under_servers('pgsql', $has_mysql ? 'mariadb' : ());
my $exception = 'NServiceBus.ExceptionInfo';
my $secret = 'tell-nobody';

# What is deferred, and what must be told of it.
my %quoting = (
    pgsql => {
        'no-number'    => [ "select '$secret'::int", qr/malformed \(SQLSTATE 22P02; .*its log/ ],
        'no-date'      => [ "select '$secret'::date", qr/SQLSTATE 22007/ ],
        'no-json'      => [ "select '{$secret'::json", qr/SQLSTATE 22P02/ ],
        'taken'        => [ "insert into private values ('$secret'), ('$secret')", qr/violates unique constraint "private_pkey" \(SQLSTATE 23505\)/ ],
        'checked'      => [ "insert into private values ('$secret!')", qr/"private" violates check constraint "no_mark" \(SQLSTATE 23514\)/ ],
        'no-parent'    => [ "insert into child values ('$secret')", qr/violates foreign key constraint "of_parent" \(SQLSTATE 23503\)/ ],
        'no-statement' => [ "select '$secret' '$secret'", qr/syntax error \(SQLSTATE 42601/ ],
        'no-bytes'     => [ "select convert_from('\\xff'::bytea || '$secret'::bytea, 'UTF8')", qr/SQLSTATE 22021/ ],
        'no-zone'      => [ "select now() at time zone '$secret'", qr/SQLSTATE 22023/ ],
        'no-unit'      => [ "select extract('$secret' from now())", qr/SQLSTATE 22023/ ],
        'no-regexp'    => [ "select 'x' ~ '($secret'", qr/SQLSTATE 2201B/ ],
        'warned'       => [ "do \$\$ begin raise warning using message = 'as its author wants', detail = '$secret'; perform 1/0; end \$\$", qr/division by zero/ ],
        'raised'       => [ "do \$\$ begin raise exception using message = 'out of stock', detail = '$secret', hint = '$secret'; end \$\$", qr/out of stock \(SQLSTATE P0001\)/ ],
        # the handler tells what the connection says: still without DETAIL
        'by-handler'   => [ "insert into private values ('$secret'), ('$secret')", qr/duplicate key/, 'sql' ],
    },
    mysql => {
        'taken'        => [ "insert into private values ('$secret'), ('$secret')", qr/duplicate entry: (?:private\.)?PRIMARY \(error 1062/ ],
        'no-number'    => [ "insert into numbers values ('$secret')", qr/does not fit its column: `?\w+.*number.* \(error 1366/ ],
        'no-statement' => [ "insert into '$secret' values (1)", qr/syntax error \(error 1064/ ],
        'no-date'      => [ "insert into days values ('$secret')", qr/\(error 1292/ ],
        'no-parent'    => [ "insert into child values ('$secret')", qr/foreign key constraint fails.*of_parent.*\(error 1452/ ],
        'too-long'     => [ 'insert into private values (\'' . "$secret " x 40 . '\')', qr/too long for column .*\(error 1406/ ],
        'like-a-key'   => [ "insert into private values (\"x' for key '$secret\"), (\"x' for key '$secret\")", qr/duplicate entry: (?:private\.)?PRIMARY \(/ ],
        'checked'      => [ "insert into private values ('$secret!')", qr/no_mark.*\(error (?:4025|3819)/ ],
        'raised'       => [ 'insert into stock values (1)', qr/out of stock \(error 1644/ ],
    },
);
my %tables = (
    pgsql => [ "create table private (name text primary key, constraint no_mark check (name not like '%!'))",
        'create table parent (name text primary key)', 'create table child (name text constraint of_parent references parent)' ],
    mysql => [ "create table private (name varchar(100) primary key, constraint no_mark check (name not like '%!')) engine = InnoDB",
        'create table stock (number int) engine = InnoDB',
        "create trigger stock before insert on stock for each row signal sqlstate '45000' set message_text = 'out of stock'",
        'create table numbers (number int) engine = InnoDB', 'create table days (day date) engine = InnoDB',
        'create table parent (name varchar(100) primary key) engine = InnoDB',
        'create table child (name varchar(100), constraint of_parent foreign key (name) references parent (name)) engine = InnoDB' ],
);

# Bytes that a terminal would obey: control characters of either kind, no UTF-8, line and paragraph
# separators, a change of direction.
sub obeyed { my ($text) = @_; return $text =~ /[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae\x8e\x8f]|\xe2\x81[\xa6-\xa9]|\xd8\x9c/ || !utf8::decode(my $copy = $text) }

sub check_values {
    my ($e, $store) = @_;
    my $cases = $quoting{$store};
    my %failed = map { $_->{id} => $_ } do {
        $e->send('orders', map { my $case = $cases->{$_}; { id => $_, do => ($case->[2] || 'defer') . " $case->[0]" } } sort keys %$cases);
        $e->collect('error', scalar keys %$cases, 'what fails is in the error queue');
    };
    for my $id (sort keys %$cases) {
        my %header = %{ $failed{$id} ? $failed{$id}{header} : {} };
        delete $header{do};    # the message's own
        like $header{"$exception.Message"}, $cases->{$id}[1], "$store, $id: what failed is told";
        is_deeply [ grep { $header{$_} =~ /\Q$secret\E/ } sort keys %header ], [], "$store, $id: no header quotes it";
    }
    is_deeply [ $e->log_lines(qr/\Q$secret\E/) ], [], "$store: nor does the log";
}

sub check_bytes {
    my ($e, $store) = @_;
    my @ids = ("\xc2\x9b2J", "\x9b2J\xff", "\x1b]0;x\x07", "\xe2\x80\xaetxt\xe2\x80\xa8level=error", "gr\xc3\xbc\xc3\x9fe", "a\nlevel=error msg=forged");
    $e->send('orders', map { { id => $_, do => "fail unrecoverable $_" =~ s/\n.*//sr } } @ids);
    $e->collect('error', scalar @ids, 'hostile ids are in the error queue');
    $e->wait_for('and logged', sub { $e->log_lines(qr/moved to the error queue.*fail|UnrecoverableMessage|kind=/) >= @ids });
    is_deeply [ grep { obeyed($_) } split /\n/, Endpoint::read_file($e->{log}) ], [], "$store: the log holds nothing that a terminal obeys";
    is scalar($e->log_lines(qr/^level=error/)), 0, "$store: no line is forged";
    ok scalar($e->log_lines(qr/message_id="gr\xc3\xbc\xc3\x9fe"/)), "$store: letters stay letters";
    $e->stop;
    $e->send('orders', map { { id => "p$_", do => "send nowhere$_ T.T x" =~ s/\n.*//sr } } @ids[ 0 .. 3 ]);
    $e->start;
    $e->collect('error', 1, 'what goes nowhere is in the error queue');
    $e->wait_for('its operations wait', sub { $e->pending >= 1 });
    for my $verb ([ 'outbox', 'pending' ], [ 'outbox', 'pending', '--json' ]) {
        my ($code, $text) = $e->run(@$verb);
        is $code, 0, "$store: @$verb";
        is_deeply [ grep { obeyed($_) } split /\n/, $text ], [], "$store: @$verb: nothing that a terminal obeys";
    }
}

# Where a server is named: what may be a part of a password is not quoted, whoever would quote it.
my @uris = map { ("postgresql://clerk:$_\@db.invalid/shop", "postgres://clerk:$_\@db.invalid:5432/shop?connect_timeout=1") } 'QQ@ZZ', 'QQ/ZZ', '7712/ZZ', 'QQ@ZZ/77@x', 'QQ:Q/ZZ';
my %naming = (
    pgsql => [ (map { qq(conninfo = "$_";) } @uris, 'host=db.invalid password=QQ ZZ', 'host=db.invalid passwort=QQZZ', "password='QQ'ZZ", 'postgresql://clerk:QQ%ZZ@db.invalid/shop'),
        'host = "clerk:QQZZ@db.invalid";', 'host = "ZZ@db.invalid"; port = 5432;', 'host = "postgresql://clerk:QQZZ@db.invalid/shop";' ],
    mysql => ['host = "clerk:QQZZ@db.invalid"; database = "shop";'],
);

sub check_connection_strings {
    my ($e) = @_;
    for my $plugin ('pgsql', $has_mysql ? 'mysql' : ()) {
        for my $options (@{ $naming{$plugin} }) {
            $e->configure(store_group => qq(persistence = { plugin = "$plugin"; $options };));
            my ($code, $text) = $e->run('check');
            is $code, 78, "$plugin: $options is refused" or diag $text;
            like $text, qr/^\Q$e->{conf}\E:\d+: endpoint "orders": persistence "$plugin": /m, "$plugin: in its place";
            unlike $text, qr/QQ|ZZ|77/, "$plugin: without a part of it";
        }
    }
    # what is escaped is no part of the name, and the name is told
    $e->configure(store_group => 'persistence = { plugin = "pgsql"; conninfo = "postgresql://clerk:QQ%40Z%2FZ@%2Fnowhere-there/shop"; };');
    is +($e->run('check'))[0], 0, 'pgsql: an escaped password is none of it';
    my ($code, $text) = $e->run('install');
    is $code, 69, 'pgsql: but there is no such server';
    like $text, qr/nowhere-there/, 'pgsql: which is named';
    unlike $text, qr/QQ|Z%2F|Z\/Z/, 'pgsql: without the password';
}

{
    my $e = Endpoint->new('sqlite+pgsql');
    check_connection_strings($e);
}
for my $store ('pgsql', $has_mysql ? 'mysql' : ()) {
    my $e = Endpoint->new("sqlite+$store", retries => 1);
    $e->install;
    $e->sql($_) for @{ $tables{$store} };
    $e->start;
    check_values($e, $store);
    check_bytes($e, $store);
    is $e->stop, 0, "$store: it stops";
}
done_testing;
