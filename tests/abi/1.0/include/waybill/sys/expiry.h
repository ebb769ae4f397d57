/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that expire: the header NServiceBus.TimeToBeReceived says how long one may lie in a
 * queue before somebody receives it, "00:00:30" for half a minute ("[days.]hh:mm:ss[.fffffff]"). A
 * transport with WB_CAP_EXPIRY reads it here, where it sends if its broker lets messages expire,
 * else where it receives. No field of wb_operation says so: the header travels with a stored
 * operation, whatever version wrote it.
 *
 * A message that was received once expires no more: the copy for an error queue or the audit
 * queue, a delayed retry, and what came back from an error queue keep the header, but they have
 * another one too that tells what they are.
 *
 * Links nothing. Change log: 1.0 first version.
 */
#ifndef WAYBILL_SYS_EXPIRY_H
#define WAYBILL_SYS_EXPIRY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <waybill/message.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The longest time to be received that can be asked for. RabbitMQ takes 2^32 - 1 milliseconds,
 *  some 49.7 days, at most; what others ask for beyond never expires. */
#define WB_EXPIRY_MAX (49 * WB_DAYS)

static inline const wb_header *wb_expiry_find(const wb_header *headers, size_t count, const char *name,
                                              size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (headers[i].name_size == size && memcmp(headers[i].name, name, size) == 0)
            return &headers[i];
    return NULL;
}

#define WB_EXPIRY_FIND(headers, count, literal)                                                    \
    wb_expiry_find((headers), (count), "" literal, sizeof(literal) - 1)

/** A number of `digits` digits and the byte behind it; `stop` 0: there is none.
 *  @return 0: that is not what is there. */
static inline int wb_expiry_number(const char **at, const char *end, int digits, char stop, int64_t *ret_number)
{
    *ret_number = 0;
    for (; digits > 0; digits--, (*at)++) {
        if (*at == end || **at < '0' || **at > '9')
            return 0;
        *ret_number = *ret_number * 10 + (**at - '0');
    }
    if (!stop)
        return 1;
    return *at != end && *(*at)++ == stop;
}

/** "hh:mm:ss" and what follows, perhaps ".fffffff". @return 0: it is neither. */
static inline int wb_expiry_time_of_day(const char *at, const char *end, int64_t *ret_time)
{
    int64_t hours, minutes, seconds, ticks = 0;
    if (!wb_expiry_number(&at, end, 2, ':', &hours) || !wb_expiry_number(&at, end, 2, ':', &minutes) ||
        !wb_expiry_number(&at, end, 2, 0, &seconds) || hours > 23 || minutes > 59 || seconds > 59)
        return 0;
    if (at != end && (*at++ != '.' || !wb_expiry_number(&at, end, 7, 0, &ticks)))
        return 0;
    *ret_time = hours * WB_HOURS + minutes * WB_MINUTES + seconds * WB_SECONDS + ticks * 100;
    return at == end;
}

/** A TimeSpan as .NET writes it. @return 1 and the nanoseconds, or 0: it is none, is negative, or
 *  is longer than anything here lasts (.NET's longest stands for "never"). */
static inline int wb_expiry_parse(const char *text, size_t size, int64_t *ret_span)
{
    const char *at = text, *end = text + size;
    const char *colon = (const char *)memchr(text, ':', size);
    const char *point = (const char *)memchr(text, '.', size);
    int64_t days = 0, of_day;
    if (colon && point && point < colon &&
        (point == at || point - at > 5 || !wb_expiry_number(&at, end, (int)(point - at), '.', &days)))
        return 0;
    if (!wb_expiry_time_of_day(at, end, &of_day))
        return 0;
    *ret_span = days * WB_DAYS + of_day;
    return 1;
}

/** What the headers ask for, in nanoseconds; 0: it does not expire, or no more. */
static inline int64_t wb_time_to_be_received(const wb_header *headers, size_t count)
{
    const wb_header *asked = WB_EXPIRY_FIND(headers, count, "NServiceBus.TimeToBeReceived");
    int64_t span;
    if (!asked || !asked->value || !wb_expiry_parse(asked->value, asked->value_size, &span) || span > WB_EXPIRY_MAX)
        return 0;
    if (WB_EXPIRY_FIND(headers, count, "NServiceBus.Retries") ||
        WB_EXPIRY_FIND(headers, count, "NServiceBus.FailedQ") ||
        WB_EXPIRY_FIND(headers, count, "NServiceBus.ProcessingEnded") ||
        WB_EXPIRY_FIND(headers, count, "ServiceControl.Retry.UniqueMessageId"))
        return 0;
    return span;
}

/** Days from 1970 to a date of the Gregorian calendar. */
static inline int64_t wb_expiry_days(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + of_year - 719468;
}

/** When it was sent, by its header NServiceBus.TimeSent ("yyyy-MM-dd HH:mm:ss:ffffff Z"):
 *  nanoseconds since 1970 UTC; 0: that does not say. */
static inline int64_t wb_time_sent(const wb_header *headers, size_t count)
{
    const wb_header *sent = WB_EXPIRY_FIND(headers, count, "NServiceBus.TimeSent");
    const char *at = sent ? sent->value : NULL;
    const char *end = at ? at + sent->value_size : NULL;
    int64_t year, month, day, hour, minute, second, micros;
    if (!at || !wb_expiry_number(&at, end, 4, '-', &year) || !wb_expiry_number(&at, end, 2, '-', &month) ||
        !wb_expiry_number(&at, end, 2, ' ', &day) || !wb_expiry_number(&at, end, 2, ':', &hour) ||
        !wb_expiry_number(&at, end, 2, ':', &minute) || !wb_expiry_number(&at, end, 2, ':', &second) ||
        !wb_expiry_number(&at, end, 6, ' ', &micros) || end - at != 1 || *at != 'Z' || year < 1970 ||
        year > 2200) /* 64 bits end in 2262 */
        return 0;
    return wb_expiry_days(year, month, day) * WB_DAYS + hour * WB_HOURS + minute * WB_MINUTES +
           second * WB_SECONDS + micros * 1000;
}

/** Whether it lay for too long. `sent` is when it came into the queue, as the transport knows it, or 0:
 *  then its header says when it was sent. What says neither does not expire. */
static inline int wb_has_expired(const wb_header *headers, size_t count, int64_t sent, int64_t now)
{
    int64_t span = wb_time_to_be_received(headers, count);
    int64_t since = sent || !span ? sent : wb_time_sent(headers, count);
    return span && since > 0 && now - since >= span;
}

#ifdef __cplusplus
}
#endif
#endif
