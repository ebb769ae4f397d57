# SPDX-License-Identifier: Apache-2.0
#
# What a public header promises, a line each: the fields of structs by their places, constants, types of
# functions and functions. What was promised once is promised for ever, so that the lines of a version are
# among those of every later one. Inline functions and macros with arguments are no promises: they are compiled
# into whoever uses them.
#
#   awk -f words.awk include/waybill/message.h

function squeeze(text) {
    gsub(/[ \t\n]+/, " ", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    return text
}

# A struct's comment that says it is fixed becomes a word before it.
function without_comments(text,   before, comment) {
    while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//)) {
        before = substr(text, 1, RSTART - 1)
        comment = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        gsub(/[ \t]*\n[ \t]*\*?[ \t]*/, " ", comment)
        text = before (comment ~ /[Ff]ixed for ever/ && text ~ /^\n(typedef )?struct/ ? "@fixed" : "") " " text
    }
    return text
}

function tell_struct(text,   name, fixed, fields, count, i) {
    fixed = sub(/^@fixed /, "", text)
    match(text, /struct [a-z_]+/)
    name = substr(text, RSTART, RLENGTH)
    sub(/^[^{]*\{/, "", text)
    sub(/\}[^}]*$/, "", text)
    count = split(text, fields, ";") - 1
    for (i = 1; i <= count; i++)
        print name " " i ": " squeeze(fields[i])
    if (fixed)
        print name " has " count " fields for ever"
}

function tell(text) {
    text = squeeze(text)
    sub(/^(@fixed )+/, "@fixed ", text)
    if (text ~ /^(@fixed )?(typedef )?struct [a-z_]+ \{/)
        tell_struct(text)
    else if (text !~ /\{/ && text !~ /^static inline/ && text != "")
        print "declares " text
}

# The last of a definition's lines has been read.
function tell_define(text) {
    gsub(/\\\n/, " ", text)
    text = without_comments(text)
    sub(/\/\*.*/, "", text) # it goes on in the next lines
    text = squeeze(text)
    if (text ~ /^#define [A-Za-z_0-9]+ ./ && text !~ /^#define WB_[A-Z]+_ABI_MINOR /)
        print "defines " substr(text, 9)
}

/^#ifdef __cplusplus/ { skipping = 1 }
skipping {
    if (/^#e(lse|ndif)/)
        skipping = 0
    next
}
definition != "" || /^#define/ {
    definition = definition $0 "\n"
    if ($0 !~ /\\$/) {
        tell_define(definition)
        definition = ""
    }
    next
}
/^#/ { next }
{ all = all $0 "\n" }

END {
    all = without_comments(all)
    size = length(all)
    for (at = 1; at <= size; at++) {
        one = substr(all, at, 1)
        text = text one
        depth += (one == "{") - (one == "}")
        if (depth == 0 && (one == ";" || (one == "}" && text !~ /struct [a-z_]+ \{/ && text !~ /=/))) {
            tell(text)
            text = ""
        }
    }
}
