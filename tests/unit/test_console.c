/* SPDX-License-Identifier: Apache-2.0
 *
 * The console without a socket: who is signed in, the last hour, the desk, and what is answered to whom.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/clock.h"
#include "core/http/answers.h"
#include "core/http/console.h"

/* ---- who is signed in ---------------------------------------------------------------------- */

static void test_access(void **state)
{
    static wb_access access;
    char cookie[WB_VISITOR_SECRET_SIZE];
    (void)state;
    assert_null(wb_access_find(&access, "", 1)); /* nobody's cookie is nobody */
    const wb_visitor *one = wb_access_enter(&access, 1);
    assert_non_null(one);
    assert_int_equal(strlen(one->cookie), 64);
    assert_int_equal(strlen(one->token), 64);
    assert_string_not_equal(one->cookie, one->token);
    memcpy(cookie, one->cookie, sizeof cookie);
    assert_ptr_equal(wb_access_find(&access, cookie, 1), one);
    assert_null(wb_access_find(&access, NULL, 1));
    cookie[63] ^= 1;
    assert_null(wb_access_find(&access, cookie, 1));
    cookie[63] ^= 1;
    assert_ptr_equal(wb_access_find(&access, cookie, WB_VISITOR_IDLE), one);
    assert_ptr_equal(wb_access_find(&access, cookie, 2 * WB_VISITOR_IDLE - 1), one); /* seen meanwhile */
    assert_null(wb_access_find(&access, cookie, 3 * WB_VISITOR_IDLE));
    one = wb_access_enter(&access, 3 * WB_VISITOR_IDLE);
    memcpy(cookie, one->cookie, sizeof cookie);
    wb_access_leave(&access, cookie);
    assert_null(wb_access_find(&access, cookie, 3 * WB_VISITOR_IDLE));
    wb_access_leave(&access, "");
}

static void test_access_is_full(void **state)
{
    static wb_access access;
    char cookies[WB_VISITORS + 1][WB_VISITOR_SECRET_SIZE];
    (void)state;
    for (int i = 0; i < WB_VISITORS; i++)
        memcpy(cookies[i], wb_access_enter(&access, 100 + i)->cookie, sizeof cookies[i]);
    assert_non_null(wb_access_find(&access, cookies[0], 1000));
    memcpy(cookies[WB_VISITORS], wb_access_enter(&access, 1001)->cookie, sizeof cookies[0]);
    for (int i = 0; i <= WB_VISITORS; i++)
        assert_true((wb_access_find(&access, cookies[i], 1002) == NULL) == (i == 1)); /* who was not seen for longest is gone */
}

/* ---- the last hour ---------------------------------------------------------------------------- */

static wb_observed observed[2];
static wb_overview overview = { observed, 2, 1000 * WB_SECOND, 1060 * WB_SECOND, 0 };

static int set_up(void **state)
{
    (void)state;
    memset(observed, 0, sizeof observed);
    observed[0] = (wb_observed){ .endpoint = "orders", .transport = "sqlite", .persistence = "sqlite", .mode = "receive_only", .outbox = 1 };
    observed[1] = (wb_observed){ .endpoint = "<script>", .transport = "sqlite", .mode = "none" };
    observed[0].vitals = (wb_vitals){ .has_backlog = 1, .pending_rows = 5, .oldest_age = 1500 * WB_MILLISECOND };
    return 0;
}

static double at(const json_t *history, size_t endpoint, const char *series, size_t sample)
{
    const json_t *one = json_array_get(json_object_get(history, "endpoints"), endpoint);
    const json_t *value = json_array_get(json_object_get(one, series), sample);
    assert_non_null(value);
    return json_is_null(value) ? -1 : json_number_value(value);
}

static size_t count_samples(const json_t *history)
{
    return (size_t)json_integer_value(json_object_get(history, "samples"));
}

static void observe(int64_t critical)
{
    wb_tally tally = { 0 };
    wb_tally_observe(&tally, WB_HISTOGRAM_CRITICAL, critical);
    wb_tally_read(&tally, &observed[0].vitals.counts);
}

