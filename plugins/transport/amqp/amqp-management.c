/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-management.h"

#ifdef HAVE_LIBCURL
#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugins/common/loopback.h"

#define ANSWER_MAX ((size_t)1 << 20)
#define MILLISECONDS INT64_C(1000000)

/* ---- the answer ------------------------------------------------------------------ */

/* What is there and no number cannot be understood. */
static wb_amqp_limit read_limit(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!value || json_is_null(value))
        return (wb_amqp_limit){ .is = WB_AMQP_LIMIT_NONE };
    if (!json_is_integer(value))
        return (wb_amqp_limit){ .is = WB_AMQP_LIMIT_UNREADABLE };
    return (wb_amqp_limit){ .is = WB_AMQP_LIMIT_SET, .value = json_integer_value(value) };
}

/* An argument counts before a policy of the same name; that the lower one of two numbers
 * does makes no difference here. */
static void read_all(json_t *object, const char *prefix, wb_amqp_arguments *arguments)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        wb_amqp_argument argument = { .kind = AMQP_FIELD_KIND_UTF8 };
        int size = snprintf(argument.name, sizeof argument.name, "%s%s", prefix, name);
        if (size < 0 || (size_t)size >= sizeof argument.name)
            continue;
        if (json_is_integer(value))
            (void)snprintf(argument.text, sizeof argument.text, "%" JSON_INTEGER_FORMAT,
                           json_integer_value(value));
        else if (json_is_string(value))
            (void)snprintf(argument.text, sizeof argument.text, "%s", json_string_value(value));
        (void)wb_amqp_arguments_add(arguments, &argument);
    }
}

/* An operator's policy is named by itself, and may be all there is. */
static void read_name(const json_t *queue, char *name, size_t size)
{
    const char *policy = json_string_value(json_object_get(queue, "policy"));
    if (!policy)
        policy = json_string_value(json_object_get(queue, "operator_policy"));
    (void)snprintf(name, size, "%s", policy ? policy : "");
}

int wb_amqp_management_read(const char *json, size_t size, wb_amqp_managed_queue *ret_queue)
{
    json_t *queue = json_loadb(json, size, 0, NULL);
    json_t *arguments = json_object_get(queue, "arguments");
    json_t *policy = json_object_get(queue, "effective_policy_definition");
    int told = 0;
    if (!json_is_object(arguments)) {
        (void)snprintf(ret_queue->problem, sizeof ret_queue->problem, "its answer is no queue");
    } else if (!policy) {
        (void)snprintf(ret_queue->problem, sizeof ret_queue->problem,
                       "it does not tell the queue's policies");
        told = -1;
    } else {
        ret_queue->argument = read_limit(arguments, "x-delivery-limit");
        ret_queue->policy = read_limit(policy, "delivery-limit");
        ret_queue->effective.count = 0;
        read_all(arguments, "", &ret_queue->effective);
        ret_queue->argument_count = ret_queue->effective.count;
        read_all(policy, "x-", &ret_queue->effective);
        read_name(queue, ret_queue->policy_name, sizeof ret_queue->policy_name);
        told = 1;
    }
    json_decref(queue);
    return told;
}

/* ---- asking ---------------------------------------------------------------------- */

typedef struct answer {
    char *data;
    size_t size;
} answer;

static size_t on_data(char *data, size_t one, size_t size, void *user)
{
    answer *got = user;
    (void)one;
    if (got->size + size > ANSWER_MAX)
        return 0;
    char *grown = realloc(got->data, got->size + size);
    if (!grown)
        return 0;
    memcpy(grown + got->size, data, size);
    got->data = grown;
    got->size += size;
    return size;
}

static int put_path(CURLU *url, const wb_transport *transport, const char *queue)
{
    char *base = NULL;
    char path[4096];
    char *vhost = curl_easy_escape(NULL, transport->config->vhost, 0);
    char *name = curl_easy_escape(NULL, queue, 0);
    int put = 0;
    if (vhost && name && curl_url_get(url, CURLUPART_PATH, &base, 0) == CURLUE_OK) {
        size_t size = strlen(base);
        while (size && base[size - 1] == '/')
            size--;
        int length = snprintf(path, sizeof path, "%.*s/api/queues/%s/%s", (int)size, base, vhost,
                              name);
        put = length > 0 && (size_t)length < sizeof path &&
              curl_url_set(url, CURLUPART_PATH, path, 0) == CURLUE_OK;
    }
    curl_free(base);
    curl_free(name);
    curl_free(vhost);
    return put;
}

static char *part(CURLU *url, CURLUPart what, unsigned flags)
{
    char *text = NULL;
    return curl_url_get(url, what, &text, flags) == CURLUE_OK ? text : NULL;
}

