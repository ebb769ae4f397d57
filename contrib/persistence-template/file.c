/* SPDX-License-Identifier: Apache-2.0
 *
 * The file: opened once a process, however many sessions and endpoints use it; locks between
 * sessions and processes, which are waited for no longer than busy_timeout; whose fault an error is.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK: locks of an open file, not of a process */
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store.h"

#define DATABASES_MAX 256 /* endpoints of one file */
#define WRITER 0          /* bytes that are locked; a visitor's is above */

/* ---- errors ----------------------------------------------------------------------------------- */

/* Would another message have failed as well? Then it is the server's fault, here the file's. */
int store_fail(const wb_persistence *persistence, int code, const char *doing, wb_error *error)
{
    int result = WB_RETRY, cause = WB_CAUSE_OTHER;
    switch (code) {
    case MDB_MAP_FULL:
    case MDB_READERS_FULL:
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN: cause = WB_CAUSE_SERVER; break;
    case ENOENT:
    case MDB_NOTFOUND: result = WB_FATAL, cause = WB_CAUSE_MISSING; break;
    case EACCES:
    case EPERM:
    case EROFS: result = WB_FATAL, cause = WB_CAUSE_REFUSED; break;
    case MDB_MAP_RESIZED:
    case MDB_DBS_FULL:
    case EINVAL: result = WB_FATAL, cause = WB_CAUSE_CONFIG; break;
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH: result = WB_FATAL, cause = WB_CAUSE_MISMATCH; break;
    case MDB_PANIC:
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND: result = WB_FATAL; break;
    default: break;
    }
    return persistence->host->fail(persistence->host, error, result, cause, code, "could not %s in \"%s\": %s", doing,
                                   persistence->path, mdb_strerror(code));
}

/* ---- files of the process ---------------------------------------------------------------------- */

struct store_file {
    MDB_env *env;
    dev_t device;
    ino_t inode;
    unsigned users;
    store_file *next;
};

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER; /* also: one mdb_dbi_open() at a time */
static store_file *files;

static store_file *find_file(const char *path)
{
    struct stat status;
    store_file *file = stat(path, &status) == 0 ? files : NULL;
    while (file && (file->device != status.st_dev || file->inode != status.st_ino))
        file = file->next;
    return file;
}

static int open_env(const wb_persistence *persistence, MDB_env **ret_env)
{
    int code = mdb_env_create(ret_env);
    if (code != 0)
        return code;
    if ((code = mdb_env_set_maxdbs(*ret_env, DATABASES_MAX)) == 0 &&
        (code = mdb_env_set_mapsize(*ret_env, (size_t)persistence->config->map_size)) == 0)
        code = mdb_env_open(*ret_env, persistence->path, MDB_NOSUBDIR | MDB_NOTLS, 0600);
    if (code != 0)
        mdb_env_close(*ret_env);
    return code;
}

/* Locked. */
static int open_file(const wb_persistence *persistence, store_file **ret_file)
{
    struct stat status;
    store_file *file = (store_file *)calloc(1, sizeof *file);
    int code = file ? open_env(persistence, &file->env) : ENOMEM;
    if (code == 0 && stat(persistence->path, &status) < 0) {
        code = errno;
        mdb_env_close(file->env);
    }
    if (code != 0) {
        free(file);
        return code;
    }
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->next = files;
    *ret_file = files = file;
    return 0;
}

/* Locked. */
static void let_go(store_file *file)
{
    store_file **at = &files;
    if (--file->users)
        return;
    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    mdb_env_close(file->env);
    free(file);
}

/* ---- sessions ---------------------------------------------------------------------------------- */

/* Locked. */
static int open_databases(wb_storage_session *session, unsigned flags)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(session->env, NULL, flags & MDB_CREATE ? 0 : MDB_RDONLY, &txn);
    if (code != 0)
        return code;
    if ((code = mdb_dbi_open(txn, "data", flags, &session->data)) == 0 &&
        (code = mdb_dbi_open(txn, session->persistence->database, flags, &session->records)) == 0)
        return mdb_txn_commit(txn); /* then the handles are the environment's */
    mdb_txn_abort(txn);
    return code;
}