static void test_history(void **state)
{
    wb_history *history = wb_history_make(2);
    uint64_t *counts = observed[0].vitals.counts.of;
    int64_t now = 1000 * WB_SECOND;
    (void)state;
    counts[WB_TALLY_HANDLED] = 7; /* before anybody looked */
    wb_history_look(history, &overview, now);
    counts[WB_TALLY_HANDLED] += 50;
    counts[WB_TALLY_FAILED] = 5;
    for (int i = 0; i < 90; i++)
        observe(WB_MILLISECOND);
    for (int i = 0; i < 9; i++)
        observe(20 * WB_MILLISECOND);
    observe(3600 * WB_SECOND);
    wb_history_look(history, &overview, now + WB_HISTORY_STEP - 1);
    wb_history_look(history, &overview, now += WB_HISTORY_STEP);
    counts[WB_TALLY_HANDLED] = 20; /* made anew */
    counts[WB_TALLY_FAILED] = 0;
    wb_history_look(history, &overview, now += 2 * WB_HISTORY_STEP);
    json_t *json = wb_history_json(history, &overview);
    assert_int_equal(count_samples(json), 2);
    assert_float_equal(at(json, 0, "handled", 0), 5, 0.001);
    assert_float_equal(at(json, 0, "failed", 0), 0.5, 0.001);
    assert_float_equal(at(json, 0, "handled", 1), 1, 0.001); /* in twice the time */
    assert_float_equal(at(json, 0, "failed", 1), 0, 0.001);
    assert_float_equal(at(json, 0, "critical_high", 0), 0.03, 0.0001); /* the bound above 20 ms */
    assert_float_equal(at(json, 0, "critical_mean", 0), (90 * 0.001 + 9 * 0.02 + 3600) / 100, 0.001);
    assert_float_equal(at(json, 0, "critical_high", 1), -1, 0); /* nothing was handled */
    assert_float_equal(at(json, 0, "lag", 0), 1.5, 0.001);
    assert_float_equal(at(json, 0, "pending", 1), 5, 0.001);
    assert_float_equal(at(json, 1, "handled", 0), 0, 0);
    json_decref(json);
    wb_history_free(history);
}

static void test_history_goes_round(void **state)
{
    wb_history *history = wb_history_make(2);
    (void)state;
    for (int i = 0; i <= WB_HISTORY_SAMPLES + 3; i++) {
        observed[0].vitals.pending_rows = (uint64_t)i;
        wb_history_look(history, &overview, 1 + i * WB_HISTORY_STEP);
    }
    json_t *json = wb_history_json(history, &overview);
    assert_int_equal(count_samples(json), WB_HISTORY_SAMPLES);
    assert_float_equal(at(json, 0, "pending", 0), 4, 0);
    assert_float_equal(at(json, 0, "pending", WB_HISTORY_SAMPLES - 1), WB_HISTORY_SAMPLES + 3, 0);
    json_decref(json);
    wb_history_free(history);
}

/* ---- the desk ---------------------------------------------------------------------------------- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* who has it holds up the deed */
static atomic_int begun, told;

