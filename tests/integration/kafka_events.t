#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One program of the kafka transport's tests, with the broker all tests share.
exec "$top_srcdir/tests/support/with-servers" kafka -- \
    "$top_builddir/tests/integration/$(basename "$0" .t)"
