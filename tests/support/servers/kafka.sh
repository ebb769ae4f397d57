# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# Apache Kafka, for `server`: one node (kind kafka) or a cluster of three (kind kafka3),
# each broker and controller at once. $data/nodes has a line for each: id, broker port,
# controller port. A space is only a prefix for topics: Kafka has no name spaces.

kafka_fetch=$here/../../contrib/kafka/fetch
kafka_metadata=$here/kafka-metadata

kafka_nodes() { cut -d ' ' -f 1 "$data/nodes"; }
kafka_port() { sed -n "s/^$1 \([0-9]*\) .*/\1/p" "$data/nodes"; }
kafka_node_pid() { server_pid "$data/$1/pid"; }
kafka_java() { # to be called in a subshell, which becomes the Java machine
    # 1 for the compiler's tier: a broker here does not live to earn more
    # shellcheck disable=SC2086
    exec setsid java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 $kafka_classes \
        -Dlog4j2.configurationFile="$data/log4j2.properties" -Dnode="$1" \
        -cp "$(cat "$data/libs")/*" "${@:2}"
}

# Classes as Java has them in memory, kept beside the jars by whoever starts a broker first: a start takes half then.
kafka_classes=-Xshare:auto
kafka_classes_file() { echo "$(cat "$data/libs").$(stat -Lc '%n %Y' "$(command -v java)" | cksum | cut -d ' ' -f 1).jsa"; }
kafka_take_classes() {
    local file
    file=$(kafka_classes_file)
    [ ! -s "$file" ] || kafka_classes="-XX:SharedArchiveFile=$file -Xlog:cds=off"
}
kafka_leave_classes() {
    local file
    file=$(kafka_classes_file)
    [ -e "$file" ] || (flock 9 && kafka_make_classes "$file") 9>>"$(cat "$data/libs").lock" || true
}
kafka_make_classes() { # FILE: Java writes it when it ends; one that cannot leaves it empty, and is not asked again
    local pid
    [ ! -e "$1" ] || return 0
    rm -f "$(cat "$data/libs")".*.jsa # another Java's
    kafka_classes="-XX:ArchiveClassesAtExit=$1.new -Xlog:cds=off -Xlog:cds+dynamic=off"
    kafka_start_node 1
    kafka_await_node 1
    pid=$(kafka_node_pid 1)
    kill -TERM "$pid"
    await_end "$pid"
    mv "$1.new" "$1" || : >"$1"
}

