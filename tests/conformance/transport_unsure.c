/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport with acks=0, where it has no transactions; and where it has, what it says of
 * a commit it does not know of is that it did not happen. Its sources are compiled with
 * rd_kafka_conf_set() replaced by ours.
 */
#include "config.h"

#undef rd_kafka_conf_set /* here alone it is the library's */
#include <librdkafka/rdkafka.h>
#include <string.h>
#include <waybill/sys/transport.h>

const wb_plugin *kafka_LTX_wb_plugin(void);
WB_PUBLIC const wb_plugin *unsure_LTX_wb_plugin(void);
rd_kafka_conf_res_t unsure_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *text, size_t size);

static const wb_transport_ops *base;

static void set_both(rd_kafka_conf_t *conf, const char *idempotence, const char *acks)
{
    (void)rd_kafka_conf_set(conf, "enable.idempotence", idempotence, NULL, 0);
    (void)rd_kafka_conf_set(conf, "acks", acks, NULL, 0);
}

/* A transaction's name is set after these two. */
rd_kafka_conf_res_t unsure_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *text, size_t size)
{
    if (strcmp(name, "enable.idempotence") == 0 || strcmp(name, "acks") == 0) {
        set_both(conf, "false", "0");
        return RD_KAFKA_CONF_OK;
    }
    if (strcmp(name, "transactional.id") == 0)
        set_both(conf, "true", "all");
    return rd_kafka_conf_set(conf, name, value, text, size);
}

static int commit(wb_transport_session *session, wb_error *error)
{
    int result = base->commit(session, error);
    return result == WB_IN_DOUBT ? WB_NOT_CONNECTED : result;
}

const wb_plugin *unsure_LTX_wb_plugin(void)
{
    static wb_transport_ops ops;
    static wb_plugin plugin;
    plugin = *kafka_LTX_wb_plugin();
    base = plugin.ops;
    ops = *base;
    ops.commit = commit;
    plugin.name = "unsure";
    plugin.ops = &ops;
    return &plugin;
}
