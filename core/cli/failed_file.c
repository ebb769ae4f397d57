/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/failed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/cli/failed_line.h"
#include "core/cli/progress.h"
#include "core/message/failed_id.h"

/* What meets another's transaction is tried again, for so long. */
#define PATIENCE (10 * WB_SECOND)
#define PAUSE (20 * WB_MILLISECOND)

static int is_stream(const char *path)
{
    return !path || strcmp(path, "-") == 0;
}

/* ---- out -------------------------------------------------------------------------------- */

/* Where it is written to. A file is written beside its place and put there when it is whole: it may replace the only one. */
typedef struct {
    const char *path;
    char place[PATH_MAX];  /* where it lies, behind links */
    char beside[PATH_MAX]; /* "": it is written in its place, a stream or a device */
    FILE *file;
} export_file;

/* A link stays, and the file that it leads to is replaced; but what /dev leads to may be the file that a shell has opened. */
static int is_replaced(export_file *o)
{
    struct stat status;
    (void)snprintf(o->place, sizeof o->place, "%s", o->path);
    if (lstat(o->path, &status) != 0)
        return errno == ENOENT;
    if (!S_ISLNK(status.st_mode))
        return S_ISREG(status.st_mode);
    return strncmp(o->path, "/dev/", 5) != 0 && stat(o->path, &status) == 0 && S_ISREG(status.st_mode) &&
           realpath(o->path, o->place) != NULL;
}

