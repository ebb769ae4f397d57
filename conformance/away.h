/* SPDX-License-Identifier: Apache-2.0
 *
 * A server out of reach for everybody in this program: connect() fails as it does where nobody listens. Plugins
 * call the program's connect(), which stands in front of the C library's; one that makes the system call itself,
 * or has the C library in it, does not come by here.
 */
#ifndef WB_CONFORMANCE_AWAY_H
#define WB_CONFORMANCE_AWAY_H

/** From now on connect() fails with ECONNREFUSED, whoever calls it and whatever for, or does not any more. */
void wb_away(int is_away);

#endif
