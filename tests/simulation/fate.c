/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/fate.h"

#define BAD_SEND (SIM_MAY_FAIL | SIM_LEAVES_ROWS | SIM_EFFECT_ANYWAY)
#define FAILS (SIM_MAY_FAIL | SIM_MUST_FAIL)
#define STORAGE SIM_NEEDS_STORAGE

const sim_fate_entry sim_fates[SIM_FATES] = {
    [SIM_GOOD] = { "good", 0 },
    [SIM_FLAKY] = { "flaky", SIM_NEEDS_RETRIES },
    [SIM_REPLIES] = { "replies", 0 },
    [SIM_IMMEDIATE] = { "immediate", SIM_NEEDS_RETRIES },
    [SIM_SLOW] = { "slow", 0 },
    [SIM_HANGS] = { "hangs", 0 },
    [SIM_TOUCHY] = { "touchy", STORAGE },
    [SIM_TOUCHY_RETRY] = { "touchy-retry", STORAGE },
    [SIM_TALKATIVE] = { "talkative", 0 },
    [SIM_RECOVERS] = { "recovers", SIM_NEEDS_DELAYED_RETRIES },
    [SIM_DELAYS] = { "delays", SIM_NEEDS_DELAYS },
    /* what is due by the time it leaves is an ordinary send that is refused */
    [SIM_DELAYS_NOWHERE] = { "delays-nowhere", SIM_MAY_FAIL | SIM_EFFECT_ANYWAY | SIM_NEEDS_STORE },
    [SIM_DELAYS_SILENT] = { "delays-silent", SIM_NEEDS_STORE },
    [SIM_FORBIDS_LATER] = { "forbids-later", STORAGE },
    [SIM_UNROUTABLE] = { "unroutable", BAD_SEND },
    [SIM_LATE_ROUTE] = { "late-route", SIM_MAY_FAIL | SIM_EFFECT_ANYWAY },
    [SIM_NACKED] = { "nacked", BAD_SEND },
    [SIM_DELAYS_REFUSED] = { "delays-refused", BAD_SEND | SIM_NEEDS_DELAYS },
    [SIM_TOO_LARGE_SEND] = { "too-large-send", BAD_SEND },
    [SIM_POISON_SEND] = { "poison-send", BAD_SEND | SIM_CUTS_BROKER },
    [SIM_FATAL_SEND] = { "fatal-send", BAD_SEND | SIM_CUTS_BROKER },
    [SIM_BAD_REPLY] = { "bad-reply", BAD_SEND },
    [SIM_COMMIT_ABORTS] = { "commit-aborts",
                            SIM_MAY_FAIL | SIM_NEEDS_TRANSPORT_TRANSACTION | SIM_EFFECT_ANYWAY },
    [SIM_POISON] = { "poison", FAILS },
    [SIM_ELSEWHERE] = { "elsewhere", FAILS },
    [SIM_DISCARDED] = { "discarded", SIM_IGNORED },
    [SIM_FAILING] = { "failing", FAILS },
    [SIM_NO_REPLY] = { "no-reply", FAILS },
    [SIM_BAD_IMMEDIATE] = { "bad-immediate", FAILS },
    [SIM_DEADLY_IMMEDIATE] = { "deadly-immediate", FAILS | SIM_CUTS_BROKER },
    [SIM_LATE_IMMEDIATE] = { "late-immediate", FAILS | SIM_CUTS_BROKER },
    [SIM_KILLER] = { "killer", FAILS | SIM_ENDS_PROCESS },
    [SIM_BREAKS] = { "breaks", FAILS | STORAGE },
    [SIM_DEFERRED] = { "deferred", FAILS | STORAGE },
    [SIM_ENDS] = { "ends", SIM_MAY_FAIL | SIM_EFFECT_ANYWAY | STORAGE | SIM_NEEDS_CHECK | SIM_HARMS_OTHERS },
    [SIM_QUOTA] = { "quota", FAILS | STORAGE | SIM_NEEDS_RETRIES },
    [SIM_CUTS] = { "cuts", FAILS | STORAGE | SIM_NEEDS_RETRIES },
    [SIM_CUTS_LATE] = { "cuts-late", FAILS | STORAGE | SIM_NEEDS_RETRIES },
    [SIM_FORBIDS] = { "forbids", FAILS | STORAGE | SIM_NEEDS_RETRIES },
    [SIM_UNMOVABLE] = { "unmovable", FAILS | SIM_LEAVES_ROWS | SIM_STAYS },
    [SIM_BULKY] = { "bulky", FAILS },
    [SIM_POISON_MOVE] = { "poison-move", FAILS | SIM_LEAVES_ROWS | SIM_STAYS | SIM_CUTS_BROKER },
    [SIM_CONTROL] = { "control", SIM_IGNORED },
    [SIM_NO_HANDLER] = { "no-handler", FAILS },
    [SIM_NO_TYPE] = { "no-type", FAILS },
    [SIM_NO_ID] = { "no-id", FAILS },
    [SIM_LONG_ID] = { "long-id", FAILS },
    [SIM_MANY_HEADERS] = { "many-headers", FAILS },
    [SIM_LARGE_HEADERS] = { "large-headers", FAILS },
    [SIM_LARGE_BODY] = { "large-body", FAILS },
    [SIM_UNREADABLE] = { "unreadable", FAILS },
};
