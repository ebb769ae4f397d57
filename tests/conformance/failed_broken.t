#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The persistence kit finds what is wrong with broken tables of failed messages: the cases named
# here must fail, and nothing may with the one that is whole.
set -u
conformance=$top_srcdir/tests/conformance
work=$top_builddir/tests/conformance/work/failed-broken
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
running=0

configure() { # BUG
    cat >"$work/$1.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$work/queue.db"; };
  persistence = { plugin = "failed_broken"; file = "$work/$1.db"; busy_timeout = "5s"; bug = "$1"; }; } );
END
}

judge() { # BUG CASES <EXPECTED
    "$conformance/judge" persistence -c "$work/$1.conf" --only "failed: $2" --patience 3
}

# Only those cases are run. Some at once: they mostly wait for the disk.
try() { # BUG <CASES that must fail, without the topic
    bugs="$bugs $1"
    configure "$1"
    cat >"$work/$1.cases"
    while read -r case; do
        printf 'fail failed: %s\n' "$case" | judge "$1" "$case"
    done <"$work/$1.cases" >"$work/$1.tap" 2>&1 &
    running=$((running + 1))
    test $((running % 12)) -ne 0 || wait
}

configure none
judge none '' >"$work/none.tap" 2>&1 <<'END'
skip failed: a turn whose request is lost
skip failed: a turn whose reply is lost
END
bugs=none

try keys_are_cut <<'END'
what is kept comes back, whatever its bytes
END
try truncates_messages <<'END'
what is kept comes back, whatever its bytes
END
try attempts_are_not_counted <<'END'
what fails again is the same message, with an attempt more, and waits
END
try status_stays <<'END'
what fails again is the same message, with an attempt more, and waits
END
try first_one_stays <<'END'
what fails again is the same message, with an attempt more, and waits
END
try same_failure_counts <<'END'
the same failure again changes nothing
END
try same_failure_waits <<'END'
the same failure again changes nothing
END
try turns_whatever <<'END'
a status is turned where it is as said, and told so
END
try turned_always <<'END'
a status is turned where it is as said, and told so
of four who turn one message one is told that he did
END
try turned_never <<'END'
a status is turned where it is as said, and told so
END
try turns_all <<'END'
a status is turned where it is as said, and told so
END
try changed_as_before <<'END'
a status is turned where it is as said, and told so
END
try turns_by_looking <<'END'
of four who turn one message one is told that he did
END
try turns_stand <<'END'
a rollback leaves nothing of them
END
try commit_forgets <<'END'
changes of a batch are there with its commit
END
try discards_whatever <<'END'
a message is discarded where its status is as said
END
try discards_nothing <<'END'
a message is discarded where its status is as said
END
try list_ignores_status <<'END'
a list is of what was asked for, in the order in which it failed
END
try list_includes_its_end <<'END'
a list is of what was asked for, in the order in which it failed
END
try list_excludes_its_start <<'END'
a list is of what was asked for, in the order in which it failed
END
try newest_first <<'END'
a list is of what was asked for, in the order in which it failed
END
try list_ends_at_a_page <<'END'
a list of many has each once
END
try list_repeats_pages <<'END'
a list of many has each once
END
try list_drops_the_visitors_word <<'END'
a list is of what was asked for, in the order in which it failed
END
try cleans_what_waits <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try cleans_the_latest <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try cleans_without_limit <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try cleans_nothing <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try cleans_by_failure <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try all_endpoints_are_one <<'END'
two endpoints share no messages
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
