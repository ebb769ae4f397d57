/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/disk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/sqlite/guard.h"

/* Of whatever both copies of this file agree on: to be changed with the structs that a file
 * control fills. */
#define VFS_NAME "waybill-4"
/* Asked of a file by sqlite3_file_control(); codes above 100 are for applications. */
#define DISK_TROUBLE_OF 0x57425344
#define DISK_VIEW_OF 0x57425345
/* The first lock byte of a file's shared memory (SQLite: WAL_WRITE_LOCK, walformat). */
#define WRITE_LOCK 0

/* A database file that somebody in the process has open. */
typedef struct disk_database {
    struct disk_database *next;
    size_t users;  /* connections; none where a guard is kept for the next */
    size_t mapped; /* those that have the log's index mapped: it is in use, and guarded */
    wb_sqlite_guard guard;
    _Atomic(const void *) writer; /* the thread that holds the write lock through us */
    wb_sqlite_disk_log log;
    char path[];
} disk_database;

/* An open file: ours, and behind it in the same memory the real one. */
typedef struct disk_file {
    sqlite3_file base;
    sqlite3_file *real;
    disk_database *database; /* of a main file, else NULL */
    int is_mapped;
    int is_alone; /* it has the file alone: nobody is kept from it then, and it goes next */
    uint64_t write_locks;
} disk_file;

typedef struct disk_view {
    wb_sqlite_disk_log *log;
    uint64_t write_locks;
    int is_written_here;
} disk_view;

static _Thread_local wb_sqlite_disk_trouble thread_trouble;

/* ---- databases ----------------------------------------------------------------------- */

static pthread_mutex_t databases_lock = PTHREAD_MUTEX_INITIALIZER;
static disk_database *databases;

/* Plugins open canonical paths, so equal files have equal names. */
static disk_database *find_database(const char *path)
{
    disk_database *found = databases;
    while (found && strcmp(found->path, path) != 0)
        found = found->next;
    if (found)
        return found;
    size_t size = strlen(path) + 1;
    found = calloc(1, sizeof *found + size);
    if (!found)
        return NULL;
    memcpy(found->path, path, size);
    found->guard.fd = -1;
    found->next = databases;
    return databases = found;
}

/* What was known of its log was of connections that are gone. */
static void forget_log(wb_sqlite_disk_log *log)
{
    atomic_store(&log->insist_at, 0);
    atomic_store(&log->pause, 0);
    atomic_store(&log->held_since, 0);
    atomic_store(&log->told_at, 0);
}

static disk_database *enter_database(const char *path)
{
    (void)pthread_mutex_lock(&databases_lock);
    disk_database *entered = find_database(path);
    if (entered && entered->users++ == 0)
        forget_log(&entered->log);
    (void)pthread_mutex_unlock(&databases_lock);
    return entered;
}

/* Those, too, whose guards could not be closed when they were left. */
static void drop_unused(void)
{
    disk_database **at = &databases;
    while (*at) {
        disk_database *each = *at;
        if (each->users > 0 || !wb_sqlite_guard_close(&each->guard)) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        free(each);
    }
}

static void leave_database(disk_database *left)
{
    (void)pthread_mutex_lock(&databases_lock);
    if (--left->users == 0)
        drop_unused();
    (void)pthread_mutex_unlock(&databases_lock);
}

/* The address of a thread's own variable tells it from all others alive. */
static const void *this_thread(void)
{
    return &thread_trouble;
}

static void note_write_lock(disk_file *file, int flags)
{
    if (!file->database)
        return;
    if (flags & SQLITE_SHM_LOCK)
        file->write_locks++;
    atomic_store(&file->database->writer, flags & SQLITE_SHM_LOCK ? this_thread() : NULL);
}

static void view(const disk_file *file, disk_view *to)
{
    disk_database *database = file->database;
    if (!database)
        return;
    to->log = &database->log;
    to->write_locks = file->write_locks;
    to->is_written_here = atomic_load(&database->writer) == this_thread();
}

/* ---- in use -------------------------------------------------------------------------------- */

