/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data, for the conformance kit of persistences: the kit cannot write what handlers write
 * without knowing the store. Whoever writes a persistence tells it how, in a shared object of a
 * page:
 *
 *     static const char *write(const void *interface, void *session, size_t item, const char *key)
 *     {
 *         const wb_mystore_api *api = interface;
 *         return my_put(api->handle(session, item), key) ? "could not put a key" : NULL;
 *     }
 *     ...
 *     static const wb_business business = { sizeof business, WB_MYSTORE_INTERFACE, prepare, write, read, end, remove };
 *     WB_BUSINESS(business)
 *
 *     waybill conformance persistence -c try.conf --business ./business.so
 *
 * With it the kit tries for every plugin whether what a handler does belongs to the batch's
 * transaction: it is there with the commit, and gone with whatever else becomes of it.
 *
 * The functions are those of a handler: they use the interface behind the plugin's header for
 * handlers (wb_persistence_ops.interface), with the session and the item it takes, on the session's
 * thread, inside of a transaction. They return NULL, or why it failed, in words that stay valid
 * until the next call of the thread.
 *
 * Links nothing of Waybill. Change log: 1.0 first version.
 */
#ifndef WAYBILL_SYS_BUSINESS_H
#define WAYBILL_SYS_BUSINESS_H

#include <stddef.h>
#include <waybill/sys/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ways to end a transaction. Append-only. */
#define WB_BUSINESS_COMMIT 0         /* and be done */
#define WB_BUSINESS_COMMIT_BEGIN 1   /* commit, and begin another one in its place */
#define WB_BUSINESS_ROLLBACK_BEGIN 2 /* roll back, and begin another one in its place */

/** Size first, append-only. */
typedef struct wb_business {
    size_t struct_size;
    /** The name that the plugin's interface() is asked for. */
    const char *interface_name;
    /** Make the place for keys, a table say, unless it is there. In a transaction of its own that is
     *  committed, if it has not ended by then. NULL: there is nothing to make. */
    const char *(*prepare)(const void *interface, void *session, size_t item);
    /** Write a key that is not there: 1 to 64 characters, letters, digits and '-'. */
    const char *(*write)(const void *interface, void *session, size_t item, const char *key);
    /** Whether a key is there: *ret_is_there is 1 or 0. */
    const char *(*read)(const void *interface, void *session, size_t item, const char *key,
                        int *ret_is_there);
    /** Do what handlers may not: end the transaction, in the way that is said, with the statements a
     *  handler would use. A store that does not let them says why, and then has it whole, or undone; a way
     *  that the module does not know it refuses in the same manner, without having touched anything. What begins
     *  anew does so whatever became of the end, as a handler that looks at no result. NULL where the
     *  interface gives no way to. */
    const char *(*end)(const void *interface, void *session, size_t item, int way);
    /** Remove a key that is there: what a case has written is removed when it is over, unless it failed. NULL where the
     *  interface gives no way to: then all keys stay, some hundred each run. */
    const char *(*remove)(const void *interface, void *session, size_t item, const char *key);
} wb_business;

/** Define the entry point, once a shared object, at file level. */
#ifdef __cplusplus
#define WB_BUSINESS_LINKAGE extern "C"
#else
#define WB_BUSINESS_LINKAGE
#endif
#define WB_BUSINESS(descriptor)                                                                    \
    WB_BUSINESS_LINKAGE WB_PUBLIC const wb_business *wb_business_entry(void);                      \
    const wb_business *wb_business_entry(void)                                                     \
    {                                                                                              \
        return &(descriptor);                                                                      \
    }

#ifdef __cplusplus
}
#endif
#endif
