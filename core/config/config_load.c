/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/configuration.h"
#include "core/config/config_http.h"
#include "core/config/config_policies.h"
#include "core/config/config_types.h"
#include "core/config/units.h"

#define SUBJECT_SIZE 512

static const char *const top_groups[] = { "endpoints", "http", "console", NULL };
static const char *const endpoint_groups[] = { "transport", "persistence", "outbox",
                                               "recoverability", "delayed_delivery", "audit", "session",
                                               "failures", "types", "observer", NULL };

static const char *const recoverability_groups[] = { "types", NULL };
static const char *const outbox_groups[] = { "deduplication", NULL };
static const char *const deduplication_groups[] = { "store", NULL };

/* One endpoint while it is read. */
typedef struct {
    wb_config *config;
    wb_problems *problems;
    const wb_conf_node *node;
    wb_endpoint_config *endpoint;
    char subject[SUBJECT_SIZE];
} reading;

static wb_option_scope scope_of(wb_config *config, wb_problems *problems, const char *subject,
                                const char *const *elsewhere)
{
    return (wb_option_scope){ &config->arena, &config->secrets, problems, subject, elsewhere };
}

static int64_t default_concurrency(void)
{
    cpu_set_t cpus;
    int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
    return count > 2 ? count : 2;
}

static void read_section(const reading *r, int section, const wb_conf_node *group,
                         const char *const *elsewhere)
{
    const wb_config_section *table = &wb_config_sections[section];
    wb_option_scope scope = scope_of(r->config, r->problems, r->subject, elsewhere);
    wb_conf_origin *origins =
        wb_arena_alloc(&r->config->arena, table->option_count * sizeof *origins);

    (void)wb_options_parse(&scope, table->options, table->option_count, sizeof *table->options,
                           group, group ? group->at : r->node->at, r->endpoint, origins);
    r->endpoint->origins[section] = origins;
}

static void read_recoverability(const reading *r)
{
    const wb_conf_node *group = wb_conf_child(r->node, "recoverability");
    wb_option_scope scope = scope_of(r->config, r->problems, r->subject, NULL);
    read_section(r, WB_SECTION_RECOVERABILITY, group, recoverability_groups);
    if (group && group->type == WB_CONF_GROUP)
        wb_config_read_policies(&scope, wb_conf_child(group, "types"), r->endpoint);
}

static void read_way(const reading *r, const char *way, wb_conf_origin at)
{
    wb_endpoint_config *endpoint = r->endpoint;
    if (strcmp(way, "id") == 0)
        endpoint->outbox.by_id = 1;
    else if (strcmp(way, "position") == 0)
        endpoint->outbox.by_position = 1;
    else
        wb_problems_add(r->problems, WB_LOG_ERROR, at,
                        "%soption \"outbox.deduplication.by\" holds \"%.80s\"; it may hold \"id\" and \"position\"",
                        r->subject, way);
}

static void read_ways(const reading *r)
{
    const wb_option_list *by = r->endpoint->outbox.by;
    const wb_conf_origin at = WB_CONFIG_ORIGIN(r->endpoint, outbox.by);
    for (size_t i = 0; by && i < by->count; i++)
        read_way(r, by->values[i], at);
    if (!at.is_set)
        r->endpoint->outbox.by_id = 1;
    else if (by && !by->count)
        wb_problems_add(r->problems, WB_LOG_ERROR, at,
                        "%soption \"outbox.deduplication.by\" is empty: nothing would know a message that came before; "
                        "write by = [\"id\"];, or [\"id\", \"position\"]",
                        r->subject);
}

/* Only the name: its options have to wait for the plugin's table. */
static wb_plugin_choice read_plugin(const reading *r, const wb_conf_node *node, const char *group_name, int is_required)
{
    const wb_conf_node *group = wb_conf_child(node, group_name);
    wb_plugin_choice choice = { NULL, group, group ? group->at : r->node->at };
    choice.at.is_set = group != NULL;

    if (!group && is_required)
        wb_problems_add(r->problems, WB_LOG_ERROR, choice.at,
                        "%sgroup \"%s\" is missing: write %s = { plugin = \"NAME\"; ... };",
                        r->subject, group_name, group_name);
    if (!group)
        return choice;
    const wb_conf_node *plugin =
        group->type == WB_CONF_GROUP ? wb_conf_child(group, "plugin") : NULL;
    if (plugin && plugin->type == WB_CONF_STRING)
        choice.plugin = plugin->string;
    else
        wb_problems_add(r->problems, WB_LOG_ERROR, plugin ? plugin->at : group->at,
                        "%sgroup \"%s\" names no plugin: write %s = { plugin = \"NAME\"; ... };",
                        r->subject, group_name, group_name);
    return choice;
}

