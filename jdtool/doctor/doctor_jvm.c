/* What recording needs of a JVM that runs. Not to attach is an answer here. */
#include "jdtool/base/descriptor.h"
#include "jdtool/base/processes.h"
#include "jdtool/base/text.h"
#include "jdtool/confined/confined.h"
#include "jdtool/doctor/doctor.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/kernel.h"
#include "jdtool/live/session.h"
#include "jdtool/live/verbs.h"
#include "jdtool/objects/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct jvm {
    struct target target;
    struct live_session session;
    struct session_status status;
    bool answers;
    bool told; /* the agent in it has told its status */
    char words[4096];
};

/* ---- What is said on the way ---- */

/* Standard error goes into a file, for what it says is to be shown as a check. The old one, or -1.
 */
static int divert_errors(int *file)
{
    *file = memfd_create("doctor", MFD_CLOEXEC);
    int before = *file >= 0 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
    if (before >= 0) {
        (void)dup2(*file, STDERR_FILENO);
    }
    return before;
}

static void restore_errors(int before, int file, char *words, size_t size)
{
    ssize_t n = file >= 0 ? pread(file, words, size - 1, 0) : 0;
    words[n > 0 ? n : 0] = '\0';
    if (before >= 0) {
        (void)dup2(before, STDERR_FILENO);
        close(before);
    }
    descriptor_close(file);
}

/* A line of them, the first or the last, without who says it. */
static char *line_of(char *words, bool last)
{
    static const char who[] = "jdperf:";
    words[strlen(words) - (*words && words[strlen(words) - 1] == '\n')] = '\0';
    char *line = last && strrchr(words, '\n') ? strrchr(words, '\n') + 1 : words;
    line[strcspn(line, "\n")] = '\0';
    line += strncmp(line, who, sizeof who - 1) == 0 ? sizeof who - 1 : 0;
    return line + strspn(line, " ");
}

/* What was said is a fault, the remedy behind a colon: so target_find and staging_plan tell it. */
static void tell_words(struct doctor *doctor, struct jvm *jvm)
{
    char *words = line_of(jvm->words, false);
    char *remedy = strstr(words, ": ");
    if (remedy) {
        *remedy = '\0';
    }
    doctor_bad(doctor, remedy ? remedy + 2 : "try again", "%s", words);
}

static bool find(struct doctor *doctor, struct jvm *jvm, const char *word)
{
    int file;
    int before = divert_errors(&file);
    int err = target_find(&jvm->target, word, doctor->waiting);
    restore_errors(before, file, jvm->words, sizeof jvm->words);
    if (err) {
        tell_words(doctor, jvm);
        return false;
    }
    char elsewhere[64] = "";
    if (!jvm->target.same_files) {
        snprintf(elsewhere, sizeof elsewhere, ", in namespaces of its own as %d",
                 (int)jvm->target.ns_pid);
    }
    char version[16];
    snprintf(version, sizeof version, "%d", jvm->target.java);
    doctor_good(doctor, "%d is a JVM (JDK %s) of %s%s", (int)jvm->target.process.pid,
                jvm->target.java ? version : "?", target_user(jvm->target.uid), elsewhere);
    return true;
}

static void ask(struct doctor *doctor, struct jvm *jvm)
{
    int file;
    int before = divert_errors(&file);
    jvm->answers = ask_prepare(&jvm->target) == 0 &&
                   ask_whether_it_answers(&jvm->target, doctor->waiting) == 0;
    if (jvm->answers) {
        session_init(&jvm->session, &jvm->target, doctor->waiting, NULL, live_agent());
        jvm->told = session_status(&jvm->session, &jvm->status) == 0;
        jvm->status.text[strcspn(jvm->status.text, "\n")] = '\0';
    }
    restore_errors(before, file, jvm->words, sizeof jvm->words);
}

/* ---- The checks ---- */

