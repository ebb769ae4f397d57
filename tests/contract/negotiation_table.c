/* SPDX-License-Identifier: Apache-2.0
 *
 * Negotiates every combination of transport, persistence, transaction mode, outbox,
 * immediate and delayed retries, and who is to delay, and prints one line for each; then the same without
 * immediate retries and with how messages that came before are known, instead of who is to delay; or, with the argument
 * "remedies", checks that each mode a conflict suggests does remove it, or, with "declared",
 * prints what it takes each of our plugins to declare.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/negotiate/negotiate.h"
#include "core/plugin/capability.h"

#define NONE WB_CAP_MODE_NONE
#define RECEIVE_ONLY WB_CAP_MODE_RECEIVE_ONLY
#define ATOMIC WB_CAP_MODE_SENDS_ATOMIC
#define SCOPE WB_CAP_MODE_TRANSACTION_SCOPE

/* As the plugins declare themselves; "delaying" is another one that delays by itself. */
static const wb_party transports[] = {
    { .name = "amqp",
      .capabilities = NONE | RECEIVE_ONLY | WB_CAP_DELIVERY_COUNT | WB_CAP_PUBLISH | WB_CAP_DELAY |
                      WB_CAP_EXPIRY | WB_CAP_UNINSTALL | WB_CAP_UNSUBSCRIBE | WB_CAP_QUEUES },
    { .name = "kafka",
      .capabilities = NONE | RECEIVE_ONLY | ATOMIC | WB_CAP_DELIVERY_COUNT | WB_CAP_ORDER_PER_KEY |
                      WB_CAP_PUBLISH | WB_CAP_HEADER_ORDER | WB_CAP_EXPIRY | WB_CAP_POSITION |
                      WB_CAP_UNINSTALL | WB_CAP_QUEUES },
    { .name = "sqlite",
      .capabilities = NONE | RECEIVE_ONLY | ATOMIC | SCOPE | WB_CAP_DELIVERY_COUNT |
                      WB_CAP_PUBLISH | WB_CAP_HEADER_ORDER | WB_CAP_EXPIRY | WB_CAP_UNINSTALL | WB_CAP_UNSUBSCRIBE |
                      WB_CAP_QUEUES,
      .shared_resource = "/var/lib/orders.db" },
    { .name = "delaying", .capabilities = NONE | RECEIVE_ONLY | WB_CAP_PUBLISH | WB_CAP_DELAY },
};

/* "elsewhere" is sqlite on another file, "plain" keeps no outbox, "parking" stores delayed
 * messages and joins nothing. */