static void read_outbox(const reading *r)
{
    const wb_conf_node *group = wb_conf_child(r->node, "outbox");
    const wb_conf_node *deduplication = group && group->type == WB_CONF_GROUP ? wb_conf_child(group, "deduplication") : NULL;
    read_section(r, WB_SECTION_OUTBOX, group, outbox_groups);
    read_section(r, WB_SECTION_DEDUPLICATION, deduplication, deduplication_groups);
    read_ways(r);
    if (deduplication && deduplication->type == WB_CONF_GROUP)
        r->endpoint->outbox.store = read_plugin(r, deduplication, "store", 0);
}

int wb_config_is_name(const char *name)
{
    size_t size = strlen(name);
    for (const char *c = name; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("\"'`\\", *c))
            return 0;
    return size >= 1 && size <= WB_ENDPOINT_NAME_MAX;
}

static void check_name(const reading *r, const char *option, const char *name, wb_conf_origin at)
{
    if (!wb_config_is_name(name))
        wb_problems_add(r->problems, WB_LOG_ERROR, at,
                        "%soption \"%s\" = \"%.*s\" is not a name (1 to %d printable ASCII "
                        "characters without blanks, quotes, back-quotes and backslashes)",
                        r->subject, option, 2 * WB_ENDPOINT_NAME_MAX, name, WB_ENDPOINT_NAME_MAX);
}

/* RabbitMQ has two addresses for a queue, its name and queue:NAME. */
static int is_same_queue(const char *one, const char *other)
{
    static const char prefix[] = "queue:";
    const size_t size = sizeof prefix - 1;
    return strcmp(strncmp(one, prefix, size) == 0 ? one + size : one,
                  strncmp(other, prefix, size) == 0 ? other + size : other) == 0;
}

static int is_error_queue(const wb_endpoint_config *endpoint, const char *queue)
{
    for (size_t i = 0; i < endpoint->recoverability.type_count; i++) {
        const char *own = endpoint->recoverability.types[i].error_queue;
        if (own && is_same_queue(queue, own))
            return 1;
    }
    return is_same_queue(queue, endpoint->recoverability.error_queue);
}

static int receives_from(const wb_endpoint_config *endpoint, const char *queue)
{
    const char *const *further;
    const size_t count = wb_config_further_queues(endpoint, &further);
    int is_one = is_same_queue(queue, endpoint->name) || is_same_queue(queue, wb_config_queue(endpoint));
    for (size_t i = 0; !is_one && i < count; i++)
        is_one = is_same_queue(queue, further[i]);
    return is_one;
}

/* A queue whose copies would come back, or pass for failures. */
static void check_audit_queue(const reading *r)
{
    const wb_endpoint_config *endpoint = r->endpoint;
    const char *queue = endpoint->audit.queue;
    wb_conf_origin at = WB_CONFIG_ORIGIN(endpoint, audit.queue);
    if (!queue)
        return;
    check_name(r, "audit.queue", queue, at);
    if (receives_from(endpoint, queue) || is_error_queue(endpoint, queue))
        wb_problems_add(r->problems, WB_LOG_ERROR, at,
                        "%soption \"audit.queue\" = \"%s\" is the endpoint's own queue or its error "
                        "queue, or a type's; use another name",
                        r->subject, queue);
}

const char *wb_config_queue(const wb_endpoint_config *endpoint)
{
    const wb_option_list *from = endpoint->failures.from;
    return from && from->count ? from->values[0] : endpoint->name;
}

size_t wb_config_further_queues(const wb_endpoint_config *endpoint, const char *const **ret_queues)
{
    const wb_option_list *from = endpoint->failures.from;
    const size_t count = from && from->count ? from->count - 1 : 0;
    *ret_queues = count ? from->values + 1 : NULL;
    return count;
}

static void check_error_queue(const reading *r, const char *error_queue, wb_conf_origin at)
{
    check_name(r, "error_queue", error_queue, at);
    if (receives_from(r->endpoint, error_queue))
        wb_problems_add(r->problems, WB_LOG_ERROR, at,
                        "%soption \"error_queue\" = \"%s\" is the endpoint's own queue: failed "
                        "messages would come back for ever; use another name",
                        r->subject, error_queue);
}