static void run(void *owner, const json_t *given, wb_answer *answer)
{
    atomic_fetch_add(&begun, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    wb_answer_say(answer, 200, json_string_value(json_object_get(given, "what")));
    assert_ptr_equal(owner, &gate);
}

static void tell(void *argument)
{
    assert_ptr_equal(argument, &told);
    atomic_fetch_add(&told, 1);
}

static const wb_deed deeds[] = { { "/api/thing", 0, run, 0 }, { "/api/change", 1, run, 0 }, { "/api/edit", 1, run, 300000 } };

static wb_errand *make_errand(const char *what)
{
    json_t *given = json_pack("{s:s}", "what", what);
    wb_errand *errand = wb_errand_make(deeds, given);
    json_decref(given);
    errand->tell = tell;
    errand->argument = &told;
    return errand;
}

static void await(atomic_int *number, int value)
{
    while (atomic_load(number) < value)
        wb_clock_pause(WB_MILLISECOND, NULL);
}

static wb_desk *open_desk(void)
{
    const wb_deeds all = { deeds, 2, &gate };
    atomic_store(&begun, 0);
    atomic_store(&told, 0);
    return wb_desk_open(&all);
}

static void check_and_free(wb_errand *errand, unsigned status, const char *text)
{
    assert_int_equal(errand->answer.status, status);
    wb_buffer_put(&errand->answer.text, "", 1);
    assert_non_null(strstr((const char *)errand->answer.text.data, text));
    wb_errand_free(errand);
}

static void test_desk(void **state)
{
    wb_desk *desk = open_desk();
    wb_errand *first = make_errand("one"), *second = make_errand("two");
    (void)state;
    wb_desk_give(desk, first);
    wb_desk_give(desk, second);
    await(&told, 2);
    check_and_free(first, 200, "one");
    check_and_free(second, 200, "two");
    wb_desk_close(desk);
    assert_true(wb_desk_end(desk, 60 * WB_SECOND));
}

/* Who waits is told at once, whatever the thread waits for; and it is not joined before it has ended. */
static void test_desk_is_closed(void **state)
{
    wb_desk *desk = open_desk();
    wb_errand *errands[WB_DESK_LINE + 2];
    (void)state;
    pthread_mutex_lock(&gate);
    errands[0] = make_errand("in hand");
    wb_desk_give(desk, errands[0]);
    await(&begun, 1);
    for (int i = 1; i <= WB_DESK_LINE; i++) {
        assert_true(wb_desk_has_room(desk));
        wb_desk_give(desk, errands[i] = make_errand("in line"));
    }
    assert_false(wb_desk_has_room(desk));
    wb_desk_close(desk);
    assert_false(wb_desk_has_room(desk));
    assert_int_equal(atomic_load(&told), WB_DESK_LINE + 1);
    errands[WB_DESK_LINE + 1] = make_errand("too late");
    wb_desk_give(desk, errands[WB_DESK_LINE + 1]);
    for (int i = 0; i < WB_DESK_LINE + 2; i++)
        check_and_free(errands[i], 503, "the program stops");
    assert_false(wb_desk_end(desk, WB_MILLISECOND));
    pthread_mutex_unlock(&gate);
    assert_true(wb_desk_end(desk, 60 * WB_SECOND));
    assert_int_equal(atomic_load(&begun), 1);
    assert_int_equal(atomic_load(&told), WB_DESK_LINE + 2);
}

/* ---- what is answered to whom --------------------------------------------------------------------- */

static const wb_asset assets[] = { { "/", "text/html; charset=utf-8", "<html>", 6 } };
static const wb_console_config reads = { .write = 0 }, writes = { .write = 1 };
static wb_console console;
static wb_board board;
static const char token[] = "0123456789abcdef";

static int set_up_console(void **state)
{
    (void)set_up(state);
    console = (wb_console){ .config = &reads, .assets = assets, .asset_count = 1, .plan = json_pack("[{s:s}]", "name", "orders"),
                            .deeds = { deeds, 3, &gate }, .desk = open_desk(), .history = wb_history_make(2) };
    wb_board_init(&board, observed, 2);
    return 0;
}

static int tear_down_console(void **state)
{
    (void)state;
    wb_desk_close(console.desk);
    (void)wb_desk_end(console.desk, 60 * WB_SECOND);
    wb_history_free(console.history);
    json_decref(console.plan);
    wb_board_free(&board);
    return 0;
}

/* The status; and whether the text is in what is said. */
static unsigned answered(const wb_question *question, const char *text, wb_answer *answer)
{
    wb_answer_make(question, &board, &console, answer);
    wb_buffer_put(&answer->text, "", 1);
    if (text && !strstr((const char *)answer->text.data, text))
        fail_msg("not \"%s\": %s", text, (const char *)answer->text.data);
    wb_buffer_free(&answer->text);
    return answer->status;
}

static void test_pages(void **state)
{
    wb_answer answer;
    (void)state;
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/", .token = token }, NULL, &answer), 200); /* nothing is in it */
    assert_ptr_equal(answer.lasting, assets[0].data);
    assert_true(answer.is_page);
    assert_int_equal(answered(&(wb_question){ .method = "POST", .path = "/" }, NULL, &answer), 405);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/", .host = "evil.example" }, NULL, &answer), 421);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/../etc/passwd" }, NULL, &answer), 404);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/api/nothing" }, "no such thing", &answer), 404);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/api/plan" }, "orders", &answer), 200);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/api/history" }, "<script>", &answer), 200);
    assert_string_equal(answer.type, "application/json");
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/api/status" }, "\"endpoints\":", &answer), 200);
    assert_int_equal(answered(&(wb_question){ .method = "POST", .path = "/api/status" }, NULL, &answer), 405);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/api/events" }, NULL, &answer), 200);
    assert_true(answer.is_stream);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/metrics" }, "# EOF", &answer), 200);
    assert_false(answer.is_page);
}

static void test_errands(void **state)
{
    json_t *given = json_pack("{s:s}", "what", "thing");
    const wb_question question = { .method = "GET", .path = "/api/thing", .given = given };
    wb_answer answer;
    (void)state;
    (void)answered(&question, NULL, &answer);
    assert_non_null(answer.errand);
    assert_ptr_equal(answer.errand->deed, deeds);
    assert_true(json_equal(answer.errand->given, given));
    wb_errand_free(answer.errand);
    wb_desk_close(console.desk); /* nothing fits into its line any more */
    assert_int_equal(answered(&question, "too many", &answer), 503);
    assert_null(answer.errand);
    json_decref(given);
}

