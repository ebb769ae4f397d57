#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Versions of the ABI against each other: README.md says what the parts are.
set -u
export ABI_OUTPUT WAYBILL_PLUGIN_DIR
abi=$top_builddir/tests/abi
work=$(mktemp -d /tmp/waybill-abi-XXXXXX) || exit 1
pid=
trap 'test -z "$pid" || kill -9 "$pid" 2>/dev/null; rm -rf "$work"' EXIT
count=0

ok() { # STATUS NAME
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; return; fi
    echo "not ok $count - $2"
    tail -n 20 "$work/log" "$work/out" "$ABI_OUTPUT" 2>/dev/null | sed 's/^/# /'
}

host_of() {
    case $1 in today) echo "$top_builddir/waybill" ;; newer) echo "$abi/waybill-newer" ;; esac
}

# Lines of a kind that were said so far.
said() { grep -c "^$1" "$ABI_OUTPUT"; }

# Wait until a command is true, for a minute, or until what runs is gone.
wait_for() {
    deadline=$(($(date +%s) + 60))
    until "$@"; do
        { kill -0 "$pid" 2>/dev/null && [ "$(date +%s)" -lt $deadline ]; } || return 1
        sleep 0.1
    done
}

run() { # HOST CONDITION...: run it until the condition holds, then stop it
    host=$1; shift
    "$(host_of "$host")" run -c "$work/waybill.conf" >"$work/log" 2>&1 &
    pid=$!
    wait_for "$@"; came=$?
    kill -TERM "$pid" 2>/dev/null
    wait "$pid"; code=$?
    pid=
    [ $came -eq 0 ] && [ $code -eq 0 ]
}

verb() { # HOST ARGUMENT...
    host=$1; shift
    "$(host_of "$host")" "$@" -c "$work/waybill.conf" >"$work/out" 2>&1
}

# ---- a pair of 1.0 in memory: 40 messages, of them 30 for a handler each, 5 together, 5 that nobody wants ----

bodies() { # of the messages whose number leaves these remainders by 8
    for number in $(seq 0 39); do
        case " $* " in *" $((number % 8)) "*) echo "body-$number" ;; esac
    done | sort
}
each_once() { # TYPE DESTINATION REMAINDER...
    expected=$work/expected
    sent="sent $1 to $2 with "
    shift 2
    bodies "$@" >"$expected"
    sed -n "s/^$sent//p" "$ABI_OUTPUT" | sort | diff "$expected" - >"$work/out"
}
noted_each() {
    bodies 0 1 2 3 4 5 6 | sed 's/body/m/' | sort >"$work/expected"
    sed -n 's/^noted //p' "$ABI_OUTPUT" | sort | diff "$work/expected" - >"$work/out"
}
all_is_done() { [ "$(said acknowledged)" -ge 40 ] && [ "$(said 'sent Abi.Later')" -ge 60 ]; }

# What parts of a version see of the host, sorted.
seen_is() { # WORD STRUCT...
    word=$1; shift
    for struct in "$@"; do echo "sees $struct $word"; done | sort >"$work/expected"
    grep '^sees' "$ABI_OUTPUT" | sort -u | diff "$work/expected" - >"$work/out"
}

pair() { # HOST PLUGINS
    what="host of $1, plugins and module of $2"
    ABI_OUTPUT=$work/$1-$2
    WAYBILL_PLUGIN_DIR=$abi/$2
    : >"$ABI_OUTPUT"
    case $1-$2 in
    *-old) word=unknown ;;
    today-newer) word=absent ;;
    newer-newer) word=there ;;
    esac
    cat >"$work/waybill.conf" <<END
endpoints = (
  { name = "abi"; handlers = ["$abi/$2/.libs/module.so"]; concurrency = 1; batch_max = 10;
    transport = { plugin = "memory"; messages = 40; }; persistence = { plugin = "memory"; };
    outbox = { enabled = true; }; } );
