/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets: values that the configuration names instead of holding, and the list of
 * those that must be wiped.
 *
 *   password = "env:AMQP_PASSWORD"       the environment variable
 *   password = "file:/run/secrets/amqp"  a file's content without one trailing newline;
 *                                        a relative path starts at the directory of the
 *                                        configuration file that says so
 *
 * A secret file must be a regular file, owned by root or the effective user, writable by
 * its owner only and not accessible to others (mode 0600, 0400, or 0640 with a group of
 * its own), at most 64 KiB, without NUL bytes.
 */
#ifndef WB_CONFIG_SECRET_H
#define WB_CONFIG_SECRET_H

#include <stddef.h>

#include "core/config/conf_node.h"

typedef struct wb_secrets {
    char **values;
    size_t count;
} wb_secrets; /* all zero is empty */

/** Whether a value is a reference: starts with "env:" or "file:". */
int wb_secret_is_reference(const char *text);

/** Read what a reference names. The value is allocated in `arena` and remembered in
 *  `secrets`. `at` is where the reference stands.
 *  @return the value, or NULL with the reason, and never the value, in `reason`. */
const char *wb_secret_resolve(wb_secrets *secrets, wb_arena *arena, wb_conf_origin at,
                              const char *reference, char *reason, size_t reason_size);

/** What the file of that path holds, as "file:PATH" has it. @return NULL with the reason. */
const char *wb_secret_read(wb_secrets *secrets, wb_arena *arena, const char *path, char *reason, size_t reason_size);

/** Read a file that others may read and nobody else write: a certificate.
 *  @return its content, in `arena`, or NULL with the reason. */
const char *wb_public_read(wb_arena *arena, const char *path, char *reason, size_t reason_size);

/** Remember a value that must be wiped. The value stays where it is. */
void wb_secrets_remember(wb_secrets *secrets, char *value);

/** Overwrite every value and forget it; before the arena is freed. */
void wb_secrets_wipe(wb_secrets *secrets);

#endif
