/* SPDX-License-Identifier: Apache-2.0
 *
 * new: write a project that builds and passes at once, of a handler or a plugin. Its files are part of the program (core/cli/new).
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/cli/cli.h"
#include "core/cli/new/templates.h"

#define OPTION_DIRECTORY CLI_LONG_OPTION(1)
#define OPTION_PERSISTENCE CLI_LONG_OPTION(2)
#define OPTION_TRANSPORT CLI_LONG_OPTION(3)
#define NAME_MAX_SIZE 40 /* names of queues and tables are made of it, and those of MySQL have 64 characters */

static const cli_option options[] = {
    { OPTION_PERSISTENCE, "persistence", "NAME", "handler: where business data are: sqlite (default), pgsql or mysql" },
    { OPTION_TRANSPORT, "transport", "NAME", "handler: what carries messages: sqlite (default), amqp or kafka" },
    { OPTION_DIRECTORY, "directory", "DIR", "write into this directory, which is made; default: NAME" },
    CLI_OPTION_END,
};

/* What stands in a template, and what is written; not behind one of some characters. */
typedef struct rule {
    const char *from, *to, *not_after;
} rule;

#define RULES_MAX 9 /* with the end */

typedef struct project {
    const char *name, *directory;
    const char *templates[2]; /* whose files it has */
    rule rules[RULES_MAX];    /* the first that fits; ends with from NULL */
    char table[NAME_MAX_SIZE + 16];
    char macro[NAME_MAX_SIZE + 3]; /* what macros have in their names, "_NAME_" */
} project;

/* ---- files ------------------------------------------------------------------------------- */

static const rule *find_rule(const project *p, const char *text, size_t at, size_t size)
{
    for (const rule *r = p->rules; r->from; r++) {
        const size_t length = strlen(r->from);
        if (length <= size - at && memcmp(text + at, r->from, length) == 0 &&
            !(at && r->not_after && strchr(r->not_after, text[at - 1])))
            return r;
    }
    return NULL;
}

static void fill_in(const project *p, const char *text, size_t size, wb_buffer *to)
{
    for (size_t at = 0; at < size;) {
        const rule *r = find_rule(p, text, at, size);
        wb_buffer_put(to, r ? r->to : text + at, r ? strlen(r->to) : 1);
        at += r ? strlen(r->from) : 1;
    }
}

/* "name.c" is called by the project's name, and what has a plugin's name by the new one's. */
static void name_file(const project *p, const char *name, wb_buffer *path)
{
    wb_buffer_put(path, p->directory, strlen(p->directory));
    wb_buffer_put(path, "/", 1);
    if (strncmp(name, "name.", 5) == 0) {
        wb_buffer_put(path, p->name, strlen(p->name));
        name += 4;
    }
    fill_in(p, name, strlen(name), path);
    wb_buffer_put(path, "", 1);
}

static int put_file(const char *path, const wb_buffer *text, mode_t mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file)
        return -1;
    const int is_put = fwrite(text->data, 1, text->size, file) == text->size;
    return fclose(file) == 0 && is_put ? 0 : -1;
}

static int write_file(const project *p, const cli_template *t)
{
    wb_buffer path = { .size = 0 }, text = { .size = 0 };
    name_file(p, t->name, &path);
    fill_in(p, (const char *)t->text, t->size, &text);
    const int is_script = t->size > 2 && memcmp(t->text, "#!", 2) == 0;
    const int code = put_file((const char *)path.data, &text, is_script ? 0777 : 0666) == 0
                         ? EX_OK
                         : cli_fail(EX_CANTCREAT, "cannot write \"%s\": %s", (const char *)path.data, strerror(errno));
    wb_buffer_free(&path);
    wb_buffer_free(&text);
    return code;
}

static int is_of(const project *p, const cli_template *t)
{
    for (size_t i = 0; i < sizeof p->templates / sizeof p->templates[0]; i++)
        if (p->templates[i] && strcmp(t->project, p->templates[i]) == 0)
            return 1;
    return 0;
}

/* A half of a project is in the way of whoever tries again. */
static void remove_project(const project *p)
{
    for (size_t i = 0; i < cli_template_count; i++) {
        wb_buffer path = { .size = 0 };
        name_file(p, cli_templates[i].name, &path);
        if (is_of(p, &cli_templates[i]))
            (void)unlink((const char *)path.data);
        wb_buffer_free(&path);
    }
    (void)rmdir(p->directory);
}

