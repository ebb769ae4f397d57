#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The persistence kit finds persistences that say what is not so: of connections that broke,
# and of claims that are no locks. In a list "?" is before what fails only if threads meet.
if [ "${1:-}" != inside ]; then
    exec "$top_srcdir/tests/support/with-servers" pgsql -- "$0" inside
fi
. "$top_srcdir/tests/conformance/persistence.sh"
trap 'clean_work; tap_end' EXIT

try() {
    cat >"$work/$1.wanted"
    configure "$1" broken_pgsql "bug = \"$1\";"
    kit "$1"
    failures "$1" >"$work/$1.failed"
    sed -n 's/^? //p' "$work/$1.wanted" >"$work/$1.perhaps"
    is "$1" "$(grep -vxFf "$work/$1.perhaps" "$work/$1.failed")" \
        "$(grep -v '^?' "$work/$1.wanted")"
}

try none <<'END'
END
try doubt_is_ok <<'END'
a commit whose request is lost has not happened
a commit whose reply is lost is in doubt, and the record decides
END
try doubt_is_nothing <<'END'
a commit whose reply is lost is in doubt, and the record decides
END
try loss_is_retry <<'END'
cut before mark(): not connected, the row is there
a mark whose request is lost can be made again
a mark whose reply is lost can be made again
END
try claims_by_looking <<'END'
a claim waits for the transaction that holds it, a duplicate after its commit
a claim waits for the transaction that holds it, ours after its rollback
a claim waits for the transaction that holds it, ours when it was given back
a claim waits for the transaction that holds it, ours when its session is closed
? four workers claim the same ids, each takes effect once
interleaved: two batches claim the same ids and commit
interleaved: two batches share one id of three
interleaved: a claim against a rollback and a second try
interleaved: claims against claims that are given back
? interleaved: a commit and its mark against a clean-up and a duplicate
cut before commit(): nothing happened
a commit whose request is lost has not happened
a commit whose reply is lost is in doubt, and the record decides
END
done_testing
