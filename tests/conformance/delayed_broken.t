#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The persistence kit finds what is wrong with broken delayed stores: the cases named here must
# fail, and nothing may with the store that is whole.
topic=delayed plugin=delayed_broken
. "$top_srcdir/tests/conformance/broken_topic.sh"

{
    for call in store next fetch remove increment_failure_count release "begin_fetch() and end_fetch" list cancel \
        reschedule; do
        printf 'skip delayed: %s\n' "cut before $call()" "the request of $call() is lost" \
            "the reply of $call() is lost"
    done
    printf 'skip delayed: crash: in %s(), all or nothing\n' store remove
    printf 'skip delayed: the %s of a commit with delayed messages is lost\n' request reply
} | try_whole

try refuses_all_modes <<'END'
initialize() says which modes it can honour, without a connection
END
try ids_ignore_case <<'END'
keys are compared byte for byte
END
try ids_end_at_nul <<'END'
keys are compared byte for byte
END
try key_without_retries <<'END'
destination, id and retries make the key
END
try key_without_destination <<'END'
destination, id and retries make the key
END
try last_one_wins <<'END'
a key stored twice is one message, the first
a key stored again leaves a message taken, with its count
END
try truncates_operations <<'END'
operations of 0 bytes to 1 MiB come back
END
try forgets_one <<'END'
a thousand in one call
END
try due_to_the_millisecond <<'END'
due at a time, rounded up by a microsecond at most
END
try due_to_the_second <<'END'
due at a time, rounded up by a microsecond at most
END
try early_by_a_millisecond <<'END'
due at a time, rounded up by a microsecond at most
END
try early_by_the_clock <<'END'
nothing is fetched before it is due
END
try limit_is_ignored <<'END'
what is due first is fetched first, up to the limit
END
try fetch_has_no_end <<'END'
what one fetch brings is bounded
END
try latest_first <<'END'
what is due first is fetched first, up to the limit
END
try gives_taken_again <<'END'
what is taken nobody else is given
four pollers share what is due, none is in two hands
END
try leases_are_halved <<'END'
what was taken is given to others when the lease ends
what a killed process had taken comes when its lease ends
END
try visits_before_taking <<'END'
messages are taken before the first is visited, and nobody waits
what a killed process had taken comes when its lease ends
END
try takes_by_looking <<'END'
four pollers share what is due, none is in two hands
END
try gives_up_the_rest <<'END'
a visitor that ends a fetch leaves the rest taken
END
try drops_the_visitors_word <<'END'
a visitor that ends a fetch leaves the rest taken
END
try next_ignores_leases <<'END'
next() says when a lease ends
END
try next_forgets_taken <<'END'
next() says when a lease ends
END
try next_is_an_hour_off <<'END'
what is due says the database's clock
END
try owner_is_ignored <<'END'
an owner removes what he has taken, nobody's owner all
END
try was_always_there <<'END'
was_there is exact where keys are mixed
of two that remove one message one is told that it was there
END
try was_never_there <<'END'
was_there is exact where keys are mixed
of two that cancel one message one is told that it was there
END
try removes_the_first <<'END'
a thousand in one call
END
try failures_are_not_counted <<'END'
failures are counted, and the message is due when it is said
END
try failed_stay_taken <<'END'
failures are counted, and the message is due when it is said
END
try failed_are_due_as_before <<'END'
failures are counted, and the message is due when it is said
END
try releases_nothing <<'END'
release() gives back an owner's, unchanged or due at another time
END
try releases_everything <<'END'
release() gives back an owner's, unchanged or due at another time
END
try release_counts_a_failure <<'END'
release() gives back an owner's, unchanged or due at another time
END
try list_takes <<'END'
a list shows what waits, earliest due first, and takes nothing
END
try list_is_endless <<'END'
all conditions of a filter hold
END
try list_includes_its_end <<'END'
all conditions of a filter hold
END
try list_knows_no_destination <<'END'
all conditions of a filter hold
END
try list_hides_leases <<'END'
a list shows operations by id, failures and leases
END
try cancels_what_is_taken <<'END'
what was cancelled is never fetched, what is taken is not cancelled
END
try cancels_nothing <<'END'
what was cancelled is never fetched, what is taken is not cancelled
END
try moves_what_is_taken <<'END'
what was rescheduled is due then, what is taken stays
END
try cancels_after_the_lease <<'END'
what was taken when a lease ended is never cancelled, what was given back is
END
try moves_after_the_lease <<'END'
what was taken when a lease ended is never cancelled, what was given back is
END
try release_ends_doubt <<'END'
what was taken when a lease ended is never cancelled, what was given back is
END
try failure_ends_doubt <<'END'
what was taken when a lease ended is never cancelled, what was given back is
END
try released_are_due_as_before <<'END'
release() gives back an owner's, unchanged or due at another time
END
try rides_alone <<'END'
what an owner removes with his fetch is gone, and nothing else
END
try rides_and_leaves <<'END'
what an owner removes with his fetch is gone, and nothing else
END
try rides_with_anybodys <<'END'
what an owner removes with his fetch is gone, and nothing else
END
try begun_is_free <<'END'
while a fetch that was begun is not ended, others go on, and nobody is given the same
END
try begun_is_gone <<'END'
what an owner removes with his fetch is gone, and nothing else
while a fetch that was begun is not ended, others go on, and nobody is given the same
a session that is closed before its fetch is ended has lost nothing
END
try commit_forgets <<'END'
what goes with a commit is there when that is
END
try commit_forgets_the_last <<'END'
many with a commit that has nothing else
END
try commit_moves <<'END'
a commit leaves keys that are there as they are
END
try place_is_enough <<'END'
an owner removes what he has taken, nobody's owner all
END
try moves_nothing <<'END'
what was rescheduled is due then, what is taken stays
END
try all_endpoints_are_one <<'END'
two endpoints share no messages
END
try release_is_late <<'END'
what a process changed before it was killed is changed
END
try numbers_by_process <<'END'
what several processes store is all there
END
try stopped_fetch_stays <<'END'
behind a visitor that stopped another process stores and fetches
END
try ended_leases_are_nobodys <<'END'
what was taken is its owner's until another takes it, though the lease has ended
END
try uninstall_keeps_what_waits <<'END'
uninstall() removes what waits, also where nothing is delayed any more
END
try busy_is_stored <<'END'
beside an open transaction of another process a call is done, or it is the server's fault
END
try release_is_not_flushed <<'END'
what was changed is so on the disk when the call returns
END
tell
