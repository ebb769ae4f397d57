#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program as a user meets it: verbs, output, exit codes.
set -u
waybill=$top_builddir/waybill
modules=$top_builddir/tests/unit
WAYBILL_PLUGIN_DIR=$modules/plugins; export WAYBILL_PLUGIN_DIR
unset WAYBILL_CONF
work=$(mktemp -d /tmp/waybill-cli-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
count=0

ok() { # ok STATUS NAME
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; return; fi
    echo "not ok $count - $2"
    sed 's/^/# out: /' "$work/out"; sed 's/^/# err: /' "$work/err"
}
run() { # run EXPECTED-CODE ARGUMENT...
    expected=$1; shift
    "$waybill" "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq "$expected" ] || { echo "# exit code $code"; return 1; }
}
out() { grep -qF -- "$1" "$work/out"; }
err() { grep -qF -- "$1" "$work/err"; }
quiet() { [ ! -s "$work/err" ]; }

cat >"$work/good.conf" <<END
endpoints = (
  { name = "orders"; handlers = ["$modules/handlers/.libs/orders.so"]; concurrency = 4;
    transport = { plugin = "queue"; host = "localhost"; password = "env:QUEUE_PASSWORD"; };
    persistence = { plugin = "table"; path = "/orders"; };
    outbox = { enabled = true; }; },
  { name = "notes"; send_only = true;
    transport = { plugin = "queue"; password = "env:QUEUE_PASSWORD"; }; }
);
END
sed 's/env:QUEUE_PASSWORD/hunter2/' "$work/good.conf" >"$work/literal.conf"
cat >"$work/bad.conf" <<END
endpoints = (
  { name = "orders"; batch_tiem = "5x"; transaction_mode = "transaction_scope";
    handlers = ["$modules/handlers/.libs/orders.so"];
    transport = { plugin = "queue"; port = 70000; password = "hunter2"; };
    outbox = { enabled = true; }; } );
END

cat >"$work/refused.conf" <<END
endpoints = (
  { name = "orders"; handlers = ["$modules/handlers/.libs/orders.so"];
    transport = { plugin = "queue"; path = "/refused"; };
    persistence = { plugin = "table"; path = "/refused"; }; },
  { name = "notes"; send_only = true;
    transport = { plugin = "queue"; path = "/refused"; }; } );
END

echo 1..48
run 64 && err 'a verb is missing'; ok $? 'no verb'
run 64 chek && err 'did you mean "check"?'; ok $? 'unknown verb'
run 0 help && out 'check' && out 'plugins' && quiet; ok $? 'help'
run 64 check -c "$work/good.conf" --config "$work/bad.conf" && err "--config is given twice: \"$work/good.conf\" and \"$work/bad.conf\""
ok $? 'of two that differ nobody knows which was meant'
run 64 failures retry -c "$work/good.conf" --failure A --failure B && err '--failure is given twice: "A" and "B"'
ok $? 'nor which failure'
QUEUE_PASSWORD=swordfish run 0 check -c "$work/good.conf" --config "$work/good.conf"; ok $? 'but of two that are alike'
for option in '--key k' '--id i' '--header a=b'; do
    # shellcheck disable=SC2086
    run 64 send -c "$work/good.conf" --to q --type T $option --json-lines /dev/null && err 'not beside --id, --key or --header'
done
ok $? 'what each line says for itself is not said for all of them'
run 0 send --help && out 'a header; may be repeated'; ok $? 'what may be repeated says so'
run 0 --help && out 'usage: waybill VERB'; ok $? '--help'
run 0 check --help && out '--config FILE' && out 'usage: waybill check'; ok $? 'check --help'
run 0 help --json && out '"name": "outbox"' && run 0 help outbox --json && out '"letter": "e"' && out '"argument": "DURATION"' &&
    out '"name": "help"' && out '"arguments": "stats|pending|sweep|cleanup"' && run 64 check --help=xml && err 'no form of help'
ok $? 'help --json'
run 0 --version && out 'plugin ABI 1.0'; ok $? '--version'
run 64 check --nonsense && err 'see: waybill check --help'; ok $? 'unknown option'
run 64 check argument && err 'check takes no arguments'; ok $? 'surplus argument'

QUEUE_PASSWORD=swordfish; export QUEUE_PASSWORD
run 0 check -c "$work/good.conf" && quiet && out 'endpoint orders' && out 'Sales.PlaceOrder' &&
    out 'receive_only' && out 'the outbox, after the commit' && out 'send-only, no queue' &&
    out '5 immediate, 0 delayed' && ! out swordfish &&
    out 'expiry        no: messages with a time to be received are refused'
ok $? 'check prints the plan'
WAYBILL_CONF=$work/good.conf run 0 check && out 'endpoint orders'; ok $? 'WAYBILL_CONF'
run 0 check -c "$work/good.conf" --json && out '"ok": true' && out '"mode": "receive_only"' &&
    out '"type": "Sales.CancelOrder"' && out '"expiry": false'
ok $? 'check --json'
run 0 check -c "$work/literal.conf" && err 'warning: endpoint "orders": transport "queue": option "password"' &&
    ! err hunter2 && ! out hunter2
ok $? 'a literal secret is a warning and not shown'
unset QUEUE_PASSWORD
run 78 check -c "$work/good.conf" && err "$work/good.conf:3: " && err '"QUEUE_PASSWORD" is not set'
ok $? 'a secret that is not there'
run 78 check -c "$work/bad.conf" && err ':2: endpoint "orders": unknown option "batch_tiem"; did you mean "batch_time"?' &&
    err ':4: endpoint "orders": transport "queue": option "port" = 70000 is out of range (1 to 65535)' &&
    err ':2: endpoint "orders": transaction_mode = "transaction_scope" is not offered by transport "queue"' &&
    err 'outbox enabled = true needs a persistence' && ! err hunter2
ok $? 'all errors, exit code 78'
run 78 check -c "$work/bad.conf" --json && out '"ok": false' && out 'batch_tiem' && ! out hunter2; ok $? 'errors as JSON'
printf 'endpoints = ( { name = "orders"; transport = { plugin = "qu\344ue"; }; } );\n' >"$work/latin.conf"
run 78 check -c "$work/latin.conf" --json && out '"qu\\xe4ue\"'; ok $? 'errors as JSON that quote what is no UTF-8'
run 78 check -c "$work/refused.conf" && err ':3: endpoint "orders": transport "queue": path is refused by the queue' &&
    err ':4: endpoint "orders": persistence "table": path is refused by the table' &&
    err ':6: endpoint "notes": transport "queue": path is refused by the queue'
ok $? 'what plugins refuse themselves'
sed 's/\(transport.*\)refused/\1silent/; s/\(persistence.*\)refused/\1empty/' "$work/refused.conf" >"$work/dumb.conf"
run 78 check -c "$work/dumb.conf" &&
    err ':3: endpoint "orders": transport "queue": plugin "queue" was not created (reject), and gave no reason' &&
    err ':4: endpoint "orders": persistence "table": plugin "table" says that it was created, but made no instance'
ok $? 'what plugins refuse without a word, or only seem to be ready'
run 78 check -c "$work/absent.conf" && err 'cannot read "'; ok $? 'no such file'

run 78 plugins && out 'test transport' && out 'badmajor   refused: plugin "' &&
    out 'can: none, receive_only, delivery_count, publish'
ok $? 'plugins lists good and refused ones'
run 0 plugins --describe queue && out 'port (integer, default 5672, 1 to 65535)' &&
    out 'password (string, secret)' && out 'queue_type (choice, default quorum: quorum | classic)'
ok $? 'plugins --describe'
run 0 plugins --describe --json table && out '"required": true' && out '"kind": "persistence"'
ok $? 'plugins --describe --json'

mkdir "$work/flat" && cp "$modules/plugins/transport/queue/.libs/queue.so" "$work/flat/"
cat >"$work/flat.conf" <<END
plugin_path = [ "flat" ];
endpoints = ( { name = "notes"; send_only = true;
                transport = { plugin = "queue"; password = "env:QUEUE_PASSWORD"; }; } );
END
QUEUE_PASSWORD=swordfish WAYBILL_PLUGIN_DIR=$work/nowhere run 0 check -c "$work/flat.conf" && out 'transport     queue'
ok $? 'a plugin that lies directly in a directory of plugin_path'
# beside a handler module, and a plugin of the other kind
cp "$modules/handlers/.libs/orders.so" "$modules/plugins/persistence/table/.libs/table.so" "$work/flat/"
WAYBILL_PLUGIN_DIR=$work/nowhere run 0 plugins -c "$work/flat.conf" && out "from: $work/flat/queue.so" &&
    out 'transport    queue ' && out "from: $work/flat/table.so" && out 'persistence  table ' && ! out orders &&
    [ "$(grep -c from: "$work/out")" -eq 2 ]
ok $? 'plugins lists what lies directly in a directory of plugin_path'
run 78 plugins -c "$work/flat.conf" && ! out "$work/flat"
ok $? 'and not what an installed one of that name and kind comes before'
: >"$work/flat/queue.so"
WAYBILL_PLUGIN_DIR=$work/nowhere run 0 plugins -c "$work/flat.conf" && ! out queue
ok $? 'what holds no entry of a plugin is none'
printf queue_LTX_wb_plugin >"$work/flat/queue.so"
WAYBILL_PLUGIN_DIR=$work/nowhere run 78 plugins -c "$work/flat.conf" && out 'unknown kind queue      refused: plugin "'
ok $? 'what claims to be one is shown with what is wrong with it'

# Who answers has not looked at its endpoints for a while.
perl -MIO::Socket::INET -e '
    my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die "listen: $@\n";
    open my $file, ">", "$ARGV[0].new" or die "$ARGV[0]: $!\n";
    print $file $server->sockport;
    close $file;
    rename "$ARGV[0].new", $ARGV[0];
    my $client = $server->accept or die "accept: $!\n";
    while (<$client>) { last if /^\r\n/ }
    my $answer = q({"version": "1", "state": "running", "started": "then", "age_seconds": 31, "stale": true, "endpoints": []});
    print $client "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ", length $answer, "\r\n\r\n", $answer;
' "$work/port" &
while [ ! -s "$work/port" ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
{ printf 'http = { listen = "127.0.0.1:%s"; };\n' "$(cat "$work/port")"; cat "$work/good.conf"; } >"$work/status.conf"
run 75 status -c "$work/status.conf" && out 'waybill 1: running, since then' && out 'nobody has looked at them for 31 s'
ok $? 'a status that nobody keeps is no good one'

QUEUE_PASSWORD=swordfish; export QUEUE_PASSWORD
run 64 conformance && err 'conformance'; ok $? 'conformance without a kit'
run 64 conformance queue -c "$work/good.conf" && err 'there is no kit "queue": transport or persistence'
ok $? 'conformance with a kit that is not there'
run 64 conformance transport -c "$work/good.conf" --patience 0 && err '--patience "0" is not 1 to 3600'
ok $? 'conformance without patience'
for idle in 0 3601 x 5s; do
    run 64 run -c "$work/good.conf" --drain --idle "$idle" && err "--idle \"$idle\" is not 1 to 3600 seconds"
    ok $? "run --drain --idle $idle"
done
run 64 run -c "$work/good.conf" --idle 5 && err '--idle and --patience go with --drain'
ok $? '--idle without --drain'
run 0 conformance --help && out 'usage: waybill conformance transport|persistence' && out '--time-limit SECONDS'
ok $? 'conformance --help'
run 78 conformance persistence -c "$work/good.conf" --business "$work/good.conf" &&
    err "module \"$work/good.conf\" is refused: "
ok $? 'conformance with a module that is none'
run 64 conformance transport -c "$work/good.conf" -e nobody && err 'nobody' && err 'orders'
ok $? 'conformance of an endpoint that is not there'
run 64 conformance persistence -c "$work/good.conf" -e notes && err 'endpoint "notes" has no persistence'
ok $? 'conformance of a persistence that is not there'
run 78 conformance transport -c "$work/absent.conf" && err 'cannot read "'
ok $? 'conformance without a configuration'
run 70 conformance transport -c "$work/good.conf" && out 'Bail out! could not install "orders.conformance"' &&
    ! out swordfish
ok $? 'conformance of a plugin that cannot make its queues'