static bool is_silent(const struct doctor *doctor, const struct jvm *jvm)
{
    if (!jvm->answers) {
        doctor_poor(doctor, "see attach", "not known: the JVM does not answer");
    }
    return !jvm->answers;
}

static void check_jdk(struct doctor *doctor, struct jvm *jvm)
{
    static const struct mapped_name openj9 = {.prefix = "libj9vm", .digits = true, .suffix = ".so"};
    char path[PATH_MAX];
    if (process_mapped(&jvm->target.process, &openj9, path)) {
        doctor_poor(doctor, "use a HotSpot JVM for those",
                    "OpenJ9: names and lines of compiled code as its JVMTI provides them; no "
                    "tiers, no inlined methods, no names of interpreted frames");
    } else {
        doctor_tell_jdk(doctor, jvm->target.java);
    }
}

static void check_attach(struct doctor *doctor, struct jvm *jvm)
{
    if (jvm->answers) {
        doctor_good(doctor, "the JVM answers");
        return;
    }
    const char *words = line_of(jvm->words, true);
    if (strstr(words, "jattach") && strstr(words, "jcmd")) {
        doctor_bad(doctor, "apt-get install jattach",
                   "neither jattach nor a jcmd that reaches it is installed");
    } else {
        doctor_bad(doctor, words, "the JVM does not answer");
    }
}

static void check_loading(struct doctor *doctor, struct jvm *jvm)
{
    if (is_silent(doctor, jvm)) {
        return;
    }
    bool by_argument = process_has_argument(&jvm->target.process, "-XX:+EnableDynamicAgentLoading");
    if (ask_flag(&jvm->target, "EnableDynamicAgentLoading", doctor->waiting) == 0) {
        doctor_bad(doctor,
                   "start it with -XX:+EnableDynamicAgentLoading, or with the agent: jdperf record "
                   "-- java …",
                   "the JVM runs with -XX:-EnableDynamicAgentLoading");
    } else if (jvm->target.java >= 21 && !by_argument) {
        doctor_poor(doctor, "harmless; start it with -XX:+EnableDynamicAgentLoading to avoid it",
                    "JDK %d prints a warning when an agent is loaded", jvm->target.java);
    } else {
        doctor_good(doctor, "agents may be loaded");
    }
}

static void check_frame_pointers(struct doctor *doctor, struct jvm *jvm)
{
    if (is_silent(doctor, jvm)) {
        return;
    }
    if (ask_flag(&jvm->target, "PreserveFramePointer", doctor->waiting) == 1) {
        doctor_good(doctor, "PreserveFramePointer is on: --stacks fp works too");
    } else {
        doctor_good(doctor,
                    "PreserveFramePointer is off: --stacks fp needs it, the default does not");
    }
}

static void check_lines(struct doctor *doctor, struct jvm *jvm)
{
    if (is_silent(doctor, jvm)) {
        return;
    }
    /* A diagnostic flag: a JVM that has these locked does not know it. */
    if (ask_flag(&jvm->target, "DebugNonSafepoints", doctor->waiting) == 1) {
        doctor_good(doctor, "DebugNonSafepoints is on: every instruction has its line");
    } else {
        doctor_poor(doctor,
                    "start the JVM with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints",
                    "DebugNonSafepoints is off: HotSpot knows lines and inlined methods of code "
                    "compiled before you attach only at calls");
    }
}

/* What a process without rights finds in a JVM's file. */
struct elf_answers {
    int file;
    bool is_sound, has_structs, has_symbols, needs_glibc;
    unsigned machine;
};

static bool needs_glibc(const struct elf_file *file)
{
    size_t size;
    GElf_Shdr header;
    GElf_Dyn entry;
    Elf_Scn *section = elf_file_section(file, ".dynamic", &size);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    if (!data || !gelf_getshdr(section, &header)) {
        return false;
    }
    for (int i = 0; gelf_getdyn(data, i, &entry); i++) {
        const char *name = entry.d_tag == DT_NEEDED
                               ? elf_strptr(file->elf, header.sh_link, entry.d_un.d_val)
                               : NULL;
        if (name && strcmp(name, "libc.so.6") == 0) {
            return true;
        }
    }
    return false;
}

