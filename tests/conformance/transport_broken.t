#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Transports with one fault each fail in the cases that are about it, and in no other. They
# run up to eleven at once: they mostly wait for what does not come.
set -u
conformance=$top_srcdir/tests/conformance
work=$top_builddir/tests/conformance/work/broken
rm -rf "$work"
mkdir -p "$work"
# kits bring to the disk what they do, all the time
data=$(mktemp -d "$("$top_srcdir/tests/support/server" place)/waybill-test.XXXXXX") || exit 1
trap 'wait; rm -rf "$data"' EXIT
trap 'exit 1' HUP INT TERM
WAYBILL_PLUGIN_DIR=$top_builddir/tests/conformance/plugins
export WAYBILL_PLUGIN_DIR

# What sqlite skips, whatever else is wrong with it.
skipped() {
    cat <<'END'
skip no more than the prefetch are in hand
skip the prefetch may grow from 1 to 100
skip the prefetch may change while messages are in hand
skip the prefetch may shrink to 1 while more is in hand
skip a connection lost while idle: unacknowledged messages come back
skip a connection lost while receive waits
skip a connection lost before messages are acknowledged
skip lost connections are counted once at most
skip a connection lost before a window is sent: what is not confirmed is sent again
skip confirmed messages survive a crash of the server
skip while the server is down and comes back, all that fails is the server's fault
skip sends_atomic_with_receive: what another session sends at once survives a rollback
skip transaction_scope: what another session sends at once survives a rollback
skip sends_atomic_with_receive: a connection lost before commit: all or nothing
skip transaction_scope: a connection lost before commit: all or nothing
skip a send whose request is lost is not said to be confirmed
skip a send whose reply is lost: what is said to be confirmed is there
skip an acknowledgement whose request is lost: what was not acknowledged comes back
skip an acknowledgement whose reply is lost: what was not acknowledged comes back
skip sends_atomic_with_receive: a commit whose request is lost: all or nothing, and what is said is true
skip sends_atomic_with_receive: a commit whose reply is lost: all or nothing, and what is said is true
skip transaction_scope: a commit whose request is lost: all or nothing, and what is said is true
skip transaction_scope: a commit whose reply is lost: all or nothing, and what is said is true
skip further queues: their partitions are others
END
}

# It does not delay.
undelayed() {
    cat <<'END'
skip a delayed message comes when it is due, as it was sent
skip delays of all kinds in one window
skip what is due already does not wait
skip a delayed message does not need the session that sent it
skip a delayed send that nobody can receive is refused at once
skip a delayed event is refused, or comes when it is due
END
}

# It reads nothing ahead that it could give up.
unreleased() {
    cat <<'END'
skip release_prefetched() gives others what was not received yet
skip a session goes on receiving after release_prefetched()
skip release_prefetched() of nothing harms nothing
skip release_prefetched() while the session works loses and doubles nothing
skip mode none: release_prefetched() gives others what was not received yet
END
}

unordered() {
    cat <<'END'
skip order per key: in one session
skip order per key: through give back
skip order per key: through close and open
skip order per key: in the hands of two sessions
skip order per key: the key comes with its message
skip order per key: nobody else gets a key that is in work
END
}

names=
judge() { # NAME [OPTION]... <EXPECTED: in the background
    names="$names $1"
    cat >"$work/$1.conf" <<END
endpoints = ( { name = "kit"; transport = { plugin = "$1"; file = "$data/$1.db"; }; } );
END
    cat >"$work/$1.expected"
    run "$@" &
}

# These cost five times what all others do together: queues of a quarter of a gigabyte, to see how much of one is
# read ahead. They are tried on what reads ahead or takes more than it may, and on what loses large bodies.
dear() { # NAME: words in their names
    case $1 in
    hoard | greedy | hollow | clipped) ;;
    *) echo "needs bounded memory:are not read ahead:a body of 16 MiB:a body of 33 MiB" ;;
    esac
}

# Kept to be looked at when something is wrong.
run() { # NAME [OPTION]...
    name=$1
    shift
    IFS=:
    for words in $(dear "$name"); do
        set -- "$@" --except "$words"
    done
    "$conformance/judge" transport -c "$work/$name.conf" --patience 5 "$@" \
        <"$work/$name.expected" >"$work/$name.tap" 2>"$work/$name.log" && ! grep -q '^not ok' "$work/$name.tap" ||
        mv "$data/$name.db"* "$work"
    rm -f "$data/$name.db"*
}

