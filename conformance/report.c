/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

int wb_report_open(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

void wb_report_send(int reporting, wb_report_kind kind, size_t place, int is_last, const char *text)
{
    wb_report report = { .kind = kind, .is_last = is_last, .place = place };
    (void)snprintf(report.text, sizeof report.text, "%s", text ? text : "");
    const size_t size = offsetof(wb_report, text) + strlen(report.text) + 1;
    while (send(reporting, &report, size, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            _exit(EX_SOFTWARE);
}

int wb_report_take(int reports, wb_report *ret_report)
{
    ssize_t size;
    while ((size = recv(reports, ret_report, sizeof *ret_report, MSG_DONTWAIT)) < 0 && errno == EINTR)
        ;
    return size > (ssize_t)offsetof(wb_report, text);
}
