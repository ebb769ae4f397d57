/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: what the cases of forget() and of remember() share (deduplication apart from the outbox).
 */
#ifndef WB_CONFORMANCE_APART_H
#define WB_CONFORMANCE_APART_H

#include "conformance/persistence/persistence.h"

#define PENDING "pending"
#define PENDING_SIZE (sizeof PENDING - 1)
/* An id, and the batch of its record. */
#define OF(text, batch) ((wb_claim){ (text), sizeof(text) - 1, (batch) })

/** find() answers for each what its duplicate_of says. */
int wb_client_find_all(wb_client *client, const wb_claim *expected, size_t count);
int wb_client_finds(wb_client *client, const char *id, uint64_t owner);

#define MANY 1200 /* more than a statement of ours holds */
/** Ids in ascending order, freed with the case. */
wb_claim *wb_ids_make_many(wb_kit *kit);

#define ODD 20
/** What some database takes for another: in case, blanks, NUL bytes, UUIDs, at full length; ascending. */
void wb_ids_make_odd(wb_claim claims[ODD]);

#endif
