/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-identity.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PROCESSES_MAX 4096

void wb_kafka_identity_init(wb_kafka_identity *identity)
{
    memset(identity, 0, sizeof *identity);
    identity->socket = -1;
    (void)pthread_mutex_init(&identity->lock, NULL);
}

void wb_kafka_identity_destroy(wb_kafka_identity *identity)
{
    if (identity->socket >= 0)
        (void)close(identity->socket);
    (void)pthread_mutex_destroy(&identity->lock);
}

/* A name of an endpoint may be longer than a socket's: its end and a hash of it all. */
unsigned wb_kafka_hash(const char *text)
{
    unsigned value = 2166136261u; /* FNV-1a */
    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 16777619u;
    return value;
}

static int try_number(int socket, const char *endpoint, int number)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t size = strlen(endpoint);
    const char *end = size > 60 ? endpoint + size - 60 : endpoint;
    /* The leading NUL byte makes it abstract: no file, nothing to clean up. */
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                          "waybill/kafka/%s/%08x/%d", end, wb_kafka_hash(endpoint), number);
    return bind(socket, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length));
}

/* @return the number, or -1. */
static int hold_number(wb_kafka_identity *identity, const char *endpoint)
{
    identity->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (int number = 0; identity->socket >= 0 && number < PROCESSES_MAX; number++)
        if (try_number(identity->socket, endpoint, number) == 0)
            return number;
    if (identity->socket >= 0)
        (void)close(identity->socket);
    identity->socket = -1;
    return -1;
}

static int name_instance(wb_kafka_identity *identity, const char *endpoint, const char *configured)
{
    char host[65] = "";
    if (configured) {
        (void)snprintf(identity->instance, sizeof identity->instance, "%s", configured);
        return 1;
    }
    int number = hold_number(identity, endpoint);
    if (number < 0)
        return 0;
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(identity->instance, sizeof identity->instance, "%s-%d", host, number);
    return 1;
}

static int first_free(const wb_kafka_identity *identity)
{
    for (int slot = 0; slot < WB_KAFKA_SLOTS; slot++)
        if (!identity->slots[slot].taken)
            return slot;
    return -1;
}

int wb_kafka_identity_take(wb_kafka_identity *identity, const char *endpoint,
                           const char *configured, char ret_name[WB_KAFKA_NAME_SIZE])
{
    int slot = -1;
    (void)pthread_mutex_lock(&identity->lock);
    if (identity->instance[0] || name_instance(identity, endpoint, configured))
        slot = first_free(identity);
    if (slot >= 0) {
        identity->slots[slot].taken = 1;
        identity->slots[slot].fenced = 0;
        (void)snprintf(ret_name, WB_KAFKA_NAME_SIZE, "%.100s.%04d.%s", endpoint, slot,
                       identity->instance);
    }
    (void)pthread_mutex_unlock(&identity->lock);
    return slot;
}

void wb_kafka_identity_give_back(wb_kafka_identity *identity, int slot)
{
    if (slot < 0)
        return;
    (void)pthread_mutex_lock(&identity->lock);
    identity->slots[slot].taken = 0;
    (void)pthread_mutex_unlock(&identity->lock);
}

static int note_fence(wb_kafka_place *place, int64_t now)
{
    const int64_t *oldest = &place->fences[WB_KAFKA_FENCES - 1];
    if (!place->fenced) {
        memmove(place->fences + 1, place->fences, sizeof place->fences - sizeof *place->fences);
        place->fences[0] = now;
    }
    place->fenced = 1;
    return *oldest && now - *oldest < WB_KAFKA_FENCES_TIME;
}

int wb_kafka_identity_note_fence(wb_kafka_identity *identity, int slot, int64_t now)
{
    if (slot < 0)
        return 0;
    (void)pthread_mutex_lock(&identity->lock);
    int result = note_fence(&identity->slots[slot], now);
    (void)pthread_mutex_unlock(&identity->lock);
    return result;
}