/* With a token: by it, or by a cookie that one got for it. */
static void test_sessions(void **state)
{
    wb_question question = { .method = "GET", .path = "/api/plan", .token = token, .now = 1 };
    char cookie[WB_VISITOR_SECRET_SIZE];
    wb_answer answer;
    (void)state;
    assert_int_equal(answered(&question, "sign in", &answer), 401);
    question.authorization = "Bearer 0123456789abcdeX";
    assert_int_equal(answered(&question, "sign in", &answer), 401);
    question.path = "/api/session";
    assert_int_equal(answered(&question, "\"signed_in\":false", &answer), 200);
    question.method = "POST";
    assert_int_equal(answered(&question, "not the token", &answer), 401);
    assert_null(answer.cookie);
    question.authorization = "Bearer 0123456789abcdef";
    assert_int_equal(answered(&question, "\"signed_in\":true", &answer), 200);
    assert_non_null(answer.cookie);
    memcpy(cookie, answer.cookie, sizeof cookie);
    question = (wb_question){ .method = "GET", .path = "/api/plan", .token = token, .cookie = cookie, .now = 2 };
    assert_int_equal(answered(&question, "orders", &answer), 200);
    question.path = "/status"; /* what is no part of the console knows no cookies */
    assert_int_equal(answered(&question, "a token is needed", &answer), 401);
    question.path = "/api/session";
    assert_int_equal(answered(&question, "\"write\":false", &answer), 200);
    console.config = &writes;
    assert_int_equal(answered(&question, "\"write\":true", &answer), 200);
    question.method = "DELETE";
    assert_int_equal(answered(&question, "\"signed_in\":false", &answer), 200);
    assert_string_equal(answer.cookie, "");
    question = (wb_question){ .method = "GET", .path = "/api/plan", .token = token, .cookie = cookie, .now = 3 };
    assert_int_equal(answered(&question, "sign in", &answer), 401);
}

static unsigned asked_with(const char *method, const char *path, const char *cookie, const char *authorization, const char **ret_cookie)
{
    const wb_question question = { .method = method, .path = path, .token = token, .cookie = cookie, .authorization = authorization, .now = 2 };
    wb_answer answer;
    const unsigned status = answered(&question, NULL, &answer);
    if (ret_cookie)
        *ret_cookie = answer.cookie;
    return status;
}

/* Who signs in again, or out, leaves nothing behind that is good for anything; others stay signed in. */
static void test_sessions_that_end(void **state)
{
    static const char right[] = "Bearer 0123456789abcdef", wrong[] = "Bearer 0123456789abcdeX";
    char cookies[4][WB_VISITOR_SECRET_SIZE];
    const char *made;
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(asked_with("POST", "/api/session", i == 2 ? cookies[1] : NULL, right, &made), 200);
        memcpy(cookies[i], made, sizeof cookies[i]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(cookies[i], cookies[k]);
    }
    assert_int_equal(asked_with("POST", "/api/session", cookies[0], wrong, NULL), 401); /* who is refused is who he was */
    assert_int_equal(asked_with("DELETE", "/api/session", cookies[3], NULL, NULL), 200);
    for (int i = 0; i < 4; i++)
        assert_int_equal(asked_with("GET", "/api/plan", cookies[i], NULL, NULL), i == 0 || i == 2 ? 200 : 401);
}

static void test_other_pages(void **state)
{
    static const struct {
        const char *site, *origin;
        int is_tls;
        unsigned status;
    } rows[] = { { NULL, NULL, 0, 200 }, { "same-origin", NULL, 0, 200 }, { "same-origin", "http://127.0.0.1:9464", 0, 200 },
                 { NULL, "http://127.0.0.1:9464", 0, 200 }, { NULL, "https://127.0.0.1:9464", 1, 200 },
                 { NULL, "https://127.0.0.1:9464", 0, 403 }, { NULL, "http://127.0.0.1:9465", 0, 403 }, { "cross-site", NULL, 0, 403 },
                 { "same-site", NULL, 0, 403 }, { "none", NULL, 0, 403 }, { NULL, "null", 0, 403 },
                 { "same-origin", "http://evil.example", 0, 403 }, { NULL, "http://127.0.0.1:9464.evil.example", 0, 403 } };
    wb_answer answer;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wb_question question = { .method = "POST", .path = "/api/session", .host = "127.0.0.1:9464", .site = rows[i].site,
                                 .origin = rows[i].origin, .is_tls = rows[i].is_tls };
        assert_int_equal(answered(&question, NULL, &answer), rows[i].status);
        assert_true((answer.cookie != NULL) == (rows[i].status == 200));
        question.method = "DELETE";
        assert_int_equal(answered(&question, NULL, &answer), rows[i].status);
    }
}

