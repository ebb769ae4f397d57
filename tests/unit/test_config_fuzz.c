/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged configuration files: cut at every byte, each byte flipped, lines doubled, and a
 * repeatable stream of random damage. Nothing may crash (run it under the sanitizers),
 * and what is refused must say where.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include "core/config/config.h"

static const char sample[] =
    "plugin_path = [\"/opt/plugins\"]; log_level = \"info\"; # comment\n"
    "endpoints = (\n"
    "  { name = \"orders\"; handlers = [\"orders.so\", \"more.so\"]; concurrency = 4;\n"
    "    transaction_mode = \"receive_only\"; batch_max = 0x64; batch_time = \"20ms\";\n"
    "    @include \"inner.inc\"\n"
    "    persistence = { plugin = \"pgsql\"; conninfo = \"service=\" \"orders\"; };\n"
    "    outbox = { enabled = true; retention = \"7d\"; }; /* a\n comment */\n"
    "    recoverability = { immediate_retries = +5; error_queue = \"error\\x41\"; }; },\n"
    "  { name = \"billing\"; body_max = \"16MiB\"; send_only = false;\n"
    "    on_endpoint_failure = \"exit\";\n"
    "    transport = { plugin = \"kafka\"; number = -1.5e3; }; } // end\n"
    ");\n";

/* libconfig 1.5 forgets the string it was reading when it meets a syntax error: bytes,
 * once, in a program that is about to exit. Anything else that leaks is ours. */
WB_PUBLIC const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:strbuf_append\n";
}

static size_t loaded, refused;

static void try(const char *data, size_t size)
{
    wb_problems problems = { 0 };
    wb_config *config = wb_config_load(conf_write_bytes("fuzz.conf", data, size), &problems);
    if (!config)
        assert_true(problems.error_count > 0);
    for (size_t i = 0; i < problems.count; i++)
        assert_non_null(strstr(problems.items[i].text, conf_directory));
    *(problems.error_count ? &refused : &loaded) += 1;
    wb_config_free(config);
    wb_problems_free(&problems);
}

static void test_whole(void **state)
{
    (void)state;
    conf_write("inner.inc", "transport = { plugin = \"amqp\"; host = \"localhost\"; };\n");
    loaded = refused = 0;
    try(sample, sizeof sample - 1);
    assert_int_equal(loaded, 1);
}

static void test_truncations(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof sample; size++)
        try(sample, size);
}

static void test_flips(void **state)
{
    static const unsigned char masks[] = { 0x01, 0x04, 0x20, 0x80, 0xff };
    char data[sizeof sample];
    (void)state;
    for (size_t at = 0; at < sizeof sample - 1; at++) {
        for (size_t i = 0; i < sizeof masks; i++) {
            memcpy(data, sample, sizeof sample);
            data[at] = (char)((unsigned char)data[at] ^ masks[i]);
            try(data, sizeof sample - 1);
        }
    }
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void test_random_damage(void **state)
{
    static const char bits[] = "{}[]();=\"'@\\#/*\n,.-0L\x80";
    char data[2 * sizeof sample];
    uint32_t seed = 20260101;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        size_t size = sizeof sample - 1;
        memcpy(data, sample, size);
        for (uint32_t times = 1 + next_random(&seed) % 6; times; times--) {
            size_t at = next_random(&seed) % size;
            size_t length = next_random(&seed) % 40;
            if (next_random(&seed) % 2) {
                data[at] = bits[next_random(&seed) % (sizeof bits - 1)];
            } else if (at + length < size && size + length < sizeof data) {
                memmove(data + at + length, data + at, size - at);
                size += length;
            }
        }
        try(data, size);
    }
}

/* Deep and long input of one kind: no recursion may follow it. */
static void test_repetition(void **state)
{
    static const char *const pieces[] = { "(", "{a=", "[", "\"\\\"", "/*", "a=1;", "@include ",
                                          "=", "9", "\n" };
    char *data = malloc(200000);
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        size_t piece = strlen(pieces[i]), size = 0;
        for (; size + piece <= 200000; size += piece)
            memcpy(data + size, pieces[i], piece);
        try(data, size);
    }
    free(data);
    /* every road was taken: most of the damage is noticed, and some of it is harmless */
    assert_true(loaded > 100);
    assert_true(refused > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),         cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_flips),         cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_repetition),
    };
    return cmocka_run_group_tests_name("damaged configuration", tests, conf_setup, conf_teardown);
}