static int enter_map(disk_file *file)
{
    disk_database *database = file->database;
    if (!database || file->is_mapped || file->is_alone)
        return SQLITE_OK;
    (void)pthread_mutex_lock(&databases_lock);
    const int code = wb_sqlite_guard_take(&database->guard, database->path); /* each time: it may be lost, or of a file that was replaced */
    if (code == SQLITE_OK) {
        database->mapped++;
        file->is_mapped = 1;
    }
    (void)pthread_mutex_unlock(&databases_lock);
    return code;
}

static void leave_map(disk_file *file)
{
    if (!file->is_mapped)
        return;
    (void)pthread_mutex_lock(&databases_lock);
    if (--file->database->mapped == 0)
        wb_sqlite_guard_release(&file->database->guard);
    file->is_mapped = 0;
    (void)pthread_mutex_unlock(&databases_lock);
}

/* The last connection asks for the file alone before it removes the log, and unmaps the index: our own guard must not be in its
 * way, and is not needed then. */
static int lock_alone(disk_file *file)
{
    disk_database *database = file->database;
    (void)pthread_mutex_lock(&databases_lock);
    const int is_last = file->is_mapped && database->mapped == 1;
    if (is_last)
        wb_sqlite_guard_release(&database->guard);
    const int code = file->real->pMethods->xLock(file->real, SQLITE_LOCK_EXCLUSIVE);
    file->is_alone = code == SQLITE_OK;
    if (is_last && code != SQLITE_OK)
        (void)wb_sqlite_guard_take(&database->guard, database->path);
    (void)pthread_mutex_unlock(&databases_lock);
    return code;
}

/* ---- what was refused ------------------------------------------------------------------ */

static int seen(int code)
{
    int primary = code & 0xff;
    if (primary == SQLITE_FULL || (primary == SQLITE_IOERR && code != SQLITE_IOERR_SHORT_READ)) {
        thread_trouble.count++;
        thread_trouble.code = code;
    }
    return code;
}

/* A used-up quota and a limit on the size of files are a full disk by another name. */
static int is_for_room(void)
{
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
}

/* Of a call that has no code of its own for it; errno was 0 before. */
static int note_room(int code)
{
    thread_trouble.no_room = code != SQLITE_OK && is_for_room() ? code : 0;
    return code;
}

static sqlite3_file *real(sqlite3_file *file)
{
    return ((disk_file *)file)->real;
}

/* ---- files --------------------------------------------------------------------------- */

static int disk_close(sqlite3_file *file)
{
    disk_database *database = ((disk_file *)file)->database;
    int code = real(file)->pMethods->xClose(real(file));
    if (database)
        leave_database(database);
    return code;
}

static int disk_read(sqlite3_file *file, void *data, int size, sqlite3_int64 at)
{
    return seen(real(file)->pMethods->xRead(real(file), data, size, at));
}

static int disk_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    errno = 0;
    int code = real(file)->pMethods->xWrite(real(file), data, size, at);
    if (code == SQLITE_IOERR_WRITE && is_for_room())
        code = SQLITE_FULL;
    return seen(code);
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return seen(real(file)->pMethods->xTruncate(real(file), size));
}

static int disk_sync(sqlite3_file *file, int flags)
{
    return seen(real(file)->pMethods->xSync(real(file), flags));
}

static int disk_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    return seen(real(file)->pMethods->xFileSize(real(file), ret_size));
}

static int disk_lock(sqlite3_file *file, int level)
{
    if (level == SQLITE_LOCK_EXCLUSIVE)
        return seen(lock_alone((disk_file *)file));
    return seen(real(file)->pMethods->xLock(real(file), level));
}

static int disk_unlock(sqlite3_file *file, int level)
{
    ((disk_file *)file)->is_alone = 0;
    return real(file)->pMethods->xUnlock(real(file), level);
}

static int disk_check_reserved(sqlite3_file *file, int *ret_reserved)
{
    return real(file)->pMethods->xCheckReservedLock(real(file), ret_reserved);
}

static int disk_control(sqlite3_file *file, int code, void *argument)
{
    if (code == DISK_TROUBLE_OF)
        *(wb_sqlite_disk_trouble *)argument = thread_trouble;
    else if (code == DISK_VIEW_OF)
        view((disk_file *)file, argument);
    else
        return real(file)->pMethods->xFileControl(real(file), code, argument);
    return SQLITE_OK;
}

