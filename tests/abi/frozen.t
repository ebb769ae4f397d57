#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the headers of a version promised, those of today promise: fields keep their places, types and
# names, constants their values, and what is fixed for ever has no field more.
set -u
here=$top_srcdir/tests/abi
work=$(mktemp -d /tmp/waybill-frozen-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
count=0

ok() { # STATUS NAME
    count=$((count + 1))
    [ "$1" -eq 0 ] || printf 'not '
    echo "ok $count - $2"
    [ "$1" -eq 0 ] || head -n 20 "$work/broken" | sed 's/^/# /'
}

words() { # DIRECTORY
    for header in "$1"/waybill/*.h "$1"/waybill/sys/*.h; do
        ${AWK:-awk} -f "$here/words.awk" "$header" || exit 1
    done | sort
}

# What of the first is not in the second; @include must have made something of both.
broken() { # DIRECTORY DIRECTORY
    words "$1" >"$work/then" && words "$2" >"$work/now" && [ "$(wc -l <"$work/then")" -gt 400 ] || return 2
    comm -23 "$work/then" "$work/now" >"$work/broken"
    [ -s "$work/broken" ]
}

for version in "$here"/[0-9]*; do
    broken "$version/include" "$top_srcdir/include"
    [ $? -eq 1 ]
    ok $? "all that $(basename "$version") promised is promised today"
done

# That this would be noticed: one change each, of a copy of today's headers.
changed() { # FILE SED-SCRIPT
    rm -rf "$work/include"
    cp -R "$top_srcdir/include" "$work/include"
    chmod -R u+w "$work/include"
    sed "$2" "$top_srcdir/include/waybill/$1" >"$work/include/waybill/$1"
    ! cmp -s "$top_srcdir/include/waybill/$1" "$work/include/waybill/$1" || return 2
    broken "$top_srcdir/include" "$work/include"
}
changed sys/persistence.h '/^typedef struct wb_begin/,/^}/ s/    uint64_t batch;/    uint64_t other;\n&/'
ok $? 'a field in the middle is noticed'
changed sys/persistence.h '/^typedef struct wb_claim/,/^}/ s/^} /    uint64_t more;\n&/'
ok $? 'a field at the end of what is fixed is noticed'
changed sys/transport.h 's/    uint32_t delivery_count;/    uint64_t delivery_count;/'
ok $? 'another type is noticed'
changed sys/transport.h 's/uint32_t purpose, uint32_t prefetch/uint32_t purpose/'
ok $? 'an argument less is noticed'
changed result.h 's/#define WB_FATAL 6/#define WB_FATAL 7/'
ok $? 'another value is noticed'
changed session.h 's/^void wb_session_close/void wb_session_shut/'
ok $? 'a function that is gone is noticed'
changed message.h 's/ Fixed for ever\.//'
ok $? 'that something is no more fixed is noticed'
changed sys/persistence.h '/^typedef struct wb_commit/,/^}/ s/^} /    uint64_t more;\n&/'
[ $? -eq 1 ]
ok $? 'what is appended is not'
echo "1..$count"
