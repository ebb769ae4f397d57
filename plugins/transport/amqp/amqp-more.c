/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-more.h"

#include <string.h>
#include <waybill/sys/types.h>

#include "plugins/common/types_of.h"

static void add(wb_amqp_more *more, amqp_bytes_t key)
{
    if (more->count < sizeof more->keys / sizeof more->keys[0])
        more->keys[more->count++] =
            (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = key };
}

/* Whether a binding to a key and what is derived would be met. */
static int meets(const char *key, const char *wanted)
{
    size_t size = strlen(wanted);
    return strncmp(key, wanted, size) == 0 && (key[size] == '\0' || key[size] == '.');
}

static int is_met(const char *key, const char *wanted)
{
    for (const char *at = key; at; at = strchr(at, '.')) {
        at += *at == '.';
        if (meets(at, wanted))
            return 1;
    }
    return 0;
}

/* By what this endpoint would bind a type, if it handled it. */
static void add_known(const wb_endpoint_info *endpoint, const wb_amqp_config *config, const char *type,
                      const char *key, wb_amqp_more *more)
{
    const char *bases = wb_amqp_bases_configured(endpoint, type);
    if (more->text_count == sizeof more->text / sizeof more->text[0])
        return;
    char *text = more->text[more->text_count];
    if (wb_amqp_event_key(config, type, bases, text) || is_met(key, text))
        return;
    more->text_count++;
    add(more, amqp_cstring_bytes(text));
}

void wb_amqp_more_make(const wb_endpoint_info *endpoint, const wb_amqp_config *config,
                       const wb_operation *operation, const char *key, wb_amqp_more *ret_more)
{
    const char *types = wb_common_types_of(operation);
    char type[WB_TYPE_SIZE];
    size_t size;
    ret_more->count = ret_more->text_count = 0;
    for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.'))
        add(ret_more, amqp_cstring_bytes(dot + 1));
    while (wb_type_next(&types, type, &size))
        add_known(endpoint, config, type, key, ret_more);
}
