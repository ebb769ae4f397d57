/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to delayed messages by their keys, and which of them were there. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/sql/delayed.h"
#include "plugins/common/sql/transaction.h"

/* A deed. */
typedef struct deed {
    wb_sql_which which; /* WB_SQL_DROP or WB_SQL_PUT_BACK */
    const char *owner;  /* who has them, or NULL */
    int if_free;        /* nobody may have them, or have sent them */
    uint64_t due;       /* of WB_SQL_PUT_BACK, or WB_SQL_AS_IT_WAS */
    uint64_t failures;
    const char *crash_point;
} deed;

/* Keys in their order, so that two sessions that lock the same rows do not deadlock. */
typedef struct key_list {
    wb_delayed_key **keys;
    size_t count;
    wb_sql_columns columns;
    uint64_t *numbers; /* of the rows that FIND has found */
    size_t found;
} key_list;

static int compare_bytes(const void *a, size_t a_size, const void *b, size_t b_size)
{
    const size_t both = a_size < b_size ? a_size : b_size;
    const int order = both ? memcmp(a, b, both) : 0;
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_keys(const void *left, const void *right)
{
    const wb_delayed_key *a = *(wb_delayed_key *const *)left;
    const wb_delayed_key *b = *(wb_delayed_key *const *)right;
    int order = compare_bytes(a->id, a->id_size, b->id, b->id_size);
    if (!order)
        order = compare_bytes(a->destination, a->destination_size, b->destination,
                              b->destination_size);
    return order ? order : (a->retries > b->retries) - (a->retries < b->retries);
}

static int make_list(key_list *list, wb_delayed_key *keys, size_t count)
{
    list->keys = calloc(count, sizeof *list->keys);
    list->numbers = calloc(count, sizeof *list->numbers);
    list->count = count;
    if (!list->keys || !list->numbers || wb_sql_columns_init(&list->columns, count) != 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        keys[i].was_there = 0;
        list->keys[i] = &keys[i];
    }
    qsort(list->keys, count, sizeof *list->keys, compare_keys);
    for (size_t i = 0; i < count; i++)
        wb_sql_columns_add_key(&list->columns, list->keys[i]);
    return 0;
}

static void free_list(key_list *list)
{
    wb_sql_columns_free(&list->columns);
    free(list->numbers);
    free(list->keys);
}

/* ---- answers, one for each statement ---------------------------------------------------- */

static wb_delayed_key *find_key(const key_list *list, const wb_delayed_key *key)
{
    wb_delayed_key **there = bsearch(&key, list->keys, list->count, sizeof *there, compare_keys);
    return there ? *there : NULL;
}

static void note_there(const key_list *list, const wb_sql_driver *driver, const wb_sql_cell *cells)
{
    const wb_delayed_key found = { .id = cells[0].data,
                                   .id_size = cells[0].size,
                                   .destination = cells[1].data,
                                   .destination_size = cells[1].size,
                                   .retries = (uint32_t)driver->number(&cells[2]) };
    wb_delayed_key *there = find_key(list, &found);
    if (there)
        there->was_there = 1;
}

/* A row is a key, and of FIND its number. */
static void take_answer(key_list *list, const wb_sql_driver *driver, wb_sql_answer *rows,
                        int has_numbers)
{
    wb_sql_cell cells[4];
    while (driver->fetch(rows, cells, has_numbers ? 4 : 3)) {
        note_there(list, driver, cells);
        if (has_numbers && list->found < list->count)
            list->numbers[list->found++] = driver->number(&cells[3]);
    }
    driver->clear(rows);
}

static wb_sql_value owner_of(const deed *what)
{
    return WB_SQL_BYTES(what->owner ? what->owner : "", what->owner ? WB_DELAYED_OWNER_SIZE : 0);
}

/* Queue `which` for all of the list; answers[i] is of the statement i. */
static void queue_keys(wb_storage_session *session, wb_sql_which which, const deed *what,
                       const key_list *list, wb_sql_answer *answers)
{
    const wb_sql_columns *columns = &list->columns;
    const uint64_t *numbers = list->numbers;
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const size_t most = outbox->dialect->keys_max;
    for (size_t i = 0, at = 0; at < columns->count; i++) {
        const size_t rest = columns->count - at;
        const size_t count = rest < most ? rest : most;
        wb_sql_value values[7];
        wb_sql_columns_keys(columns, at, count, values);
        values[3] = owner_of(what);
        values[4] = which == WB_SQL_DROP_THERE ? WB_SQL_LIST(WB_SQL_SOME_NUMBERS, numbers + at, count)
                                               : WB_SQL_NUMBER((uint64_t)what->if_free);
        values[5] = WB_SQL_NUMBER(what->due);
        values[6] = WB_SQL_NUMBER(what->failures);
        outbox->driver->queue(session, which, values, which == WB_SQL_PUT_BACK ? 7 : 5,
                              &answers[i]);
        at += count;
    }
}

/* ---- in one round trip, or in two --------------------------------------------------------- */

static int do_at_once(wb_storage_session *session, const deed *what, key_list *list, size_t count,
                      wb_sql_answer *answers)
{
    wb_sql_delayed_start(session);
    queue_keys(session, what->which, what, list, answers);
    const int result = wb_sql_run_outside(session, what->crash_point);
    for (size_t i = 0; i < count; i++)
        take_answer(list, wb_sql_of(session)->outbox->driver, &answers[i], 0);
    return result;
}

static void queue_numbers(wb_storage_session *session, const deed *what, const uint64_t *numbers,
                          size_t count, wb_sql_answer *answer)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const size_t most = outbox->dialect->keys_max;
    const int is_drop = what->which == WB_SQL_DROP;
    for (size_t at = 0; at < count; at += most) {
        const wb_sql_value values[] = {
            WB_SQL_LIST(WB_SQL_SOME_NUMBERS, numbers + at, count - at < most ? count - at : most),
            is_drop ? owner_of(what) : WB_SQL_NUMBER(what->due), WB_SQL_NUMBER(what->failures)
        };
        outbox->driver->queue(session, what->which, values, is_drop ? 2 : 3, answer);
    }
}

