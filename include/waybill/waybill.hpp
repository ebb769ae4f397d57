/* SPDX-License-Identifier: Apache-2.0
 *
 * The handler API for C++17: what a handler module in C++ includes. Header only, over handler.h, which says
 * what a handler may do and when it is called; all of that holds here.
 *
 *     #include <waybill/waybill.hpp>
 *
 *     static void place_order(const waybill::context &ctx, const waybill::message &msg)
 *     {
 *         if (msg.body().empty())
 *             throw waybill::reject("an order without a body");
 *         ... business data through the storage session, e.g. <waybill/sqlite.hpp> ...
 *         ctx.publish(waybill::outgoing("Sales.OrderPlaced").body(msg.body()).header("Shop.User", "ada"));
 *     }
 *     WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", waybill::handler<place_order>))
 *
 *     c++ -std=c++17 -shared -fPIC $(pkg-config --cflags waybill) orders.cc -o orders.so
 *
 * Exceptions: no exception may leave a handler, and none leaves one that handler<>, batch_handler<> or a hook
 * of this header made. What becomes of the message is said by a `waybill::outcome`, thrown or returned; any
 * other exception is a failure that is tried again (WB_RETRY), and what() of a std::exception is its reason in
 * the log and the error queue. What is thrown out of a noexcept function (a destructor is one, unless it says
 * otherwise) ends the process before anybody here sees it: a kill, as in waybill-handler(7).
 *
 * Ownership: message, header, context and what they hand out are views of what belongs to Waybill, valid until
 * the handler returns. What a function here is given it copies, but for the body of an `outgoing`.
 *
 * Threads: as in handler.h. Nothing here has state of its own.
 *
 * Nothing here is a symbol of Waybill: it is compiled into the module, calls through the table of the context, and
 * may be mixed with the functions of handler.h. Modules built with other versions of this header share a process.
 */
#ifndef WAYBILL_WAYBILL_HPP
#define WAYBILL_WAYBILL_HPP

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <waybill/handler.h>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

