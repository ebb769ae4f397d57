/* SPDX-License-Identifier: Apache-2.0
 *
 * The kits are a program of their own: what is in this one runs in production.
 */
#include "config.h"

#include "core/cli/cli.h"

const cli_verb cli_verb_conformance = {
    .name = "conformance",
    .summary = "try whether the plugin an endpoint selects keeps what it promises",
    .program = "waybill-conformance",
};