/* Lock those that are there, and do it to them. */
static int find_and_do(wb_storage_session *session, const deed *what, key_list *list, size_t count,
                       wb_sql_answer *answers)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;

    wb_sql_delayed_begin(session);
    queue_keys(session, WB_SQL_FIND, what, list, answers);
    const int result = driver->run(session, NULL);
    for (size_t i = 0; i < count; i++)
        take_answer(list, driver, &answers[i], 1);
    if (result != WB_OK) {
        wb_sql_undo(session);
        return result;
    }
    driver->start(session);
    queue_numbers(session, what, list->numbers, list->found, NULL);
    return wb_sql_delayed_commit(session, what->crash_point);
}

/* Note where fetch() found each, for an owner's removal. @return whether it said so of all. */
static int note_places(const deed *what, const key_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        list->numbers[i] = list->keys[i]->place;
        if (!list->numbers[i])
            return 0;
    }
    return what->which == WB_SQL_DROP && what->owner != NULL;
}

/* Whoever removes has fetched: nearly always all of them are there. Their number tells, and the
 * transaction ends; else it is undone, and *ret_done stays 0. */
static int try_places(wb_storage_session *session, const deed *what, key_list *list, int *ret_done)
{
    wb_sql_session *s = wb_sql_of(session);
    wb_sql_answer dropped = { 0 };

    wb_sql_delayed_begin(session);
    queue_numbers(session, what, list->numbers, list->count, &dropped);
    int result = s->outbox->driver->run(session, NULL);
    if (result != WB_OK || dropped.affected != list->count) {
        wb_sql_undo(session);
        return s->state == WB_SQL_LOST ? s->failure.result : result;
    }
    s->outbox->driver->start(session);
    result = wb_sql_delayed_commit(session, what->crash_point);
    for (size_t i = 0; i < list->count && result == WB_OK; i++)
        list->keys[i]->was_there = 1;
    *ret_done = result == WB_OK;
    return result;
}

static int do_in_two(wb_storage_session *session, const deed *what, key_list *list, size_t count,
                     wb_sql_answer *answers)
{
    int is_done = 0;
    const int result = note_places(what, list) ? try_places(session, what, list, &is_done) : WB_OK;
    return result == WB_OK && !is_done ? find_and_do(session, what, list, count, answers) : result;
}

static int do_to_list(wb_storage_session *session, const deed *what, key_list *list)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const size_t most = outbox->dialect->keys_max;
    const size_t count = list->count / most + (list->count % most != 0);
    wb_sql_answer *answers = calloc(count, sizeof *answers);

    if (!answers)
        return wb_sql_delayed_no_memory(session);
    const int result = outbox->statements[WB_SQL_FIND]
                           ? do_in_two(session, what, list, count, answers)
                           : do_at_once(session, what, list, count, answers);
    free(answers);
    return result;
}

/* ---- a removal that goes with a fetch ------------------------------------------------------- */

struct wb_sql_removal {
    deed what;
    wb_delayed_key *keys; /* the caller's; list has them in their order */
    key_list list;
    int by_places;          /* DROP_THERE */
    int has_missed;         /* which did not find them all */
    wb_sql_answer *answers; /* of statements by keys: how many were there */
    size_t count;
};

