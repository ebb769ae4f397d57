/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the mysql persistence share: the plugin loaded as the host loads it,
 * an endpoint with its tables, and an observer's connection.
 */
#ifndef MYSQL_FIXTURE_H
#define MYSQL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <waybill/mysql.h>
#include <waybill/sys/persistence.h>

#include "core/base/error.h"
#include "plugins/persistence/mysql/mysql-options.h"

/* last: its macro "fail" would hide a member of handlers' contexts */
#include <cmocka.h>

extern const wb_plugin *plugin;
extern const wb_persistence_ops *ops;
extern const wb_mysql_api *api;
/** The last error of a call. */
extern wb_error failure;
/** Called at crash points, until reset to NULL. */
extern void (*at_crash_point)(const char *name);
/** The last warning that was logged, and how many. */
extern char warning[256];
extern int warnings;

/** An endpoint. Its host, configuration and info live as long as the test. */
typedef struct endpoint {
    mys_config config;
    wb_endpoint_info info;
    wb_persistence *persistence;
} endpoint;

/** Load the plugin; once a program. */
int load_plugin(void **state);
/** Defaults, but the server of the environment. */
void endpoint_init(endpoint *e, const char *name);
void endpoint_create(endpoint *e);
/** Create it, and return the class. */
int endpoint_try(endpoint *e);
/** init, create, install, on empty tables. */
void endpoint_install(endpoint *e, const char *name);
void endpoint_destroy(endpoint *e);

wb_storage_session *open_session(endpoint *e);
/** Begin a batch that claims these ids, WB_OK expected. */
void begin_claims(wb_storage_session *session, uint64_t batch, wb_claim *claims, size_t count);
/** Begin a batch without claims. */
void begin_batch(wb_storage_session *session, uint64_t batch);
/** Commit with operations (NULL: none); returns the class, fills *ret_failed_item. */
int commit_batch(wb_storage_session *session, uint64_t batch, const char *operations,
                 size_t *ret_failed_item);
wb_claim claim_of(const char *id);

/** The observer: a connection of the test's own. */
void observe(const char *statement);
/** Connect it anew, after the server was away. */
void connect_observer(void);
/** The one value a query yields, as a number. */
long long observe_number(const char *query);
/** Wait until the query yields this number, at most 10 s. */
void await_number(const char *query, long long wanted);
/** Wait until so many sessions of this test's database wait for a row lock. */
void await_waiting(long long wanted);

#endif