/* Who changes something says more than what a browser sends by itself. */
static void test_changes(void **state)
{
    json_t *given = json_pack("{s:s, s:s}", "what", "thing", "who", "somebody else");
    wb_question question = { .method = "POST", .path = "/api/change", .token = token, .given = given, .address = "192.0.2.7", .now = 1,
                             .host = "127.0.0.1:9464" };
    wb_answer answer;
    (void)state;
    console.config = &writes;
    const wb_visitor *one = wb_access_enter(&console.access, 1);
    assert_int_equal(answered(&question, "sign in", &answer), 401);
    question.cookie = one->cookie;
    assert_int_equal(answered(&question, NULL, &answer), 403);
    question.page_token = one->cookie;
    assert_int_equal(answered(&question, NULL, &answer), 403);
    question.page_token = one->token;
    question.origin = "http://evil.example";
    assert_int_equal(answered(&question, NULL, &answer), 403);
    question.origin = "http://127.0.0.1:9464";
    (void)answered(&question, NULL, &answer);
    assert_non_null(answer.errand);
    assert_string_equal(json_string_value(json_object_get(answer.errand->given, "who")), "session 1, 192.0.2.7");
    wb_errand_free(answer.errand);
    question.cookie = question.page_token = NULL;
    question.authorization = "Bearer 0123456789abcdef";
    (void)answered(&question, NULL, &answer);
    assert_string_equal(json_string_value(json_object_get(answer.errand->given, "who")), "token, 192.0.2.7");
    wb_errand_free(answer.errand);
    question.given = NULL;
    assert_int_equal(answered(&question, NULL, &answer), 400);
    question.exceeded = 300000;
    assert_int_equal(answered(&question, "300000 bytes", &answer), 413);
    question.exceeded = 0;
    question.given = given;
    question.method = "GET";
    assert_int_equal(answered(&question, NULL, &answer), 405);
    question.method = "POST";
    console.config = &reads;
    assert_int_equal(answered(&question, "console.write", &answer), 403);
    console.config = &writes;
    question.token = question.authorization = NULL; /* nobody is known there */
    assert_int_equal(answered(&question, NULL, &answer), 403);
    json_decref(given);
}

/* Much is read of who may change something, and where it is of use. */
static void test_what_is_sent(void **state)
{
    wb_question question = { .method = "POST", .path = "/api/edit", .token = token, .now = 1, .host = "127.0.0.1:9464" };
    (void)state;
    console.config = &writes;
    const wb_visitor *one = wb_access_enter(&console.access, 1);
    assert_int_equal(wb_console_body_max(&console, &question), WB_HTTP_BODY_MAX);
    question.cookie = one->cookie;
    assert_int_equal(wb_console_body_max(&console, &question), WB_HTTP_BODY_MAX);
    question.page_token = one->token;
    assert_int_equal(wb_console_body_max(&console, &question), 300000);
    question.site = "cross-site";
    assert_int_equal(wb_console_body_max(&console, &question), WB_HTTP_BODY_MAX);
    question.site = NULL;
    question.path = "/api/change";
    assert_int_equal(wb_console_body_max(&console, &question), WB_HTTP_BODY_MAX);
    question.path = "/api/thing";
    assert_int_equal(wb_console_body_max(&console, &question), 0);
    question.path = "/api/edit";
    question.method = "GET";
    assert_int_equal(wb_console_body_max(&console, &question), 0);
    question.method = "POST";
    console.config = &reads;
    assert_int_equal(wb_console_body_max(&console, &question), WB_HTTP_BODY_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_access_is_full),
        cmocka_unit_test_setup(test_history, set_up),
        cmocka_unit_test_setup(test_history_goes_round, set_up),
        cmocka_unit_test(test_desk),
        cmocka_unit_test(test_desk_is_closed),
        cmocka_unit_test_setup_teardown(test_pages, set_up_console, tear_down_console),
        cmocka_unit_test_setup_teardown(test_errands, set_up_console, tear_down_console),
        cmocka_unit_test_setup_teardown(test_sessions, set_up_console, tear_down_console),
        cmocka_unit_test_setup_teardown(test_sessions_that_end, set_up_console, tear_down_console),
        cmocka_unit_test_setup_teardown(test_other_pages, set_up_console, tear_down_console),
        cmocka_unit_test_setup_teardown(test_changes, set_up_console, tear_down_console),
        cmocka_unit_test_setup_teardown(test_what_is_sent, set_up_console, tear_down_console),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
