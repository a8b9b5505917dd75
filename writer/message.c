#include "writer/message.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int max_level = MESSAGE_WARNING;

static const char *_Atomic program = "jdagent";

void message_set_program(const char *name)
{
    atomic_store_explicit(&program, name, memory_order_relaxed);
}

void message_set_level(int level)
{
    atomic_store_explicit(&max_level, level, memory_order_relaxed);
}

void message(enum message_level level, const char *format, ...)
{
    if ((int)level > atomic_load_explicit(&max_level, memory_order_relaxed)) {
        return;
    }
    char line[2048];
    int prefix =
        snprintf(line, sizeof(line), "%s: ", atomic_load_explicit(&program, memory_order_relaxed));
    size_t room = sizeof(line) - (size_t)prefix - 1; /* leaves a byte for the newline */
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line + prefix, room, format, args);
    va_end(args);
    if (n < 0) {
        return;
    }
    size_t length = (size_t)prefix + ((size_t)n < room ? (size_t)n : room - 1);
    line[length++] = '\n';
    /* Not stdio: its lock and buffer belong to the process we live in. A lost message is no harm.
     */
    ssize_t ignored = write(STDERR_FILENO, line, length);
    (void)ignored;
}
