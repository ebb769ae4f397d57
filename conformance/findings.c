/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/findings.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_SIZE 60
#define DAY (INT64_C(86400) * 1000000000)

static int is_name(const char *name)
{
    const size_t size = name ? strlen(name) : 0;
    return size > 0 && size <= NAME_MAX_SIZE && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == size;
}

/* One line, and no sentence with a period. */
static int is_text(const char *text)
{
    const size_t size = text ? strlen(text) : 0;
    return size > 0 && !strchr(text, '\n') && text[size - 1] != '.';
}

static void check(void *argument, const wb_finding *finding)
{
    wb_kit *kit = argument;
    if (!wb_kit_check(kit, finding && finding->struct_size >= offsetof(wb_finding, remedy) + sizeof finding->remedy,
                      "a finding is NULL, or shorter than that of 1.0"))
        return;
    const char *name = finding->name ? finding->name : "(none)";
    wb_kit_check(kit, is_name(finding->name), "\"%s\" is no name of a finding", name);
    wb_kit_check(kit, is_text(finding->text), "%s: \"%s\" is no text of a finding", name, finding->text ? finding->text : "");
    wb_kit_check(kit, finding->severity >= WB_FINDING_NOTE && finding->severity <= WB_FINDING_DANGER,
                 "%s: there is no severity %d", name, finding->severity);
    wb_kit_check(kit, finding->remedy ? finding->remedy[0] != '\0' : finding->severity == WB_FINDING_NOTE,
                 "%s: nobody is told what mends it", name);
    wb_kit_check(kit, finding->reserved == 0, "%s: reserved is %d", name, finding->reserved);
    wb_kit_note(kit, "%s: %s", name, finding->text ? finding->text : "");
}

wb_examination wb_kit_examination(wb_kit *kit)
{
    return (wb_examination){ .struct_size = sizeof(wb_examination),
                             .outage = 3 * DAY,
                             .sessions = 4,
                             .found = check,
                             .argument = kit };
}