static int attach(wb_storage_session *session, unsigned flags)
{
    const wb_persistence *persistence = session->persistence;
    int code = 0;
    (void)pthread_mutex_lock(&files_lock);
    store_file *file = find_file(persistence->path);
    if (!file)
        code = (flags & MDB_CREATE) || access(persistence->path, F_OK) == 0 ? open_file(persistence, &file) : ENOENT;
    if (code == 0) {
        file->users++;
        session->file = file;
        session->env = file->env;
        (void)mdb_reader_check(file->env, NULL); /* of processes that died */
        code = open_databases(session, flags);
    }
    (void)pthread_mutex_unlock(&files_lock);
    return code;
}

static int open_session(wb_persistence *persistence, unsigned flags, wb_storage_session **ret_session,
                        wb_error *error)
{
    wb_storage_session *session = (wb_storage_session *)calloc(1, sizeof *session);
    if (!session)
        return store_fail(persistence, ENOMEM, "open a session", error);
    session->persistence = persistence;
    session->lock = open(persistence->locks, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int code = session->lock < 0 ? errno : 0;
    int result = code == 0 ? WB_OK : store_fail(persistence, code, "open the file of locks", error);
    if (result == WB_OK && (flags & MDB_CREATE))
        result = store_lock_writer(session, persistence->config->busy_timeout, error);
    if (result == WB_OK && (code = attach(session, flags)) != 0)
        result = store_fail(persistence, code, "open the databases", error);
    if (result == WB_OK)
        *ret_session = session;
    else
        store_close(session);
    return result;
}

int store_open(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    return open_session(persistence, 0, ret_session, error);
}

int store_install(wb_persistence *persistence, wb_error *error)
{
    wb_storage_session *session = NULL;
    int result = open_session(persistence, MDB_CREATE, &session, error);
    if (result == WB_OK)
        store_close(session);
    return result;
}

void store_close(wb_storage_session *session)
{
    if (session->txn)
        mdb_txn_abort(session->txn);
    if (session->file) {
        (void)pthread_mutex_lock(&files_lock);
        let_go(session->file);
        (void)pthread_mutex_unlock(&files_lock);
    }
    if (session->lock >= 0)
        (void)close(session->lock); /* and with it all locks */
    free(session);
}

/* ---- locks -------------------------------------------------------------------------------------- */

static int change_lock(const wb_storage_session *session, off_t byte, short type)
{
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return fcntl(session->lock, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

/* LMDB itself would wait for its writer for ever. */
int store_lock_writer(wb_storage_session *session, int64_t patience, wb_error *error)
{
    const wb_host *host = session->persistence->host;
    const struct timespec moment = { 0, 1000000 };
    const int64_t until = host->now() + patience;
    int code;
    while ((code = change_lock(session, WRITER, F_WRLCK)) == EAGAIN || code == EACCES) {
        if (host->now() >= until)
            return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, code,
                              "another transaction writes to \"%s\" for longer than busy_timeout",
                              session->persistence->path);
        (void)nanosleep(&moment, NULL);
    }
    return code == 0 ? WB_OK : store_fail(session->persistence, code, "lock", error);
}

void store_unlock_writer(wb_storage_session *session)
{
    (void)change_lock(session, WRITER, F_UNLCK);
}

static off_t visitor_byte(const wb_storage_session *session) /* FNV-1a */
{
    uint32_t hash = 2166136261u;
    for (const char *at = session->persistence->endpoint->name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return (off_t)hash + 1;
}

int store_try_visitor(wb_storage_session *session)
{
    return change_lock(session, visitor_byte(session), F_WRLCK) == 0;
}

void store_unlock_visitor(wb_storage_session *session)
{
    (void)change_lock(session, visitor_byte(session), F_UNLCK);
}