# What is not here is as shipped: topics are made when first asked for, for instance. A test may add
# listeners (WB_KAFKA_LISTENERS, WB_KAFKA_PROTOCOLS) and properties (WB_SERVER_CONFIGURATION).
kafka_properties() { # NODE
    local id broker controller voters='' replicas=1 in_sync=1
    while read -r id broker controller; do
        voters+=${voters:+,}$id@127.0.0.1:$controller
    done <"$data/nodes"
    if [ "$kind" = kafka3 ]; then replicas=3 in_sync=2; fi
    read -r id broker controller < <(grep "^$1 " "$data/nodes")
    cat <<END
process.roles=broker,controller
node.id=$1
controller.quorum.voters=$voters
listeners=BROKER://127.0.0.1:$broker,CONTROLLER://127.0.0.1:$controller${WB_KAFKA_LISTENERS:+,$WB_KAFKA_LISTENERS}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT${WB_KAFKA_PROTOCOLS:+,$WB_KAFKA_PROTOCOLS}
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs=$data/$1/log
default.replication.factor=$replicas
min.insync.replicas=$in_sync
offsets.topic.replication.factor=$replicas
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=$replicas
transaction.state.log.min.isr=$in_sync
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=$replicas
share.coordinator.state.topic.min.isr=$in_sync
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=100
# A node that was killed is taken back when its old session has ended: 9 s as shipped.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=200
controller.quorum.election.timeout.ms=300
# 128 MB as shipped, taken at the start.
log.cleaner.dedupe.buffer.size=4194304
END
    own_configuration
}
kafka_create() {
    local id last=1 cluster
    [ "$kind" != kafka3 ] || last=3
    "$kafka_fetch" >"$data/libs"
    kafka_take_classes
    free_port $((2 * last)) | paste -d ' ' - - | nl -w 1 -s ' ' >"$data/nodes"
    cat >"$data/log4j2.properties" <<'END'
rootLogger.level = warn
rootLogger.appenderRef.log.ref = log
appender.log.type = Console
appender.log.name = log
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = %d node ${sys:node} %p %c{1}: %m%n
END
    # not one that begins with "-": it would be taken for an option
    cluster=A$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=' | cut -c 2-)
    for id in $(kafka_nodes); do
        mkdir "$data/$id"
        kafka_properties "$id" >"$data/$id/server.properties"
        # shellcheck disable=SC2086
        (kafka_java "$id" kafka.tools.StorageTool format -t "$cluster" \
            -c "$data/$id/server.properties" ${WB_KAFKA_FORMAT:-}) >"$dir/format$id.log" 2>&1 </dev/null 9>&- &
    done
    wait
    for id in $(kafka_nodes); do
        [ -f "$data/$id/log/meta.properties" ] ||
            { cat "$dir/format$id.log" >&2; die "formatting node $id failed"; }
    done
    set_env KAFKA_BROKERS "$(sed 's/^[0-9]* \([0-9]*\) .*/127.0.0.1:\1/' "$data/nodes" | paste -sd,)"
}
kafka_running() { # the nodes that run
    local id
    for id in $(kafka_nodes); do
        is_gone "$(kafka_node_pid "$id")" || echo "$id"
    done
}
kafka_pid() { # of any node that runs
    local running
    running=$(kafka_running)
    [ -z "$running" ] || kafka_node_pid "${running%%$'\n'*}"
}
# A node serves after it was registered anew and has caught up, so that it lists itself
# means that it has partitions from now on.
kafka_node_up() {
    listens "$(kafka_port "$1")" || return 1
    case " $("$kafka_metadata" "127.0.0.1:$(kafka_port "$1")" 2>/dev/null) " in
        *" $1 "*) ;;
        *) return 1 ;;
    esac
}
kafka_up() {
    local id
    for id in $(kafka_running); do
        kafka_node_up "$id" || return 1
    done
}
kafka_start_node() {
    (kafka_java "$1" kafka.Kafka "$data/$1/server.properties") >>"$dir/log" 2>&1 </dev/null 9>&- &
    echo $! >"$data/$1/pid"
}
kafka_await_node() { wait_until 600 "$(saved_pid "$data/$1/pid")" kafka_node_up "$1"; }
kafka_launch() {
    local id
    [ "$kind" = kafka3 ] || kafka_leave_classes
    kafka_take_classes
    for id in $(kafka_nodes); do kafka_start_node "$id"; done
    for id in $(kafka_nodes); do kafka_await_node "$id" || return 1; done
}
kafka_end_nodes() { # SIGNAL NODE ...
    local id signal=$1
    shift
    for id; do kill "-$signal" "$(kafka_node_pid "$id")"; done
    for id; do await_end "$(kafka_node_pid "$id")" || return 1; done
}
# shellcheck disable=SC2046
kafka_crash() { kafka_end_nodes KILL $(kafka_running); }
# shellcheck disable=SC2046
kafka_halt() {
    # the last nodes of a cluster wait for a quorum that is gone to let them go
    if [ "$kind" = kafka3 ]; then kafka_crash; else kafka_end_nodes TERM $(kafka_running); fi
}
kafka_clean_up() { :; }
kafka_has_node() { grep -q "^$1 " "$data/nodes" || die "no node $1: $(kafka_nodes | paste -sd' ')"; }
kafka_crash_node() {
    kafka_has_node "$1"
    kafka_end_nodes KILL "$1"
}
kafka_restart_node() {
    kafka_has_node "$1"
    is_gone "$(kafka_node_pid "$1")" || kafka_end_nodes TERM "$1"
    kafka_take_classes
    kafka_start_node "$1"
    kafka_await_node "$1"
}
kafka_space() { :; }
# Deleting the topics would take a Java machine's start; they go with the server.
kafka_unspace() { :; }
kafka_cut() { die "the connections of one user of Kafka cannot be told from another's"; }
