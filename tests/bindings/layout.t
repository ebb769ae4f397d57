#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The table of doc/bindings.md is what the compiler says, and bindings/layout.c says all there is in the headers: each
# struct, each of its fields, each constant. tests/abi/words.awk reads the headers.
. "$top_srcdir/tests/support/tap.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/waybill-layout-XXXXXX") || exit 1
trap 'rm -rf "$work"; tap_end' EXIT
layout=$work/layout
"$top_builddir/bindings/layout" >"$layout" || bail_out "bindings/layout was not built"

# The headers' words, as lines of layout begin.
wanted() { # DIRECTORY
    for header in "$1"/waybill/*.h; do
        ${AWK:-awk} -f "$top_srcdir/tests/abi/words.awk" "$header" || return 1
    done | sed -n \
        -e 's/^struct \(wb_[a-z_]*\) [0-9]*: [^(]*(\*\([a-z_]*\))(.*/field \1 \2/p' \
        -e 's/^struct \(wb_[a-z_]*\) [0-9]*: .*[ *]\([a-z_]*\)\(\[[0-9]*\]\)*$/field \1 \2/p' \
        -e 's/^defines \(WB_[A-Z_]*\) .*/constant \1/p' |
        grep -vxE 'constant WB_(EXPORT|NO_HOOKS)' | # no values
        sort -u
}

missing() { # DIRECTORY
    wanted "$1" >"$work/wanted" && test "$(wc -l <"$work/wanted")" -gt 100 || return 2
    sed -E 's/^(field [a-z_]+ [a-z_]+|constant [A-Z_]+) .*/\1/; /^struct/d' "$layout" | sort -u >"$work/there"
    comm -23 "$work/wanted" "$work/there"
}

is "nothing of the headers is missing" "$(missing "$top_srcdir/include" || echo "nothing was read")" ""

# That it would be noticed.
grown() { # FILE SED-SCRIPT
    rm -rf "$work/include" && cp -R "$top_srcdir/include" "$work/include" && chmod -R u+w "$work/include" &&
        sed "$2" "$top_srcdir/include/waybill/$1" >"$work/include/waybill/$1" && missing "$work/include"
}
is "a field that is appended is noticed" "$(grown message.h 's/^} wb_message;/    uint64_t more;\n&/')" "field wb_message more"
is "a function that is appended is noticed" "$(grown handler.h 's/^} wb_handler_api;/    int (*more)(wb_context *ctx, int (*of)(int));\n&/')" "field wb_handler_api more"
is "a constant is noticed" "$(grown result.h 's/^#define WB_FATAL 6/&\n#define WB_MORE 7/')" "constant WB_MORE"

# The page is for 64 bits.
if grep -q '^field wb_header value 8 8$' "$layout"; then
    ok "the tables of doc/bindings.md are those of the headers" \
        perl "$top_srcdir/doc/generate-layouts" --compare "$top_srcdir/doc/bindings.md" <"$layout"
    sed 's/^constant WB_FATAL 6$/constant WB_FATAL 7/' "$layout" >"$work/other"
    is "another value is noticed" "$(perl "$top_srcdir/doc/generate-layouts" --compare "$top_srcdir/doc/bindings.md" <"$work/other" | grep -c WB_FATAL)" 1
fi
done_testing
