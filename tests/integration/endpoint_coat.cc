/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers in C++ over <waybill/waybill.hpp>, for endpoint_coat.t: each does what its type says. What they saw goes
 * into the table `seen`, in the transaction, so that what was rolled back is not there.
 */
#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <waybill/mysql.hpp>
#include <waybill/pgsql.hpp>
#include <waybill/sqlite.hpp>

using namespace std::chrono_literals;
using waybill::context;
using waybill::message;
using waybill::outgoing;

namespace {

void note(const context &ctx, const message &msg, std::string_view what)
{
    waybill::sqlite::execute(ctx, "insert into seen (id, what) values (?, ?)", { msg.id(), what });
}

/* ---- what is thrown, and what is returned ------------------------------------------------- */

struct odd {}; /* no std::exception */

void throw_it(const context &ctx, const message &msg)
{
    const std::string what(msg.body());
    note(ctx, msg, "thrown");
    ctx.send("sink", outgoing("Coat.Ghost").body(what));
    if (what == "runtime")
        throw std::runtime_error("the order is upside down");
    if (what == "odd")
        throw odd();
    if (what == "number")
        throw 7;
    if (what == "once" && msg.attempt() == 1)
        throw std::logic_error("only once");
    if (what == "reject")
        throw waybill::reject("no such customer");
    if (what == "retry")
        throw waybill::retry("not yet");
    if (what == "discard")
        throw waybill::discard("a newer one is known");
    if (what == "move")
        throw waybill::move_to("review", "the amount is odd");
    if (what == "nowhere")
        throw waybill::move_to(std::string("review\0", 7), "the amount is odd");
    if (what == "later")
        throw waybill::retry_after(10min, "the bank is closed");
    if (what == "long")
        throw std::runtime_error(std::string(5000, 'x'));
    if (what == "percent")
        throw std::runtime_error("100%s of %n");
}

waybill::outcome return_it(const context &, const message &msg)
{
    waybill::outcome said = waybill::move_to("review", "it was given away");
    const waybill::outcome other = std::move(said);
    if (msg.body() == "emptied")
        return said;
    return msg.body() == "reject" ? waybill::reject("returned: no") : waybill::outcome(WB_OK);
}

int return_number(const context &ctx, const message &msg)
{
    return msg.body() == "reject" ? wb_fail(ctx.raw(), WB_UNRECOVERABLE, "as in C") : WB_OK;
}

/* Also where another function of the module lies between. */
void deep(int more)
{
    const std::string has_a_destructor(64, 'd');
    if (more == 0)
        throw std::out_of_range("too deep" + has_a_destructor.substr(0, 1));
    deep(more - 1);
}

constexpr auto nested = [](const context &, const message &) { deep(100); };

/* ---- what is received ---------------------------------------------------------------------- */

std::string in_words(const message &msg)
{
    std::string words = "id=" + std::string(msg.id()) + " type=" + std::string(msg.type()) + " body=" + std::string(msg.body()) +
                        " key=" + std::string(msg.key().value_or("(none)")) + " attempt=" + std::to_string(msg.attempt());
    for (const waybill::header each : msg.headers())
        if (each.name().substr(0, 5) == "Coat.")
            words += " " + std::string(each.name()) + "=" + std::string(each.value());
    words += " found=" + std::string(msg.header("Coat.Second").value_or("(none)"));
    words += " lacks=" + std::string(msg.header("Coat.Secon").value_or("(none)"));
    return words;
}

void look(const context &ctx, const message &msg)
{
    note(ctx, msg, in_words(msg) + " endpoint=" + std::string(ctx.endpoint()));
    ctx.log(WB_LOG_INFO, "looked at 100%s");
}

/* ---- what is sent -------------------------------------------------------------------------- */

/* What C gets is what was said last. */
void as_said(const outgoing &what, std::string_view body, unsigned flags, int64_t delay, int64_t at)
{
    bool is_said = false;
    what.as_c("sink", [&](const wb_outgoing *raw) {
        is_said = std::string_view(static_cast<const char *>(raw->body), raw->body_size) == body && raw->flags == flags &&
                  raw->delay == delay && raw->deliver_at == at;
        return 0;
    });
    if (!is_said)
        throw std::logic_error("it is not sent as it was said: " + std::string(body));
}

void demand(bool is_right, const char *what)
{
    if (!is_right)
        throw std::logic_error(what);
}

template <class Time> int64_t within(Time time)
{
    return outgoing("Coat.X").time_to_be_received(time).as_c("sink", [](const wb_outgoing *raw) { return raw->time_to_be_received; });
}

template <class Time> int64_t due(Time since)
{
    const std::chrono::time_point<std::chrono::system_clock, Time> time(since);
    return outgoing("Coat.X").deliver_at(time).as_c("sink", [](const wb_outgoing *raw) { return raw->deliver_at; });
}

/* A time that is over is none that lasts for ever, and one that does not fit is one that the host refuses. */
void measure()
{
    using tiny = std::chrono::duration<double, std::nano>;
    using third = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
    using hours = std::chrono::duration<std::int64_t, std::ratio<3600>>;
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    const tiny none(std::numeric_limits<double>::quiet_NaN());
    demand(within(0s) == 1 && within(-5s) == 1 && within(hours::min()) == 1 && within(tiny(0.25)) == 1, "a time to be received that is over");
    demand(within(7ns) == 7 && within(2h) == 7200 * WB_SECONDS && within(tiny(1500.0)) == 1500, "a time to be received");
    demand(within(hours::max()) == most && within(none) == most && waybill::nanoseconds(-hours::max()) < -most, "a time that does not fit");
    demand(waybill::nanoseconds(third(200 * 365 * INT64_C(86400) * 3)) == 200 * 365 * WB_DAYS, "200 years in thirds of a second");
    demand(due(-5s) == 1 && due(0s) == 1 && due(5s) == 5 * WB_SECONDS, "a time before 1970");
}

void send_all(const context &ctx, const message &msg)
{
    measure();
    const std::chrono::system_clock::time_point later(5s);
    as_said(outgoing("Coat.X").body(std::string("first")).body("last"), "last", 0, 0, 0);
    as_said(outgoing("Coat.X").body("first").body(std::string("last")), "last", 0, 0, 0);
    as_said(outgoing("Coat.X").body("immediate").immediate(), "immediate", WB_IMMEDIATE, 0, 0);
    as_said(outgoing("Coat.X").body("memory").non_persistent(), "memory", WB_NON_PERSISTENT, 0, 0);
    as_said(outgoing("Coat.X").body("at").delay(9s).deliver_at(later), "at", 0, 0, 5000000000);
    as_said(outgoing("Coat.X").body("in").deliver_at(later).delay(9s), "in", 0, 9000000000, 0);
    outgoing plain("Coat.Plain");
    plain.body(std::string("plain ") + "body").header("Coat.Empty", "").header("Coat.Nul", std::string_view("a\0b", 3));
    ctx.send("sink", plain);
    ctx.send("sink", outgoing("Coat.Full").body("bytes").id("my-id").key("my-key").content_type("text/plain").non_persistent());
    ctx.send("sink", outgoing("Coat.Bodyless"));
    ctx.send("sink", outgoing("Coat.Late").delay(2s));
    ctx.send("sink", outgoing("Coat.At").deliver_at(std::chrono::system_clock::now() + 2s));
    ctx.send("sink", outgoing("Coat.Expires").time_to_be_received(1h));
    ctx.send("sink", outgoing("Coat.Passed").time_to_be_received(-1s));
    ctx.publish(outgoing("Coat.Event").body(msg.body()));
    ctx.reply(outgoing("Coat.Reply").body(msg.body().data(), msg.body().size()));
    plain.as_c("sink", [&](const wb_outgoing *raw) { waybill::check(wb_send(ctx.raw(), raw)); return 0; });
}

void refused(const context &ctx, const message &msg)
{
    const std::string_view what = msg.body();
    note(ctx, msg, "refused");
    if (what == "key")
        ctx.send("sink", outgoing("Coat.X").key(""));
    if (what == "id")
        ctx.send("sink", outgoing("Coat.X").id(""));
    if (what == "name")
        ctx.send("sink", outgoing("Coat.X").header("", "value"));
    if (what == "nul")
        ctx.send("sink", outgoing(std::string_view("Coat\0X", 6)));
    if (what == "far")
        ctx.send("sink", outgoing("Coat.X").delay(std::chrono::hours(24 * 365 * 1000)));
    if (what == "reply")
        ctx.reply(outgoing("Coat.X"));
    if (what == "caught")
        try {
            ctx.send("sink", outgoing("Coat.X").key(""));
        } catch (const waybill::outcome &said) {
            note(ctx, msg, "caught " + std::to_string(said.result()));
        }
}

/* ---- statements ---------------------------------------------------------------------------- */

void store(const context &ctx, const message &msg)
{
    const std::optional<std::string> none;
    const std::optional<std::int64_t> some = -5;
    waybill::sqlite::execute(ctx, "create temporary table if not exists kinds (a, b, c, d, e, f, g, h)");
    waybill::sqlite::execute(ctx, "delete from kinds");
    waybill::sqlite::execute(ctx, "insert into kinds values (?, ?, ?, ?, ?, ?, ?, ?)",
                             { "it's", 42, 0.5, nullptr, waybill::binary(std::string_view("\0\xff", 2)), true, none, some });
    waybill::sqlite::statement row(ctx, "select a, b, c, d, hex(e), f, g, h, typeof(a) || typeof(b) || typeof(c) || typeof(e) from kinds");
    std::string words;
    while (row.step()) {
        words += row.text(0) + " " + std::to_string(row.integer(1)) + " " + (row.real(2) == 0.5 ? "half" : "not half");
        words += (row.is_null(3) ? " null " : " something ") + row.text(4) + " " + row.text(5) + (row.is_null(6) ? " null " : " some ");
        words += std::to_string(row.integer(7)) + " " + row.text(8);
    }
    note(ctx, msg, words);
}

void misstate(const context &ctx, const message &msg)
{
    const std::string_view what = msg.body();
    note(ctx, msg, "misstated");
    if (what == "syntax")
        waybill::sqlite::execute(ctx, "insert rubbish");
    if (what == "unique")
        for (int i = 0; i < 2; i++)
            waybill::sqlite::execute(ctx, "insert into only_once values (?)", { "secret" });
    if (what == "count")
        waybill::sqlite::execute(ctx, "insert into seen values (?, ?)", { 1 });
    if (what == "two")
        waybill::sqlite::execute(ctx, "select 1; select 2");
    if (what == "none")
        waybill::sqlite::execute(ctx, " -- nothing");
    if (what == "large")
        waybill::sqlite::execute(ctx, "insert into seen values (?, ?)", { 1, std::numeric_limits<std::uint64_t>::max() });
    if (what == "pgsql")
        waybill::pgsql::defer(ctx, "insert into seen values ($1)", { 1, nullptr, "text" });
    if (what == "mysql")
        waybill::mysql::defer(ctx, "insert into seen values (?)", { 1 });
}

/* ---- batches and hooks ---------------------------------------------------------------------- */

void many(const context &ctx, const waybill::messages &all)
{
    for (const message msg : all) {
        if (msg.body() == "bad")
            throw std::runtime_error("one of them is bad");
        note(ctx, msg, all.size() > 1 ? "in a batch" : "alone");
        outgoing answer("Coat.Answer");
        answer.body(msg.id());
        if (all.size() > 1)
            answer.cause(msg);
        ctx.send("sink", answer);
    }
}

struct shop {
    explicit shop(const context &ctx) : name(ctx.setting("name").value_or("nameless"))
    {
        if (name == "throws")
            throw std::runtime_error("the shop is on fire");
        if (name == "closed")
            throw waybill::not_connected("the shop is closed");
    }
    ~shop() noexcept(false)
    {
        if (name == "ends badly")
            throw std::runtime_error("the shutters are stuck");
        if (name == "ends oddly")
            throw odd();
    }
    const std::string name;
};

struct counter {
    explicit counter(const context &) {}
    int count = 0;
};

void check_settings(const context &ctx)
{
    if (ctx.setting("name") == "")
        throw waybill::fatal("the setting \"name\" is empty");
    if (ctx.setting("name") == "unchecked")
        throw std::invalid_argument("the setting \"name\" is a joke");
}

void remember(const context &ctx, const message &msg)
{
    note(ctx, msg, ctx.module_data<shop>()->name + " " + std::to_string(++ctx.worker_data<counter>()->count));
}

} // namespace

WB_MODULE(WB_HOOKS(waybill::check_hook<check_settings>, waybill::open_hook<shop>, waybill::open_hook<counter>,
                   waybill::close_hook<counter>, waybill::close_hook<shop>),
          WB_HANDLER("Coat.Throw", waybill::handler<throw_it>), WB_HANDLER("Coat.Return", waybill::handler<return_it>),
          WB_HANDLER("Coat.Number", waybill::handler<return_number>), WB_HANDLER("Coat.Nested", waybill::handler<&nested>),
          WB_HANDLER("Coat.Look", waybill::handler<look>), WB_HANDLER("Coat.Send", waybill::handler<send_all>),
          WB_HANDLER("Coat.Refused", waybill::handler<refused>), WB_HANDLER("Coat.Store", waybill::handler<store>),
          WB_HANDLER("Coat.Misstate", waybill::handler<misstate>), WB_HANDLER("Coat.Remember", waybill::handler<remember>),
          WB_BATCH_HANDLER("Coat.Many", waybill::batch_handler<many>))
