#include "jdtool/live/ask.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/live/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Who has not answered a question that costs nothing by then is silent. */
enum { SILENCE_MS = 4000 };

/* ---- The tools ---- */

/* A program or file of the target's JDK, where its own home may be the JRE in it (8). */
static void in_jdk(const struct target *target, const char *name, char path[PATH_MAX + 16])
{
    static const char jre[] = "/jre";
    size_t size = strlen(target->java_home);
    size_t tail = sizeof jre - 1;
    if (size > tail && strcmp(target->java_home + size - tail, jre) == 0) {
        size -= tail;
    }
    snprintf(path, PATH_MAX + 16, "%.*s/%s", (int)size, target->java_home, name);
}

/* A jcmd that can speak with the target: its own JDK's, ours. */
static bool find_jcmd(const struct target *target, char path[PATH_MAX + 16])
{
    if (!target->same_files) {
        return false;
    }
    const char *home = getenv("JAVA_HOME");
    in_jdk(target, "bin/jcmd", path);
    if (target->java_home[0] && program_exists(path)) {
        return true;
    }
    snprintf(path, PATH_MAX + 16, "%s/bin/jcmd", home ? home : "");
    if (home && program_exists(path)) {
        return true;
    }
    snprintf(path, PATH_MAX + 16, "jcmd");
    return program_exists(path);
}

/* JDK 8's jcmd loads no agents: its attach API does, and its script runner can be told to. */
static bool find_script_runner(const struct target *target, char runner[PATH_MAX + 16],
                               char tools[PATH_MAX + 16])
{
    in_jdk(target, "bin/jrunscript", runner);
    in_jdk(target, "lib/tools.jar", tools);
    return target->same_files && target->java_home[0] && program_exists(runner) &&
           access(tools, R_OK) == 0;
}

int ask_prepare(const struct target *target)
{
    char path[PATH_MAX + 16];
    char tools[PATH_MAX + 16];
    if (program_exists("jattach")) {
        return 0;
    }
    if (target->java == 8) {
        if (find_script_runner(target, path, tools)) {
            return 0;
        }
        error_message(
            "failed to find jattach, and JDK 8's jcmd cannot load agents: apt-get install jattach");
        return -ENOENT;
    }
    if (find_jcmd(target, path)) {
        return 0;
    }
    error_message("failed to find jattach or jcmd: apt-get install jattach");
    return -ENOENT;
}

/* ---- Reasons ---- */

/* What keeps it from making its socket in its /tmp, or NULL. */
static const char *tmp_fault(const struct target *target)
{
    struct statvfs system;
    struct stat status;
    const char *fault = NULL;
    int fd = target_open_directory(target, "/tmp");
    if (fd < 0 || fstatvfs(fd, &system) != 0 || fstat(fd, &status) != 0) {
        fault = NULL;
    } else if (system.f_flag & ST_RDONLY) {
        fault = "is read-only";
    } else if (system.f_files > 0 && system.f_favail == 0) {
        fault = "is full";
    } else if (target->uid != 0 && target->uid != status.st_uid && !(status.st_mode & 022)) {
        fault = "its user may not write to";
    }
    descriptor_close(fd);
    return fault;
}

static bool is_deaf(const struct target *target)
{
    return process_has_argument(&target->process, "-XX:+DisableAttachMechanism");
}

/*
 * Whether the socket it would listen at is another user's: a killed JVM leaves its own, and where
 * /tmp is sticky a later JVM of that pid cannot put it away (AttachListener::vm_start). `path` is
 * then ours to it.
 */
static bool socket_is_anothers(const struct target *target, char path[64])
{
    struct stat status;
    char name[32];
    int directory = target_open_directory(target, "/tmp");
    snprintf(name, sizeof name, ".java_pid%d", (int)target->ns_pid);
    bool is = directory >= 0 && fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
              status.st_uid != target->uid;
    descriptor_close(directory);
    snprintf(path, 64, "/proc/%d/root/tmp/%s", (int)target->process.pid, name);
    return is;
}