static void check_error_queues(const reading *r)
{
    const wb_endpoint_config *endpoint = r->endpoint;
    check_error_queue(r, endpoint->recoverability.error_queue, WB_CONFIG_ORIGIN(endpoint, recoverability.error_queue));
    for (size_t i = 0; i < endpoint->recoverability.type_count; i++)
        if (endpoint->recoverability.types[i].error_queue)
            check_error_queue(r, endpoint->recoverability.types[i].error_queue, endpoint->recoverability.types_at[i]);
}

static void read_session(const reading *r)
{
    wb_endpoint_config *endpoint = r->endpoint;
    const wb_conf_node *group = wb_conf_child(r->node, "session");
    read_section(r, WB_SECTION_SESSION, group, NULL);
    endpoint->session.at = group ? group->at : r->node->at;
    endpoint->session.at.is_set = group != NULL;
    if (endpoint->session.processor_endpoint)
        check_name(r, "session.processor_endpoint", endpoint->session.processor_endpoint,
                   WB_CONFIG_ORIGIN(endpoint, session.processor_endpoint));
}

/* What fails here must not come back here; and a delayed retry would hold up nobody but a person who waits. */
static void set_defaults_of_failures(const reading *r)
{
    wb_endpoint_config *endpoint = r->endpoint;
    wb_arena *arena = &r->config->arena;
    char name[WB_ENDPOINT_NAME_MAX + sizeof ".error"];
    const int size = snprintf(name, sizeof name, "%s.error", endpoint->name);
    if (!WB_CONFIG_ORIGIN(endpoint, recoverability.error_queue).is_set && size > 0 && (size_t)size < sizeof name)
        endpoint->recoverability.error_queue = wb_arena_copy(arena, name, (size_t)size);
    if (!WB_CONFIG_ORIGIN(endpoint, recoverability.delayed_retries).is_set)
        endpoint->recoverability.delayed_retries = 0;
}

static void check_queue(const reading *r, const wb_option_list *from, size_t at, wb_conf_origin origin)
{
    check_name(r, "failures.from", from->values[at], origin);
    for (size_t i = 0; i < at; i++)
        if (is_same_queue(from->values[i], from->values[at]))
            wb_problems_add(r->problems, WB_LOG_ERROR, origin, "%soption \"failures.from\" names queue \"%s\" twice; once is "
                            "enough", r->subject, from->values[at]);
}

static void check_queues(const reading *r)
{
    const wb_option_list *from = r->endpoint->failures.from;
    const wb_conf_origin origin = WB_CONFIG_ORIGIN(r->endpoint, failures.from);
    if (!from)
        return;
    if (!from->count || from->count > WB_QUEUES_MAX + 1)
        wb_problems_add(r->problems, WB_LOG_ERROR, origin,
                        "%soption \"failures.from\" names %zu queues: an endpoint keeps the failures of 1 to %u error queues; "
                        "%s",
                        r->subject, from->count, WB_QUEUES_MAX + 1,
                        from->count ? "write another endpoint for the rest" : "write from = [\"error\"];");
    for (size_t i = 0; i < from->count; i++)
        check_queue(r, from, i, origin);
}

static void read_failures(const reading *r)
{
    wb_endpoint_config *endpoint = r->endpoint;
    const wb_conf_node *group = wb_conf_child(r->node, "failures");
    endpoint->failures.at = group ? group->at : r->node->at;
    endpoint->failures.at.is_set = group != NULL;
    if (!group)
        return;
    read_section(r, WB_SECTION_FAILURES, group, NULL);
    check_queues(r);
    set_defaults_of_failures(r);
}

static void check_names(const reading *r)
{
    const wb_endpoint_config *endpoint = r->endpoint;

    if (*endpoint->name || wb_conf_child(r->node, "name"))
        check_name(r, "name", endpoint->name, WB_CONFIG_ORIGIN(endpoint, name));
    check_error_queues(r);
    check_audit_queue(r);
    for (const wb_endpoint_config *other = r->config->endpoints; other < endpoint; other++)
        if (*endpoint->name && strcmp(other->name, endpoint->name) == 0)
            wb_problems_add(r->problems, WB_LOG_ERROR, WB_CONFIG_ORIGIN(endpoint, name),
                            "%sthis name was used in %s:%d already; give each endpoint its own",
                            r->subject, other->at.file, other->at.line);
}