judge counts <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail deliveries are counted: given back
fail deliveries are counted for each message
fail deliveries are counted across the death of processes
fail further queues: what is given back comes again
END
judge early <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail a message is delivered as often as limits() says
fail of more headers than the endpoint takes the first come, and a problem
fail of larger headers than the endpoint takes the first come, and a problem
fail after stop_receiving() what is in hand can be settled, and answered
fail messages held back while others are acknowledged come back after close
fail what is delivered again is what was sent
fail what was given back comes again at once
fail a part of a batch is given back
fail messages from the middle of a batch are given back
fail what was given back is for anybody
fail unacknowledged messages come back after close
fail messages are acknowledged in any order and number
fail messages are acknowledged with gaps
fail many messages are given back, and acknowledged, in one call
fail what was given back comes to others while its session does nothing
fail what is given back again and again is not kept in memory
fail a message in hand is nobody else's before it is acknowledged
fail deliveries are counted: given back
fail deliveries are counted once at most: closed
fail deliveries are counted for each message
fail messages in the hands of a process that is killed come back
fail what a process acknowledged for good before it was killed stays away
fail deliveries are counted across the death of processes
fail depth() counts what waits, and nothing else
fail further queues: messages of all come, and each is acknowledged alone
fail further queues: what is given back comes again
END
judge loose <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail refused operations of all kinds in one window, each with its result
fail destinations that no protocol can carry are refused, and harm nobody
fail sends_atomic_with_receive: a destination that cannot be is refused, the rest is committed
fail transaction_scope: a destination that cannot be is refused, the rest is committed
fail a send that nobody can receive is refused, the rest of its window is sent
fail a destination that cannot be is refused, and is not the session's failure
fail sends_atomic_with_receive: a send that nobody can receive is refused, the rest is committed
fail transaction_scope: a send that nobody can receive is refused, the rest is committed
END
judge boast <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail a message is delivered as often as limits() says
END
judge rearward <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail messages in the hands of a process that is killed come back
END
judge fickle <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail limits() says the same twice
END
judge mute --only "limits()" <<END
fail limits() says the same twice
END
judge uncut <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail of more headers than the endpoint takes the first come, and a problem
fail of larger headers than the endpoint takes the first come, and a problem
END
judge hollow <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail a body over the endpoint's limit comes whole
fail a body of 33 MiB
END
judge fragile <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail destinations that no protocol can carry are refused, and harm nobody
fail event types that no protocol can carry harm nobody
fail sends_atomic_with_receive: a destination that cannot be is refused, the rest is committed
fail transaction_scope: a destination that cannot be is refused, the rest is committed
fail sends_atomic_with_receive: after a refused operation rollback undoes the rest
fail transaction_scope: after a refused operation rollback undoes the rest
END
judge mixed <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
skip headers keep their order, and doubles stay
END
judge garbled <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
skip headers keep their order, and doubles stay
fail of several headers of one name one comes at least
fail what is delivered again is what was sent
END
judge unset <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail a send that nobody can receive is refused, the rest of its window is sent
fail a destination that cannot be is refused, and is not the session's failure
fail refused operations of all kinds in one window, each with its result
fail destinations that no protocol can carry are refused, and harm nobody
fail sends_atomic_with_receive: a send that nobody can receive is refused, the rest is committed
fail transaction_scope: a send that nobody can receive is refused, the rest is committed
END
wait
judge rash <<END
$(skipped)
$(unreleased)
$(unordered)
fail a delayed message comes when it is due, as it was sent
fail delays of all kinds in one window
fail what is due already does not wait
fail a delayed message does not need the session that sent it
fail a delayed send that nobody can receive is refused at once
fail a delayed event is refused, or comes when it is due
END
judge shorn <<END
$(skipped)
$(unreleased)
$(unordered)
fail a delayed message comes when it is due, as it was sent
fail delays of all kinds in one window
fail a delayed message does not need the session that sent it
fail a delayed send that nobody can receive is refused at once
fail a delayed event is refused, or comes when it is due
END
judge order <<END
$(skipped)
$(undelayed)
$(unreleased)
skip a session takes no more than its prefetch from others
fail order per key: nobody else gets a key that is in work
skip what a session holds stays with it when another one is opened, and waits
skip what was given back comes to others while its session does nothing
skip sends_atomic_with_receive: a process that is killed in its commit: all or nothing
skip transaction_scope: a process that is killed in its commit: all or nothing
END
judge patient <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail receive takes what is there and waits for no second message
fail receive comes back in time with what is there
fail a message ends a receive that waits
END
judge rollback <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail sends_atomic_with_receive: a batch that was rolled back is run again, and then one by one
fail transaction_scope: a batch that was rolled back is run again, and then one by one
fail sends_atomic_with_receive: headers that are too large are refused, the rest is committed
fail transaction_scope: headers that are too large are refused, the rest is committed
fail sends_atomic_with_receive: a body that is too large is refused, the rest is committed
fail transaction_scope: a body that is too large is refused, the rest is committed
fail sends_atomic_with_receive: after a refused operation rollback undoes the rest
fail transaction_scope: after a refused operation rollback undoes the rest
fail sends_atomic_with_receive: after stop_receiving() what is in hand is committed
fail transaction_scope: after stop_receiving() what is in hand is committed
fail sends_atomic_with_receive: after rollback nothing is sent and the message is in hand
fail transaction_scope: after rollback nothing is sent and the message is in hand
fail sends_atomic_with_receive: after rollback the message can be given back
fail transaction_scope: after rollback the message can be given back
fail sends_atomic_with_receive: a transaction over nothing
fail transaction_scope: a transaction over nothing
END
judge eternal <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail a message that expired does not come, those around it do
fail with a prefetch of one, too, many that expired hold up none
fail mode none: a message that expired does not come
END
judge wilting <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail a message that expired does not come, those around it do
fail a message does not expire before its time
END
judge merciless <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail what was received once expires no more
END
judge multiple <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail messages are acknowledged with gaps
fail messages held back while others are acknowledged come back after close
fail sends_atomic_with_receive: messages held back while others are committed come back after close
fail transaction_scope: messages held back while others are committed come back after close
END
judge deaf <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail after stop_receiving() what had come is handed out, and others get the rest
fail after stop_receiving() nothing more comes, and no receive waits
fail after stop_receiving() what is in hand can be settled, and answered
fail a session that stopped receiving is opened again and receives
fail mode none: stop_receiving() loses nothing
END
judge hasty <<END
$(skipped)
$(undelayed)
$(unordered)
fail after stop_receiving() what had come is handed out, and others get the rest
END
judge spill <<END
$(skipped)
$(undelayed)
$(unordered)
fail release_prefetched() gives others what was not received yet
fail a session goes on receiving after release_prefetched()
fail release_prefetched() while the session works loses and doubles nothing
END
judge hoard <<END
$(skipped)
$(undelayed)
$(unordered)
fail bodies over the endpoint's limit are not read ahead
END
wait

