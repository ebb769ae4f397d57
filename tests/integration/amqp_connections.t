#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One program of the amqp transport's tests, with a broker of its own.
WB_AMQP_PLUGINS=rabbitmq_auth_mechanism_ssl
export WB_AMQP_PLUGINS
program=$(basename "$0" .t)
. "$top_srcdir/tests/integration/amqp-with-broker"
