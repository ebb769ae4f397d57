# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Runs the persistence kit: `. "$top_srcdir/tests/conformance/persistence.sh"`, then
#
#   configure NAME PLUGIN "TEXT"   # $work/NAME.conf: an endpoint with this persistence
#   kit NAME ARGUMENT...           # runs it; output in $work/NAME.out and .err
#   passes NAME "REASON..."        # a test for each case that ran; those skipped have these reasons
#
# What a kit skips is what a plugin cannot do: it is compared with what is known of the plugin,
# and is not a skip of the test's own.
. "$top_srcdir/tests/support/tap.sh"

WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
work=$(mktemp -d "${TMPDIR:-/tmp}/waybill-kit.XXXXXX") || exit 99
clean_work() { rm -rf "$work"; }

configure() {
    cat >"$work/$1.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = (
  { name = "kit";
    transport = { plugin = "sqlite"; file = "$work/queue.db"; };
    persistence = { plugin = "$2"; $3 }; }
);
END
}

kit() {
    kit_name=$1
    shift
    "$top_builddir/waybill" conformance persistence -c "$work/$kit_name.conf" "$@" \
        >"$work/$kit_name.out" 2>"$work/$kit_name.err"
    echo $? >"$work/$kit_name.code"
}

# Names of the cases that failed.
failures() { sed -n 's/^not ok [0-9]* - //p' "$work/$1.out"; }

# Why cases were skipped: each reason once, in order.
skips() { sed -n 's/^ok .* # SKIP //p' "$work/$1.out" | uniq; }

passes() {
    while IFS= read -r line; do
        case $line in
        *'# SKIP '*) ;;
        'ok '*) pass "${line#ok * - }" ;;
        'not ok '*) fail "${line#not ok * - }" ;;
        '# '*) echo "$line" ;;
        1..*) wanted=${line#1..} ;;
        *) bail_out "the kit said: $line" ;;
        esac
    done <"$work/$1.out"
    is "the kit ran all its cases" "$(grep -c '^ok\|^not ok' "$work/$1.out")" "${wanted:-a plan}"
    is "the kit's exit code" "$(cat "$work/$1.code")" 0
    is "skipped is what the plugin cannot do" "$(skips "$1")" "$2"
    [ "$tap_failed" = 0 ] || sed 's/^/# log: /' "$work/$1.err"
}