static int answer(void *context)
{
    struct elf_answers *answers = context;
    struct elf_file file;
    GElf_Sym structs;
    size_t size;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", answers->file);
    if (elf_file_open(-1, path, &file) == OBJECT_SOUND) {
        answers->is_sound = true;
        answers->has_structs = elf_file_symbol(&file, ".dynsym", "gHotSpotVMStructs", &structs);
        answers->has_symbols = elf_file_section(&file, ".symtab", &size) ||
                               elf_file_section(&file, ".gnu_debuglink", &size);
        answers->needs_glibc = needs_glibc(&file);
        answers->machine = file.machine;
        elf_file_close(&file);
    }
    return 0;
}

static struct elf_answers ask_elf(int root, const char *path)
{
    struct stat status;
    struct elf_answers result = {0};
    struct elf_answers *shared = confined_shared(sizeof *shared);
    int file = elf_file_open_only(root, path, &status);
    if (shared && file >= 0) {
        shared->file = file;
        confined_look(path, answer, shared);
        result = *shared;
    }
    descriptor_close(file);
    confined_unshare(shared, sizeof *shared);
    return result;
}

static void check_libjvm(struct doctor *doctor, struct jvm *jvm)
{
    static const struct mapped_name name = {.prefix = "libjvm", .suffix = ".so"};
    struct elf_answers libjvm = {0};
    char path[PATH_MAX];
    char remedy[128];
    if (process_mapped_file(&jvm->target.process, &name, path)) {
        libjvm = ask_elf(-1, path); /* the one that it runs, which may have no name any more */
    } else if (process_mapped(&jvm->target.process, &name, path)) {
        libjvm = ask_elf(jvm->target.root, path);
    }
    if (!libjvm.is_sound) {
        doctor_poor(doctor, "run as root; if it was replaced or removed, restart the JVM",
                    "libjvm.so cannot be read");
    } else if (!libjvm.has_structs) {
        doctor_poor(doctor, "use a HotSpot JVM of JDK 8 or later",
                    "libjvm.so does not describe its structures: no tiers, no frame sizes, no "
                    "names of interpreted frames");
    } else if (!libjvm.has_symbols) {
        snprintf(remedy, sizeof remedy, "install its debug symbols (Debian: openjdk-%d-dbg)",
                 jvm->target.java);
        doctor_poor(doctor, remedy,
                    "libjvm.so is stripped: the JVM's own frames (compiler, GC) have no names");
    } else {
        doctor_good(doctor, "it has its structures and symbols");
    }
}

static bool look_for_musl(void *found, struct process_mapping *mapping)
{
    *(bool *)found |= strstr(mapping->file.path, "/ld-musl-") != NULL;
    return true;
}

static bool is_musl(const struct jvm *jvm)
{
    char name[64];
    char path[PATH_MAX];
    bool found = false;
    snprintf(name, sizeof name, "%d/maps", (int)jvm->target.process.pid);
    kernel_path(name, path);
    process_mappings(open(path, O_RDONLY | O_CLOEXEC), look_for_musl, &found);
    return found;
}

static void check_libc(struct doctor *doctor, struct jvm *jvm)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)jvm->target.process.pid);
    struct elf_answers agent = ask_elf(-1, live_agent());
    struct elf_answers java = agent.is_sound ? ask_elf(-1, path) : agent;
    if (agent.needs_glibc && is_musl(jvm)) {
        doctor_bad(doctor, "build the agent with musl-gcc (CC=musl-gcc cmake …)",
                   "the JVM runs on musl, the agent was built for glibc");
    } else if (java.is_sound && java.machine != agent.machine) {
        doctor_bad(doctor, "build the agent for it",
                   "the agent is built for another machine than the JVM (ELF machines %u and %u)",
                   java.machine, agent.machine);
    } else {
        doctor_good(doctor, "the agent fits the JVM's libc and machine");
    }
}

