/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration files for tests: a private directory, files in it, and the problems that
 * loading them must have.
 */
#ifndef WB_TESTS_UNIT_CONF_SUPPORT_H
#define WB_TESTS_UNIT_CONF_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/config/problems.h"

extern char conf_directory[];

/** A group setup: makes the directory. And its teardown: removes it with its files. */
int conf_setup(void **state);
int conf_teardown(void **state);

/** Write a file into the directory with mode 0600. @return its path, in a static buffer
 *  that the next four calls leave alone. */
const char *conf_write(const char *name, const char *text);
const char *conf_write_bytes(const char *name, const void *data, size_t size);

/** Some problem holds the text; fails with all of them otherwise. */
void assert_problem(const wb_problems *problems, const char *text);
/** No problem holds the text. */
void assert_no_problem(const wb_problems *problems, const char *text);
/** There are that many errors; fails with all problems otherwise. */
void assert_error_count(const wb_problems *problems, size_t count);

#endif
