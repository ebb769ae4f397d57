/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/close_id.h"

#include "core/base/crash.h"
#include "core/message/ids.h"

static int commit(const wb_pipeline *p, wb_storage_session *storage, uint64_t number, const wb_claim *claim,
                  wb_error *error)
{
    wb_commit commit = { .struct_size = sizeof commit, .batch = number, .failed_item = SIZE_MAX,
                         .claims = claim, .claim_count = claim != NULL };
    return p->persistence_ops->commit(storage, &commit, error);
}

/* A claim at the beginning waits for whoever is committing. */
static int claim_it(const wb_pipeline *p, wb_storage_session *storage, uint64_t number, wb_claim *claim,
                    wb_error *error)
{
    wb_begin begin = { .struct_size = sizeof begin, .batch = number, .claims = claim, .claim_count = 1 };
    int r = p->persistence_ops->begin(storage, &begin, error);
    if (r != WB_OK)
        return r;
    return claim->duplicate_of ? p->persistence_ops->rollback(storage, error)
                               : commit(p, storage, number, NULL, error);
}

static int close_anew(const wb_pipeline *p, wb_storage_session *storage, uint64_t number, const wb_claim *claim,
                      wb_error *error)
{
    wb_begin begin = { .struct_size = sizeof begin, .batch = number };
    int r = p->persistence_ops->begin(storage, &begin, error);
    return r == WB_OK ? commit(p, storage, number, claim, error) : r;
}

int wb_close_id(const wb_pipeline *p, wb_storage_session *storage, const void *id, size_t size, uint64_t *ret_owner,
                wb_error *error)
{
    const int64_t now = wb_pipeline_now(p);
    wb_claim claim = { id, size, 0 };
    uint64_t number = wb_batch_number_closed(now, 0);
    int r = claim_it(p, storage, number, &claim, error);
    if (r == WB_OK && claim.duplicate_of && wb_batch_number_is_closed(claim.duplicate_of) && !wb_bug("closed_once")) {
        number = wb_batch_number_closed(now, claim.duplicate_of);
        r = close_anew(p, storage, number, &claim, error);
    } else if (claim.duplicate_of) {
        number = claim.duplicate_of;
    }
    *ret_owner = number;
    return r;
}
