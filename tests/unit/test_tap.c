/* SPDX-License-Identifier: Apache-2.0
 *
 * What the conformance kits print is TAP whatever a plugin is called and says: texts of random
 * bytes and characters, most of them those that mean something.
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
    static const char *const special[] = {
        "#", "\\", "\n", "\r", "\t", " ", "\x1b", "\x7f", "ok", "1", ".", "-", "n", "x", "u",
        "\xc2", "\x9b", "\xff", "\xed\xa0\x80", /* no UTF-8 */
        "\xc2\x9b", "\xe2\x80\xa8", "\xe2\x80\xa9", /* C1, ends of lines */
        "\xd8\x9c", "\xe2\x80\x8f", "\xe2\x80\xae", "\xe2\x81\xa6", /* directions */
        "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
    };
    const size_t wanted = draw(LONGEST + 1);
    text[0] = '\0';
    for (size_t size = 0; size < wanted; size = strlen(text)) {
        const char byte[2] = { (char)(1 + draw(255)), '\0' };
        const char *next = draw(3) ? special[draw(sizeof special / sizeof *special)] : byte;
        (void)snprintf(text + size, wanted + 1 - size, "%s", next);
    }
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

/* @return its size; ends the test where there is no character. */
static size_t character(const char *at, uint32_t *ret_code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char byte = (unsigned char)*at;
    const size_t size = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    assert_true(size == 1 || (byte >= 0xc2 && byte <= 0xf4));
    *ret_code = size == 1 ? byte : byte & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        assert_int_equal((unsigned char)at[i] >> 6, 2);
        *ret_code = *ret_code << 6 | (at[i] & 0x3f);
    }
    assert_true(*ret_code >= least[size] && *ret_code <= 0x10ffff && (*ret_code < 0xd800 || *ret_code > 0xdfff));
    return size;
}

/* No controls but the ends of lines, C1 ones neither, no other end of a line, nothing that changes
 * the direction of text, and no byte that is part of no character. */
static void is_clean(const char *printed)
{
    static const uint32_t obeyed[] = { 0x7f, 0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b,
                                       0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069 };
    uint32_t code;
    for (size_t size; *printed; printed += size) {
        size = character(printed, &code);
        assert_true(code == '\n' || (code >= 0x20 && (code < 0x80 || code >= 0xa0)));
        for (size_t i = 0; i < sizeof obeyed / sizeof *obeyed; i++)
            assert_int_not_equal(code, obeyed[i]);
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

/* Up to four bytes of UTF-8. */
static size_t encode(uint32_t code, char to[4])
{
    const size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(size == 1 ? code : (0xf00u >> size & 0xff) | code);
    return size;
}

/* What one piece stands for. @return its size; *ret_next: what comes behind it. */
static size_t unescape(const char *printed, char to[4], const char **ret_next)
{
    char digits[5] = { 0 };
    const char kind = *printed == '\\' ? printed[1] : '\0';
    const size_t count = kind == 'x' ? 2 : kind == 'u' ? 4 : 0;
    *ret_next = printed + (kind ? 2 : 1) + count;
    memcpy(digits, printed + 2, count);
    if (kind == 'u')
        return encode((uint32_t)strtoul(digits, NULL, 16), to);
    to[0] = (char)(kind == 'x' ? strtol(digits, NULL, 16) : kind == 'n' ? '\n' : kind ? kind : *printed);
    return 1;
}

/* The name as it was, and what nobody said is no directive. */
static void has_name(const char *printed, const char *name)
{
    char bytes[4];
    for (size_t size; *name; name += size) {
        if (*printed == '#')
            fail_msg("a '#' that begins a directive");
        size = unescape(printed, bytes, &printed);
        assert_memory_equal(name, bytes, size);
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
