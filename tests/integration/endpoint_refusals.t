#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What is wrong with a configuration and can be known without a network: `waybill check` says it, with the
# line it stands in, and all of it at once; `waybill run` says the same and nothing else. No server is there.
#
# A row is what it is about, and the lines of an endpoint's group, or of several. What a line is to be refused
# for stands behind it, "#! SENTENCE" as often as needed; in front of the sentence come place and endpoint, and
# what ends with " ..." goes on as a library has it. {D} is a directory of the test, {T} has the plugins and
# modules of the unit tests, {H} and {I} are modules with hooks, {L} is a long name. A group that is not given is
# added: handlers, and a sqlite transport.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration";
use Test::More;
use Endpoint;

my $dir = Endpoint::work_dir();
my %words = (D => $dir, T => "$Endpoint::build/tests/unit", L => 'x' x 300, H => Endpoint::module('hooks_one'), I => Endpoint::module('hooks_two'));
my $e = bless { dir => $dir, conf => "$dir/refused.conf", trace => "$dir/trace" }, 'Endpoint';

delete @ENV{ grep { /^PG|^SSL_CERT/ } keys %ENV };
@ENV{qw(HOME PGSERVICEFILE)} = ($dir, "$dir/services");
Endpoint::write_file("$dir/no.pem", "this is no certificate\n");
Endpoint::write_file("$dir/services", "[local]\nhost=127.0.0.1\n[wrong]\nsslmode=maybe\n");
Endpoint::write_file("$dir/closed.db", '');
mkdir "$dir/$_" or die "$dir/$_: $!\n" for qw(folder closed);
chmod 0400, "$dir/closed.db";
chmod 0500, "$dir/closed";

# What the lines ask for may not be built here, and root may write everywhere.
sub is_built { my ($plugin) = @_; return grep { -e "$Endpoint::build/plugins/$_/$plugin/.libs/$plugin.so" } qw(transport persistence) }
sub is_possible {
    my ($lines) = @_;
    return 0 if $> == 0 && $lines =~ m{\{D\}/closed};
    return !grep { !is_built($_) } $lines =~ /plugin = "(amqp|kafka|mysql|pgsql)"/g;
}

sub group {
    my ($lines) = @_;
    my @more = $lines =~ /^\s*(?:send_only|handlers)\b/m ? () : 'handlers = ["{T}/handlers/.libs/orders.so"];';
    push @more, 'transport = { plugin = "sqlite"; file = "{D}/queues.db"; };' if $lines !~ /^\s*transport\b/m;
    my $text = '  { ' . ($lines =~ /^\s*name\b/m ? '' : 'name = "orders"; ') . "@more\n$lines  }";
    $text =~ s/\{([A-Z])\}/$words{$1}/g;
    return $text;
}

my $top = '';    # beside the endpoints

sub configure {
    (my $text = "plugin_path = [ \"$words{T}/plugins\" ];\n$top") =~ s/\{([A-Z])\}/$words{$1}/g;
    Endpoint::write_file($e->{conf}, "${text}endpoints = (\n" . join(",\n", map { group($_) } @_) . "\n);\n");
}

# What is to be said of the file.
sub expected {
    my ($number, $name, @said) = (0, '');
    for (split /\n/, Endpoint::read_file($e->{conf})) {
        $number++;
        $name = $1 if /name = "([^"]*)"/;
        my (undef, @sentences) = split /\s*#! /;
        for (@sentences) {
            my $warning = s/^warning: // ? 'warning: ' : '';
            push @said, "$e->{conf}:$number: $warning" . (s/^file: // ? $_ : qq(endpoint "$name": $_));
        }
    }
    return [ sort @said ];
}

# Its lines, those that begin as is expected and go on being as expected.
sub said {
    my ($text, $expected) = @_;
    my @lines = split /\n/, $text;
    for my $begin (map { /^(.*) \.\.\.$/ ? $1 : () } @$expected) {
        $_ = "$begin ..." for grep { index($_, $begin) == 0 } @lines;
    }
    return [ sort @lines ];
}

