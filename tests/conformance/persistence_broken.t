#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The persistence kit finds what is wrong with broken persistences, and nothing else.
#
# "Nothing else" costs: a run of the whole kit for each of 60 bugs. What is whole is tried on all cases, and so is each bug
# in what all cases use: begin(), commit(), mark(), sweep(), clean_up(), close(), the class of an error. A bug in a function
# that few cases call is tried on these: on those of one topic, if all that must fail are of it, or on those that have a word
# of the function's in their names. In the other cases it has nothing to do, and the plugin is the whole one.
set -u
conformance=$top_srcdir/tests/conformance
work=$top_builddir/tests/conformance/work/persistence-broken
rm -rf "$work"
mkdir -p "$work"
# kits bring to the disk what they do, all the time
data=$(mktemp -d "$("$top_srcdir/tests/support/server" place)/waybill-test.XXXXXX") || exit 1
trap 'wait; rm -rf "$data"' EXIT
trap 'exit 1' HUP INT TERM
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
bugs=

configure() { # BUG
    cat >"$work/$1.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$data/queue.db"; };
  persistence = { plugin = "broken_sqlite"; file = "$data/$1.db"; busy_timeout = "3s"; bug = "$1"; }; } );
END
}

topic_of() { # FAILS: the one that all its cases are of, if there is one
    sed 's/^[a-z]* //; /^[a-z_]*\(()\)\{0,1\}: /!s/.*/none/; s/: .*/: /' "$1" | sort -u |
        awk 'END { if (NR == 1 && /: $/) print }'
}

# These cost as much as fifty others. They are tried on what is whole, and on what they are about.
cat >"$work/dear" <<'END'
operations of 16 MiB come back, or are refused as too large
written: a fetch ends with the row that reaches 32 MiB
END

# At most so many at once: they wait, too, but others have a clock to watch.
mkfifo "$work/places" && exec 7<>"$work/places" || exit 1
for place in 1 2 3 4 5 6 7 8; do echo "$place" >&7; done

# In the background. Several WORDs are one or another.
try() { # BUG [WORD in the names of the cases it is tried on]... <EXPECTED
    bug=$1
    shift
    bugs="$bugs $bug"
    configure "$bug"
    cat >"$work/$bug.fails"
    topic=$(topic_of "$work/$bug.fails")
    test $# -gt 0 || test -z "$topic" || set -- "$topic"
    printf '%s\n' "$@" >"$work/$bug.words"
    grep -F -f "$work/$bug.words" "$work/no-server" | cat "$work/$bug.fails" - >"$work/$bug.expected"
    for word; do
        shift
        set -- "$@" --only "$word"
    done
    while test "$bug" != none && read -r case; do
        grep -q -F "$case" "$work/$bug.fails" || set -- "$@" --except "$case"
    done <"$work/dear"
    read -r place <&7
    {
        "$conformance/judge" persistence -c "$work/$bug.conf" "$@" <"$work/$bug.expected" >"$work/$bug.tap" 2>&1
        echo "$place" >&7
    } &
}

cat >"$work/no-server" <<'END'
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
END
# Delayed stores and tables of failed messages are broken in other tests; these declare none. So is what concerns business data.
configure none
"$top_builddir/waybill" conformance persistence -c "$work/none.conf" --only delayed: --only failed: --only business: |
    sed -n -e 's/^ok [0-9]* - \(.*\) # SKIP .* does not declare \(delay_store\|failed\).*$/skip \1/p' \
        -e 's/^ok [0-9]* - \(.*\) # SKIP no --business$/skip \1/p' >>"$work/no-server"