END
    verb "$1" check; ok $? "$what: check"
    run "$1" all_is_done; ok $? "$what: all is handled, and the end is orderly"
    each_once Abi.Sent sink 0 1 2 3 4 5 6; ok $? "$what: sends"
    each_once Abi.Done Abi.Done 0 1 2 4 5 6; ok $? "$what: events"
    each_once Abi.Later later 0 1 2 4 5 6 && each_once Abi.Later latest 0 1 2 4 5 6; ok $? "$what: delayed sends"
    noted_each; ok $? "$what: business data"
    grep -qx 'config plain 40 10000000 1024 1 1 a,b c=d' "$ABI_OUTPUT"; ok $? "$what: an option of each type"
    grep -q 'a transport of version 1.0.* mode="*memory"* ' "$work/log" && grep -q 'number 0 of endpoint abi' "$work/log" &&
        grep -q 'expired.* count="*3"*' "$work/log"
    ok $? "$what: what they log"
    verb "$1" outbox stats && verb "$1" outbox pending && verb "$1" delayed list; ok $? "$what: looking after it"
    seen_is $word wb_host wb_endpoint_info wb_transport_limits wb_operation wb_begin wb_commit wb_delayed \
        wb_delayed_fetch wb_message wb_handler_api wb_outbox_stats wb_pending_filter wb_delayed_filter
    ok $? "$what: each struct is seen as it is"
}

# ---- the plugins that use all there is ----

# Four endpoints of one process; what is sent to the other three arrives there.
files() { # MODULE
    cat >"$work/waybill.conf" <<END
endpoints = (
  { name = "abi"; handlers = ["$1"]; concurrency = 2;
    transport = { plugin = "sqlite"; file = "$work/queues.db"; };
    persistence = { plugin = "sqlite"; file = "$work/data.db"; }; outbox = { enabled = true; }; },
$(for name in sink later latest; do
    echo "  { name = \"$name\"; handlers = [\"$1\"]; transport = { plugin = \"sqlite\"; file = \"$work/queues.db\"; }; },"
done | sed '$ s/,$//')
);
END
}
all_has_arrived() {
    [ "$(said 'arrived Abi.Sent at sink with')" -ge 20 ] && [ "$(said 'arrived Abi.Later at later with')" -ge 20 ] &&
        [ "$(said 'arrived Abi.Later at latest with')" -ge 20 ]
}
all_arrived_once() {
    [ "$(said arrived)" -eq 60 ] && [ "$(sort -u "$ABI_OUTPUT" | grep -c '^arrived')" -eq 60 ]
}
send_all() { # HOST
    for number in $(seq 1 20); do echo "{\"body\": \"body-$number\"}"; done >"$work/lines"
    verb "$1" send -t Abi.Work -d abi -l "$work/lines" && grep -qx '20 sent' "$work/out"
}
delay_one() { # HOST
    verb "$1" send -t Abi.Work -d abi -i one -b x --delay 1h && verb "$1" delayed list && grep -q one "$work/out" &&
        verb "$1" delayed cancel -i one && verb "$1" delayed list && ! grep -q one "$work/out"
}
our_own() { # HOST PLUGINS DIRECTORY
    what="host of $1, sqlite of $2"
    ABI_OUTPUT=$work/$1-$2-sqlite
    WAYBILL_PLUGIN_DIR=$3
    : >"$ABI_OUTPUT"
    rm -f "$work"/*.db*
    files "$abi/old/.libs/module.so"
    verb "$1" install --sql-api -e abi && verb "$1" install; ok $? "$what: install"
    send_all "$1"; ok $? "$what: send"
    delay_one "$1"; ok $? "$what: what waits is listed and cancelled"
    run "$1" all_has_arrived && all_arrived_once; ok $? "$what: all arrives once"
    verb "$1" outbox stats --exact && grep -q '20' "$work/out" && verb "$1" outbox pending && verb "$1" outbox cleanup
    ok $? "$what: looking after it"
}

kit() { # KIT
    ABI_OUTPUT=$work/kit
    WAYBILL_PLUGIN_DIR=$abi/newer
    rm -f "$work"/*.db*
    cat >"$work/waybill.conf" <<END
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$work/queues.db"; };
                persistence = { plugin = "sqlite"; file = "$work/data.db"; busy_timeout = "5s"; }; } );
END
    verb today conformance "$1" && grep -q '^ok ' "$work/out" && ! grep -q '^not ok' "$work/out"
    ok $? "host of today, sqlite of newer: the kit for a $1"
}

plan=40
has_sqlite=
test -e "$abi/newer/transport/sqlite/.libs/sqlite.so" && has_sqlite=1 && plan=52
echo 1..$plan
for host in today newer; do
    for plugins in old newer; do
        pair $host $plugins
    done
done
test -n "$has_sqlite" || exit 0
our_own newer today "$top_builddir/plugins"
our_own today newer "$abi/newer"
kit transport
kit persistence
