/* SPDX-License-Identifier: Apache-2.0
 *
 * Silences: the destinations that did not confirm what a round of the sweeper sent them. Each try
 * takes as long as a confirmation is waited for, so a round makes one; what else it finds for them
 * is put off. A table of a fixed size: what does not fit is tried.
 */
#ifndef WB_ENDPOINT_SILENCES_H
#define WB_ENDPOINT_SILENCES_H

#include <stddef.h>

#define WB_SILENCES_MAX 256

typedef struct wb_silences {
    char *destinations[WB_SILENCES_MAX];
    size_t count;
} wb_silences;

void wb_silences_add(wb_silences *silences, const char *destination);
int wb_silences_has(const wb_silences *silences, const char *destination);
void wb_silences_free(wb_silences *silences);

#endif
