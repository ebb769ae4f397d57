/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"

#define FILE_MAX (64 * 1024)
/* What others may not do with a secret file, and with one that is none. */
#define SECRET (S_IRWXO | S_IWGRP)
#define PUBLIC (S_IWOTH | S_IWGRP)

static int starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

int wb_secret_is_reference(const char *text)
{
    return starts_with(text, "env:") || starts_with(text, "file:");
}

void wb_secrets_remember(wb_secrets *secrets, char *value)
{
    secrets->values =
        wb_realloc(secrets->values, (secrets->count + 1) * sizeof *secrets->values);
    secrets->values[secrets->count++] = value;
}

void wb_secrets_wipe(wb_secrets *secrets)
{
    for (size_t i = 0; i < secrets->count; i++)
        explicit_bzero(secrets->values[i], strlen(secrets->values[i]));
    free(secrets->values);
    secrets->values = NULL;
    secrets->count = 0;
}

static const char *from_environment(wb_secrets *secrets, wb_arena *arena, const char *name,
                                    char *reason, size_t reason_size)
{
    const char *value = *name ? getenv(name) : NULL;
    if (!value) {
        (void)snprintf(reason, reason_size, "environment variable \"%s\" is not set", name);
        return NULL;
    }
    char *copy = wb_arena_copy(arena, value, strlen(value));
    wb_secrets_remember(secrets, copy);
    return copy;
}

/* `forbidden`: what the mode must not allow. */
static int check_file(int fd, const char *path, mode_t forbidden, char *reason, size_t reason_size)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        (void)snprintf(reason, reason_size, "secret file \"%s\": %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        (void)snprintf(reason, reason_size, "secret file \"%s\" is not a regular file", path);
    else if (st.st_uid != 0 && st.st_uid != geteuid())
        (void)snprintf(reason, reason_size,
                       "secret file \"%s\" belongs to uid %ld; it must belong to root or uid %ld",
                       path, (long)st.st_uid, (long)geteuid());
    else if (st.st_mode & forbidden)
        (void)snprintf(reason, reason_size,
                       "secret file \"%s\" has mode %04o, which lets others read or change it; "
                       "use chmod %s",
                       path, (unsigned)(st.st_mode & 07777), forbidden == SECRET ? "0600" : "go-w");
    else if (st.st_size > FILE_MAX)
        (void)snprintf(reason, reason_size, "secret file \"%s\" is larger than %d bytes", path,
                       FILE_MAX);
    else
        return 1;
    return 0;
}

static ssize_t read_all(int fd, char *data, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(fd, data + used, size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    return (ssize_t)used;
}

static void forget_content(void *data)
{
    explicit_bzero(data, FILE_MAX);
    free(data);
}

static const char *take_content(int fd, wb_secrets *secrets, wb_arena *arena, const char *path,
                                char *reason, size_t reason_size)
{
    char *data = wb_alloc(FILE_MAX);
    const char *value = NULL;
    wb_memory_held held;
    wb_memory_hold(&held, forget_content, data);
    ssize_t size = read_all(fd, data, FILE_MAX);

    if (size < 0) {
        (void)snprintf(reason, reason_size, "cannot read secret file \"%s\": %s", path,
                       strerror(errno));
        goto out;
    }
    if (size > 0 && data[size - 1] == '\n')
        size--;
    if (memchr(data, '\0', (size_t)size)) {
        (void)snprintf(reason, reason_size, "secret file \"%s\" holds a NUL byte", path);
        goto out;
    }
    char *copy = wb_arena_copy(arena, data, (size_t)size);
    wb_secrets_remember(secrets, copy);
    value = copy;
out:
    wb_memory_let_go(&held);
    forget_content(data);
    return value;
}

static void close_file(void *fd)
{
    (void)close(*(const int *)fd);
}

static const char *from_file(wb_secrets *secrets, wb_arena *arena, const char *path, mode_t forbidden, char *reason,
                             size_t reason_size)
{
    const char *value = NULL;
    /* non-blocking: a FIFO must be refused, not waited for */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        (void)snprintf(reason, reason_size, "cannot open secret file \"%s\": %s", path,
                       strerror(errno));
        return NULL;
    }
    wb_memory_held held;
    wb_memory_hold(&held, close_file, &fd);
    if (check_file(fd, path, forbidden, reason, reason_size))
        value = take_content(fd, secrets, arena, path, reason, reason_size);
    wb_memory_let_go(&held);
    close(fd);
    return value;
}

const char *wb_secret_resolve(wb_secrets *secrets, wb_arena *arena, wb_conf_origin at,
                              const char *reference, char *reason, size_t reason_size)
{
    if (starts_with(reference, "env:"))
        return from_environment(secrets, arena, reference + strlen("env:"), reason, reason_size);
    const char *name = reference + strlen("file:");
    if (!*name) {
        (void)snprintf(reason, reason_size, "\"file:\" names no file");
        return NULL;
    }
    return from_file(secrets, arena, wb_conf_path(arena, at, name), SECRET, reason, reason_size);
}

const char *wb_secret_read(wb_secrets *secrets, wb_arena *arena, const char *path, char *reason, size_t reason_size)
{
    return from_file(secrets, arena, path, SECRET, reason, reason_size);
}

const char *wb_public_read(wb_arena *arena, const char *path, char *reason, size_t reason_size)
{
    wb_secrets none = { 0 };
    const char *value = from_file(&none, arena, path, PUBLIC, reason, reason_size);
    free(none.values);
    return value;
}
