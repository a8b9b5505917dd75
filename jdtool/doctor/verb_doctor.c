/* jdperf doctor: what works here, and what to do about the rest. */
#include "jdtool/doctor/doctor.h"
#include "jdtool/live/verbs.h"

#include <stdio.h>

static int run(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option table[] = {{0}};
    struct waiting waiting;
    struct doctor doctor = {.out = stdout, .waiting = &waiting};
    if (live_option(verb, argc, argv, "", table) != -1) {
        return STATUS_USAGE;
    }
    if (argc - optind > 1) {
        return live_wrong_usage(verb, "one JVM at a time: ", argv[optind + 1], "");
    }
    if (waiting_start(&waiting)) {
        return STATUS_FAILED;
    }
    doctor_examine_machine(&doctor);
    if (optind < argc) {
        doctor_examine_jvm(&doctor, argv[optind]);
    }
    int status = finish_output();
    return waiting.ended_by ? 128 + waiting.ended_by : doctor.bad ? STATUS_FAILED : status;
}

const struct live_verb live_doctor = {
    .name = "doctor",
    .run = run,
    .hint = "",
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
