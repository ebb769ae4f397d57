/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator does about a connection that was refused. libpq has no codes for what
 * fails before the server knows whom it talks to: its words are all there is. Pure.
 */
#ifndef WB_PGSQL_REFUSAL_H
#define WB_PGSQL_REFUSAL_H

typedef struct pgsql_refusal {
    const char *words; /* in the message */
    int result;        /* WB_x and WB_CAUSE_x where no SQLSTATE says more */
    int cause;
    const char *remedy; /* the end of a sentence */
} pgsql_refusal;

/** @return what is known of a message, or NULL. Of several servers the one that was tried last
 *  counts. */
const pgsql_refusal *pgsql_refusal_find(const char *message);

#endif
