/* SPDX-License-Identifier: Apache-2.0
 *
 * What the console is made of, for who answers its questions (core/http/console.h). Its maker puts it together.
 */
#ifndef WB_CONSOLE_CONSOLE_H
#define WB_CONSOLE_CONSOLE_H

#include "core/config/configuration.h"
#include "core/console/access.h"
#include "core/console/assets.h"
#include "core/console/desk.h"
#include "core/console/history.h"

typedef struct wb_console {
    const wb_console_config *config;
    const wb_asset *assets; /* the page's files */
    size_t asset_count;
    json_t *plan;        /* an array: what each endpoint does, as negotiated; constant */
    wb_deeds deeds;      /* what the desk is asked for */
    wb_desk *desk;
    wb_history *history;
    wb_access access;    /* the listener's */
} wb_console;

#endif
