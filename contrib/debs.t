#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What debian/ says again is what the sources say: version, symbols of the library, plugins. (Packages: contrib/debs.)
top_srcdir=${top_srcdir:-.}
. "$top_srcdir/tests/support/tap.sh"
debian=$top_srcdir/debian

version() { sed -n "s/^AC_INIT(\[waybill\], \[\([^]]*\)\].*/\1/p" "$top_srcdir/configure.ac"; }
symbols() { sed -n 's/^ \(.*\)@Base .*/\1/p' "$debian/libwaybill0.symbols" | sort; }
plugins() { sed -n 's/^WAYBILL_PLUGIN(\[\([a-z]*\)\].*/\1/p' "$top_srcdir/configure.ac" | sort; }
packaged() { sed -n 's/^Package: waybill-plugin-//p' "$debian/control" | sort; }
configured() { sed -n 's/.*(foreach plugin,\([^,]*\),.*/\1/p' "$debian/rules" | tr ' ' '\n'; }

# Modules are given to packages by their names.
modules() { cat "$debian"/waybill-plugin-*.install | sed 's,.*/\(.*\)\.so$,\1,' | sort; }

is "the changelog has the version" "$(sed -n '1s/^waybill (\(.*\)) .*/\1/p' "$debian/changelog")" "$(version)"
is "the library's symbols" "$(symbols)" "$(sort "$top_srcdir/core/library/libwaybill.sym")"
is "every plugin is configured" "$(configured)" "$(plugins)"
is "every plugin is a package" "$(packaged)" "$(plugins)"
is "and is in it" "$(modules)" "$(plugins)"
done_testing