# What dies, exits or does not come back takes one case with it; what it says stays a comment.
given_back() {
    cat <<'END'
fail deliveries are counted: given back
fail deliveries are counted for each message
END
}
judge mortal --only "deliveries are counted" <<END
$(given_back)
END
judge quitter --only "deliveries are counted" <<END
$(given_back)
END
judge stuck --only "deliveries are counted" --time-limit 10 <<END
$(given_back)
END
judge forger --only "deliveries are counted" <<END
$(given_back)
END
judge adrift --only "process" <<END
fail what a process acknowledged for good before it was killed stays away
END
judge tardy --only "receive comes back" <<END
fail receive comes back in time when nothing came
END
judge chatty <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail nothing is written to standard output or error
END
judge keyless --only "order per key" <<END
fail order per key: the key comes with its message
fail order per key: nobody else gets a key that is in work
END
judge blind <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail depth() counts what waits, and nothing else
fail long names that differ in their last byte are two queues
fail uninstall() refuses while messages wait or somebody receives, and they stay
fail further queues: depth() counts all, and uninstall() leaves them
END
judge curt <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail uninstall() that refuses leaves what leads to the queue
END
judge ruthless <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail uninstall() refuses while messages wait or somebody receives, and they stay
END
judge faithful <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail unsubscribe() ends one subscription, and install() makes it again
fail subscriptions() lists what install() subscribed to
END
judge greedy <<END
$(skipped | grep -v prefetch)
$(undelayed)
$(unreleased)
$(unordered)
fail no more than the prefetch are in hand
fail the prefetch may shrink to 1 while more is in hand
END
judge thief <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail what a session holds stays with it when another one is opened, and waits
may four sessions in four threads get each message once
END
wait