wb_sql_removal *wb_sql_removal_make(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                                    size_t count)
{
    const size_t most = wb_sql_of(session)->outbox->dialect->keys_max;
    char *const *statements = wb_sql_of(session)->outbox->statements;
    wb_sql_removal *removal = count ? calloc(1, sizeof *removal) : NULL;
    if (!removal)
        return NULL;
    removal->what = (deed){ .which = WB_SQL_DROP, .owner = owner };
    removal->keys = keys;
    removal->count = count / most + (count % most != 0);
    removal->answers = calloc(removal->count, sizeof *removal->answers);
    if (removal->answers && make_list(&removal->list, keys, count) == 0) {
        const int has_places = note_places(&removal->what, &removal->list);
        removal->by_places = has_places && statements[WB_SQL_DROP_THERE];
        if (has_places || !statements[WB_SQL_FIND])
            return removal;
    }
    wb_sql_removal_free(session, removal);
    return NULL;
}

void wb_sql_removal_free(wb_storage_session *session, wb_sql_removal *removal)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    for (size_t i = 0; removal->answers && i < removal->count; i++)
        driver->clear(&removal->answers[i]);
    free(removal->answers);
    free_list(&removal->list);
    free(removal);
}

void wb_sql_removal_queue(wb_storage_session *session, wb_sql_removal *removal)
{
    if (wb_sql_of(session)->outbox->statements[WB_SQL_FIND])
        queue_numbers(session, &removal->what, removal->list.numbers, removal->list.count, NULL);
    else
        queue_keys(session, removal->by_places ? WB_SQL_DROP_THERE : WB_SQL_DROP, &removal->what,
                   &removal->list, removal->answers);
}

int wb_sql_removal_complete(wb_storage_session *session, wb_sql_removal *removal, wb_error *error)
{
    uint64_t gone = 0;
    for (size_t i = 0; i < removal->count; i++)
        gone += removal->answers[i].affected;
    removal->has_missed = removal->by_places && gone < removal->list.count;
    return removal->has_missed
               ? wb_sql_delayed_remove(session, removal->what.owner, removal->keys, removal->list.count, error)
               : WB_OK;
}

int wb_sql_removal_took(const wb_sql_removal *removal, const wb_delayed *message)
{
    const wb_delayed_key found = { .id = message->id,
                                   .id_size = message->id_size,
                                   .destination = message->destination,
                                   .destination_size = message->destination_size,
                                   .retries = message->retries };
    const wb_delayed_key *there = removal->has_missed ? find_key(&removal->list, &found) : NULL;
    return there && there->was_there;
}

static int do_to_keys(wb_storage_session *session, const deed *what, wb_delayed_key *keys,
                      size_t count, const char *action, wb_error *error)
{
    key_list list = { 0 };

    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, action, error);
    if (!count)
        return WB_OK;
    const int result = make_list(&list, keys, count) == 0 ? do_to_list(session, what, &list)
                                                          : wb_sql_delayed_no_memory(session);
    free_list(&list);
    if (result == WB_OK)
        return WB_OK;
    for (size_t i = 0; i < count; i++)
        keys[i].was_there = 0;
    return wb_sql_report_doubt(session, action, error);
}

/* ---- what is done --------------------------------------------------------------------------- */

int wb_sql_delayed_remove(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                          size_t count, wb_error *error)
{
    const deed what = { .which = WB_SQL_DROP, .owner = owner, .crash_point = "remove_sent" };
    return do_to_keys(session, &what, keys, count, "remove delayed messages", error);
}

int wb_sql_delayed_increment(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                             size_t count, int64_t due, wb_error *error)
{
    const deed what = { .which = WB_SQL_PUT_BACK, .owner = owner, .failures = 1,
                        .due = wb_sql_round_up(due) };
    return do_to_keys(session, &what, keys, count, "count failures of delayed messages", error);
}

int wb_sql_delayed_release(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                           size_t count, int64_t due, wb_error *error)
{
    const deed what = { .which = WB_SQL_PUT_BACK, .owner = owner,
                        .due = due ? wb_sql_round_up(due) : WB_SQL_AS_IT_WAS };
    return do_to_keys(session, &what, keys, count, "give back delayed messages", error);
}

int wb_sql_delayed_cancel(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                          wb_error *error)
{
    const deed what = { .which = WB_SQL_DROP, .if_free = 1 };
    return do_to_keys(session, &what, keys, count, "cancel delayed messages", error);
}

int wb_sql_delayed_reschedule(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                              int64_t due, wb_error *error)
{
    const deed what = { .which = WB_SQL_PUT_BACK, .if_free = 1, .due = wb_sql_round_up(due) };
    return do_to_keys(session, &what, keys, count, "reschedule delayed messages", error);
}
