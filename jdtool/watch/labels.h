/*
 * What a watched JVM is called, for servers that group profiles by labels. Read from outside, from
 * what the process says of itself and the kernel says of it: nothing of it is trusted beyond its
 * length, and control characters are replaced.
 *
 *     service_name   OTEL_SERVICE_NAME of its environment, else its systemd unit, else main_class;
 *                    which of them may name it is the operator's to say: anybody may set the first
 *     main_class     the main class, jar or program, without its directory
 *     container      the first 12 digits of the container's id
 *     pod            HOSTNAME of its environment, where the container is a pod's
 *     unit           the systemd unit
 *     host           this machine's name
 *     pid            as this machine counts
 */
#ifndef JD_TOOL_WATCH_LABELS_H
#define JD_TOOL_WATCH_LABELS_H

#include "jdtool/exports/export.h"
#include "jdtool/live/target.h"

#define LABELS_MAX      32
#define LABEL_NAME_MAX  64
#define LABEL_VALUE_MAX 256

struct labels {
    uint32_t count;
    struct export_label list[LABELS_MAX]; /* points into the texts */
    char names[LABELS_MAX][LABEL_NAME_MAX];
    char values[LABELS_MAX][LABEL_VALUE_MAX];
};

/* Whether "name=value" is one: letters, digits and '_', no digit first, as Prometheus has them. */
bool label_is_valid(const char *word);

/* Sets one; an empty value removes it. What there is no room for is left out. The list's order is
 * that of first setting. */
void labels_set(struct labels *labels, const char *name, const char *value);
const char *labels_get(const struct labels *labels, const char *name); /* NULL: none */

#define LABELS_SERVICE_FROM "env,unit"

/* Whether it is a list of where a service's name is taken from: env, unit, container, with commas
 * between. */
bool labels_service_from_is_valid(const char *from);

/* The first of them that there is, else the main class. `environment` is /proc/PID/environ's. */
void labels_set_service(struct labels *labels, const char *from, const char *environment,
                        size_t size);

/* Those of a process, its service's name from there, and then the user's "name=value", which win;
 * NULL-terminated. */
void labels_of_process(struct labels *labels, const struct live_process *process, const char *from,
                       const char *const *words);

/* The unit and the container that a /proc/PID/cgroup tells of; "" where it tells of none. For
 * labels_of_process and its test. */
void labels_from_cgroup(const char *cgroup, char unit[LABEL_VALUE_MAX], char container[16],
                        bool *is_pod);

#endif
