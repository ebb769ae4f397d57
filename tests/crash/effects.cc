/* SPDX-License-Identifier: Apache-2.0
 *
 * The effects module in C++, on SQLite and PostgreSQL: what effects.h says, over <waybill/waybill.hpp>, so that what
 * fails is thrown. Of its orders: fail:K, reject, slow:MS. And for the suite `languages`:
 *
 *   CRASH_THROW=N     one call in N throws, at a place that is drawn, too
 *   CRASH_THROWN=F    a byte is appended to F each time
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <waybill/pgsql.hpp>
#include <waybill/sqlite.hpp>

using waybill::context;
using waybill::message;
using waybill::outgoing;

namespace {

/* ---- as effects.c and digest.h have it ----------------------------------------------------- */

std::string digest(std::string_view bytes)
{
    std::uint64_t sum = 14695981039346656037u;
    for (const char byte : bytes)
        sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211u;
    sum = (sum ^ bytes.size()) * 1099511628211u;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum));
    return text;
}

std::string named(const char *name)
{
    const char *prefix = std::getenv("CRASH_PREFIX");
    return std::string(prefix ? prefix : "") + name;
}

struct effect {
    explicit effect(const message &from) : msg(from), hash(digest(from.body()))
    {
        const std::string head(from.body().substr(0, 199));
        if (std::sscanf(head.c_str(), "seq=%d key=%31s amount=%d do=%31s", &seq, key, &amount, order) != 4)
            throw waybill::reject("not a message of the crash suite");
    }
    message msg;
    std::string hash;
    int seq = 0, amount = 0;
    char key[32] = "", order[32] = "";
};

void follow_orders(const effect &e)
{
    int number = 0;
    if (std::string_view(e.order) == "reject")
        throw waybill::reject("ordered to reject message " + std::to_string(e.seq));
    if (std::sscanf(e.order, "fail:%d", &number) == 1 && e.msg.attempt() <= static_cast<unsigned>(number))
        throw std::runtime_error("ordered to fail attempt " + std::to_string(e.msg.attempt()));
    if (std::sscanf(e.order, "slow:%d", &number) == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(number));
}

/* ---- what is thrown at random --------------------------------------------------------------- */

struct odd {};

[[noreturn]] void throw_one(unsigned which)
{
    if (const char *path = std::getenv("CRASH_THROWN")) {
        const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (file < 0 || write(file, "x", 1) != 1)
            std::abort();
        close(file);
    }
    switch (which % 4) {
    case 0:
        throw std::runtime_error("thrown at random");
    case 1:
        throw odd();
    case 2:
        throw waybill::retry("thrown at random, in words");
    default:
        throw std::bad_alloc();
    }
}

/* Where a call may throw: it draws once, and passes them one by one. */
class dice {
public:
    dice() : left_(drawn()) {}
    void roll()
    {
        if (left_ >= 0 && left_-- == 0)
            throw_one(random());
    }

private:
    static unsigned random()
    {
        static thread_local std::minstd_rand numbers{ std::random_device()() };
        return static_cast<unsigned>(numbers());
    }
    static int drawn()
    {
        const char *share = std::getenv("CRASH_THROW");
        return share && random() % static_cast<unsigned>(std::atoi(share)) == 0 ? static_cast<int>(random() % 5) : -1;
    }
    int left_;
};

/* ---- effects -------------------------------------------------------------------------------- */

using writer = void (*)(const context &, const std::string &, waybill::parameters);

void plainly(const context &ctx, const std::string &statement, waybill::parameters values)
{
    if (wb_sqlite(ctx.raw()))
        waybill::sqlite::execute(ctx, statement, values);
    else
        waybill::pgsql::query(ctx, statement, values);
}

void deferred(const context &ctx, const std::string &statement, waybill::parameters values)
{
    waybill::pgsql::defer(ctx, statement, values);
}

void send_one(const context &ctx, const effect &e, bool is_grouped, int ordinal)
{
    const std::string body =
        "cause=" + std::string(e.msg.id()) + " ordinal=" + std::to_string(ordinal) + " hash=" + e.hash;
    outgoing one(ordinal == 2 ? named("Crash.Happened") : "Crash.Noted");
    one.body(body).header("Crash.Key", e.key).header("Crash.Note", "ünïcode=;,").key(e.key);
    if (is_grouped)
        one.cause(e.msg);
    if (ordinal == 2)
        ctx.publish(one);
    else
        ctx.send(named("sink"), one);
}

void take_effect(const context &ctx, const message &msg, const char *variant, writer write, bool is_grouped)
{
    dice die;
    const effect e(msg);
    follow_orders(e);
    die.roll();
    write(ctx, "insert into effects (msg_id, seq, body_hash, variant, pid, attempt) values ($1, $2, $3, $4, $5, $6)",
          { msg.id(), e.seq, e.hash, variant, getpid(), msg.attempt() });
    die.roll();
    write(ctx, "insert into ledger (msg_id, account, amount) values ($1, $2, $3)", { msg.id(), e.key, e.amount });
    die.roll();
    send_one(ctx, e, is_grouped, 1);
    die.roll();
    if (e.seq % 2)
        send_one(ctx, e, is_grouped, 2);
    die.roll();
}

void plain(const context &ctx, const message &msg)
{
    take_effect(ctx, msg, "plain", plainly, false);
}

void later(const context &ctx, const message &msg)
{
    take_effect(ctx, msg, "deferred", deferred, false);
}

void batch(const context &ctx, const waybill::messages &all)
{
    for (const message msg : all)
        take_effect(ctx, msg, "batch", plainly, all.size() > 1);
}

} // namespace

WB_HANDLERS(WB_HANDLER("Crash.Plain", waybill::handler<plain>), WB_HANDLER("Crash.Deferred", waybill::handler<later>),
            WB_BATCH_HANDLER("Crash.Batch", waybill::batch_handler<batch>))
