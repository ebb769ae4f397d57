# waybill.m4: find an installed Waybill, for handler modules and plugins
# serial 1
# SPDX-License-Identifier: Apache-2.0
#
# WAYBILL_PREREQ([VERSION])
# -------------------------
# Ends configure unless Waybill, VERSION or later when given, is installed with the
# interface these macros were written for. Sets for config.status and Makefile:
#
#   WAYBILL_CFLAGS          to compile against the public headers
#   WAYBILL_HANDLERDIR      where handler modules are installed
#   WAYBILL_TRANSPORTDIR    where transport plugins are installed
#   WAYBILL_PERSISTENCEDIR  where persistence plugins are installed
#   WAYBILL_OBSERVERDIR     where observer plugins are installed
#   WAYBILL_MODULE_LDFLAGS  libtool flags of a module: unversioned, bound at load,
#                           nothing undefined, only its entry point exported. Write
#                           x_la_LDFLAGS = -module $(WAYBILL_MODULE_LDFLAGS), because
#                           automake accepts the name x.la only if it sees -module
#
# There are no WAYBILL_LIBS: modules link nothing of Waybill. A client library that they call they link
# (x_la_LIBADD), since nothing may be undefined.
#
# Needs pkg-config and, to use WAYBILL_MODULE_LDFLAGS, LT_INIT. The directories can be
# given to configure as variables, for a build that installs elsewhere:
#   ./configure WAYBILL_TRANSPORTDIR=$HOME/lib/waybill/plugins/transport
#
# contrib/plugin-template and contrib/persistence-template, installed with the documentation, are complete
# projects.

AC_DEFUN([WAYBILL_PREREQ], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])dnl
PKG_CHECK_MODULES([WAYBILL], m4_ifblank([$1], [[waybill]], [[waybill >= $1]]), [],
  [AC_MSG_ERROR([waybill]m4_ifnblank([$1], [[ $1 or later]])[ not found:
install it, or add the directory of its waybill.pc to PKG_CONFIG_PATH])])
AC_MSG_CHECKING([for the Waybill module interface])
_wb_abi=`$PKG_CONFIG --variable=wb_abi waybill`
AC_MSG_RESULT([${_wb_abi:-none}])
AS_IF([test "x$_wb_abi" != x1],
  [AC_MSG_ERROR([wanted module interface 1, waybill.pc offers "$_wb_abi"])])
_WAYBILL_DIR([HANDLERDIR], [handlerdir], [where handler modules are installed])
_WAYBILL_DIR([TRANSPORTDIR], [transportdir], [where transport plugins are installed])
_WAYBILL_DIR([PERSISTENCEDIR], [persistencedir], [where persistence plugins are installed])
_WAYBILL_DIR([OBSERVERDIR], [observerdir], [where observer plugins are installed])
WAYBILL_MODULE_LDFLAGS="-module -avoid-version -shared -no-undefined -Wl,-z,now -Wl,-z,defs"
WAYBILL_MODULE_LDFLAGS="$WAYBILL_MODULE_LDFLAGS -export-symbols-regex '^(wb_handlers|.*_LTX_wb_plugin)\$\$'"
AC_SUBST([WAYBILL_MODULE_LDFLAGS])
])

# _WAYBILL_DIR(NAME, VARIABLE IN waybill.pc, TEXT)
AC_DEFUN([_WAYBILL_DIR], [
PKG_CHECK_VAR([WAYBILL_$1], [waybill], [$2], [],
  [AC_MSG_ERROR([waybill.pc does not say $3])])
])
