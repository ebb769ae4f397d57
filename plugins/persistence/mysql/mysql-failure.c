/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errmsg.h>
#include <stdio.h>
#include <string.h>

#include "plugins/persistence/mysql/mysql-map.h"
#include "plugins/persistence/mysql/mysql-session.h"
#include "plugins/persistence/mysql/mysql-words.h"

#define NO_SUCH_SAVEPOINT 1305

static int is_of_handler(mys_step_kind kind)
{
    return kind == MYS_STEP_DEFERRED || kind == MYS_STEP_REST || kind == MYS_STEP_LAST_OF_REST;
}

/* What a connection's last error is. */
typedef struct found {
    unsigned code;
    char sqlstate[MYS_SQLSTATE_SIZE];
    const char *text;
    int is_made_up; /* by the client library */
} found;

#define ERROR_PACKET 0xff

/* SIGNAL takes any number, those of the client library too, which then takes the server's answer
 * for damaged. The packet is still there as it came. */
static found find_error(const wb_storage_session *s)
{
    MYSQL *c = s->connection;
    found f = { .code = mysql_errno(c), .text = mysql_error(c), .is_made_up = mys_is_client_error(mysql_errno(c)) };
    const unsigned char *packet = c->net.read_pos;
    (void)snprintf(f.sqlstate, sizeof f.sqlstate, "%s", mysql_sqlstate(c));

    if (!f.is_made_up || !c->net.pvio || !packet || packet[0] != ERROR_PACKET)
        return f;
    const unsigned sent = packet[1] | (unsigned)packet[2] << 8;
    if (!mys_is_client_error(sent) || (f.code != sent && f.code != CR_MALFORMED_PACKET))
        return f;
    /* "#", five characters of the SQLSTATE, and the text */
    const int has_sqlstate = packet[3] == '#';
    f = (found){ .code = sent, .text = (const char *)packet + 3 + (has_sqlstate ? MYS_SQLSTATE_SIZE : 0) };
    (void)snprintf(f.sqlstate, sizeof f.sqlstate, "%.5s", has_sqlstate ? (const char *)packet + 4 : "HY000");
    return f;
}

static void append(char *text, size_t size, const char *more)
{
    const size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s", more);
}

/* A COMMIT that fails did nothing only where that is known of its error. */
static int class_of_commit(const mys_mapping *mapping)
{
    return mapping->commit ? mapping->commit : WB_IN_DOUBT;
}

void mys_failure_record(wb_storage_session *s, mys_step_kind kind, size_t item)
{
    wb_sql_failure *failure = &s->sql.failure;
    const found error = find_error(s);
    const unsigned code = error.code;
    const mys_mapping *mapping = mys_map_error(code, error.text);

    if (failure->result != WB_OK)
        return;
    if (code == 0 || error.is_made_up) { /* 0: an answer that is not ours */
        mys_failure_lost(s, code ? mysql_error(s->connection)
                                 : "the server's answer is not to what was asked");
        return;
    }
    if (kind == MYS_STEP_GUARD && code == NO_SUCH_SAVEPOINT) {
        (void)mys_guard_found(s);
        return;
    }
    switch (kind) {
    case MYS_STEP_REST: /* what cannot be put back is the fault of who set it */
    case MYS_STEP_LAST_OF_REST:
    case MYS_STEP_DEFERRED: failure->result = mapping->handler; break;
    case MYS_STEP_COMMIT: failure->result = class_of_commit(mapping); break;
    default: failure->result = mapping->own; break;
    }
    failure->cause = is_of_handler(kind) ? mapping->handler_cause : mapping->own_cause;
    failure->native_code = code;
    /* the server's trouble is no message's, whoever met it first */
    failure->item = failure->cause == WB_CAUSE_SERVER ? WB_SQL_NO_ITEM : item;
    mys_words_describe(code, error.sqlstate, error.text, failure->text, sizeof failure->text);
    if (mapping->own_cause == WB_CAUSE_REFUSED)
        append(failure->text, sizeof failure->text, "; grant it to the user");
    if (failure->result == WB_NOT_CONNECTED || failure->result == WB_IN_DOUBT) {
        failure->item = WB_SQL_NO_ITEM;
        s->sql.state = WB_SQL_LOST;
    }
}

void mys_failure_lost(wb_storage_session *s, const char *reason)
{
    if (s->sql.failure.result == WB_OK) {
        const unsigned code = s->connection ? mysql_errno(s->connection) : 0;
        (void)wb_sql_note(s, s->exchange.commit_sent ? WB_IN_DOUBT : WB_NOT_CONNECTED,
                               WB_CAUSE_UNREACHABLE, WB_SQL_NO_ITEM,
                               reason && *reason ? reason : "the connection was lost");
        s->sql.failure.native_code = code;
    }
    s->sql.state = WB_SQL_LOST;
}