sub refused {
    my ($what, @groups) = @_;
    configure(@groups);
    my $expected = expected();
    my ($code, $checked) = $e->run('check');
    is $code, 78, "$what: check refuses it";
    is_deeply said($checked, $expected), $expected, "$what: and says where and why" or diag $checked;
    ($code, my $ran) = $e->run('run');
    like $code // 'it does not end', qr/^(?:7[028]|77)$/, "$what: run refuses it, too";
    is $ran, $checked, "$what: and says the same";
}

# What no server is needed to judge is right.
sub taken {
    my ($what, @groups) = @_;
    configure(@groups);
    my ($code, $text) = $e->run('check');
    is $code, 0, "$what: check takes it";
    is_deeply [ grep { /^\Q$e->{conf}\E:|level=/ } split /\n/, $text ], expected(), "$what: and says no more" or diag $text;
}

# ---- what the core reads --------------------------------------------------------------------

my @refused = (
    'a syntax error' => [ <<'END' ],
    concurrency = ; #! file: syntax error; ...
END
    'an option out of range, one that there is not, one of another type' => [ <<'END' ],
    concurrency = 0; #! option "concurrency" = 0 is out of range (1 to 1024)
    batch_tiem = "5ms"; #! unknown option "batch_tiem"; did you mean "batch_time"?
    settings = { limit = 5; }; #! option "settings" = (hidden) is not a string (write it in double quotes)
END
    'names' => [ <<'END' ],
    name = "a b"; #! option "name" = "a b" is not a name (1 to 200 printable ASCII characters without blanks, quotes, back-quotes and backslashes)
    audit = {
      queue = "error"; #! option "audit.queue" = "error" is the endpoint's own queue or its error queue, or a type's; use another name
    };
END
    'a secret that is not there' => [ <<'END' ],
    transport = { plugin = "amqp";
      password = "env:NOBODY_SETS_THIS"; #! transport "amqp": option "password": environment variable "NOBODY_SETS_THIS" is not set
    };
END
    'two endpoints of a name' => [ "    batch_max = 5;\n", <<'END' ],
    name = "orders"; #! this name was used in {D}/refused.conf:3 already; give each endpoint its own
END
    'a plugin that is not there' => [ <<'END' ],
    transport = { #! there is no transport plugin "squeue" in ...
      plugin = "squeue"; };
END
    'modules that are none, and one that is not there' => [ <<'END' ],
    handlers = [
      "{D}/no.pem", #! handler module "{D}/no.pem" is refused: ...
      "{D}/no.so" ]; #! there is no handler module "{D}/no.so"
END
    'what the plugins cannot do' => [ <<'END' ],
    transaction_mode = "transaction_scope"; #! transaction_mode = "transaction_scope" needs transport and persistence to share one transaction, but ...
    delayed_delivery = {
      by = "store"; #! delayed_delivery by = "store": there is no persistence to keep messages; use one that stores delayed messages, or remove the line
    };
END
    'retries of a type, where nobody can make them' => [ <<'END', <<'MORE' ],
    transaction_mode = "none"; persistence = { plugin = "sqlite"; file = "{D}/shop.db"; };
    recoverability = { types = ( { type = "Sales.CancelOrder"; immediate_retries = 0; delayed_retries = 0; },
      { type = "Sales.PlaceOrder"; immediate_retries = 1; delayed_retries = 2; } ); }; #! immediate_retries = 1 cannot be honoured with transaction_mode = "none" ... #! delayed_retries = 2 cannot be honoured with transaction_mode = "none" ...
END
    name = "billing"; recoverability = { delayed_retries = 0; types = (
      { type = "Sales.PlaceOrder"; delayed_retries = 2; } ); }; #! delayed_retries = 2: transport "sqlite" cannot delay messages, and there is no persistence; ...
MORE
    'retries of copies that nobody would know again' => [ map { <<"END" } 'delayed_retries = 2;', 'types = ( { type = "Sales.PlaceOrder"; delayed_retries = 2; } );' ],
    name = "@{[ /types/ ? 'billing' : 'orders' ]}";
    transport = { plugin = "kafka"; brokers = "localhost"; };
    persistence = { plugin = "sqlite"; file = "{D}/shop.db"; };
    outbox = { enabled = true; deduplication = { by = [ "position" ]; }; };
    recoverability = { $_ }; #! delayed_retries = 2: the copy that is retried is a new message, which may be sent twice, and by = ["position"] ...
END
    'commands that nobody handles' => [ <<'END' ],
    commands = [ "Nobody.Handles" ]; #! "commands" names "Nobody.Handles", for which there is no handler
END
    'settings that two modules find wrong' => [ <<'END' ],
    handlers = [
      "{H}", #! handler module "{H}": the setting "limit" = "many" is no number (its settings are in line 8)
      "{I}" #! handler module "{I}": the setting "limit" = "many" is no number (its settings are in line 8)
    ]; batch_max = 5;
    settings = { limit = "many"; };
END

    # ---- sqlite: the file -------------------------------------------------------------------

    'sqlite: no file at all' => [ <<'END' ],
    transport = { plugin = "sqlite";
      file = ""; #! transport "sqlite": file = "" is not the path of a file
    };
    persistence = { plugin = "sqlite";
      file = "{D}/folder"; #! persistence "sqlite": file = "{D}/folder" is not the path of a file
    };
END
    'sqlite: neither in memory nor a URI' => [ <<'END' ],
    transport = { plugin = "sqlite";
      file = ":memory:"; #! transport "sqlite": file = ":memory:" is not the path of a file
    };
    persistence = { plugin = "sqlite";
      file = "sqlite:shop.db"; #! persistence "sqlite": file = "sqlite:shop.db" is not the path of a file
    };
END
    'sqlite: a directory that is not there' => [ <<'END' ],
    transport = { plugin = "sqlite";
      file = "{D}/nowhere/queues.db"; #! transport "sqlite": file = "{D}/nowhere/queues.db" cannot be used: there is no directory "{D}/nowhere": create it
    };
    persistence = { plugin = "sqlite";
      busy_timeout = "0s"; #! persistence "sqlite": option "busy_timeout" = "0s" is out of range (1ms to 1h)
      file = "{D}/nowhere/shop.db"; };
END
    'sqlite: a name that is too long' => [ <<'END' ],
    transport = { plugin = "sqlite";
      file = "{D}/{L}"; #! transport "sqlite": file = "{D}/{L}" cannot be used: File name too long
    };
END
    'sqlite: nothing may be written there' => [ <<'END' ],
    transport = { plugin = "sqlite";
      file = "{D}/closed/queues.db"; #! transport "sqlite": file = "{D}/closed/queues.db" cannot be used: Permission denied: it must be readable and writable
    };
    persistence = { plugin = "sqlite";
      file = "{D}/closed.db"; #! persistence "sqlite": file = "{D}/closed.db" cannot be used: Permission denied: it must be readable and writable
    };
END
    'sqlite: the store of ids' => [ <<'END' ],
    persistence = { plugin = "sqlite"; file = "{D}/shop.db"; };
    outbox = { enabled = true; deduplication = { store = { plugin = "sqlite";
      file = "{D}/nowhere/ids.db"; #! outbox.deduplication.store "sqlite": file = "{D}/nowhere/ids.db" cannot be used: there is no directory "{D}/nowhere": create it
    }; }; };
END
    'sqlite: the tables of a processor' => [ <<'END' ],
    send_only = true;
    session = { processor_endpoint = "billing"; };
    outbox = { enabled = true; };
    persistence = { plugin = "sqlite";
      file = "{D}/nowhere/billing.db"; #! persistence "sqlite": file = "{D}/nowhere/billing.db" cannot be used: there is no directory "{D}/nowhere": create it
    };
END

    # ---- amqp ------------------------------------------------------------------------------

    (map { my ($host, $why) = @$_; ("amqp: host \"$host\"" => [ <<"END" ]) }
    transport = { plugin = "amqp";
      host = "$host"; #! transport "amqp": host = "$host" $why
    };
END
        [ '', 'cannot be used: a name is empty or too long' ], [ 'a b', 'cannot be used: a name holds a bracket or a blank' ],
        [ 'a,b', 'is several names: write hosts = "a,b"' ], [ 'localhost:5673', 'cannot be used: a port belongs into the option port' ],
        [ '[::1', 'cannot be used: a bracket is not closed' ], [ '{L}', 'cannot be used: a name is empty or too long' ]),
    'amqp: hosts' => [ <<'END' ],
    transport = { plugin = "amqp";
      hosts = "localhost:0"; #! transport "amqp": hosts = "localhost:0" cannot be used: a port is a number from 1 to 65535
    };
END
    'amqp: a password in a name' => [ <<'END' ],
    transport = { plugin = "amqp";
      hosts = "u:p@localhost"; #! transport "amqp": hosts holds "@", and what stands before it may be a password, so it is not shown here: ...
    };
END
    'amqp: one host or several' => [ <<'END' ],
    transport = { plugin = "amqp"; hosts = "localhost";
      host = "127.0.0.1"; #! transport "amqp": host and hosts are both set: keep one of them
    };
END
    'amqp: a virtual host' => [ <<'END' ],
    transport = { plugin = "amqp";
      vhost = "{L}"; #! transport "amqp": vhost = "{L}" cannot name a virtual host: 1 to 255 bytes
    };
END
    'amqp: plain text' => [ <<'END' ],
    transport = { plugin = "amqp"; host = "broker.example"; user = "orders"; password = "env:HOME";
      tls = "off"; #! transport "amqp": tls = "off" with broker "broker.example", which is not on this machine: use TLS, or set allow_insecure = true
    };
END
    'amqp: an account that is the same everywhere' => [ <<'END' ],
    transport = { #! transport "amqp": user "guest" with its default password is refused for broker "broker.example", which is not on this machine: set user and password
      plugin = "amqp"; host = "broker.example"; };
END
    'amqp: half a certificate' => [ <<'END' ],
    transport = { plugin = "amqp";
      tls_cert_file = "{D}/no.pem"; #! transport "amqp": tls_cert_file is set without tls_key_file: a client certificate needs both
    };
END
    'amqp: no certificate to log in by' => [ <<'END' ],
    transport = { plugin = "amqp";
      sasl = "external"; #! transport "amqp": sasl = "external" logs in by a certificate: set tls_cert_file and tls_key_file, and tls = "on" with a broker on this machine
    };
END
    'amqp: authorities that are not there' => [ <<'END' ],
    transport = { plugin = "amqp"; tls = "on";
      tls_ca_file = "{D}/nowhere.pem"; #! transport "amqp": tls_ca_file = "{D}/nowhere.pem" cannot be read: No such file or directory
    };
END
    'amqp: authorities that are none' => [ <<'END' ],
    transport = { plugin = "amqp"; tls = "on";
      tls_ca_file = "{D}/no.pem"; #! transport "amqp": tls_ca_file = "{D}/no.pem" cannot be used: ...
    };
END
    'amqp: names of exchanges' => [ <<'END' ],
    transport = { plugin = "amqp";
      dead_letter_exchange = ""; #! transport "amqp": dead_letter_exchange "" cannot name an exchange: 1 to 255 bytes
    };
END
    'amqp: routing keys' => [ <<'END', <<'MORE' ],
    transport = { plugin = "amqp";
      routing_keys = [ "A=b" ]; #! transport "amqp": routing_keys are of no use without topology = "direct"
    };
END
    name = "billing";
    transport = { plugin = "amqp"; topology = "direct";
      routing_keys = [ "A" ]; #! transport "amqp": routing_keys holds "A": write TYPE=KEY, with the type's full name without assemblies
    };
MORE
    'amqp: a URL' => [ <<'END' ],
    transport = { plugin = "amqp";
      management = "nonsense"; #! transport "amqp": management ...
    };
END
    'amqp: names of queues' => [ <<'END', <<'MORE' ],
    name = "queue:orders";
    transport = { #! transport "amqp": an endpoint cannot be named "queue:orders": as a destination this is the queue "orders"
      plugin = "amqp"; };
END
    name = "billing"; recoverability = { error_queue = "queue:"; };
    transport = { #! transport "amqp": error queue "queue:" cannot name a queue: 1 to 255 bytes
      plugin = "amqp"; };
MORE

    # ---- kafka -----------------------------------------------------------------------------

    (map { my ($option, $value, $why) = @$_; ("kafka: $option = $value" => [ <<"END" ]) }
    transport = { plugin = "kafka"; @{[ $option eq 'brokers' ? '' : 'brokers = "localhost";' ]}
      $option = $value; #! transport "kafka": $why
    };
END
        [ 'brokers', '", "', 'brokers names no broker: "host:port,host:port"' ],
        [ 'brokers', '"ssl://localhost"', 'brokers = "ssl://localhost" names a protocol: leave it out and use tls and sasl_mechanism' ],
        [ 'brokers', '"u:p@localhost"', 'brokers holds "@", and what stands before it may be a password, so it is not shown here: ...' ],
        [ 'brokers', '"[::1]:1, localhost:many"', 'brokers holds "localhost:many": a port is a number from 1 to 65535' ],
        [ 'brokers', '"localhost:99999"', 'brokers holds "localhost:99999": a port is a number from 1 to 65535' ],
        [ 'user', '"orders"', 'user is set without sasl_mechanism: it would not be used' ],
        [ 'sasl_mechanism', '"plain"', 'sasl_mechanism is set without user' ],
        [ 'message_max', '"1KiB"', 'message_max = 1024 bytes is not more than body_max = 16777216: headers need room, too' ],
        [ 'partitions', 0, q(partitions = 0: use a positive number, or -1 for the broker's default) ],
        [ 'instance', '"{L}"', 'instance = "{L}" is not a name of 1 to 127 bytes' ],
        [ 'properties', '[ "acks=1" ]', 'properties: "acks" is refused: a confirmed message could be lost with one broker' ],
        [ 'properties', '[ "no.such=1" ]', 'properties: "no.such": No such configuration property: ...' ],
        [ 'properties', '[ "linger.ms" ]', 'option "properties" = "linger.ms" is not of the form "name=value"' ],
        [ 'tls_key_file', '"{D}/no.pem"', 'tls_key_file is set without tls_cert_file: a client certificate needs both' ]),
    'kafka: files of TLS' => [ <<'END', <<'MORE' ],
    transport = { plugin = "kafka"; brokers = "localhost"; tls = "on";
      tls_ca_file = "{D}/nowhere.pem"; #! transport "kafka": tls_ca_file = "{D}/nowhere.pem" cannot be read: No such file or directory
    };
END
    name = "billing";
    transport = { plugin = "kafka"; brokers = "localhost"; tls = "on";
      tls_ca_file = "{D}/no.pem"; #! transport "kafka": tls_ca_file cannot be used: ssl.ca.location failed: ...
    };
MORE
    'kafka: names of topics' => [ <<'END', <<'MORE' ],
    name = "a/b";
    transport = { #! transport "kafka": endpoint "a/b": it cannot name a topic: ...
      plugin = "kafka"; brokers = "localhost"; };
END
    name = "billing"; recoverability = { error_queue = "a/b"; };
    transport = { #! transport "kafka": error queue "a/b": it cannot name a topic: ...
      plugin = "kafka"; brokers = "localhost"; };
MORE

    # ---- pgsql -----------------------------------------------------------------------------

    (map { my ($option, $value, $why) = @$_; ("pgsql: $option = \"$value\"" => [ <<"END" ]) }
    persistence = { plugin = "pgsql";
      $option = "$value"; #! persistence "pgsql": $why
    };
END
        [ 'schema', '', 'option "schema" = "" is not a name of 1 to 63 bytes' ],
        [ 'conninfo', 'host', 'option "conninfo" is not a connection string: write ...' ],
        [ 'conninfo', 'postgresql://u:p@ss@h/db', 'option "conninfo" is a URI with an "@" that does not end the password, ...' ],
        [ 'conninfo', 'service=none', 'option "conninfo" cannot be used: definition of service "none" not found' ],
        [ 'conninfo', 'service=wrong', 'option "conninfo" cannot be used: invalid sslmode value: "maybe"' ],
        [ 'conninfo', 'host=localhost,localhost port=1,2,3', 'option "conninfo" cannot be used: could not match 3 port numbers to 2 hosts' ],
        [ 'conninfo', 'host=localhost port=99999', 'option "conninfo" cannot be used: a port is a number from 1 to 65535' ],
        [ 'conninfo', 'host=localhost target_session_attrs=often', 'option "conninfo" cannot be used: invalid target_session_attrs value: "often"' ],
        [ 'conninfo', 'host=localhost keepalives=often', 'option "conninfo" cannot be used: keepalives is no number' ]),
    'pgsql: a password in a name' => [ <<'END' ],
    persistence = { #! persistence "pgsql": the name of the server holds "@", and what stands before it may be a password, so it is not shown here: ...
      plugin = "pgsql"; host = "u:p@db"; };
END
    'pgsql: plain text' => [ <<'END' ],
    persistence = { plugin = "pgsql"; host = "db.example";
      sslmode = "disable"; #! persistence "pgsql": sslmode = "disable" with server "db.example", which is not on this machine: use "verify-full", or set allow_insecure = true
    };
END
    'pgsql: files of TLS' => [ <<'END', <<'MORE' ],
    persistence = { plugin = "pgsql"; host = "localhost"; sslmode = "verify-full";
      sslrootcert = "{D}/nowhere.pem"; #! persistence "pgsql": sslrootcert = "{D}/nowhere.pem" cannot be read: No such file or directory
    };
END
    name = "billing";
    persistence = { #! persistence "pgsql": sslcert = "{D}/nowhere.pem" cannot be read: No such file or directory
      plugin = "pgsql"; conninfo = "host=localhost sslmode=require sslcert={D}/nowhere.pem"; };
MORE

    # ---- mysql -----------------------------------------------------------------------------

    (map { my ($option, $value, $why) = @$_; ("mysql: $option = \"$value\"" => [ <<"END" ]) }
    persistence = { plugin = "mysql"; @{[ $option eq 'database' ? '' : 'database = "shop";' ]}
      $option = "$value"; #! persistence "mysql": $why
    };
END
        [ 'database', '', 'option "database" = "" is not a name of 1 to 64 bytes' ],
        [ 'host', 'u:p@db', 'host holds "@", and what stands before it may be a password, so it is not shown here: ...' ],
        [ 'host', 'db1,db2', 'host = "db1,db2" is several names, and there is no "hosts" for this plugin: name one that leads to the server that takes the writes' ],
        [ 'ssl_ca', '{D}/nowhere.pem', 'ssl_ca = "{D}/nowhere.pem" cannot be read: No such file or directory' ]),
    'mysql: TLS off, and files of it' => [ <<'END', <<'MORE' ],
    persistence = { plugin = "mysql"; database = "shop"; ssl_ca = "{D}/no.pem";
      ssl_mode = "disabled"; #! persistence "mysql": option "ssl_mode" = "disabled" contradicts "ssl_ca", "ssl_cert" and "ssl_key"
    };
END
    name = "billing";
    persistence = { plugin = "mysql"; database = "shop"; host = "db.example";
      ssl_mode = "disabled"; #! persistence "mysql": ssl_mode = "disabled" with server "db.example", which is not on this machine: use "verify_identity", or set allow_insecure = true
    };
MORE

    # ---- third parties ---------------------------------------------------------------------

    'a third party: create() refuses an option, and the plugin as such' => [ <<'END', <<'MORE' ],
    transport = { plugin = "queue";
      path = "/refused"; #! transport "queue": path is refused by the queue
    };
    persistence = { plugin = "table";
      path = "/refused"; #! persistence "table": path is refused by the table
    };
END
    name = "billing";
    transport = { #! transport "queue": this queue is refused by itself
      plugin = "queue"; path = "/nameless"; };
MORE
    'a third party: create() gives no reason, or makes no instance' => [ <<'END' ],
    transport = {
      plugin = "queue"; #! transport "queue": plugin "queue" was not created (reject), and gave no reason: that is an error of the plugin
      path = "/silent"; };
    persistence = {
      plugin = "table"; #! persistence "table": plugin "table" says that it was created, but made no instance: that is an error of the plugin
      path = "/empty"; };
END
    'a third party: delayed messages are not kept in this mode' => [ <<'END' ],
    transport = { plugin = "queue"; };
    persistence = { plugin = "shelf";
      path = "/shelf"; #! persistence "shelf": path is kept with mode none alone
    };
END
    'a third party: one plugin is judged whatever is wrong with the other' => [ <<'END' ],
    transport = { plugin = "queue";
      port = 0; #! transport "queue": option "port" = 0 is out of range (1 to 65535)
    };
    persistence = { plugin = "table";
      path = "/refused"; #! persistence "table": path is refused by the table
    };
END
    'a third party: a warning stands beside an error' => [ <<'END' ],
    transport = { plugin = "queue";
      path = "/warned"; #! warning: transport "queue": path is one that nobody should take (path="/warned")
    };
    persistence = { plugin = "table";
      path = "/refused"; #! persistence "table": path is refused by the table
    };
END
);

# ---- and what is right ------------------------------------------------------------------------

my @taken = (
    'sqlite' => [ qq(    persistence = { plugin = "sqlite"; file = "{D}/shop.db"; };\n    outbox = { enabled = true; };\n) ],
    'amqp' => [ qq(    transport = { plugin = "amqp"; host = "[::1]"; vhost = ""; };\n) ],
    'kafka' => [ qq(    transport = { plugin = "kafka"; brokers = "localhost:1,[::1]:2, 127.0.0.1"; properties = [ "linger.ms=1" ]; };\n) ],
    'pgsql' => [ qq(    persistence = { plugin = "pgsql"; conninfo = "service=local port=5433 target_session_attrs=any"; };\n) ],
    'mysql' => [ qq(    persistence = { plugin = "mysql"; database = "shop"; };\n) ],
    'a server that nobody verifies' => [ <<'END' ],
    persistence = { #! warning: persistence "mysql": the server is on another machine, and nobody verifies that it is the right one: use ssl_mode = "verify_identity" (host="db.example", ssl_mode="required")
      plugin = "mysql"; database = "shop"; host = "db.example"; ssl_mode = "required"; };
END
    'a third party that warns' => [ <<'END' ],
    transport = { plugin = "queue";
      path = "/warned"; #! warning: transport "queue": path is one that nobody should take (path="/warned")
    };
END
);

while (my ($what, $groups) = splice @refused, 0, 2) {
    refused($what, @$groups) if is_possible("@$groups");
}
while (my ($what, $groups) = splice @taken, 0, 2) {
    taken($what, @$groups) if is_possible("@$groups");
}

# ---- where the process answers ----------------------------------------------------------------

my @answers = (
    'an address that others reach' => <<'END',
  listen = "0.0.0.0:9464"; #! file: option "http.listen" = "0.0.0.0:9464" can be reached from other hosts, which needs tls_cert_file, tls_key_file and token; set them, or use "127.0.0.1:PORT"
END
    'the same with TLS alone' => <<'END',
  listen = "[::]:9464"; #! file: option "http.listen" = "[::]:9464" can be reached from other hosts, which needs tls_cert_file, tls_key_file and token; set them, or use "127.0.0.1:PORT"
  tls_cert_file = "{D}/right.pem"; tls_key_file = "{D}/right.key";
END
    'the same with a token alone' => <<'END',
  listen = "10.0.0.1:9464"; #! file: option "http.listen" = "10.0.0.1:9464" can be reached from other hosts, which needs tls_cert_file, tls_key_file and token; set them, or use "127.0.0.1:PORT"
  token = "file:{D}/token";
END
    'an address that is none' => <<'END',
  listen = "localhost"; #! file: option "http.listen" = "localhost" is not an address in numbers and a port; write "127.0.0.1:9464" or "[::1]:9464"
END
    'none at all' => <<'END',
  lisen = "127.0.0.1:9464"; #! file: group "http": unknown option "lisen"; did you mean "listen"?
END
    'a certificate without key' => <<'END',
  listen = "127.0.0.1:9464";
  tls_cert_file = "{D}/right.pem"; #! file: option "http.tls_cert_file": is of no use alone; a certificate and its key belong together
END
    'files of others' => <<'END',
  listen = "127.0.0.1:9464";
  tls_cert_file = "{D}/open.pem"; #! file: option "http.tls_cert_file": secret file "{D}/open.pem" has mode 0666, which lets others read or change it; use chmod go-w
  tls_key_file = "{D}/right.pem"; #! file: option "http.tls_key_file": secret file "{D}/right.pem" has mode 0644, which lets others read or change it; use chmod 0600
  token = "file:{D}/open.token"; #! file: group "http": option "token": secret file "{D}/open.token" has mode 0644, which lets others read or change it; use chmod 0600
END
    'a token that is short, and in clear text' => <<'END',
  listen = "127.0.0.1:9464";
  token = "0123456789abcde"; #! file: option "http.token" is not 16 to 512 printable ASCII characters without blanks; openssl rand -hex 32 makes one #! warning: file: group "http": option "token" holds a secret in clear text; use "env:NAME" or "file:PATH"
END
);
for (['right.pem', 0644], ['right.key', 0600], ['open.pem', 0666], ['token', 0600], ['open.token', 0644]) {
    Endpoint::write_file("$dir/$_->[0]", "0123456789abcdef0123\n");
    chmod $_->[1], "$dir/$_->[0]";
}
while (my ($what, $lines) = splice @answers, 0, 2) {
    $top = "http = {\n$lines};\n";
    $top =~ s/http = \{/http = { #! file: group "http": option "listen" is missing: address and port: "127.0.0.1:9464", "[::1]:9464"/ if $what eq 'none at all';
    refused("http: $what", '');
}
$top = qq(http = {\n  listen = "127.0.0.1:9464";\n};\n);
taken('http: on the loopback', '');
$top = qq(http = {\n  listen = "0.0.0.0:9464"; token = "file:{D}/token"; tls_cert_file = "{D}/right.pem"; tls_key_file = "{D}/right.key";\n};\n);
taken('http: with all it needs', '');
$top = '';

# ---- others that begin alike -------------------------------------------------------------------

my ($wrong, $right) = (qq(    transport = { plugin = "queue";\n      path = "/refused"; };\n), qq(    name = "billing"; batch_max = 5;\n));
my $sentence = qr/\Q$e->{conf}\E:5: transport "queue": path is refused by the queue$/;
configure($wrong, $right);
my ($code, $text) = $e->run('check', '--json');
is $code, 78, 'JSON: check refuses';
like $text, qr/"\Q$e->{conf}\E:5: endpoint \\"orders\\": transport \\"queue\\": path is refused by the queue"/, 'JSON: says why';
unlike $text, qr/"name": "orders"/, 'JSON: and has no plan of that endpoint';
like $text, qr/"name": "billing"/, 'JSON: but of the other';
($code, $text) = $e->run('run', '-e', 'billing');
is $code, 72, 'run of one endpoint: its own tables are missing';
unlike $text, qr/refused/, 'run of one endpoint: the others are not asked';
($code, $text) = $e->run('install', '-e', 'orders');
is $code, 78, 'install: refused';
like $text, qr/^waybill: endpoint "orders": $sentence/, 'install: says where';

done_testing;
