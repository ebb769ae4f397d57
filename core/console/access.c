/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/console/access.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define SECRET_BYTES ((WB_VISITOR_SECRET_SIZE - 1) / 2)

int wb_access_is_same(const char *given, const char *secret)
{
    if (!given)
        return 0;
    const size_t size = strlen(secret), given_size = strlen(given);
    unsigned differs = given_size != size;
    for (size_t i = 0; i < size; i++)
        differs |= (unsigned char)(given[i < given_size ? i : 0] ^ secret[i]);
    return !differs;
}

static int make_secret(char secret[WB_VISITOR_SECRET_SIZE])
{
    unsigned char bytes[SECRET_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(&secret[2 * i], 3, "%02x", bytes[i]);
    return 1;
}

static int is_there(const wb_visitor *one, int64_t now)
{
    return *one->cookie && now - one->seen < WB_VISITOR_IDLE;
}

/* A place that is free, or is made so. */
static wb_visitor *find_place(wb_access *access, int64_t now)
{
    wb_visitor *oldest = &access->visitors[0];
    for (size_t i = 0; i < WB_VISITORS; i++) {
        if (!is_there(&access->visitors[i], now))
            return &access->visitors[i];
        if (access->visitors[i].seen < oldest->seen)
            oldest = &access->visitors[i];
    }
    return oldest;
}

const wb_visitor *wb_access_enter(wb_access *access, int64_t now)
{
    wb_visitor *one = find_place(access, now), made = { .number = access->count + 1, .seen = now };
    if (!make_secret(made.cookie) || !make_secret(made.token))
        return NULL;
    access->count++;
    *one = made;
    return one;
}

static wb_visitor *find(wb_access *access, const char *cookie)
{
    for (size_t i = 0; i < WB_VISITORS; i++)
        if (*access->visitors[i].cookie && wb_access_is_same(cookie, access->visitors[i].cookie))
            return &access->visitors[i];
    return NULL;
}

const wb_visitor *wb_access_find(wb_access *access, const char *cookie, int64_t now)
{
    wb_visitor *one = find(access, cookie);
    if (!one || !is_there(one, now))
        return NULL;
    one->seen = now;
    return one;
}

void wb_access_leave(wb_access *access, const char *cookie)
{
    wb_visitor *one = find(access, cookie);
    if (one)
        *one = (wb_visitor){ .seen = 0 };
}