static int write_project(const project *p)
{
    int code = EX_OK;
    if (mkdir(p->directory, 0777) != 0)
        return cli_fail(EX_CANTCREAT, "cannot make the directory \"%s\": %s", p->directory, strerror(errno));
    for (size_t i = 0; i < cli_template_count && code == EX_OK; i++)
        if (is_of(p, &cli_templates[i]))
            code = write_file(p, &cli_templates[i]);
    if (code != EX_OK)
        remove_project(p);
    else
        (void)printf("%s/README.md says what there is, and what to do first\n", p->directory);
    return code;
}

/* ---- what is wanted ------------------------------------------------------------------------ */

/* Part of names of files, queues, tables and functions. */
static int check_name(const char *name, const char *also)
{
    const size_t length = strlen(name);
    const size_t fits = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    if (length && length <= NAME_MAX_SIZE && fits == length && name[0] >= 'a' && name[0] <= 'z' && (*also || !strchr(name, '-')))
        return EX_OK;
    return cli_fail(EX_USAGE, "\"%s\" is no name for this: a lower-case letter, then those, digits, \"_\"%s, %d at most", name, also,
                    NAME_MAX_SIZE);
}

/* What an endpoint can choose: its group in the configuration, and a sentence on where its servers are. */
typedef struct plugin {
    const char *name, *settings, *servers;
    const char *templates, *package, *client; /* of a persistence */
} plugin;

static const plugin persistences[] = {
    { "sqlite", "plugin = \"sqlite\"; file = \"@NAME@.db\";", "", "handler-sqlite", "sqlite3", "sqlite3 -bail @NAME@.db" },
    { "pgsql", "plugin = \"pgsql\";",
      "PostgreSQL is where libpq's environment says (`PGHOST`, `PGDATABASE`, `PGUSER`; `PGSERVICE`), for the module as for `psql`.\n",
      "handler-pgsql", "libpq", "psql -qXAt -v ON_ERROR_STOP=1" },
    { "mysql", "plugin = \"mysql\"; host = \"127.0.0.1\"; user = \"@NAME@\"; password = \"env:MYSQL_PWD\"; database = \"@NAME@\";",
      "The configuration says where MySQL or MariaDB is, and `try` says it once more; the password is in `MYSQL_PWD`.\n",
      "handler-mysql", "libmariadb", "mariadb -N -h 127.0.0.1 -u @NAME@ @NAME@" },
    { .name = NULL },
};

static const plugin transports[] = {
    { "sqlite", "plugin = \"sqlite\"; file = \"@NAME@-queue.db\";", "", NULL, NULL, NULL },
    { "amqp", "plugin = \"amqp\"; host = \"127.0.0.1\"; user = \"guest\"; password = \"env:AMQP_PASSWORD\";",
      "The configuration says where RabbitMQ is; the password is in `AMQP_PASSWORD`.\n", NULL, NULL, NULL },
    { "kafka", "plugin = \"kafka\"; brokers = \"127.0.0.1:9092\";", "The configuration says where Kafka is.\n", NULL, NULL, NULL },
    { .name = NULL },
};

/* The first without a name. */
static const plugin *find_plugin(const plugin *all, const char *name)
{
    for (; all->name; all++)
        if (!name || strcmp(all->name, name) == 0)
            return all;
    return NULL;
}

/* A table that no word of SQL is called like. */
static void name_table(project *p)
{
    (void)snprintf(p->table, sizeof p->table, "%s_requests", p->name);
    for (char *at = p->table; *at; at++)
        if (*at == '-')
            *at = '_';
}

/* With the project's name, which is all that is known of it so far. */
static const char *fill_in_name(const project *p, const char *text, wb_buffer *to)
{
    fill_in(p, text, strlen(text), to);
    wb_buffer_put(to, "", 1);
    return (const char *)to->data;
}

