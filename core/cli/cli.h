/* SPDX-License-Identifier: Apache-2.0
 *
 * The program: a table of verbs, one file each. To add a verb, write verb_NAME.c with a
 * `const cli_verb cli_verb_NAME`, declare it below, and give it a row in main.c.
 *
 * Exit codes (sysexits.h): 0 done; 64 wrong usage; 78 the configuration is wrong, a plugin
 * or a handler module is refused, or the negotiation found conflicts; 74 the output could
 * not be written. Verbs that connect add those of wb_error_exit_code().
 *
 * Results go to stdout, problems and the log to stderr.
 */
#ifndef WB_CLI_CLI_H
#define WB_CLI_CLI_H

#include <stdint.h>

#include "core/endpoint/setup.h"

/** The key of an option without a letter, the nth of its verb, from 1 to 31. */
#define CLI_LONG_OPTION(n) (n)
#define CLI_IS_LETTER(key) ((key) > ' ')

/** An option of a verb. */
typedef struct cli_option {
    char letter;          /* also the key of its value; printable ASCII, or CLI_LONG_OPTION(n) */
    const char *name;     /* long name */
    const char *argument; /* what --help calls its argument; NULL: it takes none */
    const char *help;
} cli_option;

#define CLI_ARGUMENTS_MAX 64
#define CLI_GIVEN_MAX 300

/** A parsed command line. */
typedef struct cli_values {
    /** By letter: NULL when absent, "" for an option without argument. */
    const char *value[128];
    /** Every option as it was given, in order: for those that may be repeated. */
    struct cli_given {
        char letter;
        const char *value;
    } given[CLI_GIVEN_MAX];
    int given_count;
    const char *arguments[CLI_ARGUMENTS_MAX];
    int argument_count;
} cli_values;

typedef struct cli_verb {
    const char *name;
    /* as --help shows them: "OLD NEW"; completions offer words that stand there in lower case, "stats|sweep" */
    const char *arguments;
    int argument_min;
    int argument_max;
    const char *summary;       /* one line */
    const char *help;          /* paragraphs, or NULL */
    const cli_option *options; /* ends with letter 0; cli_option_help is added to each verb */
    const char *repeated;      /* letters of those that may be given several times; NULL: none */
    int (*run)(const cli_values *values); /* @return the exit code */
    /* NULL, or the program beside this one that has the fields above but name and summary,
     * and parses the command line by itself */
    const char *program;
} cli_verb;

/** Rows for a verb's table of options. */
#define CLI_OPTION_CONFIG                                                                          \
    { 'c', "config", "FILE", "configuration file; default: $WAYBILL_CONF, or the installed one" }
#define CLI_OPTION_JSON { 'j', "json", NULL, "print JSON, for programs" }
#define CLI_OPTION_END { 0, NULL, NULL, NULL }

/** Parse a verb's command line; argv[0] is the verb. Answers --help itself, and --help=json.
 *  @return -1 to go on, otherwise the exit code. */
int cli_parse(const cli_verb *verb, int argc, char **argv, cli_values *ret_values);

/** Become the program of a verb that is one; argv[0] is the verb.
 *  @return the exit code, with a message, when that is not possible. (program.c) */
int cli_become(const cli_verb *verb, char **argv);

/** The file named by -c, $WAYBILL_CONF, or the installed one. */
const char *cli_config_path(const cli_values *values);

/** What the verbs that run something start with: load the configuration, print its
 *  problems to stderr, all that `waybill check` would print if there is an error, set the log level.
 *  `flags` is a mask of WB_SETUP_x.
 *  @return EX_OK and a setup to free with wb_setup_free(), or EX_CONFIG. */
int cli_load(const cli_values *values, uint32_t flags, wb_setup **ret_setup);

/** The endpoint of that name; NULL, with a message that lists the names, when there is
 *  none (exit with EX_USAGE). */
const wb_endpoint_setup *cli_endpoint(const wb_setup *setup, const char *name);

/** A message on stderr: "waybill: TEXT". @return `code`. */
int cli_fail(int code, const char *format, ...) WB_PRINTF(2, 3);

extern const cli_option cli_option_help;
void cli_print_help(const cli_verb *verb);
/** The same as one JSON object. (help_json.c) */
void cli_print_help_json(const cli_verb *verb);

/** All verbs, NULL-terminated, in the order of the help. */
extern const cli_verb *const cli_verbs[];

extern const cli_verb cli_verb_check;
extern const cli_verb cli_verb_conformance;
extern const cli_verb cli_verb_delayed;
extern const cli_verb cli_verb_doctor;
extern const cli_verb cli_verb_failures;
extern const cli_verb cli_verb_help;
extern const cli_verb cli_verb_install;
extern const cli_verb cli_verb_new;
extern const cli_verb cli_verb_outbox;
extern const cli_verb cli_verb_plugins;
extern const cli_verb cli_verb_publish;
extern const cli_verb cli_verb_rename;
extern const cli_verb cli_verb_run;
extern const cli_verb cli_verb_send;
extern const cli_verb cli_verb_status;
extern const cli_verb cli_verb_uninstall;
extern const cli_verb cli_verb_version;

#endif
