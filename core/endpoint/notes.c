/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/notes.h"

#include <stdio.h>

#include "core/pipeline/pipeline.h"

#define UNINSTALL "uninstall"
#define NOTE_SIZE 256

int wb_notes_are_kept(wb_endpoint *e)
{
    const wb_persistence_ops *ops = wb_endpoint_pipeline(e)->persistence_ops;
    return wb_endpoint_owns_tables(e) && WB_HAS(ops, wb_persistence_ops, keep_note) &&
           WB_HAS(ops, wb_persistence_ops, look_up_note);
}

static int keep(wb_endpoint *e, const char *name, int32_t number, wb_error *error)
{
    const wb_pipeline *p = wb_endpoint_pipeline(e);
    return wb_notes_are_kept(e) ? p->persistence_ops->keep_note(p->persistence, name, number, error) : WB_OK;
}

static int look_up(wb_endpoint *e, const char *name, int32_t *ret_number, wb_error *error)
{
    const wb_pipeline *p = wb_endpoint_pipeline(e);
    *ret_number = 0;
    return wb_notes_are_kept(e) ? p->persistence_ops->look_up_note(p->persistence, name, ret_number, error) : WB_OK;
}

/* ---- uninstall ------------------------------------------------------------------------------- */

int wb_notes_begin_uninstall(wb_endpoint *e, wb_error *error)
{
    return keep(e, UNINSTALL, 1, error);
}

int wb_notes_forget_uninstall(wb_endpoint *e, wb_error *error)
{
    return keep(e, UNINSTALL, 0, error);
}

int wb_notes_explain(wb_endpoint *e, int result, wb_error *error)
{
    wb_error ignored = { 0 };
    int32_t is_begun = 0;
    if (result == WB_OK || error->cause != WB_CAUSE_MISSING || look_up(e, UNINSTALL, &is_begun, &ignored) != WB_OK || !is_begun)
        return result;
    const wb_error why = *error;
    return wb_error_set(error, result, why.cause, why.native_code,
                        "an uninstall was begun and is not complete: repeat \"waybill uninstall\", or have the endpoint "
                        "back by \"waybill install\" (%s)", why.text);
}

/* ---- rename ---------------------------------------------------------------------------------- */

static void name_rename(const char *former, char ret_name[NOTE_SIZE])
{
    (void)snprintf(ret_name, NOTE_SIZE, "renamed from %s", former);
}

int wb_notes_keep_rename(wb_endpoint *e, const char *former, wb_rename_state state, wb_error *error)
{
    char name[NOTE_SIZE];
    name_rename(former, name);
    return keep(e, name, (int32_t)state, error);
}

int wb_notes_find_rename(wb_endpoint *e, const char *former, wb_rename_state *ret_state, wb_error *error)
{
    char name[NOTE_SIZE];
    int32_t number;
    name_rename(former, name);
    int r = look_up(e, name, &number, error);
    *ret_state = number == WB_RENAME_BEGUN || number == WB_RENAME_OVER ? (wb_rename_state)number : WB_RENAME_UNKNOWN;
    return r;
}