static int disk_sector_size(sqlite3_file *file)
{
    return real(file)->pMethods->xSectorSize(real(file));
}

static int disk_characteristics(sqlite3_file *file)
{
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int disk_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret_at)
{
    errno = 0;
    int code = note_room(real(file)->pMethods->xShmMap(real(file), page, size, extend, ret_at));
    if (code == SQLITE_OK && (code = enter_map((disk_file *)file)) != SQLITE_OK)
        *ret_at = NULL; /* SQLite might use it, and not ask for it again */
    return seen(code);
}

static int disk_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    int code = seen(real(file)->pMethods->xShmLock(real(file), offset, count, flags));
    if (code == SQLITE_OK && offset == WRITE_LOCK)
        note_write_lock((disk_file *)file, flags);
    return code;
}

static void disk_shm_barrier(sqlite3_file *file)
{
    real(file)->pMethods->xShmBarrier(real(file));
}

static int disk_shm_unmap(sqlite3_file *file, int delete)
{
    int code = real(file)->pMethods->xShmUnmap(real(file), delete);
    leave_map((disk_file *)file);
    return code;
}

static int disk_fetch(sqlite3_file *file, sqlite3_int64 at, int size, void **ret_at)
{
    return seen(real(file)->pMethods->xFetch(real(file), at, size, ret_at));
}

static int disk_unfetch(sqlite3_file *file, sqlite3_int64 at, void *data)
{
    return real(file)->pMethods->xUnfetch(real(file), at, data);
}

#define METHODS(version)                                                                           \
    {                                                                                              \
        .iVersion = (version), .xClose = disk_close, .xRead = disk_read, .xWrite = disk_write,     \
        .xTruncate = disk_truncate, .xSync = disk_sync, .xFileSize = disk_size,                    \
        .xLock = disk_lock, .xUnlock = disk_unlock, .xCheckReservedLock = disk_check_reserved,     \
        .xFileControl = disk_control, .xSectorSize = disk_sector_size,                             \
        .xDeviceCharacteristics = disk_characteristics, .xShmMap = disk_shm_map,                   \
        .xShmLock = disk_shm_lock, .xShmBarrier = disk_shm_barrier, .xShmUnmap = disk_shm_unmap,   \
        .xFetch = disk_fetch, .xUnfetch = disk_unfetch                                             \
    }

/* SQLite uses of a file what its version has: ours is that of the real file. */
static const sqlite3_io_methods methods[] = { METHODS(1), METHODS(2), METHODS(3) };

/* ---- the file system ------------------------------------------------------------------ */

static sqlite3_vfs *real_vfs(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    disk_file *opened = (disk_file *)file;
    opened->base.pMethods = NULL;
    opened->real = (sqlite3_file *)(opened + 1);
    opened->database = NULL;
    opened->is_mapped = opened->is_alone = 0;
    opened->write_locks = 0;
    if (flags & SQLITE_OPEN_MAIN_DB)
        wb_sqlite_guard_fill_streams();
    errno = 0;
    int code = note_room(real_vfs(vfs)->xOpen(real_vfs(vfs), name, opened->real, flags, ret_flags));
    if (code == SQLITE_OK && name && (flags & SQLITE_OPEN_MAIN_DB) && !(opened->database = enter_database(name))) {
        (void)opened->real->pMethods->xClose(opened->real);
        return SQLITE_NOMEM;
    }
    if (opened->real->pMethods) {
        int version = opened->real->pMethods->iVersion;
        opened->base.pMethods = &methods[version > 3 ? 2 : version - 1];
    }
    return code;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    return real_vfs(vfs)->xDelete(real_vfs(vfs), name, sync);
}

static int disk_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_yes)
{
    return real_vfs(vfs)->xAccess(real_vfs(vfs), name, flags, ret_yes);
}

static int disk_full_path(sqlite3_vfs *vfs, const char *name, int size, char *path)
{
    return real_vfs(vfs)->xFullPathname(real_vfs(vfs), name, size, path);
}

