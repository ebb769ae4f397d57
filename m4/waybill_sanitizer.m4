# WAYBILL_SANITIZER: --enable-sanitizer=address,undefined|thread
AC_DEFUN([WAYBILL_SANITIZER], [
AC_ARG_ENABLE([sanitizer],
  [AS_HELP_STRING([--enable-sanitizer=LIST], [build with -fsanitize=LIST, e.g. address,undefined @<:@no@:>@])],
  [], [enable_sanitizer=no])
AS_CASE([$enable_sanitizer],
  [no], [],
  [yes], [AC_MSG_ERROR([--enable-sanitizer needs a list, e.g. --enable-sanitizer=address,undefined])],
  [CFLAGS="$CFLAGS -g -O1 -fno-omit-frame-pointer -fsanitize=$enable_sanitizer -fno-sanitize-recover=all"
   LDFLAGS="$LDFLAGS -fsanitize=$enable_sanitizer"])
AM_CONDITIONAL([SANITIZER], [test "x$enable_sanitizer" != xno])
])
