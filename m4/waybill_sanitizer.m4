# WAYBILL_SANITIZER: --enable-sanitizer=address,undefined|thread, and --enable-fuzzers, which
# makes the targets of tests/fuzz programs of libFuzzer: clang only; address,undefined unless told
# otherwise. Such a build is for `make fuzzers` alone.
AC_DEFUN([WAYBILL_SANITIZER], [
AC_ARG_ENABLE([fuzzers],
  [AS_HELP_STRING([--enable-fuzzers], [link the targets of tests/fuzz with libFuzzer (clang) @<:@no@:>@])],
  [], [enable_fuzzers=no])
AC_ARG_ENABLE([sanitizer],
  [AS_HELP_STRING([--enable-sanitizer=LIST], [build with -fsanitize=LIST, e.g. address,undefined @<:@no@:>@])],
  [], [AS_IF([test "x$enable_fuzzers" = xno], [enable_sanitizer=no], [enable_sanitizer=address,undefined])])
AS_CASE([$enable_sanitizer],
  [no], [],
  [yes], [AC_MSG_ERROR([--enable-sanitizer needs a list, e.g. --enable-sanitizer=address,undefined])],
  [CFLAGS="$CFLAGS -g -O1 -fno-omit-frame-pointer -fsanitize=$enable_sanitizer -fno-sanitize-recover=all"
   LDFLAGS="$LDFLAGS -fsanitize=$enable_sanitizer"])
AS_IF([test "x$enable_fuzzers" != xno], [
  CFLAGS="$CFLAGS -fsanitize=fuzzer-no-link"
  AC_MSG_CHECKING([whether $CC has libFuzzer])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([--enable-fuzzers needs clang: configure with CC=clang CXX=clang++])])])
AM_CONDITIONAL([FUZZERS], [test "x$enable_fuzzers" != xno])
AM_CONDITIONAL([SANITIZER], [test "x$enable_sanitizer" != xno])
])
