#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The documentation holds together: man pages are clean, relative links of the Markdown
# files lead somewhere, their C code compiles, and options, defaults, exit codes and log lines are
# what the program says.
top_srcdir=${top_srcdir:-.}
top_builddir=${top_builddir:-.}
cd "$top_srcdir" || exit 1
count=0

ok() { # STATUS TEXT
    count=$((count + 1))
    test "$1" -eq 0 || printf 'not '
    echo "ok $count - $2"
}

lint() {
    command -v mandoc >/dev/null || { echo "# mandoc is not installed"; return 1; }
    mandoc -T lint -W warning "$1" | sed 's/^/# /' | { ! grep .; }
}

# Targets of [text](target), without those with a scheme, and without fragments.
links_of() {
    grep -o '](\([^)#: ]*\)[^)]*)' "$1" | sed 's/^](//; s/[)#].*//' | grep -v '^[a-z]*:' | grep .
}

links_lead_somewhere() {
    dead=0
    for target in $(links_of "$1"); do
        test -e "$(dirname "$1")/$target" && continue
        echo "# $1: no such file \"$target\""
        dead=1
    done
    return $dead
}

# The C and C++ code of a Markdown file, as one translation unit a block. SQLite's header may be
# absent where its plugins are not built. (Rust: tests/bindings/rust.t.)
code_compiles() { # FILE LANGUAGE COMPILER...
    text=$1 language=$2
    shift 2
    bad=0
    block=1
    while code=$(awk -v wanted=$block -v begin="^\`\`\`$language\$" '$0 ~ begin { n++; inside = 1; next } /^```/ { inside = 0 }
                                       inside && n == wanted' "$text") && test -n "$code"; do
        block=$((block + 1))
        case $code in
        *waybill/sqlite.h*) has_header sqlite3.h || continue ;;
        esac
        echo "$code" | "$@" -Wall -Wextra -Werror -Iinclude -fsyntax-only - 2>&1 | sed 's/^/# /' | { ! grep .; } || bad=1
    done
    return $bad
}

has_header() {
    echo "#include <$1>" | ${CC:-cc} -x c -fsyntax-only - 2>/dev/null
}

options_are_current() {
    plugins=$(WAYBILL_PLUGIN_DIR=$top_builddir/plugins \
        "$top_builddir/waybill" plugins --describe --json) || {
        echo "$plugins" | grep '"refused"' | sed 's/^/# /'
        return 1
    }
    { "$top_builddir/waybill" help options --json && echo "$plugins"; } |
        perl doc/generate-options --compare doc/waybill.conf.5 2>&1 | sed 's/^/# /' | { ! grep .; }
}

# Defaults, log lines and exit codes, wherever they are spoken of.
claims_are_true() {
    { "$top_builddir/waybill" help options --json &&
        WAYBILL_PLUGIN_DIR=$top_builddir/plugins "$top_builddir/waybill" plugins --describe --json; } |
        perl doc/compare-claims . "$top_builddir" README.md doc/*.md doc/*/*.md doc/*.[1-8] contrib/systemd/README.md 2>&1 |
        sed 's/^/# /' | { ! grep .; }
}

verbs() {
    "$top_builddir/waybill" help | sed -n 's/^  \([a-z]*\) .*/\1/p' | grep .
}

# What the synopsis of waybill(1) has of a verb.
synopsis() { # VERB
    sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p' doc/waybill.1 | awk -v verb="$1" '
        /^\.Nm/ { is_next = 1; within = 0; next }
        is_next { within = $1 == ".Cm" && $2 == verb; is_next = 0 }
        within'
}

# "OPTION LETTER", each on a line; "-" where it has no letter.
options_of() { # VERB
    "$top_builddir/waybill" help "$1" |
        sed -n 's/^  -\(.\), --\([a-z-]*\).*/\2 \1/p; s/^      --\([a-z-]*\).*/\1 -/p'
}

tell_gaps_of() { # VERB
    grep -q "^\.It Cm $1\$" doc/waybill.1 || echo "# no verb \"$1\""
    synopsis "$1" | grep -q . || echo "# no synopsis of \"$1\""
    options_of "$1" | while read -r option letter; do
        grep -q "Fl -$option\( \|\$\)" doc/waybill.1 || echo "# no option \"--$option\" of \"$1\""
        test "$option" = help || synopsis "$1" | grep -q "Fl \(-$option\|$letter\)\( \|\$\)" ||
            echo "# no option \"--$option\" in the synopsis of \"$1\""
    done
}

# Every verb and every option that the program's help shows is in waybill(1), and in its synopsis.
verbs_are_current() {
    verbs >/dev/null || { echo "# waybill help lists no verbs"; return 1; }
    ! for verb in $(verbs); do tell_gaps_of "$verb"; done | grep .
}

# "-k KEY" of one verb is not another verb's "-k COMMAND", on the page neither.
letters_mean_one_thing() {
    {
        for verb in $(verbs); do
            "$top_builddir/waybill" help "$verb" | sed -n 's/^  \(-[a-zA-Z]\), --\([a-z-]*\).*/\1 \2/p'
        done
        sed -n 's/^\.It Fl \([a-zA-Z]\) , Fl -\([a-z-]*\).*/-\1 \2/p' doc/waybill.1
    } | sort -u |
        awk 'seen[$1]++ { print "# " $1 " means two things"; bad = 1 } END { exit bad || NR < 10 }'
}

options_are_there() {
    sed -n '/^\.\\" BEGIN GENERATED/,/^\.\\" END GENERATED/p' doc/waybill.conf.5 |
        grep -q '^\.It Ic retention'
}

for page in doc/*.[1-8]; do
    lint "$page"
    ok $? "$page is clean"
done
for text in *.md bindings/*.md bindings/*/*.md doc/*.md doc/*/*.md contrib/*.md contrib/*/*.md core/*.md core/*/*.md conformance/*.md plugins/*/*/*.md \
    debian/*.md tests/*/*.md; do
    test -f "$text" || continue
    links_lead_somewhere "$text"
    ok $? "links of $text"
done
for text in README.md doc/guide.md; do
    code_compiles "$text" c ${CC:-cc} -x c -std=c17
    ok $? "the C code in $text compiles"
    ! command -v "${CXX:-c++}" >/dev/null && test -z "${CI:-}" || code_compiles "$text" cpp ${CXX:-c++} -x c++ -std=c++17 -Wpedantic -Wconversion
    ok $? "the C++ code in $text compiles"
done
options_are_there
ok $? "waybill.conf(5) lists options"
verbs_are_current
ok $? "waybill(1) has every verb and option of the program"
letters_mean_one_thing
ok $? "a letter means one option"
options_are_current
ok $? "option lists of waybill.conf(5) are those of the program"
claims_are_true
ok $? "defaults, log lines and exit codes are those of the program"
echo "1..$count"
