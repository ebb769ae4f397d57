/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts off what it acknowledges, also when nobody wants that.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                       wb_error *error)
{
    return count ? whole()->acknowledge(session, messages, count, error) : WB_OK;
}

BROKEN(adrift, ops.acknowledge = acknowledge)
