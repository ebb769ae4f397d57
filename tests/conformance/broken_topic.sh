# SPDX-License-Identifier: Apache-2.0
#
# What tests share that break one topic of a persistence for the kit to find. A script says `topic`, and the `plugin` that is broken,
# reads this, tries the one that is whole and each that is not, and tells.
set -u
conformance=$top_srcdir/tests/conformance
work=$top_builddir/tests/conformance/work/$plugin
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
running=0
bugs=none

configure() { # BUG
    cat >"$work/$1.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$work/queue.db"; };
  persistence = { plugin = "$plugin"; file = "$work/$1.db"; busy_timeout = "5s"; bug = "$1"; }; } );
END
}

judge() { # BUG CASES <EXPECTED
    "$conformance/judge" persistence -c "$work/$1.conf" --only "$topic: $2" --patience 3
}

try_whole() { # <EXPECTED
    configure none
    judge none '' >"$work/none.tap" 2>&1
}

# Only those cases are run. Some at once: they mostly wait for the disk and for leases.
try() { # BUG <CASES that must fail, without the topic
    bugs="$bugs $1"
    configure "$1"
    cat >"$work/$1.cases"
    while read -r case; do
        printf 'fail %s: %s\n' "$topic" "$case" | judge "$1" "$case"
    done <"$work/$1.cases" >"$work/$1.tap" 2>&1 &
    running=$((running + 1))
    test $((running % 12)) -ne 0 || wait
}

tell() {
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
}
