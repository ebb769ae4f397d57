#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A test that hangs is ended with what it started, and says so; one that ends is left as it is.
. "$top_srcdir/tests/support/tap.sh"

limited=$top_srcdir/tests/support/limited
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Until PID is no process any more; fails after a while.
gone() {
    for _ in $(seq 300); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

# A test that starts something, says who that is, and hangs.
cat >"$work/hangs" <<'END'
sleep 1000 &
echo $! >"$1.new" && mv "$1.new" "$1"
wait
END

plan 14
is "its output is the test's" "$("$limited" echo 'ok 1 - all')" "ok 1 - all"
"$limited" sh -c 'exit 77'
is "its exit status is the test's" $? 77
WB_TEST_TIMEOUT=1 "$limited" sh "$work/hangs" "$work/pid" >"$work/output"
is "what hangs fails" $? 124
is "and says so" "$(cat "$work/output")" "Bail out! ended after 1 s (WB_TEST_TIMEOUT)"
ok "what it started is gone" gone "$(cat "$work/pid")"
is "what somebody kills has not taken too long" "$("$limited" sh -c 'kill -9 $$' | sed 's/ after .*//')" "Bail out! killed by somebody"

cat >"$work/fails" <<'END'
echo "ok 1"
echo "not ok 2"
sh "$@"
END
rm -f "$work/pid"
is "behind its first failure it ends where one will do" \
    "$(WB_STOP_AT_FAILURE=1 "$limited" sh "$work/fails" "$work/hangs" "$work/pid" | xargs)" "ok 1 not ok 2"
ok "with what it started" gone "$(cat "$work/pid" 2>/dev/null || echo 0x)"
WB_STOP_AT_FAILURE=1 "$limited" sh -c 'echo "not ok 1 - later # TODO"; exit 3' >"$work/output"
is "a failure that is expected ends nothing" $? 3

rm -f "$work/pid"
"$limited" sh "$work/hangs" "$work/pid" >"$work/output" &
until test -s "$work/pid"; do sleep 0.1; done
kill -TERM $!
wait $!
is "who is interrupted ends the test" "$(cat "$work/output")" ""
ok "and what it started" gone "$(cat "$work/pid")"

cat >"$work/fails-first" <<'END'
test -f "$1" && echo "ok 1 - late" && exit 0
touch "$1"
echo "not ok 1 - late"
END
is "what fails first may be tried again" "$(WB_TRIES=2 "$limited" sh "$work/fails-first" "$work/tried")" "# first try: not ok 1 - late
ok 1 - late"
rm -f "$work/tried"
is "and is not where nobody says so" "$("$limited" sh "$work/fails-first" "$work/tried")" "not ok 1 - late"
WB_TRIES=2 "$limited" sh -c 'echo "not ok 1"; exit 3' >"$work/output"
is "what fails twice has failed" "$? $(grep -c '^not ok 1' "$work/output")" "3 1"
