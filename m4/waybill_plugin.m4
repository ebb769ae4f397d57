# WAYBILL_PLUGIN(NAME, PKG-CONFIG MODULES, TEXT)
# --enable-NAME-plugin=auto|yes|no; yes and a missing library is an error.
# Sets the conditional BUILD_NAME, and NAME_CFLAGS, NAME_LIBS.
AC_DEFUN([WAYBILL_PLUGIN], [m4_pushdef([UP], m4_toupper([$1]))dnl
AC_ARG_ENABLE([$1-plugin],
  [AS_HELP_STRING([--enable-$1-plugin], [$3 @<:@auto@:>@])],
  [], [enable_$1_plugin=auto])
AS_CASE([$enable_$1_plugin], [yes|no|auto], [],
  [AC_MSG_ERROR([--enable-$1-plugin: expected yes, no or auto, got "$enable_$1_plugin"])])
build_$1=no
AS_IF([test "x$enable_$1_plugin" != xno], [
  PKG_CHECK_MODULES(UP, [$2], [build_$1=yes], [
    AS_IF([test "x$enable_$1_plugin" = xyes], [AC_MSG_ERROR([the $1 plugin needs: $2])])])])
AM_CONDITIONAL([BUILD_]UP, [test "x$build_$1" = xyes])
wb_summary="$wb_summary
  plugin $1: $build_$1 ($3)"
m4_popdef([UP])])
# WAYBILL_OPTIONAL(NAME, PKG-CONFIG MODULES, TEXT)
# A library that a plugin can do without: --with-NAME=auto|yes|no. Sets NAME_CFLAGS and
# NAME_LIBS, the conditional HAVE_NAME and HAVE_NAME in config.h.
AC_DEFUN([WAYBILL_OPTIONAL], [m4_pushdef([UP], m4_toupper([$1]))dnl
AC_ARG_WITH([$1],
  [AS_HELP_STRING([--with-$1], [$3 @<:@auto@:>@])],
  [], [with_$1=auto])
AS_CASE([$with_$1], [yes|no|auto], [],
  [AC_MSG_ERROR([--with-$1: expected yes, no or auto, got "$with_$1"])])
have_$1=no
AS_IF([test "x$with_$1" != xno], [
  PKG_CHECK_MODULES(UP, [$2], [have_$1=yes], [
    AS_IF([test "x$with_$1" = xyes], [AC_MSG_ERROR([--with-$1 needs: $2])])])])
AM_CONDITIONAL([HAVE_]UP, [test "x$have_$1" = xyes])
AS_IF([test "x$have_$1" = xyes], [AC_DEFINE([HAVE_]UP, [1], [Define to 1 to use $1: $3.])])
wb_summary="$wb_summary
  $1: $have_$1 ($3)"
m4_popdef([UP])])
