# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# RabbitMQ, for `server`. A space is a virtual host. WB_RABBITMQ_PLUGINS: names of plugins,
# separated by commas; with rabbitmq_management AMQP_MANAGEMENT is its address.

rabbitmq_server=/usr/lib/rabbitmq/bin/rabbitmq-server # the wrapper in sbin changes the user
rabbitmq_variables() {
    # shellcheck disable=SC1091
    . "$data/ports"
    export HOME=$data ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$epmd_port
    export RABBITMQ_NODENAME=$node@localhost RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
    export RABBITMQ_NODE_PORT=$amqp_port RABBITMQ_DIST_PORT=$dist_port
    export RABBITMQ_MNESIA_BASE=$data/mnesia RABBITMQ_LOG_BASE=$dir
    export RABBITMQ_ENABLED_PLUGINS_FILE=$data/enabled_plugins RABBITMQ_PID_FILE=$data/pid
    export RABBITMQ_CONFIG_FILE=$data/rabbitmq.conf RABBITMQ_CONF_ENV_FILE=$data/env.conf
    export RABBITMQ_ADVANCED_CONFIG_FILE=$data/advanced.config
    local arguments="-kernel inet_dist_use_interface {127,0,0,1}"
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$arguments +sbwt none +sbwtdcpu none +sbwtdio none"
}
rabbitmq_create() {
    [ -x $rabbitmq_server ] || lacking RabbitMQ rabbitmq-server
    local amqp_port
    amqp_port=$(free_port)
    mkdir -p "$data/mnesia"
    {
        echo "amqp_port=$amqp_port dist_port=$(free_port) epmd_port=$(free_port)"
        echo "node=waybill$amqp_port"
    } >"$data/ports"
    echo "[${WB_RABBITMQ_PLUGINS:-}]." >"$data/enabled_plugins"
    : >"$data/env.conf"
    echo '[].' >"$data/advanced.config"
    head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$data/.erlang.cookie"
    chmod 400 "$data/.erlang.cookie"
    cat >"$data/rabbitmq.conf" <<END
log.file = broker.log
log.file.level = info
disk_free_limit.absolute = 100MB
raft.wal_max_size_bytes = 33554432
max_message_size = 134217728
END
    own_configuration >>"$data/rabbitmq.conf"
    set_env AMQP_HOST 127.0.0.1 AMQP_PORT "$amqp_port" AMQP_USER guest AMQP_PASSWORD guest \
        AMQP_VHOST /
    case ${WB_RABBITMQ_PLUGINS:-} in *management*) rabbitmq_manage "$(free_port)" ;; esac
}
rabbitmq_manage() {
    printf 'management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = %s\n' "$1" >>"$data/rabbitmq.conf"
    set_env AMQP_MANAGEMENT "http://127.0.0.1:$1"
}
rabbitmq_pid() { server_pid "$data/pid"; }
rabbitmq_up() { # the listener opens last when the broker boots
    listens "$AMQP_PORT" && perl -MIO::Socket::INET -e '
        my $address = "127.0.0.1:$ENV{AMQP_PORT}";
        my $s = IO::Socket::INET->new(PeerAddr => $address, Timeout => 2) or exit 1;
        $SIG{ALRM} = sub { exit 1 }; alarm 5;
        syswrite $s, "AMQP\0\0\x09\x01"; sysread($s, my $b, 11) or exit 1;
        exit(unpack("x7 n n", $b) == 10 ? 0 : 1)' 2>/dev/null
}
epmd_pid() { # the saved one, unless it is somebody else's by now
    local pid; pid=$(saved_pid "$data/epmd.pid")
    if [ -n "$pid" ] && grep -qsF -- "$epmd_port" "/proc/$pid/cmdline"; then echo "$pid"; fi
}
rabbitmq_launch() {
    rabbitmq_variables
    if [ -z "$(epmd_pid)" ]; then
        setsid epmd -port "$epmd_port" -address 127.0.0.1 >>"$dir/log" 2>&1 </dev/null 9>&- &
        echo $! >"$data/epmd.pid"
    fi
    rm -f "$data/pid"
    # detached: the script then becomes the Erlang machine instead of guarding it
    ERL_AFLAGS="-run file eval $here/servers/rabbitmq-load.erl" detached=1 setsid $rabbitmq_server >>"$dir/log" 2>&1 </dev/null 9>&- &
    echo $! >"$data/pid"
    wait_until 1200 $! rabbitmq_up
}
rabbitmq_crash() { local pid; pid=$(rabbitmq_pid); kill -KILL "$pid" && await_end "$pid"; }
rabbitmq_halt() { local pid; pid=$(rabbitmq_pid); kill -TERM "$pid" && await_end "$pid"; }
rabbitmq_clean_up() {
    local pid
    rabbitmq_variables # epmd_pid wants its port
    pid=$(epmd_pid)
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
}
erlang() { # an expression that returns ok: milliseconds, where rabbitmqctl takes seconds
    local answer cookie
    cookie=$(cat "$data/.erlang.cookie")
    # a name of its own: two callers with the same one shut each other out
    answer=$(echo "$1" | erl_call -h "test$$" -address "localhost:$dist_port" -c "$cookie" -e 2>&1) || true
    [ "$answer" = '{ok, ok}' ] || { echo "server: $answer" >&2; return 1; }
}
rabbitmq_space() {
    rabbitmq_variables
    erlang "Name = <<\"$1\">>, Who = <<\"tests\">>, All = <<\".*\">>,
        ok = rabbit_vhost:add(Name, Who),
        rabbit_auth_backend_internal:set_permissions(<<\"guest\">>, Name, All, All, All, Who)."
}
rabbitmq_unspace() {
    rabbitmq_variables
    erlang "case rabbit_vhost:exists(<<\"$1\">>) of
        true -> rabbit_vhost:delete(<<\"$1\">>, <<\"tests\">>); false -> ok end."
}
rabbitmq_cut() {
    rabbitmq_variables
    erlang "[exit(C, kill) || C <- rabbit_networking:connections(),
        (catch rabbit_networking:connection_info(C, [vhost])) =:= [{vhost, <<\"$1\">>}]], ok."
}
