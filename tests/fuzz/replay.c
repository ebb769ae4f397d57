/* SPDX-License-Identifier: Apache-2.0
 *
 * A fuzz target as a test, without libFuzzer: every file of its corpus as it is; cut at any byte,
 * with any byte changed, with parts doubled and mixed; and what is short, many times over. The
 * same each time. With arguments: these files or directories as they are, nothing else.
 *
 * The input that ends the process is left in NAME.failed beside the program.
 */
#include "config.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define PATH_SIZE 4096
#define FILE_MAX ((size_t)1 << 20)
/* So many damaged inputs a target, spread over its corpus. */
#define DAMAGED_MAX 12000
#define RANDOM_ROUNDS 2000
/* What is as short as this is also tried again and again in one input, which has this size then. */
#define SHORT_MAX 12
#define REPEATED_SIZE ((size_t)200 * 1000)

/* ---- one input ---------------------------------------------------------------------------- */

static const unsigned char *current;
static size_t current_size;
static char failed_path[PATH_SIZE];

/* No more than what a signal handler may do would be nicer, but the process is lost anyway. */
static void keep_current(void)
{
    FILE *file = current ? fopen(failed_path, "wb") : NULL;
    if (!file)
        return;
    (void)fwrite(current, 1, current_size, file);
    (void)fclose(file);
    (void)fprintf(stderr, "the input is in %s\n", failed_path);
    current = NULL;
}

static void on_signal(int number)
{
    keep_current();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void prepare(const char *program)
{
    static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    (void)snprintf(failed_path, sizeof failed_path, "%.4000s.failed", program);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(keep_current);
        (void)signal(SIGABRT, on_signal);
        return;
    }
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        (void)signal(signals[i], on_signal);
}

/* In memory of its own, so that reading beyond its end is noticed. */
static void run(const unsigned char *data, size_t size)
{
    unsigned char *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    current = copy;
    current_size = size;
    (void)LLVMFuzzerTestOneInput(copy, size);
    current = NULL;
    free(copy);
}

/* ---- a corpus ----------------------------------------------------------------------------- */

typedef struct {
    unsigned char *data;
    size_t size;
} input;

typedef struct {
    input *list;
    size_t count;
    size_t bytes;
} corpus;

static void add(corpus *all, const char *path)
{
    FILE *file = fopen(path, "rb");
    input one = { malloc(FILE_MAX), 0 };
    input *list = realloc(all->list, (all->count + 1) * sizeof *list);
    if (!file || !one.data || !list) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    one.size = fread(one.data, 1, FILE_MAX, file);
    (void)fclose(file);
    all->list = list;
    all->list[all->count++] = one;
    all->bytes += one.size;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void add_path(corpus *all, const char *path)
{
    struct dirent **entries = NULL;
    struct stat st;
    char name[PATH_SIZE];
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        add(all, path);
        return;
    }
    int count = scandir(path, &entries, is_visible, alphasort);
    for (int i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%.3800s/%.200s", path, entries[i]->d_name);
        add(all, name);
        free(entries[i]);
    }
    free(entries);
}

static void free_all(corpus *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->list[i].data);
    free(all->list);
}

/* ---- damage ------------------------------------------------------------------------------- */

static uint32_t draw(uint32_t below)
{
    static uint64_t state = 20261126;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static void run_cut(const input *one, size_t step)
{
    for (size_t size = 0; size < one->size; size += step)
        run(one->data, size);
}

static void run_flipped(const input *one, size_t step)
{
    static const unsigned char masks[] = { 0x01, 0x04, 0x20, 0x80, 0xff };
    for (size_t at = 0; at < one->size; at += step)
        for (size_t i = 0; i < sizeof masks; i++) {
            one->data[at] ^= masks[i];
            run(one->data, one->size);
            one->data[at] ^= masks[i];
        }
}

/* A byte that means something to a parser, or to a reader of binary sizes. */
static unsigned char draw_byte(void)
{
    static const char bytes[] = "{}[]();:=\"'@\\#/*\n,.-+0L9 \x80\xc0\xff\x7f\x01\x04";
    return (unsigned char)bytes[draw(sizeof bytes)]; /* the NUL, too */
}

/* Doubles a part, or puts one of another input over it. @return the new size. */
static size_t mix(unsigned char *data, size_t size, size_t room, const input *other)
{
    size_t at = draw((uint32_t)size), length = draw(40);
    if (draw(2) && at + length < size && size + length < room) {
        memmove(data + at + length, data + at, size - at);
        return size + length;
    }
    if (length > other->size)
        length = other->size;
    if (length > size - at)
        length = size - at;
    if (length)
        memcpy(data + at, other->data + draw((uint32_t)(other->size - length + 1)), length);
    return size;
}

static void run_random(const corpus *all)
{
    const input *from = &all->list[draw((uint32_t)all->count)];
    const size_t room = 2 * from->size + 1;
    unsigned char *data = malloc(room);
    size_t size = from->size;
    if (!data || !size) {
        free(data);
        return;
    }
    memcpy(data, from->data, size);
    for (uint32_t times = 1 + draw(6); times; times--) {
        if (draw(2))
            data[draw((uint32_t)size)] = draw_byte();
        else
            size = mix(data, size, room, &all->list[draw((uint32_t)all->count)]);
    }
    run(data, size);
    free(data);
}

static void run_repeated(const input *one)
{
    unsigned char *data = malloc(REPEATED_SIZE);
    size_t size = 0;
    if (!data)
        abort();
    for (; size + one->size <= REPEATED_SIZE; size += one->size)
        memcpy(data + size, one->data, one->size);
    run(data, size);
    free(data);
}

/* ---- the test ----------------------------------------------------------------------------- */

static void run_all(const corpus *all)
{
    for (size_t i = 0; i < all->count; i++)
        run(all->list[i].data, all->list[i].size);
}

/* Each byte is cut at once and changed five times: not each, where that would be too often. */
static void damage(const corpus *all)
{
    const size_t step = 1 + 6 * all->bytes / DAMAGED_MAX;
    for (size_t i = 0; i < all->count; i++) {
        run_cut(&all->list[i], step);
        run_flipped(&all->list[i], step);
    }
    for (int i = 0; i < RANDOM_ROUNDS; i++)
        run_random(all);
}

static void repeat(const corpus *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].size && all->list[i].size <= SHORT_MAX)
            run_repeated(&all->list[i]);
}

static void add_own(corpus *all)
{
    char path[PATH_SIZE];
    const char *top = getenv("top_srcdir");
    (void)snprintf(path, sizeof path, "%.3800s/tests/fuzz/corpus/%.200s", top ? top : ".", fuzz_name);
    add_path(all, path);
}

int main(int argc, char **argv)
{
    corpus all = { 0 };
    FILE *tap = fdopen(dup(STDOUT_FILENO), "w"); /* a target may do with stdout what it likes */
    if (!tap)
        return 1;
    prepare(argv[0]);
    for (int i = 1; i < argc; i++)
        add_path(&all, argv[i]);
    if (argc == 1)
        add_own(&all);
    if (!all.count)
        return 1;
    (void)fprintf(tap, "1..%d\n", argc == 1 ? 3 : 1);
    run_all(&all);
    (void)fprintf(tap, "ok 1 - %s: %zu inputs\n", fuzz_name, all.count);
    if (argc == 1) {
        damage(&all);
        (void)fprintf(tap, "ok 2 - %s: damaged\n", fuzz_name);
        repeat(&all);
        (void)fprintf(tap, "ok 3 - %s: repeated\n", fuzz_name);
    }
    free_all(&all);
    return fclose(tap) == 0 ? 0 : 1;
}
