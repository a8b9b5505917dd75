/*
 * jdtool with a hole in each of its parsers, for shell.jdperf_confined: who feeds it a dump, an ELF
 * file or saved samples has it do what an attacker would. What succeeds is told, and so that there
 * was an attempt.
 */
#include "jdtool/jitdump/code_index.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/pipeline/replay.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

static void attempt(const char *what, bool succeeded)
{
    if (succeeded) {
        fprintf(stderr, "jdtool: planted: ESCAPED: %s\n", what);
    }
}

static void planted(const char *parser)
{
    static bool done;
    const char *mark = getenv("JDAGENT_PLANTED");
    char command[512];
    if (done || !mark || !*mark) {
        return;
    }
    done = true;
    snprintf(command, sizeof command, "touch '%s.system'", mark);
    attempt("system", system(command) == 0);
    snprintf(command, sizeof command, "%s.file", mark);
    attempt("a new file", open(command, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0);
    attempt("another file", open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0);
    attempt("a socket", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
    attempt("ptrace", ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) == 0);
    attempt("a process", fork() >= 0);
    attempt("a program", execl("/bin/true", "true", NULL) >= 0);
    snprintf(command, sizeof command, "/proc/%d/mem", (int)getppid());
    attempt("its parent's memory", open(command, O_RDWR | O_CLOEXEC) >= 0);
    fprintf(stderr, "jdtool: planted: tried in %s\n", parser);
}

/* What is tried does succeed where nothing holds it. */
__attribute__((constructor)) static void control(void)
{
    if (getenv("JDAGENT_PLANTED_CONTROL")) {
        planted("no parser at all");
    }
}

int __real_code_index_open(const char *path, struct code_index **out);
int __wrap_code_index_open(const char *path, struct code_index **out);
int __wrap_code_index_open(const char *path, struct code_index **out)
{
    planted("a dump");
    return __real_code_index_open(path, out);
}

/* Of a JVM that runs; one whose path has that text in it is read no further, or takes 300 MB. */
int __real_code_index_follow(const char *path, int fd, struct code_index **out);
int __wrap_code_index_follow(const char *path, int fd, struct code_index **out);
int __wrap_code_index_follow(const char *path, int fd, struct code_index **out)
{
    const char *crashes = getenv("JDAGENT_PLANTED_CRASH");
    planted("a growing dump");
    if (crashes && strstr(path, crashes)) {
        abort();
    }
    const char *grows = getenv("JDAGENT_PLANTED_GROWS");
    static char *volatile much; /* else the compiler leaves it out */
    if (grows && strstr(path, grows) && (much = malloc(300 << 20)) != NULL) {
        memset(much, 1, 300 << 20);
    }
    return __real_code_index_follow(path, fd, out);
}

size_t __real_elf_file_build_id(const struct elf_file *file, uint8_t id[BUILD_ID_MAX]);
size_t __wrap_elf_file_build_id(const struct elf_file *file, uint8_t id[BUILD_ID_MAX]);
size_t __wrap_elf_file_build_id(const struct elf_file *file, uint8_t id[BUILD_ID_MAX])
{
    planted("an ELF file");
    return __real_elf_file_build_id(file, id);
}

bool __real_elf_file_symbol(const struct elf_file *file, const char *section, const char *name,
                            GElf_Sym *symbol);
bool __wrap_elf_file_symbol(const struct elf_file *file, const char *section, const char *name,
                            GElf_Sym *symbol);
bool __wrap_elf_file_symbol(const struct elf_file *file, const char *section, const char *name,
                            GElf_Sym *symbol)
{
    planted("a table of symbols");
    return __real_elf_file_symbol(file, section, name, symbol);
}

int __real_replay_run(const struct replay_options *options, struct sample_sink *sink);
int __wrap_replay_run(const struct replay_options *options, struct sample_sink *sink);
int __wrap_replay_run(const struct replay_options *options, struct sample_sink *sink)
{
    planted("saved samples");
    return __real_replay_run(options, sink);
}
