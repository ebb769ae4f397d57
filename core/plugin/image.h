/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file of code says of itself, read before the dynamic loader maps it.
 *
 * A shared object that was cut short (a copy that is still under way, a full disk) is mapped all
 * the same, and the first touch of what is missing ends the process with SIGBUS, before anybody
 * can say why. Nobody else can change the file between this look and the load: see trust.h.
 */
#ifndef WB_PLUGIN_IMAGE_H
#define WB_PLUGIN_IMAGE_H

#include <stddef.h>

#define WB_IMAGE_FAULT_SIZE 160

/** Whether all that the loader would map is there. Of what is no shared object of this machine
 *  nothing is said: dlopen() has a sentence for that.
 *  @return NULL, or the fault in words, in `text`. */
const char *wb_image_fault(const char *path, char text[WB_IMAGE_FAULT_SIZE]);

/** Whether the file holds these bytes: a plugin is known by the name of what it exports, without
 *  running anything of it. */
int wb_image_holds(const char *path, const char *text);

#endif
