#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Injector and sink: what goes in comes out, and equal bytes have equal digests.
. "$top_srcdir/tests/support/tap.sh"

if [ "${1:-}" != inside ]; then
    trap - EXIT
    exec "$top_srcdir/tests/support/with-servers" rabbitmq -- "$0" inside
fi
bin=$top_builddir/tests/crash
messages() { awk 'BEGIN { for (i = 1; i <= 450; i++) printf "id-%d\tA.B\tbody %d\n", i, i }'; }
depth() { "$bin/sink-amqp" depth tools | cut -f 2; }

plan 9
is "a queue that is not there is an error" "$(messages | "$bin/inject-amqp" nowhere 2>/dev/null; echo $?)" 1
ok "declare a queue" "$bin/sink-amqp" declare tools
is "inject, over several windows" "$(messages | "$bin/inject-amqp" tools 2>&1; echo $?)" 0
is "all are there" "$(depth)" 450
is "peek shows them all" "$("$bin/sink-amqp" peek tools | wc -l | tr -d ' ')" 450
printf 'id-1\tA.B\tbody 1\n' | "$bin/inject-amqp" tools
is "a copy has the same digest, also of what was returned to the queue" \
    "$("$bin/sink-amqp" peek tools | awk '$2 == "id-1" { print $3 }' | uniq -c | awk '{ print $1 }')" 2
is "another body has another digest" "$("$bin/sink-amqp" peek tools | cut -f 3 | sort -u | wc -l | tr -d ' ')" 450
is "drain returns ids and bodies" "$("$bin/sink-amqp" drain tools | cut -f 2,4 | sort -u | md5sum)" \
    "$(messages | cut -f 1,3 | sort -u | md5sum)"
is "then the queue is empty" "$(depth)" 0
