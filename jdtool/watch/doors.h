/*
 * How a watch is asked how it stands: by jdperf watch --status, through a socket in a directory
 * that only its user can write to (/run/jdagent of root's, else jdagent in XDG_RUNTIME_DIR) and
 * that answers him and root alone; and by Prometheus, over HTTP. Both ends of the socket ask the
 * kernel who the other is. Without such a directory the watch runs, and cannot be asked.
 */
#ifndef JD_TOOL_WATCH_DOORS_H
#define JD_TOOL_WATCH_DOORS_H

#include <limits.h>
#include <poll.h>
#include <stddef.h>

#define DOORS_MAX 10 /* descriptors to be polled */

struct doors;

/* What is answered: text for the caller to free, or NULL. */
struct doors_options {
    const char *name;   /* of the watch, "": the only one of its user */
    const char *listen; /* "[ADDRESS:]PORT", 127.0.0.1 unless said; NULL: nobody */
    char *(*status)(void *context);
    char *(*metrics)(void *context);
    void *context;
};

/* -EADDRINUSE: such a watch runs already. 0 or a negative errno after a message; options are
 * kept. */
int doors_open(const struct doors_options *options, struct doors **out);
void doors_close(struct doors *doors); /* NULL is fine */

/* The port that metrics are had from; 0: none. */
unsigned doors_port(const struct doors *doors);

/* Fills in what is to be polled, DOORS_MAX at most; and answers who has come. */
size_t doors_descriptors(const struct doors *doors, struct pollfd *descriptors);
void doors_turn(struct doors *doors);

/* Prints what the watch of that name answers. 0 or a negative errno after a message. */
int doors_ask(const char *name);

#endif
