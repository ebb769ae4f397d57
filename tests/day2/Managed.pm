# SPDX-License-Identifier: Apache-2.0
#
# Servers as somebody else runs them: with TLS, a certificate of a private authority, and an account "orders" with a password.
# Each returns the environment of a page: TLS_HOST and TLS_PORT are its address, CA the authority's certificate,
# OTHER_CA that of another one.
package Managed;
use strict;
use warnings;
use Endpoint;
use Authority;
use PrivateServer;
use Secure;

# "localhost" is the socket for MySQL, and its library does not verify the name of 127.0.0.1: 127.1 leads there, too.
sub authority {
    my $ours = Authority->new(Endpoint::work_dir() . '/authority', 'Waybill tests');
    $ENV{OTHER_CA} = Authority->new(Endpoint::work_dir() . '/others', 'Somebody else')->pem;
    return ($ours, $ours->issue('server', cn => 'localhost', names => 'DNS:localhost,DNS:127.1,IP:127.0.0.1'));
}

sub rabbitmq {
    my $password = Secure::secret('AMQP_PASSWORD');
    my ($ours, $shown) = authority();
    my ($port) = PrivateServer::free_ports(1);
    my $broker = PrivateServer->start('rabbitmq', configuration => <<END);
listeners.ssl.1 = 127.0.0.1:$port
ssl_options.cacertfile = @{[ $ours->pem ]}
ssl_options.certfile = $shown.pem
ssl_options.keyfile = $shown.key
END
    $broker->erlang(qq(rabbit_auth_backend_internal:add_user(<<"orders">>, <<"$password">>, <<"tests">>)));
    $broker->erlang(q(rabbit_auth_backend_internal:set_permissions(<<"orders">>, <<"/">>, <<".*">>, <<".*">>, <<".*">>, <<"tests">>)));
    return (TLS_PORT => $port, CA => $ours->pem, AMQP_PASSWORD => $password);
}

sub pgsql {
    my $password = Secure::secret('DB_PASSWORD');
    my ($ours, $shown) = authority();
    my $server = PrivateServer->start('pgsql')->enter_environment;
    my $data = $server->data;
    $server->keep("$shown.$_", "server.$_") for qw(pem key);
    Endpoint::write_file(Endpoint::work_dir() . '/hba', "host all postgres 127.0.0.1/32 trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n");
    $server->keep(Endpoint::work_dir() . '/hba', 'db/pg_hba.conf');
    my @statements = ("create role orders login password '$password'", 'create database orders owner orders', 'alter system set ssl = on',
        "alter system set ssl_cert_file = '$data/server.pem'", "alter system set ssl_key_file = '$data/server.key'");
    system('psql', '-X', '-q', (map { ('-c', $_) } @statements)) == 0 or die "psql failed\n";
    $server->reload_pgsql;
    Secure::shows($ENV{PGPORT}, 'postgres', $shown);
    return (TLS_HOST => 'localhost', TLS_PORT => $ENV{PGPORT}, CA => $ours->pem, DB_PASSWORD => $password);
}

# As its package leaves it, but for its port.
sub just_installed {
    PrivateServer->start('pgsql')->enter_environment;
    return (PGPASSWORD => 'secret');
}

sub mysql {
    my $password = Secure::secret('DB_PASSWORD');
    my ($ours, $shown) = authority();
    my $server = PrivateServer->start('mariadb')->enter_environment;
    $server->keep($ours->pem, 'tls/ca.pem');
    $server->present($shown);
    $server->administer("create database orders; create user orders identified by '$password' require ssl; grant all on orders.* to orders");
    return (TLS_HOST => '127.1', TLS_PORT => $ENV{MYSQL_PORT}, CA => $ours->pem, DB_PASSWORD => $password);
}

sub kafka {
    my $password = Secure::secret('KAFKA_PASSWORD');
    my ($ours, $shown) = authority();
    my ($port) = PrivateServer::free_ports(1);
    my $both = Endpoint::work_dir() . '/kafka.pem';
    Endpoint::write_file($both, join '', map { Endpoint::read_file("$shown.$_") } qw(key pem));
    my $module = 'org.apache.kafka.common.security.plain.PlainLoginModule';
    PrivateServer->start('kafka', configuration => join('', map { "listener.name.managed.$_\n" } 'ssl.keystore.type=PEM', "ssl.keystore.location=$both",
            'sasl.enabled.mechanisms=PLAIN', qq(plain.sasl.jaas.config=$module required user_orders="$password";)),
        environment => { WB_KAFKA_LISTENERS => "MANAGED://localhost:$port", WB_KAFKA_PROTOCOLS => 'MANAGED:SASL_SSL' });
    return (TLS_PORT => $port, CA => $ours->pem, KAFKA_PASSWORD => $password);
}

1;
