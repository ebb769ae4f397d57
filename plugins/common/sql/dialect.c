/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/dialect.h"

/* Those that every driver wants. */
static const char *const needed[WB_SQL_COUNT] = {
    [WB_SQL_BEGIN] = "BEGIN",       [WB_SQL_CLAIM] = "CLAIM",
    [WB_SQL_STORE] = "STORE",       [WB_SQL_MARK] = "MARK",
    [WB_SQL_COMMIT] = "COMMIT",     [WB_SQL_ROLLBACK] = "ROLLBACK",
    [WB_SQL_LOOKUP] = "LOOKUP",     [WB_SQL_RELEASE] = "RELEASE",
    [WB_SQL_FORGET] = "FORGET",     [WB_SQL_REMEMBER] = "REMEMBER",
    [WB_SQL_SHRINK] = "SHRINK",     [WB_SQL_PENDING] = "PENDING",
    [WB_SQL_NEXT] = "NEXT",         [WB_SQL_CLEAN_UP] = "CLEAN_UP",
    [WB_SQL_CLOCK] = "CLOCK",       [WB_SQL_FUTURE] = "FUTURE",
    [WB_SQL_STATS] = "STATS",       [WB_SQL_COUNT_RECORDS] = "COUNT_RECORDS",
    [WB_SQL_HEADS] = "HEADS",
    [WB_SQL_DELAY] = "DELAY",       [WB_SQL_NEXT_DUE] = "NEXT_DUE",
    [WB_SQL_TAKE] = "TAKE",         [WB_SQL_DROP] = "DROP",
    [WB_SQL_PUT_BACK] = "PUT_BACK",
    [WB_SQL_LIST] = "LIST",         [WB_SQL_SHOW] = "SHOW",
    [WB_SQL_CLAIM_LATE] = "CLAIM_LATE",
    [WB_SQL_POSITION_LOCK] = "POSITION_LOCK", [WB_SQL_POSITION_MOVE] = "POSITION_MOVE",
    [WB_SQL_POSITION_MAKE] = "POSITION_MAKE", [WB_SQL_POSITION_BACK] = "POSITION_BACK",
    [WB_SQL_POSITIONS] = "POSITIONS", [WB_SQL_POSITIONS_FORGET] = "POSITIONS_FORGET",
};

static const char *find_lacking_statement(const wb_sql_dialect *d)
{
    for (int i = 0; i < WB_SQL_COUNT; i++)
        if (needed[i] && !d->templates[i])
            return needed[i];
    return NULL;
}

/* A driver that may have to lock in transactions does so with any dialect: whether, the connection
 * decides. */
static const char *find_lacking_lock(const wb_sql_dialect *d, const wb_sql_driver *driver)
{
    if (driver->locks_in_transaction && !d->templates[WB_SQL_LOCK_IN_TRANSACTION])
        return "LOCK_IN_TRANSACTION";
    if (driver->locks_in_transaction && !d->clean_up_locks)
        return "clean_up_locks, and a CLEAN_UP that takes the lock by itself";
    if (!driver->locks_in_transaction && !d->templates[WB_SQL_LOCK])
        return "LOCK: its driver knows no locks of transactions";
    return d->templates[WB_SQL_LOCK] && !d->templates[WB_SQL_UNLOCK] ? "UNLOCK" : NULL;
}

static const char *find_lacking_pair(const wb_sql_dialect *d)
{
    return d->templates[WB_SQL_FIND_DUE] && !d->templates[WB_SQL_TAKEN] ? "TAKEN" : NULL;
}

/* What programs write, and failed messages: all of it, or nothing. */
static const char *find_lacking_interface(const wb_sql_dialect *d)
{
    for (int i = WB_SQL_WRITTEN_LOOK; i <= WB_SQL_WRITTEN_CLAIM; i++)
        if (!d->templates[i] != !d->templates[WB_SQL_WRITTEN_LOOK])
            return "part of the WRITTEN_ statements";
    for (int i = WB_SQL_FAILED_PUT; i <= WB_SQL_FAILED_CLEAN_UP; i++)
        if (!d->templates[i] != !d->templates[WB_SQL_FAILED_PUT])
            return "part of the FAILED_ statements";
    return NULL;
}

static const char *find_lacking_part(const wb_sql_dialect *d)
{
    if (!d->quoting)
        return "quoting";
    if (!d->definitions || !d->definition_count || d->first_count > d->definition_count)
        return "definitions";
    if (!d->record_version || !d->schema_start || !d->schema_end)
        return "record_version, schema_start or schema_end";
    if (!d->keys_max || !d->batch_max || !d->operations_max)
        return "keys_max, batch_max or operations_max";
    if (!d->removal || !d->renaming || !d->note_subscription[1] || !d->forget_subscription[1])
        return "removal, renaming, note_subscription or forget_subscription";
    return d->prepare_install && d->checks ? NULL : "prepare_install or checks";
}

/* A name in braces that is none would be SQL that the server does not understand. */
static const char *find_unknown_name(const wb_sql_dialect *d)
{
    const char *unknown = wb_sql_names_unknown(d->record_version);
    for (int i = 0; i < WB_SQL_COUNT && !unknown; i++)
        unknown = d->templates[i] ? wb_sql_names_unknown(d->templates[i]) : NULL;
    for (size_t i = 0; i < d->definition_count && !unknown; i++)
        unknown = wb_sql_names_unknown(d->definitions[i].template);
    return unknown;
}

int wb_sql_dialect_check(const wb_host *host, const wb_sql_dialect *dialect,
                         const wb_sql_driver *driver, wb_error *error)
{
    const char *lacking = dialect->templates ? find_lacking_statement(dialect) : "templates";
    if (!lacking)
        lacking = find_lacking_lock(dialect, driver);
    if (!lacking)
        lacking = find_lacking_pair(dialect);
    if (!lacking)
        lacking = find_lacking_interface(dialect);
    if (!lacking)
        lacking = find_lacking_part(dialect);
    if (lacking)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0,
                          "this plugin is not finished: its dialect has no %s", lacking);
    const char *unknown = find_unknown_name(dialect);
    if (unknown)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0,
                          "this plugin is not finished: its dialect has a name in braces that "
                          "means nothing: %.40s",
                          unknown);
    return WB_OK;
}
