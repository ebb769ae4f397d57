/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/map.h"

#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <waybill/sys/plugin.h>

/* Classes by what the caller can do: a busy or full file is tried again on the same
 * connection, and is no message's fault; after an I/O error the connection's own state is
 * suspect and it is opened anew; a damaged or foreign file waits for a person. The fourth
 * column is about a handler's own statements: whether another message would have met the
 * same. What a handler did to its connection (interrupted it, left a table locked) is its own. */
static const wb_sqlite_db_meaning meanings[] = {
    { SQLITE_BUSY, WB_RETRY, WB_CAUSE_SERVER, 1, ": another writer held the file for too long" },
    { SQLITE_PROTOCOL, WB_RETRY, WB_CAUSE_SERVER, 1, ": too many connections at once" },
    { SQLITE_NOMEM, WB_RETRY, WB_CAUSE_SERVER, 1, "" },
    { SQLITE_FULL, WB_RETRY, WB_CAUSE_SERVER, 1, ": free space on its file system" },
    { SQLITE_SCHEMA, WB_RETRY, WB_CAUSE_SERVER, 1, "" },
    { SQLITE_IOERR, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 1, ": check the disk" },
    { SQLITE_CANTOPEN, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
      ": check that the directory is there and writable" },
    { SQLITE_LOCKED, WB_RETRY, WB_CAUSE_OTHER, 0, "" },
    { SQLITE_INTERRUPT, WB_RETRY, WB_CAUSE_OTHER, 0, "" },
    { SQLITE_ABORT, WB_RETRY, WB_CAUSE_OTHER, 0, "" },
    { SQLITE_CONSTRAINT, WB_RETRY, WB_CAUSE_OTHER, 0, "" },
    { SQLITE_TOOBIG, WB_REJECT, WB_CAUSE_TOO_LARGE, 0, "" },
    { SQLITE_NOLFS, WB_FATAL, WB_CAUSE_OTHER, 0, "" },
    { SQLITE_PERM, WB_FATAL, WB_CAUSE_REFUSED, 0, ": check the owner and mode of the file" },
    { SQLITE_AUTH, WB_FATAL, WB_CAUSE_REFUSED, 0, "" },
    { SQLITE_READONLY, WB_FATAL, WB_CAUSE_REFUSED, 0,
      ": the file and its directory must be writable" },
    { SQLITE_CORRUPT, WB_FATAL, WB_CAUSE_MISMATCH, 1, ": restore the file from a backup" },
    { SQLITE_NOTADB, WB_FATAL, WB_CAUSE_MISMATCH, 1, ": choose another file" },
    { SQLITE_FORMAT, WB_FATAL, WB_CAUSE_MISMATCH, 0, "" },
};

const wb_sqlite_db_meaning *wb_sqlite_db_meaning_of(int code)
{
    static const wb_sqlite_db_meaning other = { SQLITE_ERROR, WB_FATAL, WB_CAUSE_OTHER, 0, "" };
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].code == (code & 0xff))
            return &meanings[i];
    return &other;
}

wb_sqlite_db_meaning wb_sqlite_db_meaning_of_errno(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT: return (wb_sqlite_db_meaning){ number, WB_RETRY, WB_CAUSE_SERVER, 1,
                                               ": free space" };
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOLCK:
    case EIO: return (wb_sqlite_db_meaning){ number, WB_RETRY, WB_CAUSE_SERVER, 1, "" };
    case ENOENT: return (wb_sqlite_db_meaning){ number, WB_FATAL, WB_CAUSE_MISSING, 0, "" };
    case EACCES:
    case EPERM:
    case ELOOP:
    case EROFS:
        return (wb_sqlite_db_meaning){ number, WB_FATAL, WB_CAUSE_REFUSED, 0,
                             ": it must be readable and writable" };
    case EINVAL:
    case EOPNOTSUPP:
    case ENOSYS:
        return (wb_sqlite_db_meaning){ number, WB_FATAL, WB_CAUSE_OTHER, 0,
                                      ": use a local file system" };
    default: return (wb_sqlite_db_meaning){ number, WB_FATAL, WB_CAUSE_OTHER, 0, "" };
    }
}
