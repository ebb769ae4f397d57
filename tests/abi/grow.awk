# SPDX-License-Identifier: Apache-2.0
#
# A public header as a later version might have it: every struct that may grow has one field more at
# its end. Whether one may is what its comment says; a comment that does not say it is an error, and so
# the headers keep what sys/plugin.h promises of them.
#
#   awk -f grow.awk include/waybill/message.h >grown/waybill/message.h

function may_grow(name, text) {
    gsub(/[ \t]*\n[ \t]*\*?[ \t]*/, " ", text)
    if (text ~ /[Ff]ixed for ever/)
        return 0
    if (text ~ /[Ss]ize first, append-only/ || text ~ /[Pp]assed with its size, append-only/ ||
        text ~ /[Ww]alked by [a-z_.]*stride, append-only/)
        return 1
    printf "%s:%d: the comment of struct %s does not say how it may grow\n", FILENAME, FNR, name >"/dev/stderr"
    failed = 1
    return 0
}

inside && /^}/ {
    if (grows)
        print "    const void *grown;"
    inside = 0
    comment = ""
}

!inside && /^(typedef )?struct [a-z_]+ \{$/ {
    inside = 1
    grows = may_grow($(NF - 1), comment)
}

!inside && !in_comment && /^\/\*/ {
    comment = ""
    in_comment = 1
}

in_comment {
    comment = comment $0 "\n"
    in_comment = $0 !~ /\*\//
}

!inside && !in_comment && /[;}]$/ {
    comment = ""
}

{ print }

END { exit failed }
