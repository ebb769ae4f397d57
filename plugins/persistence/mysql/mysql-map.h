/* SPDX-License-Identifier: Apache-2.0
 *
 * From an error number to Waybill's result class and cause, and so to whose fault it is
 * (waybill/sys/plugin.h).
 *
 * The same number means different things for a handler's statement and for ours: a table
 * the handler misspelt is that message's failure, a missing outbox table is the
 * endpoint's.
 */
#ifndef MYSQL_MAP_H
#define MYSQL_MAP_H

typedef struct mys_mapping {
    unsigned code; /* 0 stands for all others */
    int handler;   /* WB_x class when a handler's statement failed */
    int handler_cause; /* WB_CAUSE_x for it */
    int own;       /* WB_x class when ours, or the connecting, failed */
    int own_cause; /* WB_CAUSE_x for it, and for COMMIT */
    /** WB_x class when COMMIT itself failed. 0: nobody knows what became of it. */
    int commit;
} mys_mapping;

/** Never NULL. */
const mys_mapping *mys_map(unsigned code);

/** The same for the error that a connection has: some numbers stand for several options of the
 *  server, which only the text tells apart. */
const mys_mapping *mys_map_error(unsigned code, const char *text);

/** Whether the client library made it up, if it did not come with a packet of the server: the
 *  connection cannot be trusted any more. */
int mys_is_client_error(unsigned code);

#endif