static void check_session(struct doctor *doctor, struct jvm *jvm)
{
    char remedy[32];
    if (is_silent(doctor, jvm)) {
        return;
    }
    if (!jvm->told) {
        doctor_poor(doctor, "try again; another command may be at work",
                    "the agent in it does not answer");
    } else if (jvm->status.failed) {
        snprintf(remedy, sizeof remedy, "jdperf stop %d", (int)jvm->target.process.pid);
        doctor_poor(doctor, remedy, "a session failed: %s", jvm->status.text);
    } else {
        doctor_good(doctor, "%s", jvm->status.text);
    }
}

/* CRaC's JVMs: a checkpoint finds every open descriptor, the dump's too, and fails; what a restored
 * process goes on with are the clock and the address space of another. */
static void check_checkpoint(struct doctor *doctor, struct jvm *jvm)
{
    const struct live_process *process = &jvm->target.process;
    char remedy[128];
    if (!process_has_argument(process, "-XX:CRaCCheckpointTo=") &&
        !process_has_argument(process, "-XX:CRaCRestoreFrom=")) {
        doctor_good(doctor, "CRaC is not in use");
        return;
    }
    snprintf(remedy, sizeof remedy,
             "jdperf stop %d before the checkpoint, a new session after the restore",
             (int)process->pid);
    doctor_poor(
        doctor, remedy,
        "CRaC: an open dump makes a checkpoint fail, and a session does not survive a restore");
}

/* In the place that a session would take. */
static void check_space(struct doctor *doctor, struct jvm *jvm)
{
    struct staging staging;
    char room[TEXT_SIZE_MAX];
    int file;
    if (target_is_like_us(&jvm->target)) {
        doctor_good(doctor, "its dump goes into the profile's directory");
        return;
    }
    int before = divert_errors(&file);
    int err = staging_plan(&staging, &jvm->target, NULL);
    if (!err && staging.noexec) {
        err = staging_refuse_noexec(&jvm->target);
    }
    restore_errors(before, file, jvm->words, sizeof jvm->words);
    int place = (int)(strrchr(staging.path, '/') - staging.path);
    if (err) {
        tell_words(doctor, jvm);
    } else if (staging.room < STAGING_ENOUGH) {
        text_size(staging.room, room);
        doctor_bad(doctor, "free some space in its /tmp, /var/tmp or /dev/shm",
                   "its %.*s has the most room for its dump: %s", place, staging.path, room);
    } else {
        doctor_good(doctor, "its dump goes into its %.*s", place, staging.path);
    }
    staging_close(&staging);
}

void doctor_examine_jvm(struct doctor *doctor, const char *word)
{
    static const struct {
        const char *name;
        void (*check)(struct doctor *doctor, struct jvm *jvm);
    } checks[] = {
        {"jdk", check_jdk},
        {"attach", check_attach},
        {"dynamic loading", check_loading},
        {"frame pointers", check_frame_pointers},
        {"exact lines", check_lines},
        {"libjvm", check_libjvm},
        {"libc", check_libc},
        {"session", check_session},
        {"checkpoint", check_checkpoint},
        {"space for it", check_space},
    };
    struct jvm *jvm = calloc(1, sizeof *jvm);
    doctor->check = "process";
    if (!jvm) {
        doctor_bad(doctor, "free some memory", "%s", strerror(ENOMEM));
        return;
    }
    if (find(doctor, jvm, word)) {
        ask(doctor, jvm);
        for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
            doctor->check = checks[i].name;
            checks[i].check(doctor, jvm);
        }
        target_close(&jvm->target);
    }
    free(jvm);
}
