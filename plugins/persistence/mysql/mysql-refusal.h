/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator does about a connection that was refused. Of TLS the library has one error
 * number, whatever happened: its words tell more.
 */
#ifndef WB_MYSQL_REFUSAL_H
#define WB_MYSQL_REFUSAL_H

#include "plugins/persistence/mysql/mysql-options.h"

typedef struct mys_refusal {
    int result; /* WB_x and WB_CAUSE_x; WB_OK: nothing is known but what the number says */
    int cause;
    const char *remedy; /* the end of a sentence */
} mys_refusal;

/** `code` and `text` as the library reports them. Looks whether the files of certificates can be
 *  read. */
mys_refusal mys_refusal_find(const mys_config *config, unsigned code, const char *text);

#endif
