# WAYBILL_WARNINGS: WB_CFLAGS with warnings and hardening the compiler knows;
# --enable-werror makes warnings errors (CI).
AC_DEFUN([WAYBILL_WARNINGS], [
AC_ARG_ENABLE([werror],
  [AS_HELP_STRING([--enable-werror], [make compiler warnings errors @<:@no@:>@])],
  [], [enable_werror=no])
WB_CFLAGS="-fvisibility=hidden"
for wb_flag in -Wall -Wextra -Wpedantic -Wshadow -Wpointer-arith -Wstrict-prototypes \
    -Wmissing-prototypes -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough -Wundef \
    -fno-strict-aliasing -fstack-protector-strong -fstack-clash-protection; do
  wb_save="$CFLAGS"
  CFLAGS="$CFLAGS -Werror $wb_flag"
  AC_MSG_CHECKING([whether $CC accepts $wb_flag])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes]); WB_CFLAGS="$WB_CFLAGS $wb_flag"], [AC_MSG_RESULT([no])])
  CFLAGS="$wb_save"
done
AS_IF([test "x$enable_werror" = xyes], [WB_CFLAGS="$WB_CFLAGS -Werror"])
AC_SUBST([WB_CFLAGS])
])