/* Why the target does not answer, and the remedy. */
static void tell_silence(const struct target *target)
{
    int pid = (int)target->process.pid;
    char socket[64];
    struct process_halt halt;
    const char *tmp = tmp_fault(target);
    if (process_is_halted(&target->process, &halt)) {
        info_message("  it is %s (%s): %s", halt.how, halt.by_whom, halt.remedy);
    } else if (is_deaf(target)) {
        info_message("  it runs with -XX:+DisableAttachMechanism: restart it with the agent: "
                     "jdperf record -- java …");
    } else if (tmp) {
        info_message("  it cannot listen in its /tmp, which %s: mount a writable one (docker: "
                     "--tmpfs /tmp:exec, Kubernetes: an emptyDir), or start it with the agent",
                     tmp);
    } else if (socket_is_anothers(target, socket)) {
        info_message("  a killed JVM of another user, which had the same process id, left a "
                     "socket: as root or that user, rm %s",
                     socket);
    } else {
        info_message("  the JVM did not answer in time; jattach %d threaddump asks it again. If "
                     "nothing helps: jdperf record -- java …",
                     pid);
    }
}

/* ---- Asking ---- */

struct answer {
    char text[16384];
    int status;
};

/*
 * Runs `arguments` until it ends. After a while it is said that we wait. 0 with an answer, -ESRCH
 * when the JVM has ended meanwhile, -ETIMEDOUT, -EINTR.
 */
static int talk(const struct target *target, char *const *arguments, bool as_user,
                struct waiting *waiting, int64_t ms, struct answer *answer)
{
    char still[128];
    snprintf(still, sizeof still,
             "process %d has not answered for 3 s: still waiting (Ctrl-C stops)",
             (int)target->process.pid);
    struct child_options options = {
        .arguments = arguments,
        .others_end = target->process.pidfd, /* which jattach does not look at for seconds */
        .still = still,
        .drop = as_user && geteuid() == 0 && target->uid != 0,
        .uid = target->uid,
        .gid = target->gid,
    };
    /* Its number may be another's by now, who may die of SIGQUIT. */
    if (!process_lives(&target->process)) {
        return -ESRCH;
    }
    int err = child_talk(&options, waiting, deadline_in(ms), answer->text, sizeof answer->text,
                         &answer->status);
    return err && err != -EINTR && !process_lives(&target->process) ? -ESRCH : err;
}

int ask_flag(const struct target *target, const char *name, struct waiting *waiting)
{
    struct answer *answer = calloc(1, sizeof *answer);
    char pid[16];
    char jcmd[PATH_MAX + 16];
    char on[128];
    snprintf(pid, sizeof pid, "%d", (int)target->process.pid);
    int err = answer ? 0 : -ENOMEM;
    if (err) {
        return err;
    }
    if (is_deaf(target)) {
        err = -ECONNREFUSED;
    } else if (program_exists("jattach")) {
        char *const arguments[] = {"jattach", pid, "printflag", (char *)name, NULL};
        err = talk(target, arguments, false, waiting, SILENCE_MS, answer);
    } else if (find_jcmd(target, jcmd)) {
        char *const arguments[] = {jcmd, pid, "VM.flags", "-all", NULL};
        err = talk(target, arguments, true, waiting, SILENCE_MS, answer);
    } else {
        err = -ENOENT;
    }
    if (!err && answer->status != 0) {
        /* JDK 8 and a flag that is locked: an answer, too. */
        err = strstr(answer->text, "Connected") || strstr(answer->text, name) ? -ENOENT : -ENOTCONN;
    }
    if (!err) {
        snprintf(on, sizeof on, "-XX:+%s", name);
        const char *line = strstr(answer->text, name);
        const char *end = line ? strchrnul(line, '\n') : NULL;
        const char *value = line ? strstr(line, "= true") : NULL;
        if (strstr(answer->text, on) || (value && value < end)) {
            err = 1;
        } else if (!line) {
            err = -ENOENT;
        }
    }
    free(answer);
    return err;
}