try none <<'END'
END
try ids_ignore_case <<'END'
fail ids that differ in case are two ids
fail ids that are one UUID, spelled in many ways, are many ids
fail ids that look like a UUID kept in 17 bytes are others
fail ids of one byte, every byte
fail forget: ids of all kinds
fail remember: ids of all kinds, each of its batch
END
try uuids_in_any_case <<'END'
fail ids that are one UUID, spelled in many ways, are many ids
fail forget: ids of all kinds
fail remember: ids of all kinds, each of its batch
END
try uuids_unescaped <<'END'
fail ids that look like a UUID kept in 17 bytes are others
fail forget: ids of all kinds
fail remember: ids of all kinds, each of its batch
END
try ids_lose_blanks <<'END'
fail ids that differ in blanks at their ends are two ids
fail ids that are one UUID, spelled in many ways, are many ids
fail forget: ids of all kinds
fail remember: ids of all kinds, each of its batch
END
try ids_end_at_nul <<'END'
fail ids that differ in NUL bytes at their end are two ids
fail ids that differ after a NUL byte are two ids
fail ids that are one UUID, spelled in many ways, are many ids
fail ids that look like a UUID kept in 17 bytes are others
fail forget: ids of all kinds
fail remember: ids of all kinds, each of its batch
fail late: many with one commit, all or none of them
END
try forgets_released <<'END'
fail claims that were committed are given back under their number, and only those
fail claims given back can be claimed again, the others cannot
fail a batch may give back all its thousand claims
fail the largest positive batch number works
fail a claim waits for the transaction that holds it, ours when it was given back
fail ids that differ in case are two ids
fail ids that differ in blanks at their ends are two ids
fail ids that differ in NUL bytes at their end are two ids
fail ids that differ after a NUL byte are two ids
fail ids that differ in accents or their normal form are two ids
fail an id that begins like another is another
fail ids that are the same as numbers are two ids
fail ids that look like SQL are ids
fail ids need not be UTF-8
fail ids that are one UUID, spelled in many ways, are many ids
fail UUIDs among other ids are told apart
fail ids that look like a UUID kept in 17 bytes are others
fail ids of 255 bytes differ in their last one
fail four workers claim the same ids, each takes effect once
fail two processes claim the same ids, each takes effect once
fail interleaved: claims against claims that are given back
fail larger tables of a newer host are taken
fail a clean-up keeps what was claimed again under a later number
fail a process killed after a commit has given back what it gave back
END
try truncates_operations <<'END'
fail operations of more than 64 KiB come back
fail operations of 1 MiB come back
fail operations of 16 MiB come back, or are refused as too large
fail next_pending() hands out rows as they are
fail list_pending() lists many rows, large ones and one of no bytes
END
try marks_roll_back <<'END'
fail marks made in begin() stand after a rollback
fail marks made in begin() stand when the session is closed
fail begin() makes marks without a batch, too
fail begin() makes a thousand marks
fail forget: in begin(), it stands after a rollback
fail forget: in begin(), it stands when the session is closed
END
try rest_is_dropped <<'END'
fail what was stored is there when all was closed and is opened again
fail what another process stored is there
fail what was stored is there for another process
fail what a process stored that has ended is there for the next one
fail a mark with a rest shrinks the pending row
fail several marks, each as it is meant
fail a sweep finds what remains, not what was marked
fail rows are marked or stay while next_pending() walks on
fail parked rows are marked like others
fail a clean-up keeps what is not dispatched
fail count_records() counts what a clean-up deletes
fail take_pending(): what is gone nobody takes
fail take_pending(): batches, marks and sweeps go on
fail a clean-up keeps what has a row of no bytes, stored or left by a mark
END
try clean_up_takes_pending <<'END'
fail a clean-up keeps what is not dispatched
fail parked rows and the clean-up leave each other alone
fail records that are not dispatched do not keep the clean-up from others
fail stats() counts records and knows the oldest and the newest
fail count_records() counts what a clean-up deletes
fail interleaved: a claim against the clean-up of its record
fail interleaved: marks against clean-ups
fail interleaved: a commit and its mark against a clean-up and a duplicate
fail interleaved: two clean-ups and a mark
fail a clean-up keeps what has a row of no bytes, stored or left by a mark
END
try sweeps_newest_first <<'END'
fail while one process sweeps another visits nothing
fail a sweep visits the oldest first and changes nothing
fail a sweep keeps to its limit and its bound
fail rows with numbers in the future are not swept before
fail a sweep finds what remains, not what was marked
fail while one instance sweeps another visits nothing
fail a session goes on after a sweep
fail interleaved: marks against sweeps
fail interleaved: two sweeps and their marks
END
try refused_commit_is_ok <<'END'
fail late: with an id that has a record nothing is committed
fail late: nor with one's own number, twice
fail late: many with one commit, all or none of them
fail late: a commit waits for the transaction that holds its id, refused after its commit
fail a second pending row under one number is refused, as retry or abort, and rolled back
fail a parked row does not take the place of another
fail late: a claim replaces the record it is told to, and no other
fail late: a commit that is refused replaces nothing
END
try close_commits <<'END'
fail closing a session leaves nothing of its open transaction
fail a claim waits for the transaction that holds it, ours when its session is closed
fail marks made in begin() stand when the session is closed
fail forget: in begin(), it stands when the session is closed
END
try walks_on_the_spot "next_pending()" "visit" <<'END'
fail next_pending() walks over the rows in order, one a call
fail next_pending() keeps to its bounds
fail next_pending() visits the largest number
fail next_pending() hands out rows as they are
fail rows are marked or stay while next_pending() walks on
fail next_pending() hands on what the visitor says
fail while one instance visits a row another visits none
fail while one instance visits a row another sweeps none
fail batches are stored and marked while next_pending() visits
fail next_pending() visits parked rows when they are due
END
try walks_past_the_visitor "next_pending()" "visit" <<'END'
fail next_pending() hands on what the visitor says
fail behind a visitor that stopped another process visits and writes
END
try walks_beside_others "next_pending()" "visit" <<'END'
fail while one process visits a row another visits none
fail while one instance visits a row another visits none
fail while one instance visits a row another sweeps none
END
try sweeps_what_is_not_due <<'END'
fail a sweep keeps to its limit and its bound
fail rows with numbers in the future are not swept before
END
try parks_nothing <<'END'
fail what was stored is there when all was closed and is opened again
fail what another process stored is there
fail what was stored is there for another process
fail what a process stored that has ended is there for the next one
fail late: an id that is claimed with the commit is there with it
fail late: a commit waits for the transaction that holds its id, and is made after its rollback
fail next_pending() visits the largest number
fail next_pending() hands out rows as they are
fail a transaction that claims nothing stores a row
fail a parked row does not take the place of another
fail rows with numbers in the future are not swept before
fail next_pending() visits parked rows when they are due
fail parked rows and the clean-up leave each other alone
fail parked rows are marked like others
fail a row is parked again under a later number
fail late: a claim replaces the record it is told to, and no other
fail list_pending() lists rows in order, whole or their heads
fail list_pending() lists many rows, large ones and one of no bytes
fail take_pending(): of two sessions one has a row
fail take_pending(): what is gone nobody takes
fail take_pending(): a session that is closed has nothing
fail take_pending(): a killed process has nothing
fail take_pending(): batches, marks and sweeps go on
fail take_pending(): the same number is two rows for two endpoints
fail endpoints whose names differ in case or at their end are two
END
try stores_as_begun <<'END'
fail of two that park one row one does
fail claims that were committed are given back under their number, and only those
fail late: an id that is claimed with the commit is there with it
fail positions: a commit sets it back to what was not handled
END
try claims_as_begun "given back" "late: " "positions: " "park" <<'END'
fail claims that were committed are given back under their number, and only those
fail late: an id that is claimed with the commit is there with it
fail positions: a commit sets it back to what was not handled
END
try clock_is_a_year_off "clock" <<'END'
fail clock() tells the time, within minutes of the host's
END
try clock_stands_still "clock" <<'END'
fail clock() goes on, and not back
END
try late_claims_do_nothing <<'END'
fail late: an id that is claimed with the commit is there with it
fail late: with an id that has a record nothing is committed
fail late: nor with one's own number, twice
fail late: many with one commit, all or none of them
fail late: the same id is two ids for two endpoints
fail late: a commit waits for the transaction that holds its id, refused after its commit
fail late: a commit waits for the transaction that holds its id, and is made after its rollback
fail late: a claim replaces the record it is told to, and no other
fail late: a clean-up keeps what has replaced an older one
fail late: and is made where that is not there
fail late: a commit that is refused replaces nothing
END
try finds_by_claiming <<'END'
fail late: to find an id waits for nobody, and sees what is committed
END
# whoever comes second waits all the same, for the file
try positions_unlocked <<'END'
fail positions: a commit sets it back to what was not handled
fail positions: or to where it was, if nothing was
END
try positions_not_set_back <<'END'
fail positions: a commit sets it back to what was not handled
fail positions: or to where it was, if nothing was
END
try finds_nothing "late: " "remember: " <<'END'
fail late: an id that is claimed with the commit is there with it
fail late: with an id that has a record nothing is committed
fail late: nor with one's own number, twice
fail late: many with one commit, all or none of them
fail late: the same id is two ids for two endpoints
fail late: to find an id waits for nobody, and sees what is committed
fail late: a commit waits for the transaction that holds its id, refused after its commit
fail late: a commit waits for the transaction that holds its id, and is made after its rollback
fail late: a claim replaces the record it is told to, and no other
fail late: a clean-up keeps what has replaced an older one
fail late: and is made where that is not there
fail late: a commit that is refused replaces nothing
fail remember: an id is found by every session at once
fail remember: an id that has a record keeps that
fail remember: an id is found by another instance, and later
fail remember: a process killed after it has remembered
fail remember: ids of all kinds, each of its batch
fail remember: many in one call, of many batches
fail remember: the same id is two ids for two endpoints
fail remember: a clean-up deletes by age
fail remember: under the longest name of a store
fail remember: four sessions, the same ids at once
fail remember: nothing is left open
fail remember: claims meet it, and it keeps their records
fail remember: it waits for the transaction that holds its id, which has it after its commit
fail remember: it waits for the transaction that holds its id, and has it after its rollback
END
try written_comes_again <<'END'
fail written: a fetch ends with the row that reaches 32 MiB
fail written: rows come by their numbers, until they are removed
fail written: all are counted, whoever has the turn
END
try written_waits_for_nothing <<'END'
fail written: what is postponed waits, and what is behind it with its key
fail written: behind a number, and which is the last
END
try written_loses_keys <<'END'
fail written: messages are fetched as they were written
END
try written_in_pieces <<'END'
fail written: messages are fetched as they were written
END
try written_of_any_form <<'END'
fail written: rows of a later form are left alone
END
try written_to_anybody <<'END'
fail written: one session has the turn, until it is closed
END
try written_from_the_start <<'END'
fail written: behind a number, and which is the last
END
try written_past_the_last <<'END'
fail written: behind a number, and which is the last
END
try written_counts_what_may_go <<'END'
fail written: all are counted, whoever has the turn
END
try claims_are_always_new <<'END'
fail written: an id is claimed once, until its record is old
END
try locks_are_the_messages <<'END'
fail a lock that a neighbour holds for too long is the server's fault
fail what fails beside an open transaction is the server's fault
END
try guesses_are_exact "stats()" <<'END'
fail stats() counts records and knows the oldest and the newest
END
try counts_what_is_pending "count_records()" "stats()" <<'END'
fail count_records() counts what a clean-up deletes
END
try lists_as_a_sweep "list_pending()" <<'END'
fail list_pending() lists rows in order, whole or their heads
fail list_pending() lists many rows, large ones and one of no bytes
fail list_pending() waits for nobody
END
try rows_are_everybodys <<'END'
fail take_pending(): of two processes one has a row
fail take_pending(): of two sessions one has a row
fail take_pending(): batches, marks and sweeps go on
END
try takes_what_is_gone <<'END'
fail take_pending(): what is gone nobody takes
END
try heads_are_whole "list_pending()" <<'END'
fail list_pending() lists rows in order, whole or their heads
fail list_pending() lists many rows, large ones and one of no bytes
fail list_pending() waits for nobody
END
try forgets_nothing <<'END'
fail forget: what is forgotten is new when it is claimed again
fail forget: only the record of that batch goes, and nothing else of it
fail forget: what is not there is no error
fail forget: ids of all kinds
fail forget: many in one call, of several batches
fail forget: in begin(), with marks and claims, and a commit
fail forget: in begin(), it stands after a rollback
fail forget: in begin(), it stands when the session is closed
fail forget: in begin(), without a batch and without marks
fail forget: in begin(), what is claimed there again is new
fail forget: a clean-up keeps what was claimed again
END
try forget_takes_any_batch <<'END'
fail forget: only the record of that batch goes, and nothing else of it
END
try forgotten_rolls_back <<'END'
fail forget: in begin(), it stands after a rollback
fail forget: in begin(), it stands when the session is closed
fail forget: in begin(), without a batch and without marks
fail forget: in begin(), what is claimed there again is new
END
try remember_overwrites <<'END'
fail remember: an id that has a record keeps that
fail remember: nothing is left open
fail remember: claims meet it, and it keeps their records
may remember: four sessions, the same ids at once
END
try remembers_late <<'END'
fail remember: an id is found by every session at once
fail remember: an id that has a record keeps that
fail remember: a process killed after it has remembered
fail remember: what was remembered is on the disk when remember() returns
fail remember: many in one call, of many batches
fail remember: a clean-up deletes by age
fail remember: four sessions, the same ids at once
fail remember: nothing is left open
fail remember: claims meet it, and it keeps their records
fail remember: it waits for the transaction that holds its id, which has it after its commit
fail remember: it waits for the transaction that holds its id, and has it after its rollback
END
try remembers_part <<'END'
fail remember: many in one call, of many batches
END
try uninstalls_nothing "install" "rename()" <<'END'
fail uninstall() removes the endpoint's tables, twice, and nobody else's
fail what is installed again is empty
fail notes: uninstall() forgets them, and rename() those of the former name
END
try renames_nothing "install" "rename()" <<'END'
fail rename() keeps records and operations, and may be repeated
fail rename() keeps how far partitions are done with
fail rename() keeps what programs wrote in SQL
fail after rename() the former name can be installed anew
fail rename() to a name that has tables is refused
fail notes: uninstall() forgets them, and rename() those of the former name
END
try renames_over "install" "rename()" <<'END'
fail rename() to a name that has tables is refused
END
try notes_for_ever "noted" "notes: " <<'END'
fail subscriptions are noted, each once, and forgotten
END
try begun_for_ever "noted" "notes: " <<'END'
fail notes: under each name a number is kept
END
try begun_by_all "noted" "notes: " <<'END'
fail notes: under each name a number is kept
END
try gives_back_late "killed" <<'END'
fail a process killed after a commit has given back what it gave back
END
try cleans_up_by_the_first_number "clean-up" "forget: " <<'END'
fail a clean-up keeps what was claimed again under a later number
fail forget: a clean-up keeps what was claimed again
fail late: a clean-up keeps what has replaced an older one
END
try clean_up_takes_the_empty "clean-up" "no bytes" <<'END'
fail a clean-up keeps what has a row of no bytes, stored or left by a mark
END
try empty_rest_is_none "mark" "clean-up" <<'END'
fail a clean-up keeps what has a row of no bytes, stored or left by a mark
END
try stopped_sweep_stays "sweep" "visitor" <<'END'
fail behind a visitor that stopped another process visits and writes
END
try busy_is_done "forget: " "server's fault" <<'END'
fail what fails beside an open transaction is the server's fault
END
try endpoints_ignore_case "install" "rename()" "endpoint" <<'END'
fail endpoints whose names differ in case or at their end are two
END
try endpoints_by_their_head "install" "rename()" "endpoint" <<'END'
fail endpoints whose names differ in case or at their end are two
END
# nothing is wrong with that
try refuses_names "install" "rename()" "endpoint" "longest name" <<'END'
skip remember: under the longest name of a store
skip create() takes every endpoint name, or says which it does not
skip endpoints whose names differ in case or at their end are two
END
# whether two look before either claims is a matter of threads
try remembers_by_looking <<'END'
may remember: four sessions, the same ids at once
fail remember: it waits for the transaction that holds its id, which has it after its commit
END
wait

count=0
for bug in $bugs; do
    count=$((count + 1))
    if grep -q '^1\.\.' "$work/$bug.tap" && ! grep -q '^not ok' "$work/$bug.tap"; then
        echo "ok $count - $bug"
    else
        echo "not ok $count - $bug"
        grep -v '^ok' "$work/$bug.tap" | sed 's/^/# /'
    fi
done
echo "1..$count"
