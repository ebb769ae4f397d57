#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The persistence kit finds what a store of one's own gets wrong in an afternoon: each fault in the
# cases that are about it. A plugin that dies, exits or sticks takes those with it, and no other.
set -u
conformance=$top_srcdir/tests/conformance
work=$top_builddir/tests/conformance/work/persistence-careless
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
names=

try() { # BUG TEXT [OPTION]... <EXPECTED of the cases with TEXT in their names: in the background
    bug=$1 name=$1-$(echo "$2" | tr -c 'a-z\n' -)
    only=$2
    shift 2
    names="$names $name"
    synchronous=full
    test "$bug" != never_flushes || synchronous=normal bug=none
    cat >"$work/$name.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$work/queue.db"; };
  persistence = { plugin = "careless"; file = "$work/$name.db"; busy_timeout = "3s"; bug = "$bug";
                  synchronous = "$synchronous"; }; } );
END
    cat >"$work/$name.expected"
    "$conformance/judge" persistence -c "$work/$name.conf" --only "$only" "$@" \
        --business "$top_builddir/conformance/business/.libs/sqlite.so" \
        <"$work/$name.expected" >"$work/$name.tap" 2>&1 &
}

try none business: </dev/null
try none process <<'END'
skip delayed: what a process stored before it was killed is there
skip delayed: what a process changed before it was killed is changed
skip delayed: what several processes store is all there
skip delayed: behind a visitor that stopped another process stores and fetches
skip delayed: beside an open transaction of another process a call is done, or it is the server's fault
skip delayed: what a killed process had taken comes when its lease ends
END
try rollback_keeps_business business: <<'END'
fail business: a rollback takes it back, and all of its batch
fail business: without an outbox it is kept by a commit and taken back by a rollback
END
try business_is_outside business: <<'END'
fail business: a rollback takes it back, and all of its batch
fail business: it is gone when the session is closed
fail business: it is gone when the commit is refused
fail business: without an outbox it is kept by a commit and taken back by a rollback
fail business: it is gone with a process that is killed in the transaction
fail business: a handler that rolled back and began anew is found out
fail business: a commit after a handler rolled back and began anew stores nothing
END
try commits_in_two_steps business: <<'END'
fail business: it is gone when the commit is refused
END
try commits_in_two_steps "inside of" <<'END'
fail a process killed inside of commit(), wherever it is, leaves all of the batch or nothing
END
try restart_loses_pending process <<'END'
fail what was stored is there for another process
fail what a process stored that has ended is there for the next one
fail a process killed in a sweep keeps nobody from sweeping
fail a process killed while it visits a row keeps nobody from visiting
fail while one process sweeps another visits nothing
fail while one process visits a row another visits none
fail take_pending(): of two processes one has a row
fail take_pending(): a killed process has nothing
fail behind a visitor that stopped another process visits and writes
skip delayed: what a process stored before it was killed is there
skip delayed: what a process changed before it was killed is changed
skip delayed: what several processes store is all there
skip delayed: behind a visitor that stopped another process stores and fetches
skip delayed: beside an open transaction of another process a call is done, or it is the server's fault
skip delayed: what a killed process had taken comes when its lease ends
END
try reopen_loses_pending "opened again" <<'END'
fail what was stored is there when all was closed and is opened again
END
try threads_only "claim the same ids" <<'END'
fail two processes claim the same ids, each takes effect once
END
try check_is_blind business: <<'END'
fail business: check() says that a handler ended the transaction
fail business: a handler that committed and began anew is found out
fail business: a handler that rolled back and began anew is found out
END
try begins_anew business: <<'END'
fail business: check() says that a handler ended the transaction
fail business: a handler that committed and began anew is found out
fail business: a handler that rolled back and began anew is found out
fail business: a commit after a handler committed and began anew stores nothing
fail business: a commit after a handler rolled back and began anew stores nothing
END
try never_flushes "on the disk" <<'END'
fail what was committed is on the disk when commit() returns
fail a commit without operations is on the disk when commit() returns
fail remember: what was remembered is on the disk when remember() returns
skip delayed: what was changed is so on the disk when the call returns
skip delayed: what was stored is on the disk when store() returns
skip delayed: what was taken is so on the disk when fetch() visits it
END
try flushes_operations_only "on the disk" <<'END'
fail a commit without operations is on the disk when commit() returns
skip delayed: what was changed is so on the disk when the call returns
skip delayed: what was stored is on the disk when store() returns
skip delayed: what was taken is so on the disk when fetch() visits it
END
try visits_by_threads "while one" <<'END'
fail while one process sweeps another visits nothing
fail while one process visits a row another visits none
fail while one instance visits a row another sweeps none
END
# Nothing is wrong with threads.
try commits_in_thread business: </dev/null
try commits_in_thread killed <<'END'
skip delayed: what a process stored before it was killed is there
skip delayed: what a process changed before it was killed is changed
skip delayed: what a killed process had taken comes when its lease ends
END
try commits_in_thread "on the disk" <<'END'
skip delayed: what was changed is so on the disk when the call returns
skip delayed: what was stored is on the disk when store() returns
skip delayed: what was taken is so on the disk when fetch() visits it
END
try leases "a process killed in" </dev/null
try leases "killed in the" </dev/null
try exits_uninstalled "another process" <<'END'
fail what another process stored is there
fail what was stored is there for another process
fail behind a visitor that stopped another process visits and writes
skip delayed: behind a visitor that stopped another process stores and fetches
skip delayed: beside an open transaction of another process a call is done, or it is the server's fault
END
wait
try busy_is_fatal neighbour <<'END'
fail a lock that a neighbour holds for too long is the server's fault
END
try marks_nothing marking <<'END'
fail marking twice, or what is not there, changes nothing
fail marking nothing is no error
END
# What is left behind is the failure of the case that leaves it, and not of all that come then.
for bug in keeps_the_largest dies_of_the_largest; do
    try $bug "next_pending()" <<'END'