int ask_whether_it_answers(const struct target *target, struct waiting *waiting)
{
    int pid = (int)target->process.pid;
    int found = ask_flag(target, "DisableAttachMechanism", waiting);
    switch (found) {
    case -EINTR:
        error_message("interrupted while waiting for process %d", pid);
        return found;
    case -ESRCH:
        error_message("process %d has ended", pid);
        return found;
    case -ECONNREFUSED:
    case -ENOTCONN:
        error_message("process %d refused the attach", pid);
        tell_silence(target);
        return -ECONNREFUSED;
    case -ETIMEDOUT:
        error_message("process %d did not answer within %d s", pid, SILENCE_MS / 1000);
        tell_silence(target);
        return found;
    default:
        return 0;
    }
}

/* ---- Loading the agent ---- */

/* Where the JVM's standard error can be read along: a regular file of its user's. */
struct errors {
    int file;
    off_t from;
};

static void watch_errors(const struct target *target, struct errors *errors)
{
    struct stat status;
    char path[64];
    errors->file = -1;
    /* What it is first: opening a device or a FIFO does something. */
    int found = openat(target->process.directory, "fd/2", O_PATH | O_CLOEXEC);
    if (found >= 0 && fstat(found, &status) == 0 && S_ISREG(status.st_mode)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", found);
        errors->file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    descriptor_close(found);
    errors->from = errors->file >= 0 ? lseek(errors->file, 0, SEEK_END) : 0;
}

static bool tell_lines(const char *text, const char *only, const char *prefix)
{
    static const char *const noise[] = {"Connected to remote JVM", "JVM response code = 0"};
    bool told = false;
    size_t length;
    for (const char *line; (line = text_line(&text, &length));) {
        bool wanted = length > 0 && (!only || strncmp(line, only, strlen(only)) == 0);
        size_t digits = strspn(line, "0123456789");
        wanted = wanted && !(digits > 0 && digits + 1 == length && line[digits] == ':');
        for (size_t i = 0; i < sizeof noise / sizeof *noise; i++) {
            wanted = wanted && (length != strlen(noise[i]) || strncmp(line, noise[i], length) != 0);
        }
        if (wanted) {
            detail_message(prefix, "%.*s", (int)(length > 1000 ? 1000 : length), line);
            told = true;
        }
    }
    return told;
}

static bool tell_errors(const struct errors *errors)
{
    char text[8192];
    ssize_t n = errors->file >= 0 ? pread(errors->file, text, sizeof text - 1, errors->from) : 0;
    text[n > 0 ? n : 0] = '\0';
    return tell_lines(text, "jdagent:", "");
}

/* A JVM that ends closes its connections a while before it is gone. */
static bool ends_soon(const struct live_process *process)
{
    struct pollfd end = {.fd = process->pidfd, .events = POLLIN};
    return poll(&end, 1, 500) == 1;
}

static void tell_refusal(const struct target *target, const char *options,
                         const struct answer *answer, const struct errors *errors)
{
    error_message("process %d refused: %s", (int)target->process.pid, options);
    tell_lines(answer->text, NULL, "JVM: ");
    if (!tell_errors(errors) && errors->file < 0 && strstr(answer->text, "return code:")) {
        info_message("  see the JVM's standard error for the agent's reason");
    }
    if (strstr(answer->text, "Dynamic agent loading is not enabled")) {
        info_message("  the JVM runs with -XX:-EnableDynamicAgentLoading: start it with "
                     "-XX:+EnableDynamicAgentLoading, or with the agent: jdperf record -- java …");
    } else if (strstr(answer->text, "DisableAttachMechanism") ||
               strstr(answer->text, "not open socket") ||
               strstr(answer->text, "not connect to socket") ||
               strstr(answer->text, "Could not start attach mechanism")) {
        tell_silence(target);
    }
}

/* It listens before it has finished starting; agent/session/commands.h. */
enum { JNI_EDETACHED = -2, JNI_EEXIST = -5 };

/* What the agent's Agent_OnAttach has returned, or the tool's own status. */
static int result_of(const struct answer *answer)
{
    const char *code = strstr(answer->text, "return code:");
    /* JDK 8 gives the bare number, which jattach makes its status, a byte. */
    int status =
        code ? (int)strtol(code + strlen("return code:"), NULL, 10) : (int8_t)answer->status;
    /* JDK 21 and later refuse in words, with a status of 0. */
    if (status == 0 && strstr(answer->text, "Dynamic agent loading is not enabled")) {
        return 1;
    }
    /* JvmtiAgent's own look at the phase, ahead of Agent_OnAttach. */
    if (status == 0 && strstr(answer->text, "only permitted in the live phase")) {
        return JNI_EDETACHED;
    }
    return status;
}

/* Asks once. Says after some seconds that it waits. */
static int load_once(const struct target *target, const char *agent, const char *options,
                     struct waiting *waiting, int64_t ms, struct answer *answer)
{
    char pid[16];
    char quoted[3 * PATH_MAX];
    char jcmd[PATH_MAX + 16];
    char runner[PATH_MAX + 16];
    char tools[PATH_MAX + 16];
    snprintf(pid, sizeof pid, "%d", (int)target->process.pid);
    /* jcmd reads key=value as an argument of its own unless it is quoted. */
    snprintf(quoted, sizeof quoted, "\"%s\"", options);
    char *const with_jattach[] = {"jattach",       pid, "load", (char *)agent, "true",
                                  (char *)options, NULL};
    char *const with_jcmd[] = {jcmd, pid, "JVMTI.agent_load", (char *)agent, quoted, NULL};
    /* As jcmd answers; what is no refusal of the agent's is said as it is. */
    char script[] =
        "var jvm = com.sun.tools.attach.VirtualMachine.attach(arguments[0]);"
        "try { jvm.loadAgentPath(arguments[1], arguments[2]); print('return code: 0'); }"
        "catch (e) { if (!e.returnValue) throw e; print('return code: ' + e.returnValue()); }"
        "finally { jvm.detach(); }";
    char *const with_script[] = {runner, "-cp",         tools,           "-e", script,
                                 pid,    (char *)agent, (char *)options, NULL};
    if (program_exists("jattach")) {
        return talk(target, with_jattach, false, waiting, ms, answer);
    }
    if (target->java == 8 && find_script_runner(target, runner, tools)) {
        return talk(target, with_script, true, waiting, ms, answer);
    }
    return find_jcmd(target, jcmd) ? talk(target, with_jcmd, true, waiting, ms, answer) : -ENOENT;
}

int ask_to_load(const struct target *target, const char *agent, const char *options,
                struct waiting *waiting, int64_t ms)
{
    struct errors errors;
    struct answer *answer = calloc(1, sizeof *answer);
    int pid = (int)target->process.pid;
    int err = answer ? 0 : -ENOMEM;
    int result = 0;
    watch_errors(target, &errors);
    for (int tries = 0; !err && tries < 20; tries++) {
        err = load_once(target, agent, options, waiting, ms, answer);
        result = err ? 0 : result_of(answer);
        if (result != JNI_EDETACHED) {
            break;
        }
        err = wait_ms(waiting, 500);
    }
    const bool refuses = result && result != JNI_EEXIST && result != JNI_EDETACHED;
    if (err == -ETIMEDOUT) {
        error_message("process %d has not answered for %d s: %s", pid, (int)(ms / 1000), options);
        tell_silence(target);
    } else if (err == -EINTR) {
        error_message("interrupted while waiting for process %d: %s", pid, options);
    } else if (err == -ESRCH || (result && !process_lives(&target->process)) ||
               (!err && refuses && ends_soon(&target->process))) {
        error_message("process %d has ended", pid);
        err = -ESRCH;
    } else if (err) {
        failed_to(err, "ask process %d", pid);
    } else if (result == JNI_EEXIST) {
        err = -EEXIST;
    } else if (result == JNI_EDETACHED) {
        error_message("process %d has not finished starting: try again later", pid);
        err = -ECONNREFUSED;
    } else if (result) {
        tell_refusal(target, options, answer, &errors);
        err = -ECONNREFUSED;
    }
    descriptor_close(errors.file);
    free(answer);
    return err;
}
