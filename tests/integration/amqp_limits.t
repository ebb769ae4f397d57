#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One program of the amqp transport's tests, with a broker of its own that is managed, and tells of consumers.
program=$(basename "$0" .t)
WB_AMQP_PLUGINS=rabbitmq_management,rabbitmq_event_exchange
export WB_AMQP_PLUGINS
. "$top_srcdir/tests/integration/amqp-with-broker"