namespace waybill {
inline namespace v1 {

/* ---- what becomes of a message ----------------------------------------------------------- */

/** What a handler or a hook ends with, to be returned or thrown: `throw waybill::reject("no such customer");`.
 *  Put no secret and no part of a message into a reason: it is logged, and a header in the error queue. It is
 *  cut at 1000 bytes, and at a NUL byte. */
class outcome : public std::exception {
public:
    /** A class of result.h without a reason of its own: what a function of handler.h returned, whose reason the
     *  host has kept; WB_OK: handled. */
    outcome(int result = WB_OK) noexcept : result_(result) {}
    /** A class and its reason. */
    outcome(int result, std::string reason) : result_(result), reason_(std::make_shared<texts>(std::move(reason))) {}

    /** As wb_retry_after(): tried again after that time and not at once. */
    static outcome after(std::int64_t nanoseconds, std::string reason)
    {
        outcome made(WB_RETRY, std::move(reason));
        made.wish_ = wish::later;
        made.delay_ = nanoseconds;
        return made;
    }
    /** As wb_move_to(): the error queue, but that one. */
    static outcome to(std::string queue, std::string reason)
    {
        outcome made(WB_UNRECOVERABLE, std::move(reason));
        made.wish_ = wish::move;
        made.reason_->queue = std::move(queue);
        return made;
    }
    /** As wb_discard(): forgotten. */
    static outcome forget(std::string reason)
    {
        outcome made(WB_UNRECOVERABLE, std::move(reason));
        made.wish_ = wish::discard;
        return made;
    }

    int result() const noexcept { return result_; }
    /** The reason; empty if it has none of its own. */
    const char *what() const noexcept override { return reason_ ? reason_->reason.c_str() : ""; }

    /** Tell the host, once, before the handler returns. @return what the C function returns. */
    int tell(wb_context *ctx) const noexcept
    {
        if (!reason_) /* also of one that was moved from */
            return result_;
        switch (wish_) {
        case wish::later:
            return wb_retry_after(ctx, delay_, what());
        case wish::move:
            return wb_move_to(ctx, queue(), what());
        case wish::discard:
            return wb_discard(ctx, what());
        case wish::none:
            break;
        }
        return result_ != WB_OK ? wb_fail(ctx, result_, "%s", what()) : result_;
    }

private:
    enum class wish { none, later, move, discard };
    struct texts { /* shared: an exception is copied, and that may not throw */
        explicit texts(std::string text) : reason(std::move(text)) {}
        std::string reason, queue;
    };
    /* Cut at a NUL byte it would be another one; one without a name the host refuses. */
    const char *queue() const noexcept
    {
        return reason_->queue.find('\0') == std::string::npos ? reason_->queue.c_str() : "";
    }
    int result_;
    wish wish_ = wish::none;
    std::int64_t delay_ = 0;
    std::shared_ptr<texts> reason_;
};

/** Nanoseconds of any std::chrono::duration; what does not fit becomes the largest or smallest, which the host
 *  refuses, and so does what is no number (the largest). */
template <class Rep, class Period>
constexpr std::int64_t nanoseconds(std::chrono::duration<Rep, Period> time)
{
    using std::chrono::nanoseconds;
    using real = std::chrono::duration<long double, std::nano>;
    constexpr long double most = 9.2e18L;
    using ratio = std::ratio_divide<Period, std::nano>;
    const long double count = std::chrono::duration_cast<real>(time).count();
    if (!(count < most))
        return std::numeric_limits<std::int64_t>::max();
    if (count <= -most)
        return std::numeric_limits<std::int64_t>::min();
    if constexpr (ratio::num != 1 && ratio::den != 1) /* the product may not fit where the time does */
        return static_cast<std::int64_t>(count);
    else
        return static_cast<std::int64_t>(std::chrono::duration_cast<nanoseconds>(time).count());
}

/** Tried again: at once as often as `immediate_retries` says, then later, then the error queue. */
inline outcome retry(std::string reason) { return outcome(WB_RETRY, std::move(reason)); }
/** To the error queue at once. */
inline outcome reject(std::string reason) { return outcome(WB_UNRECOVERABLE, std::move(reason)); }
/** Tried again after that time, more than 0: `throw waybill::retry_after(10min, "the bank is closed");`. */
template <class Rep, class Period>
outcome retry_after(std::chrono::duration<Rep, Period> delay, std::string reason)
{
    return outcome::after(nanoseconds(delay), std::move(reason));
}
/** Forgotten: what the handler did is rolled back, the message acknowledged, and one line logged. */
inline outcome discard(std::string reason) { return outcome::forget(std::move(reason)); }
/** To an error queue of the handler's choice. */
inline outcome move_to(std::string queue, std::string reason)
{
    return outcome::to(std::move(queue), std::move(reason));
}
/** Of a hook: what it needs does not answer (with `start = "wait"` it is waited for). */
inline outcome not_connected(std::string reason) { return outcome(WB_NOT_CONNECTED, std::move(reason)); }
/** Of a hook: it can never be, e.g. a setting is wrong. */
inline outcome fatal(std::string reason) { return outcome(WB_FATAL, std::move(reason)); }

/** Throw what a function of handler.h returned, unless it is WB_OK: `check(wb_pgsql_defer(...))`. */
inline void check(int result)
{
    if (result != WB_OK)
        throw outcome(result);
}

/** The C string of a text that C takes up to its NUL byte. One inside of it is refused, for nobody would see
 *  what is behind it. Valid as long as `text`. */
inline const char *c_text(const std::string &text, const char *what)
{
    if (text.find('\0') != std::string::npos)
        throw reject(std::string("a NUL byte in a text: ") + what);
    return text.c_str();
}

/* ---- what is received -------------------------------------------------------------------- */

/** A C array as something to go through: `for (waybill::header header : message.headers())`. Each element is a
 *  `View` made of the array's. */
template <class View, class Raw> class range {
public:
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = View;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = View;
        explicit iterator(const Raw *at) noexcept : at_(at) {}
        View operator*() const noexcept { return View(*at_); }
        iterator &operator++() noexcept
        {
            ++at_;
            return *this;
        }
        iterator operator++(int) noexcept
        {
            iterator before = *this;
            ++at_;
            return before;
        }
        bool operator==(const iterator &other) const noexcept { return at_ == other.at_; }
        bool operator!=(const iterator &other) const noexcept { return at_ != other.at_; }

    private:
        const Raw *at_;
    };

    range(const Raw *first, std::size_t count) noexcept : first_(first), count_(count) {}
    iterator begin() const noexcept { return iterator(first_); }
    iterator end() const noexcept { return iterator(count_ ? first_ + count_ : first_); }
    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    /** `at` is less than size(). */
    View operator[](std::size_t at) const noexcept { return View(first_[at]); }

private:
    const Raw *first_;
    std::size_t count_;
};

/** A header of a received message: any bytes. */
class header {
public:
    explicit header(const wb_header &raw) noexcept : raw_(&raw) {}
    std::string_view name() const noexcept { return { raw_->name, raw_->name_size }; }
    std::string_view value() const noexcept { return { raw_->value, raw_->value_size }; }

private:
    const wb_header *raw_;
};

/** The message being handled; its fields are explained at wb_message. Behind id(), key() and the strings of a
 *  header there is a NUL byte; behind body() nothing may be read. */
class message {
public:
    explicit message(const wb_message *raw) noexcept : raw_(raw) {}
    const wb_message *raw() const noexcept { return raw_; }

