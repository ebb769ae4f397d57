/* SPDX-License-Identifier: Apache-2.0
 *
 * Does not give messages back, and says so in words that read like TAP and command a terminal.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static wb_host host;

static int create(const wb_host *of, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    host = *of;
    return whole()->create(of, endpoint, config, ret_transport, error);
}

static int give_back(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                     wb_error *error)
{
    if (!count)
        return whole()->give_back(session, messages, count, error);
    return host.fail(&host, error, WB_RETRY, WB_CAUSE_OTHER, 0,
                     "no\nok 1 - all is well\r\nBail out! \x1b[2J\xc2\x9b\xff\n1..0 # SKIP\nnot ok 9 - \xc3\xa4 #\\");
}

BROKEN(forger, ops.create = create; ops.give_back = give_back)