static const wb_party persistences[] = {
    { .name = NULL },
    { .name = "pgsql",
      .capabilities = WB_CAP_OUTBOX | WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT | WB_CAP_CLAIM_WITH_COMMIT |
                      WB_CAP_WRITTEN | WB_CAP_POSITIONS | WB_CAP_FORGET | WB_CAP_REMEMBER | WB_CAP_REMOVE_TABLES |
                      WB_CAP_SUBSCRIPTIONS | WB_CAP_FAILED },
    { .name = "mysql",
      .capabilities = WB_CAP_OUTBOX | WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT | WB_CAP_CLAIM_WITH_COMMIT |
                      WB_CAP_WRITTEN | WB_CAP_POSITIONS | WB_CAP_FORGET | WB_CAP_REMEMBER | WB_CAP_REMOVE_TABLES |
                      WB_CAP_SUBSCRIPTIONS | WB_CAP_FAILED },
    { .name = "sqlite",
      .capabilities = WB_CAP_OUTBOX | WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT |
                      WB_CAP_CLAIM_WITH_COMMIT | WB_CAP_WRITTEN | WB_CAP_POSITIONS | WB_CAP_FORGET |
                      WB_CAP_REMEMBER | WB_CAP_REMOVE_TABLES | WB_CAP_SUBSCRIPTIONS | WB_CAP_FAILED | WB_CAP_JOIN_TRANSPORT,
      .shared_resource = "/var/lib/orders.db" },
    { .name = "elsewhere",
      .capabilities = WB_CAP_OUTBOX | WB_CAP_DELAY_STORE | WB_CAP_JOIN_TRANSPORT,
      .shared_resource = "/var/lib/other.db" },
    { .name = "plain", .capabilities = 0 },
    { .name = "parking", .capabilities = WB_CAP_OUTBOX | WB_CAP_DELAY_STORE },
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define UNSET 4 /* no transaction_mode in the file */

/* One digit of the combination's number. */
static size_t take(size_t *number, size_t base)
{
    size_t digit = *number % base;
    *number /= base;
    return digit;
}

#define OF_DELAYS (COUNT(transports) * COUNT(persistences) * 5 * 2 * 2 * 3 * 3)

#define OF_DEDUPLICATION (COUNT(transports) * COUNT(persistences) * 5 * 2 * 3 * 3)
#define COMBINATIONS (OF_DELAYS + OF_DEDUPLICATION)

static wb_negotiation_input combination(size_t number)
{
    const wb_conf_origin set = { "waybill.conf", 1, 1 };
    wb_negotiation_input input = { .at = set, .outbox_at = set, .handler_count = 1 };
    const int of_delays = number < OF_DELAYS;
    number -= of_delays ? 0 : OF_DELAYS;
    size_t by = take(&number, 3); /* of who delays nobody: the file does not say */
    input.delays_by = of_delays ? (int32_t)by : WB_DELAYS_BY_NOBODY;
    input.delays_by_at = (wb_conf_origin){ "waybill.conf", 1, input.delays_by != WB_DELAYS_BY_NOBODY };
    input.by_id = by != 1;
    input.by_position = by != 0;
    input.by_at = (wb_conf_origin){ "waybill.conf", 1, !of_delays };
    size_t delayed = take(&number, 3);
    input.delayed_retries = delayed ? 3 : 0;
    input.delayed_retries_at = (wb_conf_origin){ "waybill.conf", 1, delayed != 2 };
    input.immediate_retries = of_delays && take(&number, 2) ? 5 : 0;
    input.outbox = (int32_t)take(&number, 2);
    size_t mode = take(&number, 5);
    input.mode = mode == UNSET ? WB_MODE_RECEIVE_ONLY : (int32_t)mode;
    input.mode_at = (wb_conf_origin){ "waybill.conf", 1, mode != UNSET };
    input.persistence = persistences[take(&number, COUNT(persistences))];
    input.transport = transports[take(&number, COUNT(transports))];
    input.immediate_retries_at = set;
    return input;
}

static const char *name_ways(int by_id, int by_position)
{
    return !by_position ? "id" : by_id ? "id+position" : "position";
}

static void print_line(const wb_negotiation_input *input, const wb_negotiation *result)
{
    const wb_plan *plan = &result->plan;
    printf("%s %s %s outbox=%d immediate=%" PRId64 " delayed=%s%s%s%s%s ->", input->transport.name,
           input->persistence.name ? input->persistence.name : "none",
           input->mode_at.is_set ? wb_mode_name(input->mode) : "unset", input->outbox,
           input->immediate_retries,
           !input->delayed_retries_at.is_set ? "unset" : input->delayed_retries ? "3" : "0",
           input->delays_by_at.is_set ? " by=" : "",
           input->delays_by_at.is_set ? wb_delay_name(input->delays_by) : "",
           input->by_at.is_set ? " known=" : "",
           input->by_at.is_set ? name_ways(input->by_id, input->by_position) : "");
    for (size_t i = 0; i < result->conflict_count; i++)
        printf(" %s", wb_conflict_name(result->conflicts[i].kind));
    if (!result->conflict_count)
        printf(" plan mode=%s outbox=%d immediate=%" PRId64 " delayed=%" PRId64
               " delay_by=%s joined=%d",
               wb_mode_name(plan->mode), plan->outbox, plan->immediate_retries,
               plan->delayed_retries, wb_delay_name(plan->delay_by), plan->joined);
    if (!result->conflict_count && input->by_at.is_set)
        printf(" known=%s", name_ways(plan->by_id, plan->by_position));
    printf("\n");
}

static int has_kind(const wb_negotiation *result, int kind)
{
    for (size_t i = 0; i < result->conflict_count; i++)
        if (result->conflicts[i].kind == kind)
            return 1;
    return 0;
}

/* @return the number of suggestions that do not help. */
static int try_remedies(const wb_negotiation_input *input, const wb_negotiation *result)
{
    int useless = 0;
    for (size_t i = 0; i < result->conflict_count; i++) {
        const wb_conflict *conflict = &result->conflicts[i];
        for (int32_t mode = 0; mode < 4; mode++) {
            wb_negotiation_input other = *input;
            wb_negotiation after;
            other.mode = mode;
            if (!(conflict->modes & 1u << mode))
                continue;
            (void)wb_negotiate(&other, &after);
            if (!has_kind(&after, conflict->kind) &&
                !has_kind(&after, WB_CONFLICT_MODE_UNSUPPORTED))
                continue;
            print_line(input, result);
            printf("  %s does not help\n", wb_mode_name(mode));
            useless++;
        }
    }
    return useless;
}

/* A conflict names its place, and a sentence that says what to use instead. */
static int check_texts(const wb_negotiation *result)
{
    int bad = 0;
    for (size_t i = 0; i < result->conflict_count; i++)
        bad += !strstr(result->conflicts[i].text, "use ") || !result->conflicts[i].at.file ||
               strlen(result->conflicts[i].text) + 1 >= sizeof result->conflicts[i].text;
    return bad;
}

static void print_declared(const char *kind, const wb_party *parties, size_t count)
{
    static const char *const made_up[] = { "delaying", "elsewhere", "plain", "parking" };
    char names[400];
    for (size_t i = 0; i < count; i++) {
        int is_ours = parties[i].name != NULL;
        for (size_t j = 0; is_ours && j < COUNT(made_up); j++)
            is_ours = strcmp(parties[i].name, made_up[j]) != 0;
        if (is_ours)
            printf("%s %s %s\n", kind, parties[i].name,
                   wb_capabilities_text(parties[i].capabilities, " ", names, sizeof names));
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "declared") == 0) {
        print_declared("transport", transports, COUNT(transports));
        print_declared("persistence", persistences, COUNT(persistences));
        return 0;
    }
    int remedies = argc > 1 && strcmp(argv[1], "remedies") == 0;
    int bad = 0;
    for (size_t number = 0; number < COMBINATIONS; number++) {
        wb_negotiation_input input = combination(number);
        wb_negotiation result;
        (void)wb_negotiate(&input, &result);
        if (remedies)
            bad += try_remedies(&input, &result) + check_texts(&result);
        else
            print_line(&input, &result);
    }
    return bad != 0;
}
