/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQLite storage session of a handler, for C++17: over sqlite.h, which says what may be done with it.
 *
 *     waybill::sqlite::execute(ctx, "insert into orders (id, amount) values (?, ?)", { order, 42 });
 *
 *     waybill::sqlite::statement names(ctx, "select name from customers where city = ?", { city });
 *     while (names.step())
 *         greet(names.text(0));
 *
 * A module that uses it is linked with libsqlite3 (`pkg-config --libs sqlite3`) and compiled where its header is.
 */
#ifndef WAYBILL_SQLITE_HPP
#define WAYBILL_SQLITE_HPP

#include <waybill/sqlite.h>
#include <waybill/waybill.hpp>

#ifndef WB_HAVE_SQLITE3_H
#error "sqlite3.h is missing: install the headers of SQLite (Debian: libsqlite3-dev)"
#endif

namespace waybill {
inline namespace v1 {
namespace sqlite {

/** The connection, as wb_sqlite() explains it. @throws outcome WB_RETRY where there is none */
inline sqlite3 *connection(const context &ctx)
{
    sqlite3 *db = wb_sqlite(ctx.raw());
    if (!db)
        throw retry("there is no SQLite connection: the endpoint's persistence is another");
    return db;
}

/** A prepared statement with its parameters; finalized with it. Its values are copies. */
class statement {
public:
    /** One statement, and as many values as it has parameters. @throws outcome WB_RETRY with SQLite's error number,
     *  as step() does */
    statement(const context &ctx, std::string_view text, parameters values = {})
        : db_(connection(ctx)), raw_(nullptr, sqlite3_finalize)
    {
        prepare(text);
        if (static_cast<std::size_t>(sqlite3_bind_parameter_count(raw_.get())) != values.size())
            throw reject("a statement has another number of parameters");
        int at = 0;
        for (const parameter &each : values)
            demand(bind(++at, each) == SQLITE_OK, "does not take a parameter");
    }
    sqlite3_stmt *raw() const noexcept { return raw_.get(); }

    /** Go on to the next row, which is the first at the first call. @return whether there is one */
    bool step()
    {
        const int code = sqlite3_step(raw_.get());
        demand(code == SQLITE_ROW || code == SQLITE_DONE, "failed");
        return code == SQLITE_ROW;
    }
    /** Columns of the row, counted from 0. */
    bool is_null(int column) const noexcept { return sqlite3_column_type(raw_.get(), column) == SQLITE_NULL; }
    std::int64_t integer(int column) const noexcept { return sqlite3_column_int64(raw_.get(), column); }
    double real(int column) const noexcept { return sqlite3_column_double(raw_.get(), column); }
    /** Text, in UTF-8 whatever the file's encoding, or blob; empty for NULL. */
    std::string text(int column) const
    {
        const bool is_blob = sqlite3_column_type(raw_.get(), column) == SQLITE_BLOB;
        const void *bytes = is_blob ? sqlite3_column_blob(raw_.get(), column) : sqlite3_column_text(raw_.get(), column);
        const int size = sqlite3_column_bytes(raw_.get(), column);
        return bytes ? std::string(static_cast<const char *>(bytes), static_cast<std::size_t>(size)) : std::string();
    }

private:
    void prepare(std::string_view text)
    {
        sqlite3_stmt *made = nullptr;
        const char *rest = nullptr;
        if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
            throw reject("a statement is too long");
        const int code = sqlite3_prepare_v2(db_, text.data(), static_cast<int>(text.size()), &made, &rest);
        raw_.reset(made);
        demand(code == SQLITE_OK, "could not be prepared");
        const std::size_t read = made ? static_cast<std::size_t>(rest - text.data()) : text.size();
        if (!made || text.find_first_not_of(" \t\r\n;", read) != text.npos)
            throw reject("a statement is not exactly one");
    }
    void demand(bool is_right, const char *what) const
    {
        if (!is_right)
            throw retry(std::string("a statement ") + what + ": error " +
                        std::to_string(sqlite3_extended_errcode(db_)));
    }
    int bind(int at, const parameter &from) noexcept
    {
        const std::string &bytes = from.bytes();
        switch (from.type()) {
        case parameter::kind::null:
            return sqlite3_bind_null(raw_.get(), at);
        case parameter::kind::integer:
            return bind_integer(at, bytes);
        case parameter::kind::real:
            return sqlite3_bind_double(raw_.get(), at, from.real());
        case parameter::kind::binary:
            return sqlite3_bind_blob64(raw_.get(), at, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
        case parameter::kind::text:
            break;
        }
        return sqlite3_bind_text64(raw_.get(), at, bytes.data(), bytes.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    }
    /* One that does not fit (SQLite has 63 bits and a sign) is a mistake. */
    int bind_integer(int at, const std::string &digits) noexcept
    {
        std::int64_t number = 0;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        return read.ec == std::errc() ? sqlite3_bind_int64(raw_.get(), at, number) : SQLITE_RANGE;
    }

    sqlite3 *db_;
    std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt *)> raw_;
};

/** Run one statement to its end; rows that it answers are dropped. @throws outcome */
inline void execute(const context &ctx, std::string_view text, parameters values = {})
{
    statement one(ctx, text, values);
    while (one.step())
        continue;
}

} // namespace sqlite
} // namespace v1
} // namespace waybill
#endif
