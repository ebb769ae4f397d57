#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Without the libraries that the program can do without, which a machine that builds it first does not have: each file of the
# core is compiled where their headers are not to be found.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/waybill-optional.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/curl" "$work/gnutls"
for header in microhttpd.h gnutls/gnutls.h curl/curl.h; do
    echo "#error $header is not there" >"$work/$header"
done
sed '/HAVE_LIBMICROHTTPD/d;/HAVE_LIBCURL/d' "$top_builddir/config.h" >"$work/config.h"

compiles() {
    # shellcheck disable=SC2046
    find "$top_srcdir/core" -name '*.c' -print0 | xargs -0 -n 12 -P 2 \
        ${CC:-cc} -std=c17 -fsyntax-only -DHAVE_CONFIG_H -I"$work" -I"$top_srcdir" -I"$top_srcdir/include" -I"$top_builddir" \
        -DWB_PLUGIN_DIR='""' -DWB_HANDLER_DIR='""' -DWB_SYSCONFDIR='""' $(pkg-config --cflags jansson libconfig zlib) >"$work/log" 2>&1
}

echo 1..1
if compiles; then
    echo "ok 1 - the core builds without libmicrohttpd and libcurl"
else
    echo "not ok 1 - the core builds without libmicrohttpd and libcurl"
    grep -E 'error' "$work/log" | head -20 | sed 's/^/# /'
fi
