#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The amqp transport passes the kit in the direct topology.
# shellcheck disable=SC1091,SC2034
topology=direct
. "$top_srcdir/tests/conformance/transport_amqp.t"