/* Who hears of a slow handler can still do something. */
static void check_handler_timeout(const reading *r)
{
    const wb_endpoint_config *endpoint = r->endpoint;
    char timeout[WB_UNIT_TEXT_SIZE], slow[WB_UNIT_TEXT_SIZE];
    if (!endpoint->handler_timeout || endpoint->handler_timeout > endpoint->slow_handler)
        return;
    wb_problems_add(r->problems, WB_LOG_ERROR, WB_CONFIG_ORIGIN(endpoint, handler_timeout),
                    "%soption \"handler_timeout\" = \"%s\" is not longer than slow_handler (%s); choose a longer one, or a "
                    "shorter slow_handler",
                    r->subject, wb_duration_format(endpoint->handler_timeout, timeout),
                    wb_duration_format(endpoint->slow_handler, slow));
}

static void read_handlers(const reading *r)
{
    const wb_conf_node *node = wb_conf_child(r->node, "handlers");
    const wb_option_list *list = r->endpoint->handler_list;
    size_t count = list ? list->count : 0;
    wb_handler_choice *handlers =
        wb_arena_alloc(&r->config->arena, (count + 1) * sizeof *handlers);

    for (size_t i = 0; i < count; i++) {
        /* the list skips wrong elements; then only errors will be shown anyway */
        handlers[i].path = list->values[i];
        handlers[i].at = node->children[i].at;
        if (!*handlers[i].path)
            wb_problems_add(r->problems, WB_LOG_ERROR, handlers[i].at,
                            "%soption \"handlers\" holds an empty path", r->subject);
    }
    r->endpoint->handlers = handlers;
    r->endpoint->handler_count = count;
}

static void read_settings(const reading *r)
{
    const wb_option_map *map = r->endpoint->setting_map;
    const size_t count = map ? map->count : 0;
    wb_setting_entry *settings = wb_arena_alloc(&r->config->arena, (count + 1) * sizeof *settings);
    for (size_t i = 0; i < count; i++)
        settings[i] = (wb_setting_entry){ map->names[i], map->values[i] };
    r->endpoint->settings = settings;
    r->endpoint->setting_count = count;
}

static void set_subject(reading *r, size_t index)
{
    const wb_conf_node *name = wb_conf_child(r->node, "name");
    if (name && name->type == WB_CONF_STRING)
        (void)snprintf(r->subject, sizeof r->subject, "endpoint \"%.*s\": ",
                       2 * WB_ENDPOINT_NAME_MAX, name->string);
    else
        (void)snprintf(r->subject, sizeof r->subject, "endpoint %zu: ", index + 1);
}

static void read_endpoint(wb_config *config, wb_problems *problems, const wb_conf_node *node,
                          size_t index)
{
    reading r = { .config = config, .problems = problems, .node = node };
    size_t errors_before = problems->error_count;
    wb_endpoint_config *endpoint = &config->endpoints[index];

    r.endpoint = endpoint;
    set_subject(&r, index);
    endpoint->at = node->at;
    read_section(&r, WB_SECTION_ENDPOINT, node, endpoint_groups);
    read_outbox(&r);
    read_recoverability(&r);
    read_section(&r, WB_SECTION_DELAYED, wb_conf_child(node, "delayed_delivery"), NULL);
    endpoint->delayed_delivery.by++; /* the choices begin with the transport */
    if (WB_CONFIG_ORIGIN(endpoint, recoverability.on_failure).is_set)
        endpoint->recoverability.on_failure++; /* 0: as the order of keys wants it */
    read_section(&r, WB_SECTION_AUDIT, wb_conf_child(node, "audit"), NULL);
    read_session(&r);
    if (!endpoint->name)
        endpoint->name = "";
    read_failures(&r);
    if (!endpoint->concurrency)
        endpoint->concurrency = default_concurrency();
    check_names(&r);
    check_handler_timeout(&r);
    read_handlers(&r);
    read_settings(&r);
    wb_config_read_types(&config->arena, problems, r.subject, wb_conf_child(node, "types"),
                         &endpoint->types, &endpoint->type_count);
    endpoint->transport = read_plugin(&r, r.node, "transport", 1);
    endpoint->persistence = read_plugin(&r, r.node, "persistence", 0);
    endpoint->observer = read_plugin(&r, r.node, "observer", 0);
    endpoint->has_errors = problems->error_count != errors_before;
}

