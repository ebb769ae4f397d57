/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the nearest of some known words.
 */
#ifndef WB_CONFIG_SUGGEST_H
#define WB_CONFIG_SUGGEST_H

#include <stddef.h>

/** Insertions, deletions, substitutions and swaps of neighbours between two words;
 *  words longer than 64 bytes are simply far apart. */
size_t wb_edit_distance(const char *left, const char *right);

/** Keeps the better of two candidates for `word`: `*best` (NULL at first) or `candidate`,
 *  if that is near enough to be meant. Call it for each known word. */
void wb_suggest(const char *word, const char *candidate, const char **best);

#endif
