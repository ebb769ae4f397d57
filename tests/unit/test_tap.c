/* SPDX-License-Identifier: Apache-2.0
 *
 * What the conformance kits print is TAP whatever a plugin is called and says: texts of random
 * bytes, most of them those that mean something.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/tap.h"

#define ROUNDS 20000
#define LONGEST 40

static uint32_t seed = 20201017;

static unsigned draw(unsigned below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void draw_text(char text[LONGEST + 1])
{
    static const char special[] = "#\\\n\r\t \x1b\x7f\xc2\x9b\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\x80\xff" "ok1.-";
    size_t size = draw(LONGEST + 1);
    for (size_t i = 0; i < size; i++)
        text[i] = draw(3) ? special[draw(sizeof special - 1)] : (char)(1 + draw(255));
    text[size] = '\0';
}

/* What a reader gets. @return free() it. */
static char *print(void (*with)(FILE *out, const char *text), const char *text)
{
    char *printed = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&printed, &size);
    assert_non_null(out);
    with(out, text);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(strlen(printed), size);
    return printed;
}

/* No controls but the ends of lines, C1 ones neither, and no byte that is part of no character. */
static void is_clean(const char *printed)
{
    wchar_t wide;
    for (size_t step; *printed; printed += step) {
        const unsigned char byte = (unsigned char)*printed;
        assert_true(byte == '\n' || (byte >= 0x20 && byte != 0x7f));
        step = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
        wide = step == 2 ? (wchar_t)((byte & 0x1f) << 6 | (printed[1] & 0x3f)) : L'x';
        assert_true(step == 1 || (byte >= 0xc2 && byte <= 0xf4));
        assert_true(step != 2 || wide >= 0xa0);
        for (size_t i = 1; i < step; i++)
            assert_int_equal((unsigned char)printed[i] >> 6, 2);
    }
}

static void print_case(FILE *out, const char *text)
{
    wb_tap_case(out, 0, 7, text, NULL);
}

static void print_skip(FILE *out, const char *text)
{
    wb_tap_case(out, 1, 7, "a name", text);
}

/* The name as it was, and what nobody said is no directive. */
static void has_name(const char *printed, const char *name)
{
    char byte[3] = { 0 };
    for (; *name; name++, printed++) {
        if (*printed == '#')
            fail_msg("a '#' that begins a directive");
        if (*printed == '\\' && printed[1] == 'x') {
            memcpy(byte, printed + 2, 2);
            assert_int_equal((unsigned char)*name, strtoul(byte, NULL, 16));
            printed += 3;
            continue;
        }
        printed += *printed == '\\';
        assert_int_equal(*printed, *name);
    }
    assert_string_equal(printed, "\n");
}

static void test_names(void **state)
{
    char name[LONGEST + 1];
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        draw_text(name);
        char *printed = print(print_case, name);
        is_clean(printed);
        assert_int_equal(strncmp(printed, "not ok 7 - ", 11), 0);
        has_name(printed + 11, name);
        free(printed);
    }
}

static void test_reasons(void **state)
{
    static const char begin[] = "ok 7 - a name # SKIP ";
    char reason[LONGEST + 1];
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        draw_text(reason);
        char *printed = print(print_skip, reason);
        is_clean(printed);
        assert_int_equal(strncmp(printed, begin, sizeof begin - 1), 0);
        assert_ptr_equal(strchr(printed, '\n'), printed + strlen(printed) - 1);
        free(printed);
    }
}

static void test_notes(void **state)
{
    char note[LONGEST + 1];
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        draw_text(note);
        char *printed = print(wb_tap_note, note);
        is_clean(printed);
        for (const char *line = printed; *line; line = strchr(line, '\n') + 1)
            assert_int_equal(strncmp(line, "# ", 2), 0);
        free(printed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests_name("tap", tests, NULL, NULL);
}