static int write_handler(project *p, const plugin *transport, const plugin *persistence)
{
    wb_buffer carrier = { .size = 0 }, store = { .size = 0 }, client = { .size = 0 };
    name_table(p);
    p->templates[0] = "handler";
    p->templates[1] = persistence->templates;
    p->rules[0] = (rule){ "@NAME@", p->name, NULL };
    const rule others[] = { { "@TABLE@", p->table, NULL },
                            { "@TRANSPORT@", fill_in_name(p, transport->settings, &carrier), NULL },
                            { "@PERSISTENCE@", fill_in_name(p, persistence->settings, &store), NULL },
                            { "@CLIENT@", fill_in_name(p, persistence->client, &client), NULL },
                            { "@PACKAGE@", persistence->package, NULL },
                            { "@SERVERS@\n", persistence->servers, NULL },
                            { "@BROKERS@\n", transport->servers, NULL } };
    memcpy(&p->rules[1], others, sizeof others);
    const int code = write_project(p);
    wb_buffer_free(&carrier);
    wb_buffer_free(&store);
    wb_buffer_free(&client);
    return code;
}

static int new_handler(const cli_values *v, project *p)
{
    const plugin *persistence = find_plugin(persistences, v->value[OPTION_PERSISTENCE]);
    const plugin *transport = find_plugin(transports, v->value[OPTION_TRANSPORT]);
    if (!persistence)
        return cli_fail(EX_USAGE, "--persistence \"%s\" is not sqlite, pgsql or mysql", v->value[OPTION_PERSISTENCE]);
    if (!transport)
        return cli_fail(EX_USAGE, "--transport \"%s\" is not sqlite, amqp or kafka", v->value[OPTION_TRANSPORT]);
    return check_name(p->name, ", \"-\"") == EX_OK ? write_handler(p, transport, persistence) : EX_USAGE;
}

static void name_macros(project *p)
{
    (void)snprintf(p->macro, sizeof p->macro, "_%s_", p->name);
    for (char *at = p->macro; *at; at++)
        *at = (char)toupper((unsigned char)*at);
}

/* The templates are plugins that work: what they are called is replaced, and not what else has that in its name. */
static int new_plugin(const cli_values *v, project *p)
{
    const int is_transport = strcmp(v->arguments[1], "transport") == 0;
    if (!is_transport && strcmp(v->arguments[1], "persistence") != 0)
        return cli_fail(EX_USAGE, "\"%s\" is not transport or persistence", v->arguments[1]);
    if (v->value[OPTION_PERSISTENCE] || v->value[OPTION_TRANSPORT])
        return cli_fail(EX_USAGE, "only a handler has --persistence and --transport");
    if (check_name(p->name, "") != EX_OK)
        return EX_USAGE;
    if (find_plugin(persistences, p->name) || find_plugin(transports, p->name)) /* it would be written over */
        return cli_fail(EX_USAGE, "\"%s\" is a plugin of Waybill", p->name);
    p->templates[0] = is_transport ? "transport" : "persistence";
    p->rules[0] = is_transport ? (rule){ "Copy the folder, rename `null`, and replace", "Replace", NULL }
                               : (rule){ "Copy the folder, rename `lmdb`, and replace", "Replace", NULL };
    p->rules[1] = is_transport ? (rule){ "null", p->name, NULL }
                               : (rule){ "lmdb", p->name, "<[b" }; /* <lmdb.h>, pkg-config's [lmdb], liblmdb */
    name_macros(p);
    p->rules[2] = (rule){ "_LMDB_", p->macro, NULL };
    return write_project(p);
}

static int run(const cli_values *v)
{
    project p = { .name = v->arguments[v->argument_count - 1] };
    const int is_handler = strcmp(v->arguments[0], "handler") == 0;
    p.directory = v->value[OPTION_DIRECTORY] ? v->value[OPTION_DIRECTORY] : p.name;
    if (!is_handler && strcmp(v->arguments[0], "plugin") != 0)
        return cli_fail(EX_USAGE, "\"%s\" is not handler or plugin", v->arguments[0]);
    if (v->argument_count != (is_handler ? 2 : 3))
        return cli_fail(EX_USAGE, "say new handler NAME, new plugin transport NAME or new plugin persistence NAME");
    return is_handler ? new_handler(v, &p) : new_plugin(v, &p);
}

const cli_verb cli_verb_new = {
    .name = "new",
    .arguments = "handler|plugin [transport|persistence] NAME",
    .argument_min = 2,
    .argument_max = 3,
    .summary = "write a project of a handler or a plugin that builds and passes at once",
    .help = "handler NAME has a handler, a configuration and a table: \"make check\" sends it a message.\n"
            "plugin transport NAME, plugin persistence NAME: one that works, to replace it function by function.\n"
            "Nothing is written over: exit code 73 where the directory is there already.",
    .options = options,
    .run = run,
};
