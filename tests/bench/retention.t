#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The retention benchmark does its work with every persistence that was built: records are made,
# counted, claimed beside, cleaned up, made anew. On few of them, and nothing that it says is judged.
set -u
servers= names=
test ! -f "$top_builddir/plugins/persistence/pgsql/.libs/pgsql.so" || servers="$servers pgsql" names="$names pgsql"
test ! -f "$top_builddir/plugins/persistence/mysql/.libs/mysql.so" || servers="$servers mariadb" names="$names mysql"
names="$names sqlite"
if test $# = 0 && test -n "$servers"; then
    # shellcheck disable=SC2086 # words
    exec "$top_srcdir/tests/support/with-servers" $servers -- "$0" started
fi

count=0
for name in $names; do
    count=$((count + 1))
    ids=v4 rows=8
    test "$name" != sqlite || ids=v4,v7 rows=16 # servers keep the tables
    said=$("$top_srcdir/tests/bench/retention" --external --only "$name" --ids $ids --rows 4000 --seconds 0.1 \
        --rounds 1 --bytes 64 2>&1)
    if test $? = 0 && test "$(printf '%s\n' "$said" | grep -c "^$name ")" -ge $rows; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        printf '%s\n' "$said" | sed 's/^/# /'
    fi
done
echo "1..$count"
