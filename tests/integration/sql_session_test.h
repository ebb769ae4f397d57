/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers may do to the session, in a server's own words.
 */
#ifndef SQL_SESSION_TEST_H
#define SQL_SESSION_TEST_H

#include <stddef.h>

struct wb_storage_session;
struct proxy;

/** Statements that end the transaction, one text each. */
typedef struct session_ending {
    const char *texts[3];
    int is_committed; /* what was done before */
    int is_late;      /* it shows at the commit only */
    int is_unnamed;   /* and nobody knows whose handler it was */
} session_ending;

/** A statement that leaves something behind, and a query that yields what is looked at as a
 *  number. */
typedef struct session_setting {
    const char *set;
    const char *query;
} session_setting;

extern const session_ending endings[];
extern const size_t ending_count;
extern const session_setting settings[];
extern const size_t setting_count;
/** Texts that use savepoints, and end nothing. */
extern const char *const savepoints[];
extern const size_t savepoint_count;

/** For tests of one server: the set-up of all, and what holds in any variant. */
int set_up_session(void **state);
int tear_down_session(void **state);
void test_endings(void **state);
void test_endings_without_claims(void **state);
void test_savepoints_are_legal(void **state);

/** Put a proxy between. */
struct proxy *start_proxy(server_config *config);
/** Before and after each test: what the settings need. */
void make_settings(void);
void drop_settings(void);
/** Run texts up to NULL on one plain connection. @return the one that failed, or NULL. */
const char *run_all(struct wb_storage_session *session, size_t item, const char *const texts[3]);
/** What a query on the plain connection yields. */
long long query_number(struct wb_storage_session *session, size_t item, const char *query);

#endif
