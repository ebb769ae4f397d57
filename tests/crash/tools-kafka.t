#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Injector and sink of Kafka: what goes in comes out, and a group's place is what it is.
. "$top_srcdir/tests/support/tap.sh"

if [ "${1:-}" != inside ]; then
    trap - EXIT
    exec "$top_srcdir/tests/support/with-servers" kafka -- "$0" inside
fi
bin=$top_builddir/tests/crash
topic=${KAFKA_PREFIX}_tools
messages() { awk 'BEGIN { for (i = 1; i <= 450; i++) printf "id-%d\tA.B\tkey=k%d body %d\n", i, i % 7, i }'; }
sink() { verb=$1 group=$2; shift 2; "$bin/sink-kafka" "$verb" "$KAFKA_PREFIX-$group" "$@" "$topic"; }
behind() { sink depth "$1" | cut -f 2; }

plan 12
is "a topic that is not there is an error" "$(messages | "$bin/inject-kafka" "$topic" 2>/dev/null; echo $?)" 1
ok "make a topic" "$bin/sink-kafka" create 3 "$topic"
is "inject" "$(messages | "$bin/inject-kafka" "$topic" 2>&1; echo $?)" 0
is "all are behind a new group's place" "$(behind one)" 450
is "peek shows them all, and they stay" "$(sink peek one | wc -l | tr -d ' ') $(behind one)" "450 450"
is "a key's messages keep their order" "$(sink peek one | awk -F '[- \t=]' '
    { split($0, c, "\t"); id = substr(c[2], 4) + 0; split(c[4], w, " ");
      if (id < last[w[1]]) bad++; last[w[1]] = id } END { print bad + 0 }')" 0
printf 'id-1\tA.B\tkey=k1 body 1\n' | "$bin/inject-kafka" "$topic"
is "a copy has the same digest" "$(sink peek one | awk '$2 == "id-1" { print $3 }' | uniq -c | awk '{ print $1 }')" 2
is "another body has another digest" "$(sink peek one | cut -f 3 | sort -u | wc -l | tr -d ' ')" 450
is "drain returns ids and bodies" "$(sink drain one | cut -f 2,4 | sort -u | md5sum)" \
    "$(messages | cut -f 1,3 | sort -u | md5sum)"
is "then the group is at the end" "$(behind one)" 0
is "another group is not" "$(behind two)" 451
is "and skips to it" "$(sink skip two; behind two)" 0
