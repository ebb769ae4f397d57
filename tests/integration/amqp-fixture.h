/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the amqp transport share: the plugin, loaded the way the host
 * loads it and driven through its SPI, with a host that counts log lines and crash
 * points; and a plain client, to prepare and to look at the broker from outside.
 *
 * The environment names the broker: WB_AMQP_DIR (see amqp-broker).
 */
#ifndef WB_TEST_AMQP_FIXTURE_H
#define WB_TEST_AMQP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <waybill/sys/transport.h>

#include "core/base/clock.h"
#include "core/base/host.h"
#include "plugins/common/rabbitmq.h"
#include "plugins/transport/amqp/amqp-options.h"

#define SECONDS(n) ((n) * WB_SECOND)

/** One endpoint of its own, with a queue nobody else has. */
typedef struct fixture {
    wb_host_instance host;
    wb_endpoint_info endpoint;
    wb_amqp_config config;
    const wb_transport_ops *ops;
    wb_transport *transport;
    wb_transport_session *session; /* closed by fixture_end() when open */
    wb_error error;
    char queue[64];
    char error_queue[80];
} fixture;

/** The plugin's operations. */
const wb_transport_ops *fixture_ops(void);
/** Fill in defaults and a new queue name; no instance yet, so that tests may change
 *  the configuration. */
void fixture_prepare(fixture *f);
/** Make the instance. */
void fixture_create(fixture *f);
/** prepare, create, install, and open a session for both purposes. */
void fixture_begin(fixture *f, uint32_t prefetch);
void fixture_open(fixture *f, uint32_t prefetch);
void fixture_close(fixture *f);
void fixture_end(fixture *f);

int64_t fixture_in(int64_t duration);

/** Receive until `count` messages are there (fails after 20 s). */
void fixture_receive(fixture *f, const wb_incoming **messages, size_t count);
/** Nothing arrives for a quarter of a second. */
void fixture_receive_none(fixture *f);
/** Send these and return what send() returned. */
int fixture_send(fixture *f, wb_operation *operations, size_t count);
/** A mandatory send without headers; `body` is a string. */
wb_operation fixture_operation(const char *destination, const char *id, const char *body);
/** Send `count` messages "m-0".. to the fixture's own queue; all must be confirmed. */
void fixture_fill(fixture *f, size_t count);

/** Run amqp-broker VERB DIR ARGUMENTS; must succeed. */
void fixture_broker(const char *verb, const char *arguments);

/** Lines logged at warning level or worse, and crash points passed. */
int fixture_warnings(void);
/** The last line logged, with its fields. */
const char *fixture_last_line(void);
int fixture_crash_points(const char *name);

/** A plain client: channel 1 is open. */
amqp_connection_state_t client_open(void);
void client_close(amqp_connection_state_t client);
void client_delete_queue(const char *name);
void client_delete_exchange(const char *name);
void client_declare_classic(const char *name);
/** Publish through the default exchange. */
void client_publish(const char *queue, const amqp_basic_properties_t *properties, const void *body,
                    size_t size);

/** The port from the broker's environment file: "AMQP_PORT" or "AMQPS_PORT". */
int fixture_port(const char *name);
const char *fixture_directory(void);

#endif
