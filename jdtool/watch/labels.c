#include "jdtool/watch/labels.h"

#include "jdtool/base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool label_is_valid(const char *word)
{
    const char *equals = strchr(word, '=');
    if (!equals || equals == word || equals - word >= LABEL_NAME_MAX ||
        strlen(equals + 1) >= LABEL_VALUE_MAX || isdigit((unsigned char)*word)) {
        return false;
    }
    for (const char *at = word; at < equals; at++) {
        if (!isalnum((unsigned char)*at) && *at != '_') {
            return false;
        }
    }
    return true;
}

static uint32_t find(const struct labels *labels, const char *name)
{
    uint32_t i = 0;
    while (i < labels->count && strcmp(labels->names[i], name) != 0) {
        i++;
    }
    return i;
}

void labels_set(struct labels *labels, const char *name, const char *value)
{
    uint32_t i = find(labels, name);
    if (!*value) {
        if (i < labels->count) {
            labels->count--;
            memmove(labels->names[i], labels->names[i + 1],
                    (labels->count - i) * sizeof *labels->names);
            memmove(labels->values[i], labels->values[i + 1],
                    (labels->count - i) * sizeof *labels->values);
        }
        return;
    }
    if (i == LABELS_MAX) {
        return;
    }
    snprintf(labels->names[i], LABEL_NAME_MAX, "%s", name);
    snprintf(labels->values[i], LABEL_VALUE_MAX, "%s", value);
    for (char *at = labels->values[i]; *at; at++) {
        if (iscntrl((unsigned char)*at)) {
            *at = '?';
        }
    }
    labels->list[i] = (struct export_label){labels->names[i], labels->values[i]};
    labels->count += i == labels->count;
}

const char *labels_get(const struct labels *labels, const char *name)
{
    uint32_t i = find(labels, name);
    return i < labels->count ? labels->values[i] : NULL;
}

/* ---- What /proc tells ---- */

/* A variable of the environment, "" if it is not there. */
static void variable(const char *environment, size_t size, const char *name,
                     char value[LABEL_VALUE_MAX])
{
    size_t length = strlen(name);
    value[0] = '\0';
    for (const char *at = environment; at < environment + size; at += strlen(at) + 1) {
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            snprintf(value, LABEL_VALUE_MAX, "%s", at + length + 1);
            return;
        }
    }
}

static bool ends_with(const char *text, size_t size, const char *suffix)
{
    size_t length = strlen(suffix);
    return size > length && memcmp(text + size - length, suffix, length) == 0;
}

/* 64 hexadecimal digits are a container's id with every runtime: "docker-ID.scope",
 * "cri-containerd-ID.scope", "libpod-ID.scope", "/docker/ID". */
static bool find_container(const char *part, size_t size, char container[16])
{
    size_t digits = 0;
    for (size_t i = 0; i < size; i++) {
        digits = isxdigit((unsigned char)part[i]) ? digits + 1 : 0;
        if (digits == 64) {
            snprintf(container, 16, "%.12s", part + i - 63);
            return true;
        }
    }
    return false;
}

/*
 * The innermost part that is one counts. Version 1 has a line for each controller: the first that
 * tells of something is enough.
 */
void labels_from_cgroup(const char *cgroup, char unit[LABEL_VALUE_MAX], char container[16],
                        bool *is_pod)
{
    unit[0] = container[0] = '\0';
    *is_pod = false;
    size_t length;
    for (const char *line; !unit[0] && !container[0] && (line = text_line(&cgroup, &length));) {
        for (const char *at = memchr(line, '/', length); at && at < line + length;) {
            size_t size = strcspn(++at, "/\n");
            *is_pod |= strncmp(at, "kubepods", 8) == 0;
            if (!find_container(at, size, container) && ends_with(at, size, ".service") &&
                strncmp(at, "user@", 5) != 0 && size < LABEL_VALUE_MAX) {
                memcpy(unit, at, size - strlen(".service"));
                unit[size - strlen(".service")] = '\0';
            }
            at += size;
        }
    }
}

static void set_main_class(struct labels *labels, const struct live_process *process)
{
    char name[2048];
    process_java_name(process, name, sizeof name);
    name[strcspn(name, " ")] = '\0';
    labels_set(labels, "main_class", basename(name));
}

/* "env,unit": the next word, at *at, which is moved behind it; false: there is none. */
static bool next_source(const char **at, char word[16])
{
    size_t length = strcspn(*at, ",");
    snprintf(word, 16, "%.*s", (int)(length < 15 ? length : 15), *at);
    *at += length + ((*at)[length] == ',');
    return length > 0;
}

bool labels_service_from_is_valid(const char *from)
{
    char word[16];
    while (next_source(&from, word)) {
        if (strcmp(word, "env") != 0 && strcmp(word, "unit") != 0 &&
            strcmp(word, "container") != 0) {
            return false;
        }
        if (!*from) {
            return from[-1] != ',';
        }
    }
    return false;
}

void labels_set_service(struct labels *labels, const char *from, const char *environment,
                        size_t size)
{
    char value[LABEL_VALUE_MAX] = "";
    char word[16];
    while (!value[0] && next_source(&from, word)) {
        const char *label = labels_get(labels, word);
        if (strcmp(word, "env") == 0) {
            variable(environment, size, "OTEL_SERVICE_NAME", value);
        } else if (label) {
            snprintf(value, sizeof value, "%s", label);
        }
    }
    const char *main_class = labels_get(labels, "main_class");
    labels_set(labels, "service_name", value[0] ? value : main_class ? main_class : "java");
}

void labels_of_process(struct labels *labels, const struct live_process *process, const char *from,
                       const char *const *words)
{
    char unit[LABEL_VALUE_MAX] = "";
    char container[16] = "";
    char text[LABEL_VALUE_MAX];
    bool is_pod = false;
    size_t size = 0;
    memset(labels, 0, sizeof *labels);
    char *cgroup = process_read_all(process, "cgroup", 65536, &size);
    if (cgroup) {
        labels_from_cgroup(cgroup, unit, container, &is_pod);
    }
    free(cgroup);
    size = 0;
    char *environment = process_read_all(process, "environ", 1 << 20, &size);
    set_main_class(labels, process);
    labels_set(labels, "unit", unit);
    labels_set(labels, "container", container);
    labels_set_service(labels, from, environment ? environment : "", environment ? size : 0);
    if (is_pod && environment) {
        variable(environment, size, "HOSTNAME", text);
        labels_set(labels, "pod", text);
    }
    free(environment);
    if (gethostname(text, sizeof text) == 0) {
        text[sizeof text - 1] = '\0';
        labels_set(labels, "host", text);
    }
    snprintf(text, sizeof text, "%d", (int)process->pid);
    labels_set(labels, "pid", text);
    for (; *words; words++) {
        char name[LABEL_NAME_MAX];
        const char *equals = strchr(*words, '=');
        snprintf(name, sizeof name, "%.*s", (int)(equals - *words), *words);
        labels_set(labels, name, equals + 1);
    }
}
