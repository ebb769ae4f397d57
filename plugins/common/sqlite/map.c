/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/map.h"

#include <sqlite3.h>
#include <stddef.h>
#include <waybill/sys/plugin.h>

/* Classes by what the caller can do: a busy or full file is tried again on the same
 * connection; after an I/O error the connection's own state is suspect and it is opened
 * anew; a damaged or foreign file waits for a person. */
static const db_meaning meanings[] = {
    { SQLITE_BUSY, WB_RETRY, WB_CAUSE_OTHER, ": another writer held the file for too long" },
    { SQLITE_LOCKED, WB_RETRY, WB_CAUSE_OTHER, "" },
    { SQLITE_PROTOCOL, WB_RETRY, WB_CAUSE_OTHER, "" },
    { SQLITE_SCHEMA, WB_RETRY, WB_CAUSE_OTHER, "" },
    { SQLITE_INTERRUPT, WB_RETRY, WB_CAUSE_OTHER, "" },
    { SQLITE_ABORT, WB_RETRY, WB_CAUSE_OTHER, "" },
    { SQLITE_NOMEM, WB_RETRY, WB_CAUSE_OTHER, "" },
    { SQLITE_FULL, WB_RETRY, WB_CAUSE_OTHER, ": free space on its file system" },
    { SQLITE_CONSTRAINT, WB_RETRY, WB_CAUSE_OTHER, "" },
    { SQLITE_TOOBIG, WB_REJECT, WB_CAUSE_TOO_LARGE, "" },
    { SQLITE_IOERR, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, ": check the disk" },
    { SQLITE_CANTOPEN, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
      ": check that the directory is there and writable" },
    { SQLITE_NOLFS, WB_FATAL, WB_CAUSE_OTHER, "" },
    { SQLITE_PERM, WB_FATAL, WB_CAUSE_REFUSED, ": check the owner and mode of the file" },
    { SQLITE_AUTH, WB_FATAL, WB_CAUSE_REFUSED, "" },
    { SQLITE_READONLY, WB_FATAL, WB_CAUSE_REFUSED,
      ": the file and its directory must be writable" },
    { SQLITE_CORRUPT, WB_FATAL, WB_CAUSE_MISMATCH, ": restore the file from a backup" },
    { SQLITE_NOTADB, WB_FATAL, WB_CAUSE_MISMATCH, ": choose another file" },
    { SQLITE_FORMAT, WB_FATAL, WB_CAUSE_MISMATCH, "" },
};

const db_meaning *db_meaning_of(int code)
{
    static const db_meaning other = { SQLITE_ERROR, WB_FATAL, WB_CAUSE_OTHER, "" };
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].code == (code & 0xff))
            return &meanings[i];
    return &other;
}