static void *disk_dl_open(sqlite3_vfs *vfs, const char *name)
{
    return real_vfs(vfs)->xDlOpen(real_vfs(vfs), name);
}

static void disk_dl_error(sqlite3_vfs *vfs, int size, char *text)
{
    real_vfs(vfs)->xDlError(real_vfs(vfs), size, text);
}

static void (*disk_dl_sym(sqlite3_vfs *vfs, void *object, const char *symbol))(void)
{
    return real_vfs(vfs)->xDlSym(real_vfs(vfs), object, symbol);
}

static void disk_dl_close(sqlite3_vfs *vfs, void *object)
{
    real_vfs(vfs)->xDlClose(real_vfs(vfs), object);
}

static int disk_randomness(sqlite3_vfs *vfs, int size, char *data)
{
    return real_vfs(vfs)->xRandomness(real_vfs(vfs), size, data);
}

static int disk_sleep(sqlite3_vfs *vfs, int microseconds)
{
    return real_vfs(vfs)->xSleep(real_vfs(vfs), microseconds);
}

static int disk_time(sqlite3_vfs *vfs, double *ret_day)
{
    return real_vfs(vfs)->xCurrentTime(real_vfs(vfs), ret_day);
}

static int disk_last_error(sqlite3_vfs *vfs, int size, char *text)
{
    return real_vfs(vfs)->xGetLastError(real_vfs(vfs), size, text);
}

static int disk_time_64(sqlite3_vfs *vfs, sqlite3_int64 *ret_time)
{
    return real_vfs(vfs)->xCurrentTimeInt64(real_vfs(vfs), ret_time);
}

static sqlite3_vfs disk = { .zName = VFS_NAME,
                            .xOpen = disk_open,
                            .xDelete = disk_delete,
                            .xAccess = disk_access,
                            .xFullPathname = disk_full_path,
                            .xDlOpen = disk_dl_open,
                            .xDlError = disk_dl_error,
                            .xDlSym = disk_dl_sym,
                            .xDlClose = disk_dl_close,
                            .xRandomness = disk_randomness,
                            .xSleep = disk_sleep,
                            .xCurrentTime = disk_time,
                            .xGetLastError = disk_last_error,
                            .xCurrentTimeInt64 = disk_time_64 };

static void register_vfs(void)
{
    sqlite3_vfs *below = sqlite3_vfs_find(NULL);
    if (!below)
        return;
    disk.iVersion = below->iVersion > 2 ? 2 : below->iVersion;
    disk.szOsFile = (int)sizeof(disk_file) + below->szOsFile;
    disk.mxPathname = below->mxPathname;
    disk.pAppData = below;
    (void)sqlite3_vfs_register(&disk, 0);
}

/* The lock is SQLite's, since it must be the same for both copies. */
const char *wb_sqlite_disk_vfs(void)
{
    if (sqlite3_initialize() != SQLITE_OK)
        return NULL;
    sqlite3_mutex *lock = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
    sqlite3_mutex_enter(lock);
    if (!sqlite3_vfs_find(VFS_NAME))
        register_vfs();
    int is_registered = sqlite3_vfs_find(VFS_NAME) != NULL;
    sqlite3_mutex_leave(lock);
    return is_registered ? VFS_NAME : NULL;
}

wb_sqlite_disk_trouble wb_sqlite_disk_trouble_of(sqlite3 *handle)
{
    wb_sqlite_disk_trouble trouble = { 0 };
    if (sqlite3_file_control(handle, "main", DISK_TROUBLE_OF, &trouble) != SQLITE_OK)
        return (wb_sqlite_disk_trouble){ 0 };
    return trouble;
}

static disk_view view_of(sqlite3 *handle)
{
    disk_view seen_now = { 0 };
    (void)sqlite3_file_control(handle, "main", DISK_VIEW_OF, &seen_now);
    return seen_now;
}

int wb_sqlite_disk_is_written_here(sqlite3 *handle)
{
    return view_of(handle).is_written_here;
}

uint64_t wb_sqlite_disk_write_locks(sqlite3 *handle)
{
    return view_of(handle).write_locks;
}

wb_sqlite_disk_log *wb_sqlite_disk_log_of(sqlite3 *handle)
{
    return view_of(handle).log;
}
