/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/suggest.h"

#include <stdint.h>
#include <string.h>

#define WORD_MAX 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t wb_edit_distance(const char *left, const char *right)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *previous = rows[1], *current = rows[2];
    size_t width = strlen(right), height = strlen(left);

    if (width > WORD_MAX || height > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= width; j++)
        previous[j] = j;
    for (size_t i = 1; i <= height; i++) {
        current[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t change = previous[j - 1] + (left[i - 1] != right[j - 1]);
            current[j] = least(change, least(previous[j], current[j - 1]) + 1);
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
                current[j] = least(current[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = previous;
        previous = current;
        current = oldest;
    }
    return previous[width];
}

void wb_suggest(const char *word, const char *candidate, const char **best)
{
    /* A third of the word may be wrong; two letters in short ones, never the whole word. */
    size_t size = strlen(word);
    size_t allowed = size / 3 > 2 ? size / 3 : 2;
    size_t distance = wb_edit_distance(word, candidate);

    if (distance > allowed || distance >= size)
        return;
    if (!*best || distance < wb_edit_distance(word, *best))
        *best = candidate;
}
