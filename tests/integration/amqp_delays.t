#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One program of the amqp transport's tests, with a broker of its own.
program=$(basename "$0" .t)
. "$top_srcdir/tests/integration/amqp-with-broker"