fail next_pending() visits the largest number
skip cut before next_pending(): not connected, others may visit
END
done
try pending_never_ends "pending()" <<'END'
fail pending() passes over batches that have no row
fail pending() of a thousand batches visits those with a row
fail rows are marked or stay while next_pending() walks on
fail batches are stored and marked while next_pending() visits
fail take_pending(): batches, marks and sweeps go on
skip cut before pending(): not connected
skip cut before next_pending(): not connected, others may visit
END
try cleans_nothing "a clean-up deletes" <<'END'
fail a clean-up deletes what is below its bound
fail a clean-up deletes nothing of another endpoint
fail count_records() counts what a clean-up deletes
fail remember: a clean-up deletes by age
END
try dies_in_mark mark <<'END'
fail a clean-up keeps what has a row of no bytes, stored or left by a mark
fail a mark with a rest shrinks the pending row
fail marking twice, or what is not there, changes nothing
fail several marks, each as it is meant
fail a sweep finds what remains, not what was marked
fail rows are marked or stay while next_pending() walks on
fail parked rows are marked like others
fail take_pending(): batches, marks and sweeps go on
skip cut before mark(): not connected, the row is there
skip a mark whose request is lost can be made again
skip a mark whose reply is lost can be made again
skip crash: before a mark, the row is there
END
try exits_in_sweep "a sweep" <<'END'
fail a sweep keeps to its limit and its bound
fail batches are stored and marked while a sweep visits
skip a sweep whose reply is lost keeps nobody from sweeping
END
try sticks_in_clock "clock() tells" --time-limit 5 <<'END'
fail clock() tells the time, within minutes of the host's
fail clock() tells all sessions the same
END
wait

# One stream of them all.
count=0
for name in $names; do
    awk -v name="$name" -v count=$count '
        /^(not )?ok / { sub(/ok [0-9]+ -/, "ok " ++count " - " name ":"); print; next }
        /^1\.\./ { next }
        { print }' "$work/$name.tap"
    count=$((count + $(grep -c -E '^(not )?ok ' "$work/$name.tap")))
done
echo "1..$count"