    std::string_view id() const noexcept { return { raw_->id, raw_->id_size }; }
    std::string_view type() const noexcept { return raw_->type; }
    std::string_view body() const noexcept { return { static_cast<const char *>(raw_->body), raw_->body_size }; }
    /** What decided its order and partition, if anything did. */
    std::optional<std::string_view> key() const noexcept
    {
        return raw_->key ? std::optional<std::string_view>({ raw_->key, raw_->key_size }) : std::nullopt;
    }
    /** 1 for the first. */
    std::uint32_t attempt() const noexcept { return raw_->attempt; }

    range<waybill::header, wb_header> headers() const noexcept { return { raw_->headers, raw_->header_count }; }
    /** The value of the first header of that name, compared byte for byte; NUL bytes are values like others. */
    std::optional<std::string_view> header(std::string_view name) const noexcept
    {
        for (waybill::header each : headers())
            if (each.name() == name)
                return each.value();
        return std::nullopt;
    }

private:
    const wb_message *raw_;
};

/** The messages of a batch handler. */
using messages = range<message, const wb_message *>;

/* ---- what is sent ------------------------------------------------------------------------ */

/** A message that a handler asks for; its fields are explained at wb_outgoing, and what is not set is not
 *  given. It may be sent several times, and changed in between.
 *
 *      ctx.send("billing", waybill::outgoing("Billing.Charge").body(json).key(customer).delay(10min));
 *
 *  Texts are copied. The body is not: it must live until the message was sent, unless it is a string that is
 *  moved in, or a temporary one. Kept for later it is a value (`auto one = waybill::outgoing("A.B").key(k);`),
 *  never a reference: what the functions return is the object they were called on. */
class outgoing {
public:
    /** `type`: "Namespace.Name". */
    explicit outgoing(std::string_view type) : type_(type) {}

