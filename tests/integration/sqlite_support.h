/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the sqlite plugins share: both plugins loaded from the build tree,
 * driven through their SPI on a real file in a directory of the test's own. A failure of
 * anything here ends the test.
 */
#ifndef WB_TESTS_SQLITE_SUPPORT_H
#define WB_TESTS_SQLITE_SUPPORT_H

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <waybill/sqlite.h>
#include <waybill/sys/persistence.h>
#include <waybill/sys/transport.h>

#include "core/base/clock.h"
#include "core/base/host.h"

#include <cmocka.h> /* last: it has a macro "fail" */

/** One endpoint in this process: a transport instance and a persistence instance. */
typedef struct place {
    wb_host_instance host;
    wb_endpoint_info info;
    wb_error error;
    const wb_transport_ops *transport_ops;
    const wb_persistence_ops *persistence_ops;
    void *transport_config;
    void *persistence_config;
    wb_transport *transport;
    wb_persistence *persistence;
} place;

/** Make a directory; the path is to be freed. */
char *test_directory(void);
void test_remove(char *directory);
/** directory/name; to be freed. */
char *test_file(const char *directory, const char *name);

const wb_plugin *test_plugin(const char *kind);
/** A configuration with all defaults but `file`; to be freed. */
void *test_config(const wb_plugin *plugin, const char *file);
void test_config_set(const wb_plugin *plugin, void *config, const char *name, int64_t value);

/** `data` is the persistence's file, NULL: none. Not installed. */
void place_open(place *at, const char *endpoint, const char *const *types, const char *file,
                const char *data);
/** To a place that was opened without one; `info` may have been changed meanwhile. */
void place_add_persistence(place *at, const char *data);
void place_install(place *at);
void place_close(place *at);

wb_transport_session *place_session(place *at, uint32_t purpose);
wb_storage_session *place_storage(place *at);

wb_operation test_send(const char *queue, const void *id, size_t id_size, const void *body,
                       size_t body_size);
/** Send, all must be confirmed. */
void place_send(place *at, wb_transport_session *session, wb_operation *operations, size_t count);
/** Send `count` messages whose ids and bodies are numbers from `first` on. */
void place_send_numbers(place *at, wb_transport_session *session, const char *queue, int first,
                        int count);
/** Receive, waiting at most `milliseconds` for the first. @return how many. */
size_t place_receive(place *at, wb_transport_session *session, const wb_incoming **messages,
                     size_t max, int milliseconds);
void place_acknowledge(place *at, wb_transport_session *session, const wb_incoming **messages,
                       size_t count);
/** The number that place_send_numbers() gave a message. */
int test_number(const wb_incoming *message);

/** The value of a query on a file, through a connection of its own. */
int64_t test_query(const char *file, const char *sql);
void test_execute(const char *file, const char *sql);
int64_t test_messages(const char *file, const char *queue);

/** Run in a child process that was forked before anything was opened here. */
pid_t test_child(void (*run)(void *argument), void *argument);
/** @return the exit status, or minus the signal. */
int test_wait(pid_t child);

int64_t test_now(void);

#endif
