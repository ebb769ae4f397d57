# SPDX-License-Identifier: Apache-2.0
# The negotiation table, derived a second time from the rules in words (README.md): makes
# negotiation.expected. Shares nothing with the C code.
function has(list, word) { return index(" " list " ", " " word " ") > 0 }
# `k` is how a message that came before is known; "" where the file does not say
function line(t, p, m, o, i, d, b, k,    mode, c, delay, one) {
    mode = m == "unset" ? "receive_only" : m
    # one transaction: both can, and both are on the same file
    one = has(can_join, p) && file[t] != "" && file[t] == file["p:" p]
    # who delays: who the file names; else the transport, otherwise a store; a store not if the
    # mode asks for a transaction that it has no part in
    delay = "none"
    if (has(can_delay, t) && b != "store") delay = "transport"
    else if (b != "transport" && has(stores_delayed, p) && mode != "sends_atomic_with_receive" &&
             !(mode == "transaction_scope" && !one)) delay = "store"

    c = ""
    if (!has(modes[t], mode))                             c = c " mode_unsupported"
    if (o && mode == "none")                              c = c " outbox_pointless"
    if (o && mode != "none" && mode != "receive_only")    c = c " outbox_mode"
    if (o && p == "none")                                 c = c " outbox_without_persistence"
    if (o && p != "none" && !has(keeps_outbox, p))        c = c " outbox_unsupported"
    if (mode == "none" && i > 0)                          c = c " immediate_retries_with_none"
    # those that were asked for; the default is what can be had
    if (mode == "none" && d == 3)                         c = c " delayed_retries_with_none"
    if (d == 3 && delay == "none" && b == "unset")
        c = c (has(stores_delayed, p) ? " delay_mode" : " delay_unavailable")
    if (mode == "transaction_scope" && has(modes[t], mode) && !one) c = c " scope_not_shared"
    if (mode == "sends_atomic_with_receive" && has(modes[t], mode) && file[t] != "" && file[t] == file["p:" p])
        c = c " atomic_shared"
    if (b != "unset" && delay == "none")                  c = c " delays_by"
    # the outbox deduplicates; a position is the transport's, and a row of the persistence's; a delayed retry
    # is a new message, with the same id and another position
    if (k != "" && !o)                                    c = c " by_without_outbox"
    if (k ~ /position/ && t != "kafka")                   c = c " position_transport"
    if (k ~ /position/ && p != "none" && !has(keeps_positions, p)) c = c " position_persistence"
    if (k == "position" && d == 3)                        c = c " position_retries"

    printf "%s %s %s outbox=%d immediate=%d delayed=%s%s%s ->", t, p, m, o, i, d, b == "unset" ? "" : " by=" b,
           k == "" ? "" : " known=" k
    if (d == "unset") d = mode == "none" || delay == "none" || k == "position" ? 0 : 3
    if (c != "") print c
    else printf " plan mode=%s outbox=%d immediate=%d delayed=%d delay_by=%s joined=%d%s\n",
                mode, o, i, d, delay, mode == "transaction_scope", k == "" ? "" : " known=" k
}
BEGIN {
    modes["amqp"] = "none receive_only"
    modes["kafka"] = "none receive_only sends_atomic_with_receive"
    modes["sqlite"] = "none receive_only sends_atomic_with_receive transaction_scope"
    modes["delaying"] = "none receive_only"
    can_delay = "amqp delaying"
    keeps_outbox = "pgsql mysql sqlite elsewhere parking"
    stores_delayed = "pgsql mysql sqlite elsewhere parking"
    keeps_positions = "pgsql mysql sqlite"
    can_join = "sqlite elsewhere"
    file["sqlite"] = file["p:sqlite"] = "orders.db"
    file["p:elsewhere"] = "other.db"
    ts = split("amqp kafka sqlite delaying", T, " ")
    ps = split("none pgsql mysql sqlite elsewhere plain parking", P, " ")
    ms = split("none receive_only sends_atomic_with_receive transaction_scope unset", M, " ")
    ds = split("0 3 unset", D, " ")
    bs = split("unset transport store", B, " ")
    for (t = 1; t <= ts; t++) for (p = 1; p <= ps; p++) for (m = 1; m <= ms; m++)
        for (o = 0; o < 2; o++) for (i = 0; i < 2; i++) for (d = 1; d <= ds; d++)
            for (b = 1; b <= bs; b++) line(T[t], P[p], M[m], o, i * 5, D[d], B[b], "")
    ks = split("id position id+position", K, " ")
    for (t = 1; t <= ts; t++) for (p = 1; p <= ps; p++) for (m = 1; m <= ms; m++)
        for (o = 0; o < 2; o++) for (d = 1; d <= ds; d++)
            for (k = 1; k <= ks; k++) line(T[t], P[p], M[m], o, 0, D[d], "unset", K[k])
}
