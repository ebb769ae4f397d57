/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-route.h"

#include <string.h>
#include <waybill/sys/types.h>

#include "plugins/common/types_of.h"

#define QUEUE_PREFIX "queue:"

const char *wb_amqp_address_queue(const char *address)
{
    size_t size = sizeof QUEUE_PREFIX - 1;
    return strncmp(address, QUEUE_PREFIX, size) == 0 ? address + size : address;
}

/* ---- events, conventional -------------------------------------------------------- */

/* A name holds dots only between its namespaces: those behind a '+' are in the type's own. */
static const char *own_name(const char *type, size_t size, const char **ret_space_end)
{
    const char *nested = memchr(type, '+', size);
    const char *dot = memrchr(type, '.', nested ? (size_t)(nested - type) : size);
    const char *plus = nested ? memrchr(nested, '+', size - (size_t)(nested - type)) : NULL;
    *ret_space_end = dot ? dot : type;
    if (plus)
        return plus + 1;
    return dot ? dot + 1 : type;
}

int wb_amqp_event_exchange(const char *type, char ret_name[WB_AMQP_NAME_SIZE])
{
    const char *space_end;
    size_t size = strcspn(type, ",["); /* .NET leaves out what a generic type is of */
    while (size && type[size - 1] == ' ')
        size--;
    if (size == 0 || size + 1 >= WB_AMQP_NAME_SIZE)
        return 0;
    const char *name = own_name(type, size, &space_end);
    size_t space = (size_t)(space_end - type);
    size_t name_size = size - (size_t)(name - type);
    memcpy(ret_name, type, space);
    ret_name[space] = ':';
    memcpy(ret_name + space + 1, name, name_size);
    ret_name[space + 1 + name_size] = '\0';
    return 1;
}

static const char *copy_name(const char *name, char ret_name[WB_AMQP_NAME_SIZE])
{
    const char *problem = wb_amqp_name_problem(name);
    if (!problem)
        memcpy(ret_name, name, strlen(name) + 1);
    return problem;
}

/* ---- events, direct -------------------------------------------------------------- */

/* Whether a key has that word. */
static int has_word(const char *key, const char *word, size_t size)
{
    for (const char *at = key; *at; at += *at == '.') {
        size_t length = strcspn(at, ".");
        if (length == size && memcmp(at, word, size) == 0)
            return 1;
        at += length;
    }
    return 0;
}

/* The broker reads a word that is one of two characters as a pattern. */
static const char *word_problem(const char *name)
{
    if (strcmp(name, "#") == 0 || strcmp(name, "*") == 0)
        return "it is a pattern";
    return wb_amqp_name_problem(name);
}

/* @return 0 when there is no room in front. */
static int put_word(char key[WB_AMQP_NAME_SIZE], const char *name, size_t size)
{
    char word[WB_TYPE_SIZE];
    size_t used = strlen(key);
    for (size_t i = 0; i < size; i++)
        word[i] = (char)(name[i] == '.' ? '-' : name[i]);
    if (has_word(key, word, size))
        return 1;
    if (size + 1 + used >= WB_AMQP_NAME_SIZE)
        return 0;
    memmove(key + size + (used > 0), key, used + 1);
    memcpy(key, word, size);
    if (used)
        key[size] = '.';
    return 1;
}

/* The key that is configured for a type, or NULL. */
static const char *find_key(const wb_amqp_config *config, const char *type, size_t size)
{
    const wb_option_list *keys = config->routing_keys;
    for (size_t i = 0; keys && i < keys->count; i++)
        if (strcspn(keys->values[i], "=") == size && memcmp(keys->values[i], type, size) == 0)
            return keys->values[i] + size + 1;
    return NULL;
}

const char *wb_amqp_event_key(const wb_amqp_config *config, const char *type, const char *types,
                              char ret_key[WB_AMQP_NAME_SIZE])
{
    char name[WB_TYPE_SIZE];
    size_t size;
    ret_key[0] = '\0';
    if (!wb_type_next(&type, name, &size))
        return "1 to 254 bytes";
    const char *key = find_key(config, name, size);
    if (key)
        return copy_name(key, ret_key);
    if (!put_word(ret_key, name, size))
        return "1 to 254 bytes";
    const char *problem = word_problem(name);
    while (!problem && types && wb_type_next(&types, name, &size)) {
        if (!word_problem(name) && !put_word(ret_key, name, size))
            problem = "with its bases it is longer than 255 bytes";
    }
    return problem;
}

const char *wb_amqp_bases_configured(const wb_endpoint_info *endpoint, const char *type)
{
    char wanted[WB_TYPE_SIZE], name[WB_TYPE_SIZE];
    size_t size;
    if (!WB_HAS(endpoint, wb_endpoint_info, derived_count) || !wb_type_next(&type, wanted, &size))
        return NULL;
    for (size_t i = 0; i < endpoint->derived_count; i++) {
        const char *list = endpoint->derived[i];
        if (wb_type_next(&list, name, &size) && strcmp(name, wanted) == 0)
            return endpoint->derived[i];
    }
    return NULL;
}

/* ---- the option ------------------------------------------------------------------ */

static const char *problem_of(const char *value)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value)
        return "write TYPE=KEY, with the type's full name without assemblies";
    if (strlen(equals + 1) + sizeof WB_AMQP_AND_DERIVED > WB_AMQP_NAME_SIZE)
        return "a key has 253 bytes at most";
    return wb_amqp_name_problem(equals + 1);
}

int wb_amqp_route_check(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    const wb_option_list *keys = config->routing_keys;
    if (keys && keys->count && config->topology != WB_AMQP_TOPOLOGY_DIRECT)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "routing_keys are of no use without topology = \"direct\"");
    for (size_t i = 0; keys && i < keys->count; i++) {
        const char *problem = problem_of(keys->values[i]);
        if (problem)
            return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                              "routing_keys holds \"%s\": %s", keys->values[i], problem);
    }
    return WB_OK;
}

/* ---- operations ------------------------------------------------------------------ */

static const char *route_event(const wb_amqp_config *config, const wb_operation *operation, const char *type,
                               wb_amqp_route *route)
{
    if (config->topology == WB_AMQP_TOPOLOGY_DIRECT) {
        memcpy(route->exchange, WB_AMQP_EVENTS, sizeof WB_AMQP_EVENTS);
        return wb_amqp_event_key(config, type, wb_common_types_of(operation), route->key);
    }
    return wb_amqp_event_exchange(type, route->exchange) ? wb_amqp_name_problem(route->exchange)
                                                         : "1 to 254 bytes";
}

/* An empty destination would be the default exchange, where addresses mean nothing. */
const char *wb_amqp_route_make(const wb_amqp_config *config, const wb_operation *operation,
                               wb_amqp_route *ret_route)
{
    const char *destination = operation->destination ? operation->destination : "";
    const char *queue = wb_amqp_address_queue(destination);
    ret_route->exchange[0] = ret_route->key[0] = '\0';
    if (operation->kind == WB_OPERATION_PUBLISH)
        return route_event(config, operation, destination, ret_route);
    if (config->topology == WB_AMQP_TOPOLOGY_DIRECT || queue != destination)
        return copy_name(queue, ret_route->key);
    return copy_name(destination, ret_route->exchange);
}
