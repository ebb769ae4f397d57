/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is signed in to the console. A session is two random numbers: one is in a cookie, which the browser sends with all it asks,
 * the other one a page has to read and to say with what changes something: a page of somebody else's, which may have the first
 * sent, cannot read the second.
 *
 * They are in memory, so many at most: who comes then takes the place of who was not seen for longest. A process that is started
 * anew knows nobody.
 *
 * Threads: the listener's alone.
 */
#ifndef WB_CONSOLE_ACCESS_H
#define WB_CONSOLE_ACCESS_H

#include <stdint.h>

#define WB_VISITORS 64
/** In hexadecimal digits, and a NUL byte. */
#define WB_VISITOR_SECRET_SIZE 65
/** Who is not seen for so long (ns) is signed out. */
#define WB_VISITOR_IDLE (12 * INT64_C(3600) * 1000000000)

typedef struct wb_visitor {
    char cookie[WB_VISITOR_SECRET_SIZE]; /* "": nobody */
    char token[WB_VISITOR_SECRET_SIZE];
    unsigned number; /* for the log: the first is 1 */
    int64_t seen;    /* monotonic */
} wb_visitor;

typedef struct wb_access {
    wb_visitor visitors[WB_VISITORS];
    unsigned count; /* of all there were */
} wb_access; /* all zero: nobody is signed in */

/** A new one; valid until the next call. NULL: the kernel gives no random bytes. */
const wb_visitor *wb_access_enter(wb_access *access, int64_t now);
/** The one with that cookie, who is seen now; NULL: there is none, or none any more. */
const wb_visitor *wb_access_find(wb_access *access, const char *cookie, int64_t now);
void wb_access_leave(wb_access *access, const char *cookie);

/** Whether what somebody gives is the secret, in a time that does not say how much of it is right. NULL: he gives nothing. */
int wb_access_is_same(const char *given, const char *secret);

#endif
