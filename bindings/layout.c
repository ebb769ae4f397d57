/* SPDX-License-Identifier: Apache-2.0
 *
 * What a binding in another language has to agree with: sizes, alignments and offsets of all structs, and the values of
 * all constants of <waybill/...> (not of <waybill/sys/...>, which are for plugins). A line each:
 *
 *     struct NAME SIZE ALIGNMENT
 *     field STRUCT NAME OFFSET SIZE
 *     constant NAME VALUE
 *
 *     cc layout.c $(pkg-config --cflags waybill) -o layout && ./layout
 *
 * doc/bindings.md has its output for 64-bit machines (`make doc-layouts`). tests/bindings/layout.t sees that nothing of the headers is
 * missing here.
 */
#include <inttypes.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>

#include <waybill/handler.h>
#include <waybill/mysql.h>
#include <waybill/pgsql.h>
#include <waybill/session.h>
#include <waybill/sqlite.h>

#define STRUCT(type) printf("struct " #type " %zu %zu\n", sizeof(type), alignof(type))
#define FIELD(type, field)                                                                         \
    printf("field " #type " " #field " %zu %zu\n", offsetof(type, field), sizeof(((type *)0)->field))
#define SIGNED(name) printf("constant " #name " %" PRIdMAX "\n", (intmax_t)(name))
#define UNSIGNED(name) printf("constant " #name " %" PRIuMAX "\n", (uintmax_t)(name))
#define TEXT(name) printf("constant " #name " \"%s\"\n", name)

static void print_messages(void)
{
    STRUCT(wb_header);
    FIELD(wb_header, name);
    FIELD(wb_header, value);
    FIELD(wb_header, name_size);
    FIELD(wb_header, value_size);
    STRUCT(wb_message);
    FIELD(wb_message, struct_size);
    FIELD(wb_message, id);
    FIELD(wb_message, id_size);
    FIELD(wb_message, type);
    FIELD(wb_message, body);
    FIELD(wb_message, body_size);
    FIELD(wb_message, headers);
    FIELD(wb_message, header_count);
    FIELD(wb_message, attempt);
    FIELD(wb_message, reserved);
    FIELD(wb_message, key);
    FIELD(wb_message, key_size);
    STRUCT(wb_outgoing);
    FIELD(wb_outgoing, type);
    FIELD(wb_outgoing, destination);
    FIELD(wb_outgoing, body);
    FIELD(wb_outgoing, body_size);
    FIELD(wb_outgoing, headers);
    FIELD(wb_outgoing, header_count);
    FIELD(wb_outgoing, id);
    FIELD(wb_outgoing, id_size);
    FIELD(wb_outgoing, content_type);
    FIELD(wb_outgoing, key);
    FIELD(wb_outgoing, key_size);
    FIELD(wb_outgoing, flags);
    FIELD(wb_outgoing, reserved);
    FIELD(wb_outgoing, cause);
    FIELD(wb_outgoing, delay);
    FIELD(wb_outgoing, deliver_at);
    FIELD(wb_outgoing, time_to_be_received);
}

static void print_handlers(void)
{
    STRUCT(wb_context);
    FIELD(wb_context, api);
    STRUCT(wb_handler_api);
    FIELD(wb_handler_api, struct_size);
    FIELD(wb_handler_api, outgoing);
    FIELD(wb_handler_api, storage);
    FIELD(wb_handler_api, failure);
    FIELD(wb_handler_api, log);
    FIELD(wb_handler_api, endpoint_name);
    FIELD(wb_handler_api, give_up);
    FIELD(wb_handler_api, retry_after);
    FIELD(wb_handler_api, settings);
    FIELD(wb_handler_api, data);
    STRUCT(wb_setting_entry);
    FIELD(wb_setting_entry, name);
    FIELD(wb_setting_entry, value);
    STRUCT(wb_handler);
    FIELD(wb_handler, type);
    FIELD(wb_handler, one);
    FIELD(wb_handler, batch);
    STRUCT(wb_handler_module);
    FIELD(wb_handler_module, struct_size);
    FIELD(wb_handler_module, abi_major);
    FIELD(wb_handler_module, abi_minor_needed);
    FIELD(wb_handler_module, handler_stride);
    FIELD(wb_handler_module, handler_count);
    FIELD(wb_handler_module, handlers);
    FIELD(wb_handler_module, check);
    FIELD(wb_handler_module, open);
    FIELD(wb_handler_module, worker_open);
    FIELD(wb_handler_module, worker_close);
    FIELD(wb_handler_module, close);
}

static void print_storage(void)
{
    STRUCT(wb_pgsql_params);
    FIELD(wb_pgsql_params, count);
    FIELD(wb_pgsql_params, formats);
    FIELD(wb_pgsql_params, lengths);
    FIELD(wb_pgsql_params, types);
    FIELD(wb_pgsql_params, values);
    STRUCT(wb_pgsql_api);
    FIELD(wb_pgsql_api, struct_size);
    FIELD(wb_pgsql_api, connection);
    FIELD(wb_pgsql_api, defer);
    STRUCT(wb_mysql_params);
    FIELD(wb_mysql_params, count);
    FIELD(wb_mysql_params, types);
    FIELD(wb_mysql_params, lengths);
    FIELD(wb_mysql_params, values);
    STRUCT(wb_mysql_api);
    FIELD(wb_mysql_api, struct_size);
    FIELD(wb_mysql_api, connection);
    FIELD(wb_mysql_api, defer);
    STRUCT(wb_sqlite_api);
    FIELD(wb_sqlite_api, struct_size);
    FIELD(wb_sqlite_api, connection);
}

static void print_sessions(void)
{
    STRUCT(wb_reason);
    FIELD(wb_reason, result);
    FIELD(wb_reason, cause);
    FIELD(wb_reason, native_code);
    FIELD(wb_reason, text);
    STRUCT(wb_endpoint_options);
    FIELD(wb_endpoint_options, config);
    FIELD(wb_endpoint_options, name);
    FIELD(wb_endpoint_options, flags);
    FIELD(wb_endpoint_options, reserved);
    STRUCT(wb_session_options);
    FIELD(wb_session_options, id);
    FIELD(wb_session_options, id_size);
    FIELD(wb_session_options, patience);
}

static void print_constants(void)
{
    SIGNED(WB_OK);
    SIGNED(WB_RETRY);
    SIGNED(WB_ABORT);
    SIGNED(WB_REJECT);
    SIGNED(WB_IN_DOUBT);
    SIGNED(WB_NOT_CONNECTED);
    SIGNED(WB_FATAL);
    SIGNED(WB_UNRECOVERABLE);
    SIGNED(WB_CAUSE_OTHER);
    SIGNED(WB_CAUSE_UNREACHABLE);
    SIGNED(WB_CAUSE_REFUSED);
    SIGNED(WB_CAUSE_MISSING);
    SIGNED(WB_CAUSE_MISMATCH);
    SIGNED(WB_CAUSE_CONFIG);
    SIGNED(WB_CAUSE_UNROUTABLE);
    SIGNED(WB_CAUSE_TOO_LARGE);
    SIGNED(WB_CAUSE_SERVER);
    SIGNED(WB_CAUSE_SENDING);
    SIGNED(WB_CAUSE_DUPLICATE);
    SIGNED(WB_CAUSE_EXPIRED);
    SIGNED(WB_LOG_ERROR);
    SIGNED(WB_LOG_WARNING);
    SIGNED(WB_LOG_INFO);
    SIGNED(WB_LOG_DEBUG);
    UNSIGNED(WB_TEXT);
    UNSIGNED(WB_IMMEDIATE);
    UNSIGNED(WB_NON_PERSISTENT);
    SIGNED(WB_MILLISECONDS);
    SIGNED(WB_SECONDS);
    SIGNED(WB_MINUTES);
    SIGNED(WB_HOURS);
    SIGNED(WB_DAYS);
    SIGNED(WB_KIND_SEND);
    SIGNED(WB_KIND_PUBLISH);
    SIGNED(WB_KIND_REPLY);
    SIGNED(WB_DATA_MODULE);
    SIGNED(WB_DATA_WORKER);
    UNSIGNED(WB_HANDLER_ABI_MAJOR);
    UNSIGNED(WB_HANDLER_ABI_MINOR);
    TEXT(WB_PGSQL_INTERFACE);
    TEXT(WB_MYSQL_INTERFACE);
    TEXT(WB_SQLITE_INTERFACE);
    SIGNED(WB_MYSQL_TYPE_TEXT);
    SIGNED(WB_MYSQL_TYPE_BINARY);
    SIGNED(WB_MYSQL_TYPE_NUMBER);
    UNSIGNED(WB_ENDPOINT_HANDLERS);
}

int main(void)
{
    print_messages();
    print_handlers();
    print_storage();
    print_sessions();
    print_constants();
    return 0;
}
