#include "jdtool/live/command.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int command_check(char *const *arguments)
{
    const char *name = arguments[0];
    if (program_exists(name)) {
        return 0;
    }
    bool is_java = strcmp(basename(name), "java") == 0 || strcmp(basename(name), "javac") == 0;
    error_message("failed to run %s: no such command%s", name,
                  is_java ? ": apt-get install openjdk-17-jdk-headless, or give the path of a java"
                          : " (to name a JVM that runs: -p NAME)");
    return -ENOENT;
}

/* ---- The agent in it ---- */

/* `env A=B java …` runs java too: where java stands, or count. */
static unsigned java_at(char *const *arguments, unsigned count)
{
    unsigned i = 0;
    if (strcmp(basename(arguments[0]), "env") == 0) {
        for (i = 1; i < count && strchr(arguments[i], '='); i++) {
        }
    }
    return i < count && strcmp(basename(arguments[i]), "java") == 0 ? i : count;
}

/*
 * The JVM itself writes a CDS archive or an AOT cache: HotSpot then ends at a native agent, or,
 * with AOTMode=create, does not load it ("CDS dumping does not support native JVMTI agent",
 * JvmtiAgent::load). Such a word behind the main class is the program's, and is taken for one of
 * these.
 */
static const char *const archive_words[] = {"-Xshare:dump", "-XX:ArchiveClassesAtExit=",
                                            "-XX:+AutoCreateSharedArchive", "-XX:AOTMode=create"};
enum { ARCHIVE_WORDS = sizeof archive_words / sizeof *archive_words };

