/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/observer/otlp/otlp-post.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "plugins/observer/otlp/otlp-encode.h"

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)
/* Who answers more than that says nothing of spans. */
#define ANSWER_MAX ((size_t)64 << 10)
/* Of what it says of them so much is looked through, and a tenth of it told. */
#define REASON_SIZE (10 * WB_OTLP_REASON_SIZE)
#define SEPARATORS " \t=,;:/?&@"
#define WORD_MIN 7 /* "Bearer" is none */
#define WORD_SIZE 512
#define LONGEST_PAUSE (60 * SECOND)
#define LOOK_EVERY (200 * MILLISECOND)

/* @return less than `size`: curl ends the request. */
static size_t on_data(char *data, size_t one, size_t size, void *argument)
{
    wb_otlp_poster *poster = argument;
    const size_t room = ANSWER_MAX - poster->answer_size, taken = size < room ? size : room;
    (void)one;
    memcpy(poster->answer + poster->answer_size, data, taken);
    poster->answer_size += taken;
    return taken;
}

/* Programs that handlers start do not inherit the connection. */
static curl_socket_t open_socket(void *argument, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)argument, (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int add_header(wb_otlp_poster *poster, const char *line)
{
    struct curl_slist *list = curl_slist_append(poster->headers, line);
    if (list)
        poster->headers = list;
    return list != NULL;
}

/* A header that is empty, or blank, has a line of its own in curl. */
static int add_headers(wb_otlp_poster *poster)
{
    const wb_option_map *map = poster->config->headers;
    int is_done = add_header(poster, "Content-Type: application/json") && add_header(poster, "Expect:");
    for (size_t i = 0; is_done && map && i < map->count; i++) {
        const size_t size = strlen(map->names[i]) + strlen(map->values[i]) + 3;
        char *line = malloc(size);
        if (!line)
            return 0;
        const char *value = map->values[i] + strspn(map->values[i], " \t");
        (void)snprintf(line, size, *value ? "%s: %s" : "%s;", map->names[i], value);
        is_done = add_header(poster, line);
        memset(line, 0, size);
        free(line);
    }
    return is_done;
}

/* No proxy of the environment's is asked, and no redirection followed: a receiver is where the file says. */
static int set_options(wb_otlp_poster *poster)
{
    CURL *easy = poster->easy;
    const char *ca_file = poster->config->tls_ca_file;
    return curl_easy_setopt(easy, CURLOPT_URL, poster->config->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, poster->headers) == CURLE_OK &&
           (!ca_file || (curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file) == CURLE_OK &&
                         curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK)) && /* those alone */
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK && /* who asks for an address is not waited for */
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, poster->failure) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, poster) == CURLE_OK;
}

int wb_otlp_poster_init(wb_otlp_poster *poster, const wb_otlp_config *config, int64_t (*now)(void))
{
    memset(poster, 0, sizeof *poster);
    poster->config = config;
    poster->now = now;
    poster->answer = malloc(ANSWER_MAX);
    poster->easy = curl_easy_init();
    poster->multi = curl_multi_init();
    return poster->answer && poster->easy && poster->multi && add_headers(poster) && set_options(poster) ? WB_OK : WB_FATAL;
}

void wb_otlp_poster_free(wb_otlp_poster *poster)
{
    curl_easy_cleanup(poster->easy);
    if (poster->multi)
        (void)curl_multi_cleanup(poster->multi);
    curl_slist_free_all(poster->headers);
    free(poster->answer);
    memset(poster, 0, sizeof *poster);
}

void wb_otlp_poster_hurry(wb_otlp_poster *poster, int64_t deadline)
{
    atomic_store(&poster->deadline, deadline);
    (void)curl_multi_wakeup(poster->multi);
}

/* ---- a request --------------------------------------------------------------------- */

static int64_t time_left(wb_otlp_poster *poster, int64_t until)
{
    const int64_t deadline = atomic_load(&poster->deadline);
    return (deadline && deadline < until ? deadline : until) - poster->now();
}

