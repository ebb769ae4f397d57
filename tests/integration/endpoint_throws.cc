/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler in C++ that throws across its caller: the first time, as the file WB_THROWN remembers.
 */
#include <cstdlib>
#include <fcntl.h>
#include <stdexcept>
#include <unistd.h>
#include <waybill/handler.h>

static int throws(wb_context *, const wb_message *)
{
    int file = open(std::getenv("WB_THROWN"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return WB_OK;
    close(file);
    throw std::runtime_error("nobody catches this");
}

WB_HANDLERS(WB_HANDLER("Test.Throw", throws))