/* Its owner alone may read it. */
static int open_file(export_file *o)
{
    if (is_replaced(o)) {
        const int size = snprintf(o->beside, sizeof o->beside, "%s.XXXXXX", o->place);
        if (size > 0 && (size_t)size < sizeof o->beside)
            return mkostemp(o->beside, O_CLOEXEC);
        o->beside[0] = '\0';
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(o->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static int open_output(export_file *o)
{
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is told of as a disk that is full is */
    const int file = open_file(o);
    o->file = file < 0 ? NULL : fdopen(file, "w");
    if (file >= 0 && !o->file)
        (void)close(file);
    return o->file ? EX_OK : cli_fail(EX_CANTCREAT, "cannot write \"%s\": %s", o->path, strerror(errno));
}

/* On the disk before it has its name. @return whether all was written. */
static int close_output(export_file *o)
{
    const int is_beside = o->beside[0] != '\0';
    int is_written = !ferror(o->file) && fflush(o->file) == 0 && (!is_beside || fsync(fileno(o->file)) == 0);
    if (o->file != stdout)
        is_written &= fclose(o->file) == 0;
    return is_written;
}

/* What lacks those that cannot be read replaces nothing: what is there may be the last that has them. */
static int put_in_place(const export_file *o, int code)
{
    const int lacks_some = code == EX_DATAERR;
    if (!o->beside[0])
        return code;
    if (lacks_some && access(o->place, F_OK) == 0)
        return cli_fail(code, "\"%s\" is as it was; the others are in \"%s\"", o->path, o->beside);
    if ((code == EX_OK || lacks_some) && rename(o->beside, o->place) == 0)
        return code;
    if (code == EX_OK || lacks_some)
        code = cli_fail(EX_CANTCREAT, "cannot write \"%s\": %s", o->path, strerror(errno));
    (void)unlink(o->beside);
    return code;
}

typedef struct writing {
    FILE *output;
    int64_t body_max;
    int code; /* EX_OK, or EX_DATAERR if some cannot be read */
} writing;

static int write_one(void *argument, const wb_failed *failed)
{
    writing *w = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    const int why = wb_failed_decode_whole(failed->message, failed->message_size, w->body_max, &arena, &record);
    json_t *line = why ? NULL : cli_failed_line_make(failed, &record);
    const int is_written = line && json_dumpf(line, w->output, JSON_COMPACT) == 0 && fputc('\n', w->output) != EOF;
    if (why)
        w->code = cli_failed_unread(failed->key, failed->key_size, why);
    json_decref(line);
    wb_arena_free(&arena);
    return is_written || why ? WB_OK : WB_ABORT;
}

static int write_all(const cli_failed_table *t, const cli_failed *found, size_t count, FILE *output)
{
    wb_error error = { 0 };
    writing w = { .output = output, .body_max = t->body_max, .code = EX_OK };
    for (size_t i = 0; i < count; i++) {
        cli_progress_set(i);
        const int r = t->ops->get(t->session, found[i].key, found[i].key_size, write_one, &w, &error);
        if (r != WB_OK && ferror(output))
            return EX_IOERR; /* told when it is closed */
        if (r != WB_OK)
            return cli_fail(wb_error_exit_code(&error), "%s", error.text);
    }
    return w.code;
}

int cli_failed_export(const cli_failed_table *table, const cli_failed *found, size_t count, const char *path)
{
    export_file o = { .path = path ? path : "-", .file = stdout };
    int code = is_stream(path) ? EX_OK : open_output(&o);
    if (code != EX_OK)
        return code;
    cli_progress_begin("exporting", "failed messages", count, o.file == stdout);
    code = write_all(table, found, count, o.file);
    cli_progress_end();
    if (!close_output(&o))
        code = cli_fail(EX_IOERR, "cannot write \"%s\": %s", o.path, strerror(errno));
    return put_in_place(&o, code);
}

/* ---- in ---------------------------------------------------------------------------------- */

/* What is there of that key, behind a put. */
typedef struct {
    const wb_failed *wanted;
    int is_other; /* it was there before */
} place;

static int look_at(void *argument, const wb_failed *failed)
{
    place *p = argument;
    p->is_other = failed->attempts != 1 || failed->failed_at != p->wanted->failed_at || failed->changed_at != p->wanted->changed_at;
    return WB_OK;
}

/* With its status at once: nobody retries meanwhile what is resolved. */
static int set_status(const cli_failed_table *t, const wb_failed *failed, wb_error *error)
{
    int was;
    const wb_failed_turn turn = { .struct_size = sizeof turn, .key = failed->key, .key_size = failed->key_size,
                                  .from = WB_FAILED_WAITS, .to = failed->status, .now = failed->changed_at };
    return failed->status != WB_FAILED_WAITS ? t->ops->turn(t->session, &turn, &was, error) : WB_OK;
}

/* It is looked at behind the put, when nobody else can change it: what was there, or came there meanwhile, is put back by the
 * rollback. */
static int add_once(const cli_failed_table *t, const wb_failed *failed, int *ret_is_there, wb_error *error)
{
    wb_error ignored;
    wb_begin begin = { .struct_size = sizeof begin };
    wb_commit commit = { .struct_size = sizeof commit, .failed_item = SIZE_MAX };
    place p = { .wanted = failed };
    int result = t->persistence->begin(t->session, &begin, error);
    if (result != WB_OK)
        return result;
    result = t->ops->put(t->session, failed, error);
    if (result == WB_OK)
        result = t->ops->get(t->session, failed->key, failed->key_size, look_at, &p, error);
    *ret_is_there = p.is_other;
    if (result == WB_OK && !p.is_other)
        result = set_status(t, failed, error);
    if (result == WB_OK && !p.is_other)
        return t->persistence->commit(t->session, &commit, error);
    (void)t->persistence->rollback(t->session, &ignored);
    return result;
}

static int add(const cli_failed_table *t, const wb_failed *failed, int *ret_is_there)
{
    const int64_t until = wb_clock_monotonic() + PATIENCE;
    wb_error error = { 0 };
    int r;
    while (((r = add_once(t, failed, ret_is_there, &error)) == WB_ABORT || r == WB_RETRY) && wb_clock_monotonic() < until)
        wb_clock_pause(PAUSE, NULL);
    if (r == WB_IN_DOUBT)
        return cli_fail(EX_TEMPFAIL, "whether it was added is not known, try again: %s", error.text);
    return r == WB_OK ? EX_OK : cli_fail(wb_error_exit_code(&error), "%s", error.text);
}

/* As tables keep it, so that it is known again: in microseconds. */
static int64_t now_of(const cli_failed_table *t)
{
    const int64_t now = wb_pipeline_now(t->pipeline);
    return now - now % 1000;
}

static int add_line(const cli_failed_table *t, const cli_failed_line *line, cli_failed_told tell, void *argument)
{
    char key[WB_GENERATED_ID_SIZE];
    wb_buffer summary = { 0 }, whole = { 0 };
    const wb_message *m = &line->message;
    int is_there = 0;
    wb_failed_key(m->headers, m->header_count, m->id, m->id_size, key);
    wb_failed_encode(m, t->compress_over, &summary, &whole);
    const wb_failed failed = { .struct_size = sizeof failed, .key = key, .key_size = strlen(key), .status = line->status,
                               .failed_at = line->failed_at ? line->failed_at : now_of(t), .changed_at = now_of(t),
                               .summary = summary.data, .summary_size = summary.size,
                               .message = whole.data, .message_size = whole.size };
    const int code = add(t, &failed, &is_there);
    const cli_failed one = { key, strlen(key), line->status };
    if (code == EX_OK)
        tell(argument, &one, !is_there);
    wb_buffer_free(&summary);
    wb_buffer_free(&whole);
    return code;
}

static int import_lines(const cli_failed_table *t, const char *path, FILE *input, cli_failed_told tell, void *argument)
{
    char *text = NULL, problem[CLI_PROBLEM_SIZE];
    size_t room = 0;
    ssize_t size;
    int code = EX_OK;
    for (unsigned long number = 1; code == EX_OK && (size = getline(&text, &room, input)) > 0; number++) {
        cli_failed_line line;
        if (cli_failed_line_read(text, (size_t)size, &line, problem) != 0) {
            code = cli_fail(EX_DATAERR, "%s:%lu: %s", path, number, problem);
            break;
        }
        code = add_line(t, &line, tell, argument);
        cli_progress_set(number);
        cli_failed_line_free(&line);
    }
    free(text);
    return ferror(input) ? cli_fail(EX_NOINPUT, "cannot read \"%s\"", path) : code;
}

int cli_failed_import(const cli_failed_table *table, const char *path, cli_failed_told tell, void *argument)
{
    FILE *input = is_stream(path) ? stdin : fopen(path, "rbe");
    if (!input)
        return cli_fail(EX_NOINPUT, "cannot open \"%s\": %s", path, strerror(errno));
    cli_progress_begin("importing", "failed messages", 0, 1);
    const int code = import_lines(table, is_stream(path) ? "standard input" : path, input, tell, argument);
    cli_progress_end();
    if (input != stdin)
        (void)fclose(input);
    return code;
}
