/*
 * The one way to tell the user something: "jdagent: failed to X for Y: reason" on stderr. Never on
 * stdout, which belongs to the program we live in.
 */
#ifndef JD_WRITER_MESSAGE_H
#define JD_WRITER_MESSAGE_H

enum message_level {
    MESSAGE_ERROR = 0,
    MESSAGE_WARNING = 1, /* the default of `verbose` */
    MESSAGE_INFO = 2,
    MESSAGE_DEBUG = 3,
    MESSAGE_EVENT = 4, /* a line for each JVM event */
};

/* Who speaks, "jdagent" by default. The name, a short one, has to live as long as the process. */
void message_set_program(const char *name);

/* Messages above this level are left out. */
void message_set_level(int level);

/* Formats one line and writes it in one go, so that lines of several threads never mix. */
void message(enum message_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