static bool writes_archive(char *const *arguments)
{
    for (; *arguments; arguments++) {
        for (size_t i = 0; i < ARCHIVE_WORDS; i++) {
            if (strncmp(*arguments, archive_words[i], strlen(archive_words[i])) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool command_writes_archive(const struct live_process *process)
{
    for (size_t i = 0; i < ARCHIVE_WORDS; i++) {
        if (process_has_argument(process, archive_words[i])) {
            return true;
        }
    }
    return false;
}

static int add_to_arguments(struct command *command, char *const *arguments, unsigned count,
                            unsigned java)
{
    command->arguments = calloc(count + 5, sizeof *command->arguments);
    if (!command->arguments) {
        return -ENOMEM;
    }
    unsigned used = 0;
    for (unsigned i = 0; i < count; i++) {
        command->arguments[used++] = arguments[i];
        for (unsigned word = 0; i == java && word < 4 && command->option_words[word]; word++) {
            command->arguments[used++] = command->option_words[word];
        }
    }
    return 0;
}

/* Where the agent's file is elsewhere or not at all: a JVM that is to load it ends. */
static bool changes_root(char *const *arguments)
{
    while (*arguments && strcmp(basename(*arguments), "chroot") != 0) {
        arguments++;
    }
    return *arguments;
}

/* HotSpot parts JAVA_TOOL_OPTIONS at white space, but for what stands in quotes. */
static int add_to_environment(struct command *command, char *const *arguments, unsigned count)
{
    const char *before = getenv("JAVA_TOOL_OPTIONS");
    char *text = strdup(before ? before : "");
    for (unsigned i = 0; text && i < 4 && command->option_words[i]; i++) {
        const char *word = command->option_words[i];
        const char *quote = strpbrk(word, " \t") ? "\"" : "";
        char *longer = NULL;
        int n = asprintf(&longer, "%s%s%s%s%s", text, *text ? " " : "", quote, word, quote);
        free(text);
        text = n < 0 ? NULL : longer;
    }
    if (!text) {
        return -ENOMEM;
    }
    command->tool_options = text;
    info_message("passing the agent to every JVM that %s starts, through JAVA_TOOL_OPTIONS",
                 basename(arguments[0]));
    return add_to_arguments(command, arguments, count, count);
}

static int add_agent(struct command *command, char *const *arguments, const char *agent,
                     const char *agent_options, bool frame_pointers)
{
    unsigned words = 0;
    unsigned count = 0;
    char *agent_word = NULL;
    if (!arguments[0]) {
        return -EINVAL;
    }
    if (asprintf(&agent_word, "-agentpath:%s=%s", agent, agent_options) < 0) {
        return -ENOMEM;
    }
    /* An attached agent cannot switch DebugNonSafepoints on for code that is there already, and a
     * user's own later -XX:-… still wins. */
    command->option_words[words++] = strdup("-XX:+UnlockDiagnosticVMOptions");
    command->option_words[words++] = strdup("-XX:+DebugNonSafepoints");
    if (frame_pointers) {
        command->option_words[words++] = strdup("-XX:+PreserveFramePointer");
    }
    command->option_words[words++] = agent_word;
    for (unsigned i = 0; i < words; i++) {
        if (!command->option_words[i]) {
            return -ENOMEM;
        }
    }
    while (arguments[count]) {
        count++;
    }
    unsigned java = java_at(arguments, count);
    if (java < count && writes_archive(arguments + java)) {
        info_message("HotSpot loads no agent into a JVM that writes a CDS archive or an AOT cache: "
                     "generated code will have no names");
        return add_to_arguments(command, arguments, count, count);
    }
    if (java == count && changes_root(arguments)) {
        info_message("the agent is not in the new root: attaching to each JVM that has started");
        return add_to_arguments(command, arguments, count, count);
    }
    return java < count ? add_to_arguments(command, arguments, count, java)
                        : add_to_environment(command, arguments, count);
}

/* Beside a java that may be a link. */
static bool libjvm_of(const char *java, char path[PATH_MAX])
{
    static const char *const places[] = {"lib/server", "jre/lib/amd64/server",
                                         "jre/lib/aarch64/server", "lib/amd64/server",
                                         "lib/aarch64/server"};
    char real[PATH_MAX];
    if (!realpath(java, real)) {
        return false;
    }
    for (int up = 0; up < 2; up++) { /* bin/java */
        char *slash = strrchr(real, '/');
        if (!slash) {
            return false;
        }
        *slash = '\0';
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int size = snprintf(path, PATH_MAX, "%s/%s/libjvm.so", real, places[i]);
        if (size < PATH_MAX && access(path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool command_libjvm(char *const *arguments, char path[PATH_MAX])
{
    const char *home = getenv("JAVA_HOME");
    char java[PATH_MAX];
    unsigned count = 0;
    while (arguments[count]) {
        count++;
    }
    unsigned at = count ? java_at(arguments, count) : 0;
    if (at < count) {
        return program_find(arguments[at], java) && libjvm_of(java, path);
    }
    if (count && program_find(arguments[0], java) && libjvm_of(java, path)) {
        return true; /* another program of a JDK: javac */
    }
    if (home && *home && snprintf(java, sizeof java, "%s/bin/java", home) < PATH_MAX &&
        libjvm_of(java, path)) {
        return true;
    }
    return program_find("java", java) && libjvm_of(java, path);
}

/* ---- Holding it ---- */

struct hold {
    int read_end, write_end;
    const char *tool_options;
};

/* In the child: waits for the word. Its end means that we have died. */
static int wait_for_go(void *context)
{
    const struct hold *hold = context;
    char word = 0;
    close(hold->write_end);
    while (read(hold->read_end, &word, 1) < 0 && errno == EINTR) {
    }
    if (hold->tool_options && setenv("JAVA_TOOL_OPTIONS", hold->tool_options, 1) != 0) {
        return 125;
    }
    return word == 'g' ? 0 : 125;
}

int command_start(struct command *command, char *const *arguments, const char *agent,
                  const char *agent_options, bool frame_pointers)
{
    int go[2];
    *command = (struct command){.child = NO_CHILD, .go = -1};
    int err = add_agent(command, arguments, agent, agent_options, frame_pointers);
    if (!err && pipe2(go, O_CLOEXEC) != 0) {
        err = -errno;
    } else if (!err) {
        struct hold hold = {go[0], go[1], command->tool_options};
        struct child_options options = {
            .arguments = command->arguments,
            .in = STDIN_FILENO,
            .out = STDOUT_FILENO,
            .err = STDERR_FILENO,
            .prepare = wait_for_go,
            .context = &hold,
        };
        err = child_start(&command->child, &options);
        close(go[0]);
        command->go = go[1];
    }
    if (err) {
        failed_to(err, "start %s", arguments[0]);
        command_free(command);
    }
    return err;
}

void command_let_go(struct command *command)
{
    (void)!write(command->go, "g", 1);
    close(command->go);
    command->go = -1;
}

void command_free(struct command *command)
{
    if (command->go >= 0) {
        close(command->go);
        command->go = -1;
        if (command->child.pidfd >= 0) {
            struct waiting patient = {.signals = -1};
            (void)child_wait(&command->child, &patient, deadline_in(2000), false);
            child_end(&command->child);
        }
    }
    descriptor_close(command->child.pidfd);
    free(command->arguments);
    free(command->tool_options);
    for (unsigned i = 0; i < 4; i++) {
        free(command->option_words[i]);
    }
    *command = (struct command){.child = NO_CHILD, .go = -1};
}
