#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The sqlite persistence passes the kit. It has neither a connection nor a server to lose.
set -eu
work=$top_builddir/tests/conformance/work/persistence-sqlite
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
cat >"$work/waybill.conf" <<END
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$work/queue.db"; };
                persistence = { plugin = "sqlite"; file = "$work/data.db"; busy_timeout = "5s"; }; } );
END
cat >"$work/expected" <<'END'
skip cut before begin(): not connected
skip cut before commit(): nothing happened
skip cut before rollback(): nothing happened
skip cut before mark(): not connected, the row is there
skip cut before pending(): not connected
skip cut before sweep(): not connected, others may sweep
skip cut before clean_up(): not connected, others may clean up
skip cut before next_pending(): not connected, others may visit
skip cut before clock(): not connected
skip cut before a look at the outbox: not connected
skip a begin whose request is lost leaves nothing
skip a begin whose reply is lost leaves nothing
skip a commit whose request is lost has not happened
skip a commit whose reply is lost is in doubt, and the record decides
skip a mark whose request is lost can be made again
skip a mark whose reply is lost can be made again
skip a rollback whose reply is lost has rolled back
skip a look at pending rows whose reply is lost changes nothing
skip a sweep whose reply is lost keeps nobody from sweeping
skip a clean-up whose reply is lost keeps nobody from cleaning up
skip a visit of the next row whose reply is lost keeps nobody from visiting
skip a look at the clock whose reply is lost changes nothing
skip a look at the outbox whose reply is lost changes nothing
skip a connection too many is the server's fault
skip crash: what fails while the server is down is its own fault
skip crash: a commit that was reported survives
skip crash: while a commit is on its way, all or nothing
skip crash: between a commit and its reply, all or nothing
skip crash: in begin(), nothing is left
skip crash: before a commit, nothing happened
skip crash: before a mark, the row is there
skip late: the request of a commit with a claim is lost
skip late: the reply of a commit with a claim is lost
skip late: cut before a commit with a claim: nothing happened
skip late: cut while a commit waits for who has its id, who commits
skip late: cut while a commit waits for who has its id, who rolls back: unknown, until somebody claims it
skip written: a fetch whose reply is lost can be made again
skip written: the request of a settle is lost
skip written: the reply of a settle is lost
skip positions: the request of a commit is lost
skip positions: the reply of a commit is lost
skip forget: the connection is cut before
skip forget: the request is lost
skip forget: the reply is lost
skip remember: the connection is cut before
skip remember: the request is lost
skip remember: the reply is lost
skip remember: crash: what was reported survives
skip failed: a turn whose request is lost
skip failed: a turn whose reply is lost
skip delayed: crash: in store(), all or nothing
skip delayed: crash: in remove(), all or nothing
END
for call in store next fetch remove increment_failure_count release "begin_fetch() and end_fetch" list cancel reschedule; do
    printf 'skip delayed: %s\n' "cut before $call()" "the request of $call() is lost" \
        "the reply of $call() is lost"
done >>"$work/expected"
printf 'skip delayed: the %s of a commit with delayed messages is lost\n' request reply >>"$work/expected"
"$top_srcdir/tests/conformance/judge" persistence -c "$work/waybill.conf" \
    --business "$top_builddir/conformance/business/.libs/sqlite.so" <"$work/expected"
