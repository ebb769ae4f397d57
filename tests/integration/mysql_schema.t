#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An authority that has signed nothing here comes as OTHER_CA.
OTHER_CA=$(mktemp "${TMPDIR:-/tmp}/waybill-ca.XXXXXX") && export OTHER_CA || exit 99
trap 'rm -f "$OTHER_CA"' EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=Others \
    -keyout /dev/null -out "$OTHER_CA" 2>/dev/null
"$top_srcdir/tests/support/with-servers" mariadb -- \
    "$top_builddir/tests/integration/mysql_schema_test"
