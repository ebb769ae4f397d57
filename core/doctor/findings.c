/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/doctor/findings.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/arena.h"

#define TEXT_SIZE 4096

/* Threads of plugins warn while others are asked: all that changes a list. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static wb_finding_kept *next_place(wb_findings *findings)
{
    if (findings->count == findings->capacity) {
        findings->capacity = findings->capacity ? 2 * findings->capacity : 16;
        findings->items = wb_realloc(findings->items, findings->capacity * sizeof *findings->items);
    }
    return &findings->items[findings->count++];
}

static void add(wb_findings *findings, const wb_finding_place *at, int severity, const char *name, const char *remedy,
                const char *text)
{
    pthread_mutex_lock(&lock);
    findings->biting += severity == WB_FINDING_WARNING || severity == WB_FINDING_DANGER;
    findings->unseen += severity == WB_FINDING_UNSEEN;
    *next_place(findings) = (wb_finding_kept){ .at = *at,
                                               .severity = severity,
                                               .name = wb_strdup(name),
                                               .text = wb_strdup(text),
                                               .remedy = remedy ? wb_strdup(remedy) : NULL };
    pthread_mutex_unlock(&lock);
}

void wb_findings_add(wb_findings *findings, const wb_finding_place *at, int severity, const char *name, const char *remedy,
                     const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (severity < WB_FINDING_NOTE || severity > WB_FINDING_DANGER)
        severity = WB_FINDING_WARNING;
    add(findings, at, severity, name, remedy, text);
}

void wb_findings_add_unseen(wb_findings *findings, const wb_finding_place *at, const char *name, const char *why)
{
    add(findings, at, WB_FINDING_UNSEEN, name, NULL, why);
}

const char *wb_finding_severity_name(int severity)
{
    static const char *const names[] = { "warning", "note", "warning", "danger", "unseen" };
    return names[severity];
}

void wb_findings_free(wb_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->items[i].name);
        free(findings->items[i].text);
        free(findings->items[i].remedy);
    }
    free(findings->items);
    *findings = (wb_findings){ 0 };
}
