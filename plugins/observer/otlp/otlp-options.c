/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/observer/otlp/otlp-options.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "plugins/common/certificate.h"
#include "plugins/common/loopback.h"

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)
#define AT(field) offsetof(wb_otlp_config, field)

const wb_option wb_otlp_options[WB_OTLP_OPTION_COUNT] = {
    { "url", WB_OPTION_STRING, WB_OPTION_SECRET | WB_OPTION_MAYBE_SECRET, AT(url),
      "http://127.0.0.1:4318/v1/traces", 0, 0, NULL, "1.0", "where spans are posted to",
      "The address of a receiver of OTLP over HTTP: an OpenTelemetry collector, Jaeger, Tempo. Spans are sent as JSON "
      "(OTLP 1.0, application/json). The path is used as it is." },
    { "headers", WB_OPTION_MAP, WB_OPTION_SECRET | WB_OPTION_MAYBE_SECRET, AT(headers),
      NULL, 0, 0, NULL, "1.0", "headers of each request: { Authorization = \"env:TOKEN\"; }", NULL },
    { "service_name", WB_OPTION_STRING, 0, AT(service_name),
      NULL, 0, 0, NULL, "1.0", "what the service is called in traces; default: the endpoint's name", NULL },
    { "one_in", WB_OPTION_INTEGER, 0, AT(one_in),
      "1", 1, 1000000000, NULL, "1.0", "of so many traces that begin at this endpoint one is kept",
      "Which one follows from the trace's id, so that every process of the endpoint keeps the same. Of traces that a "
      "peer began, the peer has said whether they are kept." },
    { "batch_max", WB_OPTION_INTEGER, 0, AT(batch_max),
      "512", 1, 10000, NULL, "1.0", "most spans in one request", NULL },
    { "queue_max", WB_OPTION_INTEGER, 0, AT(queue_max),
      "8192", 1, 1000000, NULL, "1.0", "most spans that wait to be sent",
      "What comes while so many wait is dropped, and a line says how many: messages are not handled more slowly because "
      "a receiver of spans is slow, or away." },
    { "interval", WB_OPTION_DURATION, 0, AT(interval),
      "1s", 10 * MILLISECOND, 60 * SECOND, NULL, "1.0", "spans wait no longer for others to go with", NULL },
    { "timeout", WB_OPTION_DURATION, 0, AT(timeout),
      "10s", 100 * MILLISECOND, 300 * SECOND, NULL, "1.0", "how long one request may take", NULL },
    { "tls_ca_file", WB_OPTION_PATH, 0, AT(tls_ca_file),
      NULL, 0, 0, NULL, "1.0", "certificates of authorities, PEM; default: those of the system", NULL },
    { "allow_insecure", WB_OPTION_BOOLEAN, 0, AT(allow_insecure),
      "false", 0, 0, NULL, "1.0", "allow http to another machine",
      "Spans hold ids, types, names of queues, and why handlers failed." },
};

static char *part(CURLU *url, CURLUPart what)
{
    char *text = NULL;
    return curl_url_get(url, what, &text, 0) == CURLUE_OK ? text : NULL;
}

static const char *url_problem(const wb_otlp_config *config, const char *scheme, const char *host)
{
    if (!scheme || !host || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        return "is no URL such as http://127.0.0.1:4318/v1/traces";
    if (strcmp(scheme, "http") == 0 && !wb_common_is_loopback(host, strlen(host)) && !config->allow_insecure)
        return "would send spans to another machine in clear text: use https, or set allow_insecure = true";
    return NULL;
}

static int check_url(const wb_host *host, const wb_otlp_config *config, wb_error *error)
{
    CURLU *url = curl_url();
    if (!url)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    (void)curl_url_set(url, CURLUPART_URL, config->url, 0);
    char *scheme = part(url, CURLUPART_SCHEME), *name = part(url, CURLUPART_HOST);
    const char *problem = url_problem(config, scheme, name);
    int result = problem ? host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "url %s", problem) : WB_OK;
    curl_free(scheme);
    curl_free(name);
    curl_url_cleanup(url);
    return result;
}

/* RFC 9110: what does not keep to it would be another request. The names are right: the file has no others. */
static const char *header_problem(const char *name, const char *value)
{
    static const char *const own[] = { "Connection", "Content-Length", "Content-Type", "Expect", "Host", "Transfer-Encoding" };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcasecmp(name, own[i]) == 0)
            return "is set by the plugin itself";
    return value[strcspn(value, "\r\n")] ? "has a value of more than one line" : NULL;
}

static int check_headers(const wb_host *host, const wb_otlp_config *config, wb_error *error)
{
    const wb_option_map *headers = config->headers;
    for (size_t i = 0; headers && i < headers->count; i++) {
        const char *problem = header_problem(headers->names[i], headers->values[i]);
        if (problem)
            return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "headers: \"%s\" %s", headers->names[i], problem);
    }
    return WB_OK;
}

int wb_otlp_config_check(const wb_host *host, const wb_otlp_config *config, wb_error *error)
{
    if (config->queue_max < config->batch_max)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "queue_max = %lld is less than batch_max = %lld: no batch would be full",
                          (long long)config->queue_max, (long long)config->batch_max);
    int r = check_url(host, config, error);
    if (r == WB_OK)
        r = check_headers(host, config, error);
    return r == WB_OK ? wb_common_file_check(host, "tls_ca_file", config->tls_ca_file, error) : r;
}
