/* SPDX-License-Identifier: Apache-2.0
 *
 * What somebody hands over: a pointer and a size, as <waybill/message.h> explains them. `what` names
 * it in the error: "an outgoing message's id".
 */
#ifndef WB_MESSAGE_GIVEN_H
#define WB_MESSAGE_GIVEN_H

#include <waybill/message.h>

#include "core/base/error.h"

/** Bytes: WB_TEXT becomes the size of the text. Of NULL the size is 0 then: none are given.
 *  @return WB_OK, or WB_REJECT: NULL with a size. */
int wb_given_bytes(const char *what, const void *bytes, size_t *size, wb_error *error);

/** The same for a name, an id or a key, of which there is no empty one: WB_REJECT, too. */
int wb_given_name(const char *what, const char *name, size_t *size, wb_error *error);

/** Whether something is set in a struct of that size beyond the `known` bytes of it: its owner was built
 *  against a later header, and asks for what is not known here. */
int wb_given_is_beyond(const void *given, size_t size, size_t known);

#endif