# Where only some cases could see a fault they alone are run.
judge docked --only "header" <<END
fail headers of more than 64 KiB together come whole, or are refused
END
judge clipped --only "a body of" <<END
fail a body of 33 MiB
END
judge amnesiac <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail what is delivered again is what was sent
END
judge rivals <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail two sessions that send at once in two threads lose and mix nothing
END
judge scant <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail many messages are given back, and acknowledged, in one call
fail what is given back again and again is not kept in memory
fail sends_atomic_with_receive: many messages acknowledged in one transaction are gone
fail transaction_scope: many messages acknowledged in one transaction are gone
END
judge halved <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail sends_atomic_with_receive: a process that is killed in its commit: all or nothing
fail transaction_scope: a process that is killed in its commit: all or nothing
END
judge lazy <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail what was given back comes to others while its session does nothing
END
judge leaky --only "kept in memory" <<END
fail what is given back again and again is not kept in memory
fail sends_atomic_with_receive: what is rolled back again and again is not kept in memory
fail transaction_scope: what is rolled back again and again is not kept in memory
END
judge drip --only "descriptor" <<END
fail an open of a queue that is not there leaves no descriptor and no thread
END
judge tidy <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail install over messages that wait loses none
fail install makes the audit queue, and further error queues
END
judge narrow --only "verify" --only "install" <<END
fail verify misses the audit queue, and each further error queue
fail install makes the audit queue, and further error queues
END
judge terse --only "verify" <<END
fail verify says what is missing, and makes nothing
fail verify misses the audit queue, and each further error queue
fail further queues: install() makes each, and verify() names the one that is missing
END
judge starving --only "further queues" <<END
skip further queues: their partitions are others
fail further queues: the endpoint's own, kept full, does not starve another
END
judge lone --only "further queues" <<END
skip further queues: their partitions are others
fail further queues: install() makes each, and verify() names the one that is missing
fail further queues: messages of all come, and each is acknowledged alone
fail further queues: what is given back comes again
fail further queues: after stop_receiving() what is in hand is settled
fail further queues: one that is kept full does not starve the endpoint's own
fail further queues: the endpoint's own, kept full, does not starve another
fail further queues: depth() counts all, and uninstall() leaves them
fail mode none: messages of further queues come once
fail sends_atomic_with_receive: messages of further queues in one transaction
fail transaction_scope: messages of further queues in one transaction
END
judge crossed --only "further queues" <<END
skip further queues: their partitions are others
may further queues: what is given back comes again
fail further queues: messages of all come, and each is acknowledged alone
fail further queues: after stop_receiving() what is in hand is settled
fail sends_atomic_with_receive: messages of further queues in one transaction
fail transaction_scope: messages of further queues in one transaction
END
judge shallow --only "further queues" --only "depth" <<END
skip further queues: their partitions are others
fail further queues: depth() counts all, and uninstall() leaves them
END
judge stunted --only "queue" <<END
fail long names that differ in their last byte are two queues
skip further queues: their partitions are others
END
judge widowed <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail an event whose subscriber is gone reaches the others
END
judge gossip --only "expire" <<END
fail a message that expired does not come, those around it do
fail with a prefetch of one, too, many that expired hold up none
fail mode none: a message that expired does not come
END
judge modest --only "in one call" --only "kept in memory" --only "further error queues" --only "expire" \
    --only "long names" --only "in one transaction" --only "may shrink" --only "send at once" <<END
skip long names that differ in their last byte are two queues
END
judge sour <<END
$(skipped)
$(undelayed)
$(unreleased)
$(unordered)
fail deliveries are counted: given back
fail deliveries are counted for each message
fail deliveries are counted across the death of processes
fail further queues: what is given back comes again
END
judge stubborn <<END
$(skipped | grep -v prefetch)
$(undelayed)
$(unordered)
fail the prefetch may shrink to 1 while more is in hand
END
wait

# One stream of them all.
count=0
for name in $names; do
    awk -v name="$name" -v count=$count '
        /^(not )?ok / { sub(/ok [0-9]+ -/, "ok " ++count " - " name ":"); print; next }
        /^1\.\./ { next }
        { print }
        END { exit }' "$work/$name.tap"
    count=$((count + $(grep -c -E '^(not )?ok ' "$work/$name.tap")))
done
echo "1..$count"
