/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-delay.h"

#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

int64_t wb_amqp_delay_seconds(int64_t deliver_at, int64_t now)
{
    if (deliver_at <= now)
        return 0;
    uint64_t left = (uint64_t)deliver_at - (uint64_t)now; /* any two times, however far apart */
    return (int64_t)(left / SECOND + (left % SECOND != 0));
}

/* ---- names ------------------------------------------------------------------------ */

void wb_amqp_level_name(unsigned level, char ret_name[WB_AMQP_NAME_SIZE])
{
    (void)snprintf(ret_name, WB_AMQP_NAME_SIZE, "nsb.v2.delay-level-%02u", level);
}

void wb_amqp_level_pattern(unsigned level, int is_set, char ret_key[WB_AMQP_NAME_SIZE])
{
    char *at = ret_key;
    for (unsigned above = WB_AMQP_LEVELS - 1; above > level; above--) {
        *at++ = '*';
        *at++ = '.';
    }
    memcpy(at, is_set ? "1.#" : "0.#", sizeof "1.#");
}

void wb_amqp_delay_pattern(const char *address, char ret_key[WB_AMQP_NAME_SIZE])
{
    (void)snprintf(ret_key, WB_AMQP_NAME_SIZE, "#.%s", address);
}

/* ---- addresses -------------------------------------------------------------------- */

/* A binding would take it for a pattern, and get what is others'. */
static int has_wildcard(const char *address)
{
    for (const char *at = address; *at; at += *at == '.') {
        size_t size = strcspn(at, ".");
        if (size == 1 && (*at == '*' || *at == '#'))
            return 1;
        at += size;
    }
    return 0;
}

const char *wb_amqp_delay_problem(const char *address, int *ret_cause)
{
    *ret_cause = WB_CAUSE_TOO_LARGE;
    if (strlen(address) > WB_AMQP_DELAYED_ADDRESS_MAX)
        return "an address of more than 199 bytes does not fit a delayed message's routing key";
    *ret_cause = WB_CAUSE_UNROUTABLE;
    return has_wildcard(address) ? "between the dots of an address \"*\" and \"#\" are patterns" : NULL;
}

/* ---- routes ----------------------------------------------------------------------- */

static unsigned level_of(int64_t seconds)
{
    unsigned level = 0;
    for (int64_t rest = seconds >> 1; rest > 0; rest >>= 1)
        level++;
    return level;
}

void wb_amqp_delay_route(int64_t seconds, const char *address, wb_amqp_route *ret_route)
{
    char *at = ret_route->key;
    if (seconds < 0)
        seconds = 0;
    wb_amqp_level_name(level_of(seconds), ret_route->exchange);
    for (unsigned level = WB_AMQP_LEVELS; level-- > 0;) {
        *at++ = (char)('0' + (seconds >> level & 1));
        *at++ = '.';
    }
    (void)snprintf(at, WB_AMQP_DELAYED_ADDRESS_MAX + 1, "%s", address);
}
