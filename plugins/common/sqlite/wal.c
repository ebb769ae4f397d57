/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/wal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plugins/common/sqlite/disk.h"

#define MILLISECOND INT64_C(1000000)
#define SECOND INT64_C(1000000000)

/* 16 MiB: pages of a busy queue are written many times over and reach the file once. */
#define CHECKPOINT_PAGES 4000
/* Twice as much says that carrying it over does not start it anew. */
#define INSIST_PAGES 8000
/* Our reads are shorter by far, but the machine may let one wait in the midst of it. */
#define INSIST_FIRST (50 * MILLISECOND)
#define INSIST_LONGEST (400 * MILLISECOND)
/* Whoever insists keeps all writers waiting, so a reader that stays is asked less and less. */
#define PAUSE_FIRST (100 * MILLISECOND)
#define PAUSE_LONGEST (5 * SECOND)
#define TELL_AFTER (5 * SECOND)
#define TELL_EVERY (60 * SECOND)

/* Files that a handler attached are carried over as SQLite itself would do it. */
static int on_commit_logged(void *argument, sqlite3 *handle, const char *name, int pages)
{
    wb_sqlite_database *db = argument;
    if (strcmp(name, "main") == 0)
        db->log_pages = pages;
    else if (pages >= CHECKPOINT_PAGES)
        (void)sqlite3_wal_checkpoint(handle, name);
    return SQLITE_OK;
}

void wb_sqlite_wal_watch(wb_sqlite_database *db)
{
    db->log_pages = 0;
    (void)sqlite3_wal_hook(db->handle, on_commit_logged, db);
}

/* ---- readers that stay ----------------------------------------------------------------- */

static void tell(wb_sqlite_database *db, int64_t age)
{
    char size_text[32] = "";
    char age_text[32];
    struct stat status;
    if (stat(sqlite3_filename_wal(sqlite3_db_filename(db->handle, "main")), &status) == 0)
        (void)snprintf(size_text, sizeof size_text, "%lld MiB", (long long)status.st_size >> 20);
    (void)snprintf(age_text, sizeof age_text, "%lld s", (long long)(age / SECOND));
    db->host->log(db->host, WB_LOG_WARNING,
                  "a reader keeps the write-ahead log growing: end its transaction; Waybill's own "
                  "are short",
                  (const wb_field[]){
                      { "file", db->path }, { "size", size_text }, { "age", age_text } },
                  3);
}

/* One line a minute and process, whichever connection comes first. */
static void tell_sometimes(wb_sqlite_database *db, wb_sqlite_disk_log *log, int64_t now)
{
    int64_t since = atomic_load(&log->held_since);
    int64_t told = atomic_load(&log->told_at);
    if (now - since < TELL_AFTER || (told && now - told < TELL_EVERY))
        return;
    if (atomic_compare_exchange_strong(&log->told_at, &told, now))
        tell(db, now - since);
}

static void readers_stayed(wb_sqlite_database *db, wb_sqlite_disk_log *log)
{
    int64_t now = db->host->now();
    int64_t none = 0;
    int64_t pause = atomic_load(&log->pause) * 2;
    if (pause < PAUSE_FIRST)
        pause = PAUSE_FIRST;
    if (pause > PAUSE_LONGEST)
        pause = PAUSE_LONGEST;
    atomic_store(&log->pause, pause);
    atomic_store(&log->insist_at, now + pause);
    (void)atomic_compare_exchange_strong(&log->held_since, &none, now);
    tell_sometimes(db, log, now);
}

static void readers_left(wb_sqlite_disk_log *log)
{
    if (atomic_load(&log->held_since) == 0)
        return;
    atomic_store(&log->held_since, 0);
    atomic_store(&log->pause, 0);
    atomic_store(&log->insist_at, 0);
}

/* ---- bound ------------------------------------------------------------------------------ */

/* Each time twice as long, as a busy machine asks for; a reader that outlasted all that is
 * none of ours, and not worth the waiting of the writers. */
static int64_t insist_for(const wb_sqlite_disk_log *log)
{
    int64_t pause = atomic_load(&log->pause);
    if (pause < PAUSE_FIRST || pause == PAUSE_LONGEST)
        return INSIST_FIRST;
    return pause < INSIST_LONGEST ? pause : INSIST_LONGEST;
}

/* Who comes while another connection carries the log over is told so at once. Going on
 * writing would leave that one behind for ever, so this writer waits for it. */
static int carry_over_whole(wb_sqlite_database *db, int64_t patience, uint64_t locks)
{
    int64_t until = db->host->now() + patience;
    for (int count = 0;; count++) {
        db->deadline = db->host->now() + patience;
        int code = sqlite3_wal_checkpoint_v2(db->handle, "main", SQLITE_CHECKPOINT_RESTART, NULL,
                                             NULL);
        if (code != SQLITE_BUSY || wb_sqlite_disk_write_locks(db->handle) != locks ||
            db->host->now() >= until)
            return code;
        wb_sqlite_db_pause(db, count);
    }
}

/* That the write lock could not be had says nothing of readers: the next commit tries
 * again. */
static void insist(wb_sqlite_database *db, wb_sqlite_disk_log *log)
{
    int64_t deadline = db->deadline;
    uint64_t locks = wb_sqlite_disk_write_locks(db->handle);
    int code = carry_over_whole(db, insist_for(log), locks);
    db->deadline = deadline;
    if (code == SQLITE_OK)
        readers_left(log);
    else if (code == SQLITE_BUSY && wb_sqlite_disk_write_locks(db->handle) != locks)
        readers_stayed(db, log);
}

void wb_sqlite_wal_bound(wb_sqlite_database *db)
{
    if (db->log_pages == 0)
        return;
    wb_sqlite_disk_log *log = wb_sqlite_disk_log_of(db->handle);
    if (log && db->log_pages < INSIST_PAGES)
        readers_left(log);
    if (db->log_pages < CHECKPOINT_PAGES)
        return;
    if (log && db->log_pages >= INSIST_PAGES && db->host->now() >= atomic_load(&log->insist_at))
        insist(db, log);
    else
        (void)sqlite3_wal_checkpoint(db->handle, "main");
}
