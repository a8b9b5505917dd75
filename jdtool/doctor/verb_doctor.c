/* jdperf doctor: what works here, and what to do about the rest. */
#include "jdtool/doctor/doctor.h"
#include "jdtool/live/verbs.h"

#include <stdio.h>

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
