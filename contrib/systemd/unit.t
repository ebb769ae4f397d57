#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The unit that `make` wrote: it has the paths of the build, systemd takes it, and it makes of exit codes what they mean.
top_builddir=${top_builddir:-.}
. "${top_srcdir:-.}/tests/support/tap.sh"
unit=$top_builddir/contrib/systemd/waybill@.service
work=$(mktemp -d) || exit 1

names_directories() { test -s "$unit" && ! grep '@[a-z]*dir@' "$unit"; }
starts_run() { grep '^ExecStart=/.*/waybill run -c /.*/waybill/%i\.conf$' "$unit" && ! grep '^ExecStartPre' "$unit"; }
is_limited() { grep '^StartLimitIntervalSec=[1-9]' "$unit" && grep '^StartLimitBurst=[1-9]' "$unit"; }

holds() { # LINE...
    for line; do
        grep -qxF -- "$line" "$unit" || { echo "no line \"$line\""; return 1; }
    done
}

# On its own machine none of them stops before it does.
comes_after() { # NAME...
    for name; do
        grep "^After=.* $name.service\( \|\$\)" "$unit" || { echo "not after $name"; return 1; }
    done
}

# It waits longer than the program does by itself.
outlasts() {
    limit=$(sed -n 's/^TimeoutStopSec=//p' "$unit")
    default=$("$top_builddir/waybill" help options --json | tr -d '\n' | tr '{' '\n' | sed -n 's/.*"shutdown_timeout".*"default": *"\([0-9]*\)s".*/\1/p')
    echo "$limit s, shutdown_timeout $default s"
    test "$limit" -gt "$default"
}

# Of the program as it was built, since the one that the unit names is not installed yet.
is_taken() {
    sed "s|^ExecStart=[^ ]*|ExecStart=$(readlink -f "$top_builddir/waybill")|" "$unit" >"$work/waybill@orders.service"
    said=$(systemd-analyze verify --man=no "$work/waybill@orders.service" 2>&1) && test -z "$said" || { echo "$said"; return 1; }
}

# That it looks at all.
says_what_is_wrong() {
    sed 's|^Restart=.*|Restart=on-sucess|' "$work/waybill@orders.service" >"$work/waybill@typo.service"
    systemd-analyze verify --man=no "$work/waybill@typo.service" 2>&1 | grep -i 'restart'
}

ok "the unit names directories" names_directories
ok "it starts \"waybill run\"" starts_run
ok "it restarts what can be restarted, is watched, and leaves cores" \
    holds Restart=on-failure 'RestartPreventExitStatus=64 78' LimitCORE=infinity Type=notify WatchdogSec=60 KillMode=mixed
ok "starting again has a limit" is_limited
ok "it comes after servers" comes_after postgresql mariadb mysql mysqld rabbitmq-server
ok "a stop has the time that the program takes" outlasts
if command -v systemd-analyze >/dev/null; then
    ok "systemd-analyze verify takes it" is_taken
    ok "and would say what is wrong" says_what_is_wrong
fi
rm -rf "$work"
done_testing
