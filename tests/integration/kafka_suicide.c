/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler that writes each body to the file WB_TRACE, and ends the process on "poison".
 */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <waybill/handler.h>

static int handle(wb_context *context, const wb_message *message)
{
    char line[64];
    (void)context;
    if (message->body_size == 6 && memcmp(message->body, "poison", 6) == 0)
        (void)raise(SIGKILL);
    int size = snprintf(line, sizeof line, "%.*s\n", (int)message->body_size,
                        (const char *)message->body);
    int file = open(getenv("WB_TRACE"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || write(file, line, (size_t)size) != size)
        return WB_RETRY;
    return close(file) == 0 ? WB_OK : WB_RETRY;
}

WB_HANDLERS(WB_HANDLER("Test.Work", handle))
