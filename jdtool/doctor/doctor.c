#include "jdtool/doctor/doctor.h"

#include "jdtool/base/text.h"
#include "jdtool/live/verbs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Telling ---- */

static void tell(const struct doctor *doctor, const char *state, const char *remedy,
                 const char *format, va_list arguments)
{
    char text[2048];
    vsnprintf(text, sizeof text, format, arguments);
    fprintf(doctor->out, "%-5s %-16s ", state, doctor->check);
    text_print(doctor->out, text);
    if (remedy) {
        fputs(" -> ", doctor->out);
        text_print(doctor->out, remedy);
    }
    putc('\n', doctor->out);
    fflush(doctor->out); /* the next may take its time */
}

void doctor_good(const struct doctor *doctor, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(doctor, "ok", NULL, format, arguments);
    va_end(arguments);
}

void doctor_poor(const struct doctor *doctor, const char *remedy, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(doctor, "poor", remedy, format, arguments);
    va_end(arguments);
}

void doctor_bad(struct doctor *doctor, const char *remedy, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(doctor, "BAD", remedy, format, arguments);
    va_end(arguments);
    doctor->bad = true;
}

/* ---- Judging ---- */

void doctor_tell_space(struct doctor *doctor, uint64_t bytes, const char *where)
{
    char size[TEXT_SIZE_MAX];
    text_size(bytes, size);
    if (bytes < UINT64_C(100) << 20) {
        doctor_bad(doctor, "free some space, or use -o with a directory elsewhere", "%s in %s",
                   size, where);
    } else if (bytes < UINT64_C(2) << 30) {
        doctor_poor(
            doctor,
            "free some space, use -o with a directory elsewhere, or --agent-options max=500M",
            "%s in %s; a minute of kept stacks (--keep-raw) takes up to 1 GB per CPU", size, where);
    } else {
        doctor_good(doctor, "%s in %s", size, where);
    }
}

void doctor_tell_cache(const struct doctor *doctor, uint64_t bytes, const char *where)
{
    char size[TEXT_SIZE_MAX];
    text_size(bytes, size);
    if (bytes > UINT64_C(1) << 30) {
        doctor_poor(doctor, "jdperf clean --all; perf buildid-cache --purge-all empties all of it",
                    "%s holds %s", where, size);
    } else {
        doctor_good(doctor, "%s holds %s", where, size);
    }
}

void doctor_tell_perf(const struct doctor *doctor, const char *words)
{
    static const char before[] = "perf version ";
    char *end = NULL;
    const char *at = strstr(words, before);
    long major = at ? strtol(at + sizeof before - 1, &end, 10) : 0;
    long minor = major > 0 && *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (major <= 0) {
        doctor_poor(doctor, "install perf 5.11 or later", "%.*s: not a version of Linux",
                    (int)strcspn(words, "\n"), words);
    } else if (major < 5 || (major == 5 && minor < 11)) {
        doctor_poor(doctor, "install perf 5.11 or later",
                    "%ld.%ld cannot report when sampling has begun (--control): jdperf does not "
                    "record with it",
                    major, minor);
    } else {
        doctor_good(doctor, "%ld.%ld%s", major, minor,
                    major < 7
                        ? "; jdtool adds inlined methods to the stacks, because this perf does not"
                        : "");
    }
}

void doctor_tell_jdk(const struct doctor *doctor, int java)
{
    /* Those on which scripts/matrix.sh has tried the claims, see docs/jdks.md for each. */
    static const int tried[] = {8, 11, 17, 21, 25, 26, 27};
    enum { NEWEST = 27 };
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        if (tried[i] == java) {
            doctor_good(doctor, "JDK %d, tested: names, lines, inlined and interpreted frames%s",
                        java,
                        java >= 21 ? ", whole stacks, also of virtual threads" : ", whole stacks");
            return;
        }
    }
    if (java <= 0) {
        doctor_poor(doctor, "see docs/jdks.md for what works on which JDK",
                    "the version of its JDK is unknown");
    } else if (java > NEWEST) {
        doctor_poor(
            doctor, "look for 'jdagent: this JVM's structures' on the JVM's stderr",
            "JDK %d is newer than %d, the newest tested one: names and lines work through JVMTI; "
            "tiers, interpreted frames and whole stacks work if the agent prints no warning",
            java, NEWEST);
    } else {
        doctor_good(doctor, "JDK %d; neighbouring versions are tested", java);
    }
}

/* ---- The verb ---- */

/* jdperf doctor: what works here, and what to do about the rest. */

static int run(const struct verb *verb, int argc, char **argv)
{
    struct waiting waiting;
    struct doctor doctor = {.out = stdout, .waiting = &waiting};
    int status = verb_options(verb, argc, argv, NULL, NULL);
    if (status) {
        return status;
    }
    if (argc - optind > 1) {
        return wrong_usage(verb, "one JVM at a time: %s", argv[optind + 1]);
    }
    if (waiting_start(&waiting)) {
        return STATUS_FAILED;
    }
    doctor_examine_machine(&doctor);
    if (optind < argc) {
        doctor_examine_jvm(&doctor, argv[optind]);
    }
    status = finish_output();
    return waiting.ended_by ? 128 + waiting.ended_by : doctor.bad ? STATUS_FAILED : status;
}

const struct verb live_doctor = {
    .name = "doctor",
    .run = run,
    .help = "usage: jdperf doctor [PID]\n"
            "\n"
            "Checks what profiling Java needs on this machine, and in the JVM PID if given. It\n"
            "prints one line per check, with its state and what to do about it.\n"
            "\n"
            "  ok    as it should be\n"
            "  poor  you can take profiles, but they will lack something\n"
            "  BAD   you cannot take profiles until this is fixed\n"
            "\n"
            "Exit status: 0, or 1 if something is BAD.\n",
};