    outgoing &body(std::string_view bytes) noexcept
    {
        body_ = bytes;
        owned_.reset();
        return *this;
    }
    outgoing &body(const char *text) noexcept { return body(std::string_view(text)); }
    outgoing &body(const void *bytes, std::size_t size) noexcept
    {
        return body(std::string_view(static_cast<const char *>(bytes), size));
    }
    outgoing &body(std::string &&bytes)
    {
        owned_ = std::move(bytes);
        return *this;
    }
    /** One header more; an empty value is a value. */
    outgoing &header(std::string_view name, std::string_view value)
    {
        headers_.emplace_back(name, value);
        return *this;
    }
    /** 1 to 255 bytes; without it one is derived that is the same on every attempt. That of the message in hand: it is sent on (message.h). */
    outgoing &id(std::string_view bytes)
    {
        id_.emplace(bytes);
        return *this;
    }
    /** Decides order and partition. */
    outgoing &key(std::string_view bytes)
    {
        key_.emplace(bytes);
        return *this;
    }
    /** Without it "application/json". */
    outgoing &content_type(std::string_view text)
    {
        content_type_.emplace(text);
        return *this;
    }
    /** Delivered so much later; or not before a time, which may be over. The last of the two counts. */
    template <class Rep, class Period> outgoing &delay(std::chrono::duration<Rep, Period> time)
    {
        delay_ = nanoseconds(time);
        deliver_at_ = 0;
        return *this;
    }
    template <class Duration>
    outgoing &deliver_at(std::chrono::time_point<std::chrono::system_clock, Duration> time)
    {
        deliver_at_ = some(nanoseconds(time.time_since_epoch()));
        delay_ = 0;
        return *this;
    }
    /** Dropped when nobody has received it by then. None at all, or less, as of a deadline that is over
     *  (`deadline - now`), is the shortest there is. */
    template <class Rep, class Period> outgoing &time_to_be_received(std::chrono::duration<Rep, Period> time)
    {
        time_to_be_received_ = some(nanoseconds(time));
        return *this;
    }
    /** WB_IMMEDIATE: at once, whatever becomes of the transaction. */
    outgoing &immediate() noexcept { return flag(WB_IMMEDIATE); }
    /** WB_NON_PERSISTENT: the broker may keep it in memory only. */
    outgoing &non_persistent() noexcept { return flag(WB_NON_PERSISTENT); }
    /** In a batch handler with more than one message: the one that causes this one. */
    outgoing &cause(const message &of) noexcept
    {
        cause_ = of.raw();
        return *this;
    }

    /** Hand it to `take` as C has it, with `destination` or NULL: `take(const wb_outgoing *)`. For functions of
     *  C that this header does not wrap, like wb_session_send(). @return what `take` returned. */
    template <class Take> auto as_c(const char *destination, Take &&take) const
    {
        std::vector<wb_header> headers;
        headers.reserve(headers_.size());
        for (const auto &[name, value] : headers_)
            headers.push_back({ name.data(), value.data(), name.size(), value.size() });
        wb_outgoing raw = wb_outgoing();
        raw.type = c_text(type_, "type");
        raw.destination = destination;
        raw.body = owned_ ? owned_->data() : body_.data();
        raw.body_size = owned_ ? owned_->size() : body_.size();
        raw.headers = headers.empty() ? nullptr : headers.data();
        raw.header_count = headers.size();
        raw.id = id_ ? id_->data() : nullptr;
        raw.id_size = id_ ? id_->size() : 0;
        raw.content_type = content_type_ ? c_text(*content_type_, "content type") : nullptr;
        raw.key = key_ ? key_->data() : nullptr;
        raw.key_size = key_ ? key_->size() : 0;
        raw.flags = flags_;
        raw.cause = cause_;
        raw.delay = delay_;
        raw.deliver_at = deliver_at_;
        raw.time_to_be_received = time_to_be_received_;
        return take(static_cast<const wb_outgoing *>(&raw));
    }

private:
    /* 0 is "not given" to C. */
    static constexpr std::int64_t some(std::int64_t time) noexcept { return time > 0 ? time : 1; }
    outgoing &flag(std::uint32_t one) noexcept
    {
        flags_ |= one;
        return *this;
    }

    std::string type_;
    std::string_view body_;
    std::optional<std::string> owned_, id_, key_, content_type_;
    std::vector<std::pair<std::string, std::string>> headers_;
    const wb_message *cause_ = nullptr;
    std::uint32_t flags_ = 0;
    std::int64_t delay_ = 0, deliver_at_ = 0, time_to_be_received_ = 0;
};

/* ---- the call ---------------------------------------------------------------------------- */

/** One call of a handler or a hook: a wb_context, as handler.h explains it. Small, and passed on as it is; like
 *  that it is for the call's thread until the call is over. (Of a program's session: wb_session_context().) */
class context {
public:
    explicit context(wb_context *raw) noexcept : raw_(raw) {}
    wb_context *raw() const noexcept { return raw_; }