/* Name and password stand in the URL, or are those of the connection. They leave the URL,
 * so that no text of the library shows them. */
static int put_login(CURL *easy, CURLU *url, const wb_amqp_config *config)
{
    char *user = part(url, CURLUPART_USER, CURLU_URLDECODE);
    char *password = part(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
    int put = curl_easy_setopt(easy, CURLOPT_USERNAME, user ? user : config->user) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_PASSWORD,
                               user ? password ? password : "" : config->password) == CURLE_OK &&
              curl_url_set(url, CURLUPART_USER, NULL, 0) == CURLUE_OK &&
              curl_url_set(url, CURLUPART_PASSWORD, NULL, 0) == CURLUE_OK;
    curl_free(user);
    curl_free(password);
    return put;
}

static int set_up(CURL *easy, CURLU *url, const wb_transport *transport, const char *queue,
                  answer *got)
{
    const wb_amqp_config *config = transport->config;
    long timeout = (long)(config->connect_timeout / MILLISECONDS);
    return put_path(url, transport, queue) && put_login(easy, url, config) &&
           curl_easy_setopt(easy, CURLOPT_CURLU, url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CAINFO, config->tls_ca_file) == CURLE_OK &&
           (!config->tls_ca_file || curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK) && /* those alone */
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, got) == CURLE_OK;
}

static int get_once(CURL *easy, answer *got, wb_amqp_managed_queue *ret_queue)
{
    long status = 0;
    got->size = 0;
    CURLcode code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && status == 200)
        return wb_amqp_management_read(got->data ? got->data : "", got->size, ret_queue);
    if (code != CURLE_OK)
        (void)snprintf(ret_queue->problem, sizeof ret_queue->problem, "could not ask it: %s",
                       curl_easy_strerror(code));
    else
        (void)snprintf(ret_queue->problem, sizeof ret_queue->problem, "it answers with status %ld%s",
                       status,
                       status == 401 || status == 403 ? ": the user needs the tag monitoring or "
                                                        "management"
                                                      : "");
    return 0;
}

static int get(CURL *easy, const wb_transport *transport, answer *got,
               wb_amqp_managed_queue *ret_queue)
{
    const struct timespec pause = { .tv_nsec = 250 * MILLISECONDS };
    int64_t deadline = transport->host->now() + transport->config->connect_timeout;
    int told;
    while ((told = get_once(easy, got, ret_queue)) < 0 && transport->host->now() < deadline)
        (void)nanosleep(&pause, NULL);
    return told > 0;
}

int wb_amqp_management_ask(const wb_transport *transport, const char *name,
                           wb_amqp_managed_queue *ret_queue)
{
    answer got = { 0 };
    int told = 0;
    (void)snprintf(ret_queue->problem, sizeof ret_queue->problem, "out of memory");
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return 0;
    CURL *easy = curl_easy_init();
    CURLU *url = curl_url();
    if (easy && url &&
        curl_url_set(url, CURLUPART_URL, transport->config->management, 0) == CURLUE_OK &&
        set_up(easy, url, transport, name, &got))
        told = get(easy, transport, &got, ret_queue);
    curl_easy_cleanup(easy);
    curl_url_cleanup(url);
    curl_global_cleanup();
    free(got.data);
    return told;
}

/* ---- the option ------------------------------------------------------------------ */

static const char *problem_of(const wb_amqp_config *config, const char *scheme, const char *host)
{
    if (!scheme || !host || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        return "is no URL such as http://localhost:15672";
    if (strcmp(scheme, "http") == 0 && !wb_common_is_loopback(host, strlen(host)) && !config->allow_insecure)
        return "would send the password to another machine in clear text: use https, or set "
               "allow_insecure = true";
    return NULL;
}

int wb_amqp_management_check(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    CURLU *url = curl_url();
    if (!url)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    (void)curl_url_set(url, CURLUPART_URL, config->management, 0);
    char *scheme = part(url, CURLUPART_SCHEME, 0);
    char *name = part(url, CURLUPART_HOST, 0);
    const char *problem = problem_of(config, scheme, name);
    int result = WB_OK;
    if (problem)
        result = host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "management %s", problem);
    curl_free(scheme);
    curl_free(name);
    curl_url_cleanup(url);
    return result;
}

#else

int wb_amqp_management_check(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    (void)config;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                      "management cannot be used: this plugin was built without libcurl; leave the "
                      "option out, or build with libcurl 7.85 or later");
}

int wb_amqp_management_ask(const wb_transport *transport, const char *name,
                           wb_amqp_managed_queue *ret_queue)
{
    (void)transport;
    (void)name;
    *ret_queue = (wb_amqp_managed_queue){ .problem = "this plugin was built without libcurl" };
    return 0;
}

#endif
