#include "jdtool/base/verb.h"

#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/units.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *typed; /* NULL: the verb that works */

void verb_typed(const struct verb *verb)
{
    typed = verb->name;
}

int wrong_usage(const struct verb *verb, const char *format, ...)
{
    char reason[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    error_message("%s: %s", typed ? typed : verb->name, reason);
    if (verb->usage && !typed) {
        fprintf(stderr, "usage: jdtool %s %s\n", verb->name, verb->usage);
    }
    return STATUS_USAGE;
}

int verb_help(const struct verb *verb)
{
    if (verb->usage) {
        printf("usage: jdtool %s %s\n", verb->name, verb->usage);
    }
    fputs(verb->help, stdout);
    return finish_output();
}

/* ---- Options ---- */

enum { OPTIONS_MAX = 96, OPTION_LONG = 256 };

/* A verb's options as getopt wants them: a long one is OPTION_LONG and its row's number. */
struct parser {
    const struct verb *verb;
    const struct verb_option *rows[OPTIONS_MAX];
    char *contexts[OPTIONS_MAX];
    int count, long_count;
    struct option table[OPTIONS_MAX + 1];
    char letters[3 * OPTIONS_MAX + 3];
};

static void add_options(struct parser *parser, const struct verb_option *options, char *context)
{
    static const int values[] = {
        [OPTION_KEEPS] = required_argument,  [OPTION_LISTS] = required_argument,
        [OPTION_COUNTS] = required_argument, [OPTION_TIMES] = required_argument,
        [OPTION_SIZES] = required_argument,  [OPTION_ADDS_VALUE] = required_argument,
        [OPTION_CALLS] = required_argument,  [OPTION_MAY_CALL] = optional_argument,
        [OPTION_INCLUDES] = no_argument};
    for (; options && options->kind && parser->count < OPTIONS_MAX; options++) {
        if (options->kind == OPTION_INCLUDES) {
            add_options(parser, options->options, context + options->at);
            continue;
        }
        int has_value = values[options->kind];
        if (options->name) {
            parser->table[parser->long_count++] = (struct option){
                .name = options->name, .has_arg = has_value, .val = OPTION_LONG + parser->count};
        }
        if (options->letter) {
            size_t length = strlen(parser->letters);
            snprintf(parser->letters + length, sizeof parser->letters - length, "%c%s",
                     options->letter, has_value ? ":" : "");
        }
        parser->rows[parser->count] = options;
        parser->contexts[parser->count++] = context;
    }
}

/* The row of what getopt has found. */
static int row_of(const struct parser *parser, int letter)
{
    int row = 0;
    while (letter < OPTION_LONG && parser->rows[row]->letter != letter) {
        row++;
    }
    return letter < OPTION_LONG ? row : letter - OPTION_LONG;
}

static int take_option(const struct parser *parser, int letter)
{
    int row = row_of(parser, letter);
    const struct verb_option *option = parser->rows[row];
    void *at = parser->contexts[row] + option->at;
    char format[64];
    bool is_right = true;
    switch (option->kind) {
    case OPTION_SETS:
        *(bool *)at = true;
        return STATUS_DONE;
    case OPTION_KEEPS:
        *(const char **)at = optarg;
        return STATUS_DONE;
    case OPTION_LISTS:
        words_add(at, "%s", optarg);
        return STATUS_DONE;
    case OPTION_ADDS:
    case OPTION_ADDS_VALUE:
        if (letter < OPTION_LONG) {
            snprintf(format, sizeof format, "-%c%s", letter, optarg ? "%s" : "");
        } else {
            snprintf(format, sizeof format, "--%s%s", option->name, optarg ? "=%s" : "");
        }
        words_add(at, format, optarg);
        return STATUS_DONE;
    case OPTION_COUNTS:
        is_right = units_number(optarg, option->most, at);
        break;
    case OPTION_TIMES:
        is_right = units_seconds(optarg, (uint32_t)option->most, at);
        break;
    case OPTION_SIZES:
        is_right = units_size(optarg, at);
        break;
    default:
        return option->take(parser->verb, parser->contexts[row], optarg);
    }
    return is_right ? STATUS_DONE : wrong_usage(parser->verb, "%s%s", option->what, optarg);
}

/* What getopt did not understand, at argv[before] or right before optind. */
static int refuse(const struct verb *verb, int argc, char **argv, int before)
{
    /* optopt is 0 at an unknown long one, which lies right before optind. Only getopt knows which
     * words are options of ours: behind a command's first word all are the command's. */
    const char *word = !optopt ? argv[optind - 1] : argv[before < argc ? before : argc - 1];
    if (optopt == 'h' || strcmp(word, "--help") == 0) {
        exit(verb_help(verb));
    }
    /* A value may be a secret. */
    return wrong_usage(verb, "unknown option: %.*s%s", (int)strcspn(word, "="), word,
                       verb->hint ? verb->hint : "");
}

int verb_options(const struct verb *verb, int argc, char **argv, const struct verb_option *options,
                 void *context)
{
    struct parser parser = {.verb = verb};
    int status = STATUS_DONE;
    int letter;
    /* ':' tells a missing value from an unknown option, and keeps getopt silent; it stands behind a
     * '+'. */
    snprintf(parser.letters, sizeof parser.letters, "%s:", verb->takes_command ? "+" : "");
    add_options(&parser, options, context);
    while (!status) {
        int before = optind;
        optarg = NULL;
        letter = getopt_long(argc, argv, parser.letters, parser.table, NULL);
        if (letter == -1) {
            break;
        }
        if (letter == ':') {
            status = wrong_usage(verb, "%s needs a value", argv[optind - 1]);
        } else if (letter == '?') {
            status = refuse(verb, argc, argv, before);
        } else if (!verb->usage && optarg && optarg == argv[optind - 1] && optarg[0] == '-' &&
                   optarg[1]) {
            status = wrong_usage(verb, "%s needs a value, not %s", argv[optind - 2], optarg);
        } else {
            status = take_option(&parser, letter);
        }
    }
    if (!status && verb->words == VERB_HAS_NO_WORDS && optind < argc) {
        status = wrong_usage(verb, "unexpected argument: %s%s", argv[optind],
                             verb->hint ? verb->hint : "");
    } else if (!status && verb->words == VERB_HAS_ONE_FILE && argc - optind != 1) {
        status = wrong_usage(verb, "one FILE is needed");
    }
    return status;
}

int finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return STATUS_DONE;
    }
    failed_to(-errno, "write the output");
    return STATUS_FAILED;
}