    /** Send a command to one endpoint's queue; it leaves after the commit. @throws outcome when it is refused: let
     *  it pass, and the message goes to the error queue with the host's reason. */
    void send(std::string_view destination, const outgoing &what) const
    {
        const std::string to(destination);
        ask(WB_KIND_SEND, c_text(to, "destination"), what);
    }
    /** Publish an event to all who subscribed to its type. @throws outcome */
    void publish(const outgoing &what) const { ask(WB_KIND_PUBLISH, nullptr, what); }
    /** Send to the reply address of the message being handled. @throws outcome, also when it has none */
    void reply(const outgoing &what) const { ask(WB_KIND_REPLY, nullptr, what); }

    /** Write a line to the endpoint's log, with a level of result.h. It is cut at 1000 bytes. */
    void log(int level, const std::string &text) const noexcept { wb_log(raw_, level, "%s", text.c_str()); }
    std::string_view endpoint() const noexcept { return wb_endpoint_name(raw_); }
    /** A setting of the endpoint, if it is set. Valid until the module is closed. */
    std::optional<std::string_view> setting(const char *name) const noexcept
    {
        const char *value = wb_setting(raw_, name);
        return value ? std::optional<std::string_view>(value) : std::nullopt;
    }

    /** What open_hook<T> made for the endpoint: `T` must be that type. Shared by all workers; const, or guarded
     *  by itself. NULL in a program's session, or where there is no such hook. */
    template <class T> T *module_data() const noexcept { return static_cast<T *>(wb_module_data(raw_)); }
    /** What open_hook<T> made for this worker, as WB_HOOKS' `worker_open`; its thread alone uses it. */
    template <class T> T *worker_data() const noexcept { return static_cast<T *>(wb_worker_data(raw_)); }

private:
    void ask(int kind, const char *destination, const outgoing &what) const
    {
        what.as_c(destination, [&](const wb_outgoing *raw) {
            check(raw_->api->outgoing(raw_, kind, raw, sizeof *raw));
            return 0;
        });
    }

