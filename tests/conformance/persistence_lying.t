#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The persistence kit finds persistences that say what is not so: of connections that broke,
# and of claims that are no locks. The last one's failures depend on threads that meet.
#
# What is whole and what changes every begin() are tried on all cases. What lies when a connection breaks does nothing else
# than the plugin while none does: it is tried where they are lost or cut.
set -u
if [ "${1:-}" != inside ]; then
    exec "$top_srcdir/tests/support/with-servers" pgsql -- "$0" inside
fi
work=$top_builddir/tests/conformance/work/persistence-lying
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
count=0

configure() { # BUG
    cat >"$work/waybill.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$work/queue.db"; };
  persistence = { plugin = "broken_pgsql"; lock_timeout = "5s"; bug = "$1"; }; } );
END
}

# These cost as much as fifty others, and nothing here is about them: persistence_pgsql.t has what is whole try them.
cat >"$work/dear" <<'END'
operations of 16 MiB come back, or are refused as too large
written: a fetch ends with the row that reaches 32 MiB
END

try() { # BUG [TEXT]... <EXPECTED, of all cases or of those with one of the TEXTs in their names
    bug=$1
    shift
    configure "$bug"
    printf '%s\n' "$@" >"$work/texts"
    grep -F -f "$work/texts" "$work/no-crash" | cat - >"$work/expected"
    cat >>"$work/expected"
    for text; do
        shift
        set -- "$@" --only "$text"
    done
    while read -r case; do
        set -- "$@" --except "$case"
    done <"$work/dear"
    "$top_srcdir/tests/conformance/judge" persistence -c "$work/waybill.conf" "$@" \
        <"$work/expected" >"$work/$bug.tap" 2>"$work/$bug.log"
    count=$((count + 1))
    if grep -q '^1\.\.' "$work/$bug.tap" && ! grep -q '^not ok' "$work/$bug.tap"; then
        echo "ok $count - $bug"
    else
        echo "not ok $count - $bug"
        grep -v '^ok' "$work/$bug.tap" | sed 's/^/# /'
    fi
}

cat >"$work/no-crash" <<'END'
skip join(NULL) leaves what was not joined
skip what was committed is on the disk when commit() returns
skip a commit without operations is on the disk when commit() returns
skip remember: what was remembered is on the disk when remember() returns
skip shared_resource() is stable and keeps within its buffer
skip a connection too many is the server's fault
skip crash: what fails while the server is down is its own fault
skip crash: a commit that was reported survives
skip crash: while a commit is on its way, all or nothing
skip crash: between a commit and its reply, all or nothing
skip crash: in begin(), nothing is left
skip crash: before a commit, nothing happened
skip crash: before a mark, the row is there
skip remember: crash: what was reported survives
END
# Delayed stores and tables of failed messages are broken in other tests; these declare none. So is what concerns business data.
configure none
"$top_builddir/waybill" conformance persistence -c "$work/waybill.conf" --only delayed: --only failed: --only business: |
    sed -n -e 's/^ok [0-9]* - \(.*\) # SKIP .* does not declare \(delay_store\|failed\).*$/skip \1/p' \
        -e 's/^ok [0-9]* - \(.*\) # SKIP no --business$/skip \1/p' >>"$work/no-crash"

try none <<'END'
END
# Who keeps connections does nothing wrong, and is not spared.
try pools lost cut </dev/null
try pools_and_lies "of a commit" cut <<'END'
fail late: the request of a commit with a claim is lost
fail positions: the request of a commit is lost
fail late: cut while a commit waits for who has its id, who commits
fail late: cut while a commit waits for who has its id, who rolls back: unknown, until somebody claims it
END
try doubt_is_ok lost cut <<'END'
fail remember: the connection is cut before
fail remember: the request is lost
fail positions: the request of a commit is lost
fail late: the request of a commit with a claim is lost
fail late: cut while a commit waits for who has its id, who commits
fail late: cut while a commit waits for who has its id, who rolls back: unknown, until somebody claims it
fail a commit whose request is lost has not happened
fail a commit whose reply is lost is in doubt, and the record decides
END
try doubt_is_nothing lost cut <<'END'
fail positions: the reply of a commit is lost
fail late: the reply of a commit with a claim is lost
fail late: cut while a commit waits for who has its id, who rolls back: unknown, until somebody claims it
fail a commit whose reply is lost is in doubt, and the record decides
END
try loss_is_retry lost cut <<'END'
fail cut before mark(): not connected, the row is there
fail a mark whose request is lost can be made again
fail a mark whose reply is lost can be made again
END
try positions_unlocked "positions: " <<'END'
fail positions: a commit sets it back to what was not handled
fail positions: or to where it was, if nothing was
fail positions: of two with one partition the second waits, and sees it moved
fail positions: of two with one partition the second waits, and sees it where it was
fail positions: the same where there was no row, committed
fail positions: the same where there was no row, rolled back
may positions: the request of a commit is lost
may positions: the reply of a commit is lost
END
try claims_by_looking <<'END'
fail remember: it waits for the transaction that holds its id, which has it after its commit
fail remember: it waits for the transaction that holds its id, and has it after its rollback
may positions: of two with one partition the second waits, and sees it moved
may positions: the same where there was no row, committed
fail positions: the request of a commit is lost
fail positions: the reply of a commit is lost
fail late: cut while a commit waits for who has its id, who commits
fail late: cut while a commit waits for who has its id, who rolls back: unknown, until somebody claims it
fail late: a commit waits for the transaction that holds its id, refused after its commit
fail late: a commit waits for the transaction that holds its id, and is made after its rollback
fail a claim waits for the transaction that holds it, a duplicate after its commit
fail a claim waits for the transaction that holds it, ours after its rollback
fail a claim waits for the transaction that holds it, ours when it was given back
fail a claim waits for the transaction that holds it, ours when its session is closed
fail a lock that a neighbour holds for too long is the server's fault
may four workers claim the same ids, each takes effect once
may two processes claim the same ids, each takes effect once
may interleaved: two batches claim the same ids and commit
may interleaved: two batches share one id of three
may interleaved: a claim against a rollback and a second try
may interleaved: claims against claims that are given back
may interleaved: a commit and its mark against a clean-up and a duplicate
fail cut before commit(): nothing happened
fail a commit whose request is lost has not happened
fail a commit whose reply is lost is in doubt, and the record decides
fail a rollback whose reply is lost has rolled back
END
echo "1..$count"
