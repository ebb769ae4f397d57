/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/outbox.h"

#include <stdlib.h>

#include "plugins/common/sql/dialect.h"
#include "plugins/common/sql/schema.h"

int wb_sql_outbox_init(wb_sql_outbox *outbox, const wb_host *host, const wb_sql_dialect *dialect,
                       const struct wb_sql_driver *driver, const wb_endpoint_info *endpoint,
                       const char *container, wb_error *error)
{
    int missing = 0;

    outbox->host = host;
    outbox->dialect = dialect;
    outbox->driver = driver;
    wb_sql_gap_init(&outbox->swept);
    wb_sql_gap_init(&outbox->cleaned);
    const int result = wb_sql_dialect_check(host, dialect, driver, error);
    if (result != WB_OK)
        return result;
    outbox->delays = WB_HAS(endpoint, wb_endpoint_info, delays) &&
                     endpoint->delays == WB_DELAYS_BY_STORE;
    outbox->sql_api = WB_HAS(endpoint, wb_endpoint_info, sql_api);
    outbox->positions = WB_HAS(endpoint, wb_endpoint_info, positions) && endpoint->positions;
    outbox->subscriptions = WB_HAS(endpoint, wb_endpoint_info, subscriptions) && endpoint->subscriptions;
    outbox->failures = WB_HAS(endpoint, wb_endpoint_info, failures) && endpoint->failures;
    wb_sql_names_init(&outbox->names, dialect->quoting, endpoint->name, container);
    for (int i = 0; i < WB_SQL_COUNT; i++) {
        if (!dialect->templates[i])
            continue;
        outbox->statements[i] = wb_sql_names_text(&outbox->names, dialect->templates[i]);
        missing |= !outbox->statements[i];
    }
    outbox->schema = wb_sql_schema_text(outbox);
    if (missing || !outbox->schema)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    return WB_OK;
}

void wb_sql_outbox_free(wb_sql_outbox *outbox)
{
    for (int i = 0; i < WB_SQL_COUNT; i++)
        free(outbox->statements[i]);
    free(outbox->schema);
    wb_sql_gap_free(&outbox->swept);
    wb_sql_gap_free(&outbox->cleaned);
}