/* @return curl's code of the request, or -1: its time is up. */
static int run(wb_otlp_poster *poster)
{
    const int64_t until = poster->now() + poster->config->timeout;
    int running = 1, ignored;
    int64_t left;
    for (;;) { /* once at least: else what it tells of an answer is of the request before */
        if (curl_multi_perform(poster->multi, &running) != CURLM_OK)
            return CURLE_FAILED_INIT;
        left = time_left(poster, until);
        if (!running || left <= 0)
            break;
        left = left < LOOK_EVERY ? left : LOOK_EVERY;
        (void)curl_multi_poll(poster->multi, NULL, 0, (int)(left / MILLISECOND) + 1, NULL);
    }
    const CURLMsg *message = curl_multi_info_read(poster->multi, &ignored);
    return message && message->msg == CURLMSG_DONE ? (int)message->data.result : -1;
}

/* Those that the specification calls retryable. */
static int is_retryable(long status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static int is_taken(long status)
{
    return status >= 200 && status < 300;
}

/* A word of a secret that is long enough to be one. */
static int has_word_of(const char *text, const char *secret)
{
    char word[WORD_SIZE];
    while (*secret) {
        const size_t size = strcspn(secret, SEPARATORS), kept = size < sizeof word ? size : sizeof word - 1;
        memcpy(word, secret, kept);
        word[kept] = '\0';
        if (kept >= WORD_MIN && strstr(text, word))
            return 1;
        secret += size + (secret[size] != '\0');
    }
    return 0;
}

/* Of a URL user, password and query may be some. */
static int repeats_secret(const wb_otlp_config *config, const char *text)
{
    const wb_option_map *headers = config->headers;
    const char *query = strchr(config->url, '?'), *host = strchr(config->url, '@');
    for (size_t i = 0; headers && i < headers->count; i++)
        if (has_word_of(text, headers->values[i]))
            return 1;
    return (query && has_word_of(text, query)) || (host && has_word_of(text, config->url));
}

static void judge_status(const wb_otlp_poster *poster, long status, wb_otlp_outcome *outcome)
{
    curl_off_t seconds = 0;
    (void)curl_easy_getinfo(poster->easy, CURLINFO_RETRY_AFTER, &seconds);
    if (is_taken(status)) {
        char reason[REASON_SIZE]; /* so that a secret is not cut before it is known */
        outcome->rejected = wb_otlp_rejected(poster->answer, poster->answer_size, reason, sizeof reason);
        (void)snprintf(outcome->reason, sizeof outcome->reason, "%.*s", WB_OTLP_REASON_SIZE - 1,
                       repeats_secret(poster->config, reason) ? "what it says repeats a secret of the request" : reason);
        return;
    }
    outcome->verdict = is_retryable(status) ? WB_OTLP_LATER : WB_OTLP_REFUSED;
    outcome->pause = seconds > 0 && seconds < LONGEST_PAUSE / SECOND ? seconds * SECOND : seconds > 0 ? LONGEST_PAUSE : 0;
    (void)snprintf(outcome->reason, sizeof outcome->reason, "the receiver answered with status %ld", status);
}

/* Who said that it has them has them, and who refused them refuses them, however the answer ended. */
static void judge(const wb_otlp_poster *poster, int code, wb_otlp_outcome *outcome)
{
    long status = 0;
    if (code != CURLE_FAILED_INIT)
        (void)curl_easy_getinfo(poster->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK || status >= 200) {
        judge_status(poster, status, outcome);
        return;
    }
    outcome->verdict = WB_OTLP_LATER;
    if (code < 0)
        (void)snprintf(outcome->reason, sizeof outcome->reason, "the receiver did not answer in time");
    else
        (void)snprintf(outcome->reason, sizeof outcome->reason, "%s",
                       poster->failure[0] ? poster->failure : curl_easy_strerror((CURLcode)code));
}

void wb_otlp_post(wb_otlp_poster *poster, const char *body, wb_otlp_outcome *ret_outcome)
{
    *ret_outcome = (wb_otlp_outcome){ .verdict = WB_OTLP_TAKEN };
    poster->answer_size = 0;
    poster->failure[0] = '\0';
    (void)curl_easy_setopt(poster->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
    (void)curl_easy_setopt(poster->easy, CURLOPT_POSTFIELDS, body);
    int code = curl_multi_add_handle(poster->multi, poster->easy) == CURLM_OK ? run(poster) : CURLE_FAILED_INIT;
    judge(poster, code, ret_outcome);
    (void)curl_multi_remove_handle(poster->multi, poster->easy);
}
