# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# TAP for shell tests: `. "$top_srcdir/tests/support/tap.sh"`, then
#
#   plan 3                      # or done_testing at the end
#   ok "name" command args      # passes when the command succeeds; its output is shown if not
#   is "name" GOT WANTED        # compares strings
#   pass "name"; fail "name"
#   diag "text"                 # a comment line
#   bail_out "reason"           # nothing further makes sense
#
# A script that ends before its plan is complete fails, whatever its exit code.
tap_count=0
tap_failed=0
tap_plan=

plan() { tap_plan=$1; echo "1..$1"; }
diag() { printf '%s\n' "$*" | sed 's/^/# /'; }
pass() { tap_count=$((tap_count + 1)); echo "ok $tap_count - $1"; }
fail() {
    tap_count=$((tap_count + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $1"
}
ok() {
    tap_name=$1
    shift
    if tap_output=$("$@" 2>&1); then
        pass "$tap_name"
    else
        fail "$tap_name"
        diag "command: $*"
        diag "$tap_output"
    fi
}
is() {
    if [ "$2" = "$3" ]; then
        pass "$1"
    else
        fail "$1"
        diag "got:    $2"
        diag "wanted: $3"
    fi
}
bail_out() {
    echo "Bail out! $*"
    tap_plan=bailed
    exit 99
}
done_testing() { tap_plan=$tap_count; echo "1..$tap_count"; }

tap_end() {
    tap_code=$?
    case $tap_plan in
        bailed) exit 99 ;;
        "$tap_count") ;;
        *) diag "ended after $tap_count of ${tap_plan:-unknown} tests"; exit 1 ;;
    esac
    [ "$tap_failed" = 0 ] || exit 1
    exit "$tap_code"
}
trap tap_end EXIT
