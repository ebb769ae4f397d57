#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The persistence kit finds what is wrong with broken persistences, and nothing else.
. "$top_srcdir/tests/conformance/persistence.sh"
trap 'clean_work; tap_end' EXIT

try() { # try BUG: the cases that fail are on standard input
    cat >"$work/$1.wanted"
    bugs="${bugs:-} $1"
    configure "$1" broken_sqlite "file = \"$work/$1.db\"; bug = \"$1\";"
    kit "$1" & # they mostly wait for the disk
}

try none <<'END'
END
try ids_ignore_case <<'END'
ids that differ in case are two ids
ids of one byte, every byte
END
try ids_lose_blanks <<'END'
ids that differ in blanks at their ends are two ids
END
try ids_end_at_nul <<'END'
ids that differ in NUL bytes at their end are two ids
ids that differ after a NUL byte are two ids
END
try forgets_released <<'END'
claims that were committed are given back under their number, and only those
claims given back can be claimed again, the others cannot
a batch may give back all its thousand claims
the largest positive batch number works
a claim waits for the transaction that holds it, ours when it was given back
ids that differ in case are two ids
ids that differ in blanks at their ends are two ids
ids that differ in NUL bytes at their end are two ids
ids that differ after a NUL byte are two ids
ids that differ in accents or their normal form are two ids
an id that begins like another is another
ids that are the same as numbers are two ids
ids that look like SQL are ids
ids need not be UTF-8
ids of 255 bytes differ in their last one
four workers claim the same ids, each takes effect once
interleaved: claims against claims that are given back
END
try truncates_operations <<'END'
operations of more than 64 KiB come back
operations of 1 MiB come back
operations of 16 MiB come back, or are refused as too large
END
wait
try marks_roll_back <<'END'
marks made in begin() stand after a rollback
marks made in begin() stand when the session is closed
begin() makes marks without a batch, too
begin() makes a thousand marks
END
try rest_is_dropped <<'END'
a mark with a rest shrinks the pending row
several marks, each as it is meant
a sweep finds what remains, not what was marked
a clean-up keeps what is not dispatched
END
try clean_up_takes_pending <<'END'
a clean-up keeps what is not dispatched
records that are not dispatched do not keep the clean-up from others
interleaved: a claim against the clean-up of its record
interleaved: marks against clean-ups
interleaved: a commit and its mark against a clean-up and a duplicate
interleaved: two clean-ups and a mark
END
try sweeps_newest_first <<'END'
a sweep visits the oldest first and changes nothing
a sweep keeps to its limit and its bound
a sweep finds what remains, not what was marked
while one instance sweeps another visits nothing
a session goes on after a sweep
interleaved: marks against sweeps
interleaved: two sweeps and their marks
END
try refused_commit_is_ok <<'END'
a second pending row under one number is refused and rolled back
END
try close_commits <<'END'
closing a session leaves nothing of its open transaction
a claim waits for the transaction that holds it, ours when its session is closed
marks made in begin() stand when the session is closed
END
wait

for bug in $bugs; do
    is "$bug" "$(failures "$bug")" "$(cat "$work/$bug.wanted")"
    code=70
    [ "$bug" != none ] || code=0
    is "the kit's exit code for $bug" "$(cat "$work/$bug.code")" $code
done
done_testing
