/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations that fail when they are told to. In a build with sanitizers this is included before
 * everything else (Makefile.am), so that what Waybill's own code asks for passes here; what client
 * libraries ask for does not. Programs have the other half, faults.c; a module that is loaded into a
 * program without it allocates as ever.
 *
 *   WAYBILL_MALLOC=N        the Nth allocation of the process fails, and none else
 *   WAYBILL_MALLOC=N+       the Nth and all that follow
 *   WAYBILL_MALLOC_COUNT=FILE   at its end the process adds a line to it: how many there were
 *   WAYBILL_MALLOC_IN=PREFIX    of files that begin so only: "plugins/"
 *
 * Those of conformance and of tests count for nothing: they are not what is tried.
 */
#ifndef WB_TESTS_MALLOC_FAULTS_H
#define WB_TESTS_MALLOC_FAULTS_H
#ifndef __cplusplus

#include <config.h>

#include <malloc.h> /* declares some of them, too */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Whether the allocation that is asked for there fails; errno is ENOMEM then. Any thread. What is
 *  linked with libwaybill-test has it, waybill-conformance, and modules that such a program loads. */
#ifdef WB_TEST_HOOKS
int wb_malloc_fails(const char *file, int line);
#define WB_MALLOC_FAILS wb_malloc_fails(__FILE__, __LINE__)
#else
int wb_malloc_fails(const char *file, int line) __attribute__((weak));
#define WB_MALLOC_FAILS (wb_malloc_fails && wb_malloc_fails(__FILE__, __LINE__))
#endif
#define malloc(size) (WB_MALLOC_FAILS ? NULL : malloc(size))
#define calloc(count, size) (WB_MALLOC_FAILS ? NULL : calloc((count), (size)))
#define realloc(memory, size) (WB_MALLOC_FAILS ? NULL : realloc((memory), (size)))
#undef strdup
#define strdup(text) (WB_MALLOC_FAILS ? NULL : strdup(text))
#undef strndup
#define strndup(text, size) (WB_MALLOC_FAILS ? NULL : strndup((text), (size)))
#define getline(line, room, file) (WB_MALLOC_FAILS ? -1 : getline((line), (room), (file)))

#endif
#endif
