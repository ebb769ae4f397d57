/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/sent.h"

#include <string.h>

#include "core/message/header_names.h"

#define MINUTE_SIZE (sizeof((wb_sent *)0)->minute - 1)
#define SIZE(literal) (sizeof(literal) - 1)

/* Behind the minute: ":ss:ffffff Z", whose digits are at these places. */
static const unsigned char places[] = { 17, 18, 20, 21, 22, 23, 24, 25 };

/* In one pass: of each message all headers are looked at, and hardly one has the size of either. */
static const wb_header *find(const wb_header *headers, size_t count)
{
    const wb_header *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (headers[i].name_size == SIZE(WB_HEADER_TIME_SENT) && !found &&
            memcmp(headers[i].name, WB_HEADER_TIME_SENT, SIZE(WB_HEADER_TIME_SENT)) == 0)
            found = &headers[i];
        else if (headers[i].name_size == SIZE(WB_HEADER_DELIVER_AT) &&
                 memcmp(headers[i].name, WB_HEADER_DELIVER_AT, SIZE(WB_HEADER_DELIVER_AT)) == 0)
            return &headers[i];
    }
    return found;
}

/* What other years would come to does not fit, or nobody means it: 2000 to 2199. */
static int is_of_our_time(const char *text)
{
    return text[0] == '2' && (text[1] == '0' || text[1] == '1');
}

static int is_as_written(const char *text)
{
    unsigned strange = text[16] != ':' || text[19] != ':' || text[26] != ' ' || text[27] != 'Z';
    for (size_t i = 0; i < sizeof places; i++)
        strange |= (unsigned)(text[places[i]] - '0') > 9;
    return !strange && text[17] <= '5' && is_of_our_time(text);
}

static int64_t read_rest(const wb_sent *sent, const char *text)
{
    int64_t micros = 0;
    for (size_t i = 2; i < sizeof places; i++)
        micros = micros * 10 + (text[places[i]] - '0');
    return sent->since + ((text[17] - '0') * 10 + (text[18] - '0')) * WB_SECOND + micros * 1000;
}

int64_t wb_sent_read(wb_sent *sent, const wb_header *headers, size_t count)
{
    int64_t wall;
    const wb_header *header = find(headers, count);
    if (!header || header->value_size != WB_TIMESTAMP_SIZE - 1)
        return 0;
    if (memcmp(header->value, sent->minute, MINUTE_SIZE) == 0)
        return is_as_written(header->value) ? read_rest(sent, header->value) : 0;
    if (!is_as_written(header->value) || !wb_clock_parse_wire(header->value, &wall))
        return 0;
    memcpy(sent->minute, header->value, MINUTE_SIZE);
    sent->since = 0;
    sent->since = wall - read_rest(sent, header->value);
    return wall;
}
