/* SPDX-License-Identifier: Apache-2.0
 *
 * The MySQL and MariaDB storage session of a handler, for C++17: over mysql.h, which says what may be done with
 * it.
 *
 *     waybill::mysql::defer(ctx, "insert into orders (id, amount) values (?, ?)", { order, 42 });
 *
 * defer() calls nothing of the client library. The rest is there where its header is, and a module that uses it
 * is linked with libmariadb.
 */
#ifndef WAYBILL_MYSQL_HPP
#define WAYBILL_MYSQL_HPP

#include <waybill/mysql.h>
#include <waybill/waybill.hpp>

namespace waybill {
inline namespace v1 {
namespace mysql {

/** As wb_mysql_defer(): run a statement with the batch's next round trip. Its failure is the message's, though
 *  the handler has returned by then. Whole numbers are numbers to the server (LIMIT ?), a floating one is a text
 *  that it converts. @throws outcome */
inline void defer(const context &ctx, const std::string &statement, parameters from = {})
{
    std::vector<const char *> values;
    std::vector<std::size_t> lengths;
    std::vector<int> types;
    for (const parameter &each : from) {
        values.push_back(each.type() == parameter::kind::null ? nullptr : each.bytes().c_str());
        lengths.push_back(each.bytes().size());
        types.push_back(each.type() == parameter::kind::binary    ? WB_MYSQL_TYPE_BINARY
                        : each.type() == parameter::kind::integer ? WB_MYSQL_TYPE_NUMBER
                                                                  : WB_MYSQL_TYPE_TEXT);
    }
    wb_mysql_params raw = wb_mysql_params();
    raw.count = static_cast<int>(values.size());
    raw.types = types.data();
    raw.lengths = lengths.data();
    raw.values = values.data();
    check(wb_mysql_defer(ctx.raw(), c_text(statement, "statement"), &raw));
}

#ifdef WB_HAVE_MYSQL_H
/** The connection, as wb_mysql() explains it. @throws outcome WB_RETRY where there is none */
inline MYSQL *connection(const context &ctx)
{
    MYSQL *db = wb_mysql(ctx.raw());
    if (!db)
        throw retry("there is no MySQL connection: it was lost, or the endpoint's persistence is another");
    return db;
}

/** Closed with it. Closing hides from the host whether a failure was the server's (mysql.h): where that may be, as in
 *  a lock wait, defer() knows better. */
using statement = std::unique_ptr<MYSQL_STMT, decltype(&mysql_stmt_close)>;
/** Freed with it; read to its end before anything else is run. */
using result = std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)>;

/** Prepare a statement. @throws outcome WB_RETRY with the server's error number */
inline statement prepare(const context &ctx, std::string_view text)
{
    statement made(mysql_stmt_init(connection(ctx)), mysql_stmt_close);
    if (!made)
        throw retry("out of memory");
    if (mysql_stmt_prepare(made.get(), text.data(), static_cast<unsigned long>(text.size())) != 0)
        throw retry("a statement could not be prepared: error " + std::to_string(mysql_stmt_errno(made.get())));
    return made;
}

/** Run a statement without parameters, and fetch all it answers; empty when it answers no rows.
 *  @throws outcome WB_RETRY with the server's error number */
inline result query(const context &ctx, std::string_view text)
{
    MYSQL *db = connection(ctx);
    if (mysql_real_query(db, text.data(), static_cast<unsigned long>(text.size())) != 0)
        throw retry("a statement failed: error " + std::to_string(mysql_errno(db)));
    result got(mysql_store_result(db), mysql_free_result);
    if (!got && mysql_field_count(db) != 0)
        throw retry("what a statement answers was lost: error " + std::to_string(mysql_errno(db)));
    return got;
}
#endif

} // namespace mysql
} // namespace v1
} // namespace waybill
#endif
