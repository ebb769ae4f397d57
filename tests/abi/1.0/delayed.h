/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed message store of this directory's persistence: in memory, under a lock of its own.
 */
#ifndef WB_TESTS_ABI_DELAYED_H
#define WB_TESTS_ABI_DELAYED_H

#include <waybill/sys/persistence.h>

extern const wb_delayed_ops memory_delayed;

/** Store what a commit brings, or store(). */
void memory_store_delayed(const wb_delayed *messages, size_t count);

/** The time; and a copy that free() takes. */
int64_t memory_now(void);
void *memory_copy(const void *bytes, size_t size);

#endif
