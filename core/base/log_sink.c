/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/patience.h"

/* Numbers below are what is opened next. */
#define KEPT_FROM 200
#define FILE_MODE 0640

/* A descriptor, and what it led to when it was ours. */
typedef struct {
    int descriptor; /* -1: there is none */
    int is_known;   /* 0: it is used whatever it leads to */
    dev_t device;
    ino_t inode;
} place;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static place error_output = { .descriptor = STDERR_FILENO };
static place file = { .descriptor = -1 };
static char file_path[PATH_MAX]; /* its name, for when somebody closed it */
static int file_code;            /* the errno with which it could not be opened anew; 0: it is open */
static int is_news;              /* it was opened anew, or could not be, and nobody has asked since */
static int is_torn;              /* the last line has no end */

static atomic_ulong lost; /* lines that nobody took in time */

static int leads_there(int descriptor, const place *to)
{
    struct stat it;
    return fstat(descriptor, &it) == 0 && it.st_dev == to->device && it.st_ino == to->inode;
}

/* @return whether it is known what it leads to. */
static int learn(place *it, int descriptor)
{
    struct stat found;
    if (descriptor < 0 || fstat(descriptor, &found) != 0)
        return 0;
    *it = (place){ descriptor, 1, found.st_dev, found.st_ino };
    return 1;
}

static int copy(int descriptor, int lowest)
{
    int made = fcntl(descriptor, F_DUPFD_CLOEXEC, KEPT_FROM);
    return made < 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, lowest) : made; /* so many may not be allowed */
}

/* @return -1: nothing leads there any more. */
static int find_error_output(void)
{
    if (!error_output.is_known || leads_there(error_output.descriptor, &error_output))
        return error_output.descriptor;
    return leads_there(STDERR_FILENO, &error_output) ? STDERR_FILENO : -1;
}

void wb_log_sink_keep_stderr(void)
{
    pthread_mutex_lock(&lock);
    (void)learn(&error_output, copy(STDERR_FILENO, STDERR_FILENO + 1));
    pthread_mutex_unlock(&lock);
}

/* ---- a file ------------------------------------------------------------------------------ */

/* Its number stays the same where it is still ours, and is somebody else's where it is not. */
static int take(int opened)
{
    if (file.descriptor >= 0 && leads_there(file.descriptor, &file))
        return dup3(opened, file.descriptor, O_CLOEXEC);
    return copy(opened, STDERR_FILENO + 1);
}

/* The umask may be a handler's. Whoever renamed the old file may make the new one at the same time, and as he likes. */
static int open_file(const char *path)
{
    const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int opened = open(path, flags);
    if (opened >= 0 || errno != ENOENT)
        return opened;
    opened = open(path, flags | O_CREAT | O_EXCL, FILE_MODE);
    if (opened >= 0)
        (void)fchmod(opened, FILE_MODE);
    return opened < 0 && errno == EEXIST ? open(path, flags) : opened;
}

static int use_file(const char *path)
{
    int opened = open_file(path);
    if (opened < 0)
        return errno;
    (void)fcntl(opened, F_SETFL, O_APPEND); /* from here on a line waits for its place in a pipe */
    int code = learn(&file, take(opened)) ? 0 : errno;
    (void)close(opened);
    return code;
}

int wb_log_sink_open(const char *path)
{
    if (!wb_log_lock(&lock))
        return EBUSY;
    int code = use_file(path);
    if (code == 0) {
        (void)snprintf(file_path, sizeof file_path, "%s", path);
        file_code = 0;
        is_torn = 0;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Somebody closed it, or has its number. @return whether it is there again. */
static int open_anew(void)
{
    const int code = use_file(file_path);
    is_news |= code == 0 || code != file_code;
    file_code = code;
    return code == 0;
}

/* @return -1: nowhere. */
static int find_descriptor(void)
{
    if (file.descriptor < 0)
        return find_error_output();
    return leads_there(file.descriptor, &file) || open_anew() ? file.descriptor : find_error_output();
}

int wb_log_sink_was_closed(int *ret_code)
{
    if (!wb_log_lock(&lock))
        return 0; /* who writes looks, too */
    (void)find_descriptor();
    const int was = is_news;
    is_news = 0;
    *ret_code = file_code;
    pthread_mutex_unlock(&lock);
    return was;
}

void wb_log_sink_close(void)
{
    if (!wb_log_lock(&lock))
        return;
    if (file.descriptor >= 0 && leads_there(file.descriptor, &file))
        (void)close(file.descriptor);
    file.descriptor = -1;
    is_torn = 0;
    pthread_mutex_unlock(&lock);
}

/* Where a file would be made. */
static int try_directory(const char *path)
{
    char directory[PATH_MAX];
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const int size = (int)(name - path);
    if (!*name)
        return EISDIR;
    if (size + 2 > PATH_MAX)
        return ENAMETOOLONG;
    (void)snprintf(directory, sizeof directory, "%.*s.", size, path);
    return faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

int wb_log_sink_try(const char *path)
{
    struct stat it;
    if (stat(path, &it) != 0)
        return errno == ENOENT ? try_directory(path) : errno;
    if (S_ISDIR(it.st_mode))
        return EISDIR;
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* ---- lines ------------------------------------------------------------------------------- */

/* @return whether it was taken. */
static int write_to(int descriptor, const char *line, size_t size)
{
    char line_break[] = "\n";
    const int first = is_torn ? 0 : 1;
    if (!wb_log_wait_for(descriptor))
        return 0;
    if (wb_log_is_hurried() && size + (size_t)is_torn > PIPE_BUF)
        size = PIPE_BUF - (size_t)is_torn; /* of what is more nobody said that it is taken */
    const struct iovec parts[] = { { line_break, 1 }, { (void *)(uintptr_t)line, size } };
    const ssize_t written = writev(descriptor, &parts[first], 2 - first);
    if (written > 0)
        is_torn = (size_t)written < size + (size_t)is_torn || line[size - 1] != '\n';
    return written >= 0 || errno != EAGAIN; /* who started us may have made it one that does not wait */
}

int wb_log_sink_write(const char *line, size_t size)
{
    int is_taken = wb_log_lock(&lock);
    if (is_taken) {
        const int to = find_descriptor();
        is_taken = to < 0 || write_to(to, line, size);
        pthread_mutex_unlock(&lock);
    }
    if (!is_taken)
        atomic_fetch_add(&lost, 1);
    return is_taken;
}

unsigned long wb_log_sink_take_lost(void)
{
    return atomic_load_explicit(&lost, memory_order_relaxed) ? atomic_exchange(&lost, 0) : 0;
}

void wb_log_sink_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}