    wb_context *raw_;
};

/* ---- from C++ to C ----------------------------------------------------------------------- */

/** Run `work`, and make a result of whatever it returns (nothing, an `outcome`, an int of result.h) or throws:
 *  an outcome tells its reason, another std::exception is `failed` with its what(), and so is anything else.
 *  (A thread that ends itself or is cancelled is no exception, and passes.) */
template <class Work> int guard(wb_context *ctx, int failed, Work &&work)
{
    try {
        if constexpr (std::is_void_v<decltype(work())>) {
            work();
            return WB_OK;
        } else {
            return outcome(work()).tell(ctx);
        }
    } catch (const outcome &said) {
        return said.tell(ctx);
    } catch (const std::exception &error) {
        return wb_fail(ctx, failed, "%s", error.what());
#if defined(__GLIBCXX__)
    } catch (const abi::__forced_unwind &) {
        throw;
#endif
    } catch (...) {
        return wb_fail(ctx, failed, "something was thrown that is no std::exception");
    }
}

/** The C function of a handler: `WB_HANDLER("Sales.PlaceOrder", waybill::handler<place_order>)`. `Function` is a
 *  function, or the address of a constant object, a lambda for instance, to be called as
 *  `(const context &, const message &)`. It returns nothing (handled, if it throws nothing), an outcome, or an int. */
template <auto Function> int handler(wb_context *ctx, const wb_message *raw)
{
    return guard(ctx, WB_RETRY, [&] { return (*Function)(context(ctx), message(raw)); });
}

/** The same for WB_BATCH_HANDLER: `(const context &, const messages &)`. */
template <auto Function> int batch_handler(wb_context *ctx, const wb_message *const *raw, std::size_t count)
{
    return guard(ctx, WB_RETRY, [&] { return (*Function)(context(ctx), messages(raw, count)); });
}

/** The hook `check` of a `(const context &)`. What it throws, if it is no outcome, is WB_FATAL. */
template <auto Function> int check_hook(wb_context *ctx)
{
    return guard(ctx, WB_FATAL, [&] { return (*Function)(context(ctx)); });
}

/** Hooks `open` and `close`, or `worker_open` and `worker_close`, that keep a `T`: it is made as
 *  `T(const context &)`, and gone with the close. For context::module_data<T>(), context::worker_data<T>():
 *
 *      WB_MODULE(WB_HOOKS(NULL, waybill::open_hook<shop>, NULL, NULL, waybill::close_hook<shop>), ...)
 *
 *  What the constructor throws refuses: an outcome as it says, else WB_FATAL. What a destructor throws that may is
 *  a line of the log. */
template <class T> int open_hook(wb_context *ctx, void **ret_data)
{
    return guard(ctx, WB_FATAL, [&] { *ret_data = new T(context(ctx)); });
}
template <class T> void close_hook(wb_context *ctx, void *data)
{
    try {
        delete static_cast<T *>(data);
    } catch (const std::exception &error) {
        wb_log(ctx, WB_LOG_ERROR, "thrown while the module was closed: %s", error.what());
#if defined(__GLIBCXX__)
    } catch (const abi::__forced_unwind &) {
        throw;
#endif
    } catch (...) {
        wb_log(ctx, WB_LOG_ERROR, "something was thrown while the module was closed that is no std::exception");
    }
}

/* ---- parameters of statements ------------------------------------------------------------ */

/** A parameter that is bytes and no text: `{ order, waybill::binary(msg.body()) }`. */
struct binary {
    explicit binary(std::string_view data) noexcept : bytes(data) {}
    std::string_view bytes;
};

/** A parameter of a statement, made of what it stands for: a text, a number, bool (0 or 1), binary(), nullptr or
 *  an empty std::optional (SQL NULL). It holds a copy. For the lists of pgsql.hpp, mysql.hpp and sqlite.hpp. */
class parameter {
public:
    enum class kind { null, text, binary, integer, real };

    parameter(std::nullptr_t) noexcept : kind_(kind::null) {}
    parameter(std::nullopt_t) noexcept : kind_(kind::null) {}
    parameter(std::string text) noexcept : kind_(kind::text), bytes_(std::move(text)) {}
    parameter(std::string_view text) : kind_(kind::text), bytes_(text) {}
    /** NULL is SQL NULL. */
    parameter(const char *text) : kind_(text ? kind::text : kind::null), bytes_(text ? text : "") {}
    parameter(waybill::binary data) : kind_(kind::binary), bytes_(data.bytes) {}
    template <class Integer,
              std::enable_if_t<std::is_integral_v<Integer> && !std::is_same_v<Integer, char>, int> = 0>
    parameter(Integer number) : kind_(kind::integer), bytes_(digits(number))
    {
    }
    template <class Real, std::enable_if_t<std::is_floating_point_v<Real>, int> = 0>
    parameter(Real number)
        : kind_(kind::real), bytes_(shortest(static_cast<double>(number))), real_(static_cast<double>(number))
    {
    }
    template <class T> parameter(const std::optional<T> &value) : parameter(nullptr)
    {
        if (value)
            *this = parameter(*value);
    }

    kind type() const noexcept { return kind_; }
    /** Its text, its bytes, or its number in decimal digits. */
    const std::string &bytes() const noexcept { return bytes_; }
    /** The number itself, of a floating one. */
    double real() const noexcept { return real_; }

private:
    template <class Integer> static std::string digits(Integer number)
    {
        if constexpr (std::is_same_v<Integer, bool>)
            return number ? "1" : "0";
        else
            return std::to_string(number);
    }
    /* Whatever the locale, and enough digits to be the same number again. */
    static std::string shortest(double number)
    {
        char text[32];
        return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
    }

    kind kind_;
    std::string bytes_;
    double real_ = 0;
};

using parameters = std::initializer_list<parameter>;

} // namespace v1
} // namespace waybill
#endif
