/* SPDX-License-Identifier: Apache-2.0
 *
 * The PostgreSQL storage session of a handler, for C++17: over pgsql.h, which says what may be done with it.
 *
 *     waybill::pgsql::defer(ctx, "insert into orders (id, amount) values ($1, $2)", { order, 42 });
 *
 *     auto found = waybill::pgsql::query(ctx, "select name from customers where id = $1", { customer });
 *     if (found.rows() == 0)
 *         throw waybill::reject("no such customer");
 *
 * defer() calls nothing of libpq. A module that uses query() or `result` is linked with it, and compiled where
 * its header is.
 */
#ifndef WAYBILL_PGSQL_HPP
#define WAYBILL_PGSQL_HPP

#include <climits>

#include <waybill/pgsql.h>
#include <waybill/waybill.hpp>

namespace waybill {
inline namespace v1 {
namespace pgsql {

/** The arrays of a wb_pgsql_params. Numbers and texts travel as text, binary() as it is. Valid as long as
 *  `from`. @throws outcome WB_UNRECOVERABLE for a text with a NUL byte, which PostgreSQL does not have, and for
 *  2 GiB in one */
class arrays {
public:
    explicit arrays(parameters from)
    {
        for (const parameter &each : from) {
            const bool is_binary = each.type() == parameter::kind::binary;
            if (each.bytes().size() > INT_MAX)
                throw reject("a parameter is larger than PostgreSQL takes");
            values_.push_back(each.type() == parameter::kind::null ? nullptr
                              : is_binary                          ? each.bytes().data()
                                                                   : c_text(each.bytes(), "parameter"));
            lengths_.push_back(static_cast<int>(each.bytes().size()));
            formats_.push_back(is_binary ? 1 : 0);
        }
    }
    int count() const noexcept { return static_cast<int>(values_.size()); }
    const char *const *values() const noexcept { return values_.data(); }
    const int *lengths() const noexcept { return lengths_.data(); }
    const int *formats() const noexcept { return formats_.data(); }

private:
    std::vector<const char *> values_;
    std::vector<int> lengths_, formats_;
};

/** As wb_pgsql_defer(): run a statement with the batch's next round trip. Its failure is the message's, though
 *  the handler has returned by then. @throws outcome */
inline void defer(const context &ctx, const std::string &statement, parameters values = {})
{
    const arrays from(values);
    wb_pgsql_params raw = wb_pgsql_params();
    raw.count = from.count();
    raw.formats = from.formats();
    raw.lengths = from.lengths();
    raw.values = from.values();
    check(wb_pgsql_defer(ctx.raw(), c_text(statement, "statement"), &raw));
}

#ifdef WB_HAVE_LIBPQ_FE_H
/** The connection, as wb_pgsql() explains it. @throws outcome WB_RETRY where there is none */
inline PGconn *connection(const context &ctx)
{
    PGconn *db = wb_pgsql(ctx.raw());
    if (!db)
        throw retry("there is no PostgreSQL connection: it was lost, or the endpoint's persistence is another");
    return db;
}

/** What a statement answered; freed with it. All values as text. */
class result {
public:
    explicit result(PGresult *raw) noexcept : raw_(raw, PQclear) {}
    PGresult *raw() const noexcept { return raw_.get(); }
    int rows() const noexcept { return PQntuples(raw_.get()); }
    int columns() const noexcept { return PQnfields(raw_.get()); }
    /** Nothing for SQL NULL, and out of range. Valid as long as the result. */
    std::optional<std::string_view> value(int row, int column) const noexcept
    {
        if (row < 0 || row >= rows() || column < 0 || column >= columns() ||
            PQgetisnull(raw_.get(), row, column))
            return std::nullopt;
        return std::string_view(PQgetvalue(raw_.get(), row, column),
                                static_cast<std::size_t>(PQgetlength(raw_.get(), row, column)));
    }
    /** Rows that INSERT, UPDATE or DELETE changed, in digits; empty for others. */
    std::string_view affected() const noexcept { return PQcmdTuples(raw_.get()); }

private:
    std::unique_ptr<PGresult, void (*)(PGresult *)> raw_;
};

/** Run one statement on the connection: a round trip. Statements that were deferred run before it.
 *  @throws outcome WB_RETRY with the SQLSTATE when it failed. (The server's words may quote a message, so they
 *  are not in the reason.) */
inline result query(const context &ctx, const std::string &statement, parameters values = {})
{
    const arrays from(values);
    result got(PQexecParams(connection(ctx), c_text(statement, "statement"), from.count(), nullptr, from.values(),
                            from.lengths(), from.formats(), 0));
    const ExecStatusType status = PQresultStatus(got.raw());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        const char *code = PQresultErrorField(got.raw(), PG_DIAG_SQLSTATE);
        throw retry(std::string("a statement failed: SQLSTATE ") + (code ? code : "unknown"));
    }
    return got;
}
#endif

} // namespace pgsql
} // namespace v1
} // namespace waybill
#endif
