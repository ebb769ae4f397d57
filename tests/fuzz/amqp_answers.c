/* SPDX-License-Identifier: Apache-2.0
 *
 * What RabbitMQ says of a queue in words and in JSON, what a configuration calls its hosts, and
 * names that a peer gives.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/message/text.h"
#include "plugins/transport/amqp/amqp-arguments.h"
#include "plugins/transport/amqp/amqp-hosts.h"
#include "plugins/transport/amqp/amqp-management.h"
#include "plugins/transport/amqp/amqp-names.h"
#include "plugins/transport/amqp/amqp-queue.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "amqp_answers";

/* ---- refusals ----------------------------------------------------------------------------- */

static void write_refusal(const wb_amqp_argument *argument, const char *type, char *text, size_t size)
{
    (void)snprintf(text, size,
                   "PRECONDITION_FAILED - inequivalent arg '%s' for queue 'q' in vhost '/': received none but "
                   "current is the value '%s' of type '%s'",
                   argument->name, argument->text, type);
}

/* What was read, in the broker's words, reads the same. */
static void try_refusal(const char *text)
{
    wb_amqp_argument argument, again;
    wb_amqp_limit limit = { 0 };
    char words[1000];
    (void)wb_amqp_limit_read(text, &limit);
    if (!wb_amqp_argument_read(text, &argument))
        return;
    FUZZ_CHECK(strncmp(argument.name, "x-", 2) == 0 && strlen(argument.name) < sizeof argument.name);
    if (!argument.kind)
        return;
    write_refusal(&argument,
                  argument.kind == AMQP_FIELD_KIND_UTF8      ? "longstr"
                  : argument.kind == AMQP_FIELD_KIND_BOOLEAN ? "bool"
                                                             : "signedint",
                  words, sizeof words);
    FUZZ_CHECK(wb_amqp_argument_read(words, &again));
    FUZZ_CHECK(strcmp(again.name, argument.name) == 0 && strcmp(again.text, argument.text) == 0);
    FUZZ_CHECK(again.kind == argument.kind && again.number == argument.number);
}

static void try_management(const char *text, size_t size)
{
#ifdef HAVE_LIBCURL
    wb_amqp_managed_queue *queue = fuzz_alloc(sizeof *queue);
    const char *why = NULL;
    const int told = wb_amqp_management_read(text, size, queue);
    FUZZ_CHECK(told == 1 || queue->problem[0]);
    FUZZ_CHECK(queue->effective.count <= WB_AMQP_ARGUMENTS_MAX);
    (void)wb_amqp_arguments_broken(&queue->effective, 1, &why);
#else
    (void)text, (void)size;
#endif
}

/* ---- hosts -------------------------------------------------------------------------------- */

static void write_hosts(const wb_amqp_hosts *hosts, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        const char *name = hosts->list[i].name;
        const int has_colons = strchr(name, ':') != NULL;
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s:%d", i ? "," : "", has_colons ? "[" : "", name,
                                 has_colons ? "]" : "", hosts->list[i].port);
    }
}

static void try_hosts(const char *text)
{
    wb_amqp_config config = { .hosts = text, .tls = WB_AMQP_TLS_AUTO };
    wb_amqp_hosts *hosts = fuzz_alloc(sizeof *hosts), *again = fuzz_alloc(sizeof *again);
    const size_t room = WB_AMQP_HOSTS_MAX * (WB_AMQP_HOST_SIZE + 12);
    char *written = fuzz_alloc(room);
    if (wb_amqp_hosts_read(&config, hosts))
        return;
    FUZZ_CHECK(hosts->count >= 1 && hosts->count <= WB_AMQP_HOSTS_MAX);
    for (size_t i = 0; i < hosts->count; i++)
        FUZZ_CHECK(hosts->list[i].name[0] && hosts->list[i].port >= 1 && hosts->list[i].port <= 65535);
    write_hosts(hosts, written, room);
    config.hosts = written;
    FUZZ_CHECK(wb_amqp_hosts_read(&config, again) == NULL && memcmp(hosts, again, sizeof *hosts) == 0);
}

/* ---- names -------------------------------------------------------------------------------- */

/* Two readers of UTF-8, of the core and of the plugin, which knows nothing of it. */
static void try_name(const char *text)
{
    const size_t size = strlen(text);
    char *mended = fuzz_copy(text, size);
    FUZZ_CHECK((wb_amqp_name_problem(text) == NULL) ==
               (size > 0 && size <= WB_AMQP_SHORT_MAX && wb_text_is_plain(text, size)));
    (void)wb_text_mend(mended, size);
    for (size_t i = 0; i < size; i++)
        mended[i] = (unsigned char)mended[i] < 0x20 || mended[i] == 0x7f ? '?' : mended[i];
    FUZZ_CHECK(wb_text_is_plain(mended, size));
    FUZZ_CHECK(!wb_text_is_plain(text, size) || strcmp(text, mended) == 0);
}

void fuzz_one(const void *data, size_t size)
{
    const char *text = fuzz_copy(data, size);
    try_refusal(text);
    try_management(data, size);
    try_hosts(text);
    try_name(text);
}