static void read_endpoints(wb_config *config, const wb_conf_node *root, wb_problems *problems)
{
    const wb_conf_node *list = wb_conf_child(root, "endpoints");
    if (!list || list->type != WB_CONF_LIST || !list->child_count) {
        wb_problems_add(problems, WB_LOG_ERROR, list ? list->at : root->at,
                        "there are no endpoints: write endpoints = ( { name = \"NAME\"; ... } );");
        return;
    }
    size_t size = list->child_count * sizeof *config->endpoints;
    config->endpoints = wb_arena_alloc(&config->arena, size);
    memset(config->endpoints, 0, size);
    for (size_t i = 0; i < list->child_count; i++) {
        const wb_conf_node *node = &list->children[i];
        if (node->type != WB_CONF_GROUP) {
            wb_problems_add(problems, WB_LOG_ERROR, node->at,
                            "element %zu of \"endpoints\" is not a group: write { name = ...; }",
                            i + 1);
            continue;
        }
        read_endpoint(config, problems, node, config->endpoint_count++);
    }
}

static void read_log_file(wb_config *config, const wb_conf_node *root)
{
    if (!config->log_file)
        return;
    config->log_file_at = wb_conf_child(root, "log_file")->at;
    config->log_file = wb_conf_absolute(&config->arena, config->log_file_at, config->log_file);
}

static void read_top(wb_config *config, const wb_conf_node *root, wb_problems *problems)
{
    const wb_config_section *table = &wb_config_sections[WB_SECTION_TOP];
    wb_option_scope scope = scope_of(config, problems, "", top_groups);

    (void)wb_options_parse(&scope, table->options, table->option_count, sizeof *table->options,
                           root, root->at, config, NULL);
    read_log_file(config, root);
    if (!config->plugin_path_list)
        return;
    const wb_option_list *list = config->plugin_path_list;
    const char **paths = wb_arena_alloc(&config->arena, (list->count + 1) * sizeof *paths);
    wb_conf_origin at = wb_conf_child(root, "plugin_path")->at;
    for (size_t i = 0; i < list->count; i++)
        paths[i] = wb_conf_path(&config->arena, at, list->values[i]);
    config->plugin_path = paths;
    config->plugin_path_count = list->count;
}

static void release_config(void *config)
{
    wb_config_free(config);
}

wb_config *wb_config_load(const char *path, wb_problems *problems)
{
    wb_config *config = wb_alloc_zero(1, sizeof *config);
    wb_memory_held held;
    wb_arena_init(&config->arena, 16384);
    wb_memory_hold(&held, release_config, config);
    config->path = wb_arena_copy(&config->arena, path, strlen(path));
    const wb_conf_node *root = wb_conf_read(&config->arena, path, problems);
    if (root) {
        read_top(config, root, problems);
        wb_config_read_http(config, root, problems);
        wb_config_read_console(config, root, problems);
        read_endpoints(config, root, problems);
    }
    wb_memory_let_go(&held);
    if (root)
        return config;
    wb_config_free(config);
    return NULL;
}

void wb_config_free(wb_config *config)
{
    if (!config)
        return;
    wb_secrets_wipe(&config->secrets);
    wb_arena_free(&config->arena);
    free(config);
}

const wb_endpoint_config *wb_config_endpoint(const wb_config *config, const char *name)
{
    for (size_t i = 0; i < config->endpoint_count; i++)
        if (strcmp(config->endpoints[i].name, name) == 0)
            return &config->endpoints[i];
    return NULL;
}

static int sends_to(const wb_endpoint_config *endpoint, const char *queue)
{
    return is_error_queue(endpoint, queue) || (endpoint->audit.queue && is_same_queue(queue, endpoint->audit.queue));
}

const wb_endpoint_config *wb_config_user_of(const wb_config *config, const char *queue)
{
    for (size_t i = 0; i < config->endpoint_count; i++)
        if (sends_to(&config->endpoints[i], queue))
            return &config->endpoints[i];
    return NULL;
}

int wb_config_uses(const wb_endpoint_config *endpoint, const char *queue)
{
    return receives_from(endpoint, queue) || sends_to(endpoint, queue);
}

wb_conf_origin wb_config_origin(const wb_endpoint_config *endpoint, size_t offset)
{
    for (int section = WB_SECTION_ENDPOINT; section < WB_SECTION_HTTP; section++) {
        const wb_config_section *table = &wb_config_sections[section];
        for (size_t i = 0; endpoint->origins[section] && i < table->option_count; i++)
            if (table->options[i].offset == offset)
                return endpoint->origins[section][i];
    }
    return endpoint->at;
}
