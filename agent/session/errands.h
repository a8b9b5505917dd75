/*
 * What the JVM is to be asked for by threads that may not ask it themselves: those that it does not
 * know, those that wait for nothing, those in a callback. Each errand is run by a thread of our
 * own, which becomes one of the JVM's for as long as it takes.
 *
 * No thread becomes one of the JVM's before VMInit: HotSpot lets it, and crashes, for its heap and
 * its own first thread are still in the making (jni_AttachCurrentThread asks only whether somebody
 * has begun to create a JVM). An errand from before that is remembered.
 */
#ifndef JD_AGENT_ERRANDS_H
#define JD_AGENT_ERRANDS_H

#include <jni.h>
#include <stdbool.h>

enum errand {
    ERRAND_TABLE,   /* of all methods: their table begins anew */
    ERRAND_METHODS, /* of those that have not been told of: what was there before the session */
    ERRAND_ALL,     /* of all code, and of the methods that have not been told of */
    ERRAND_END,     /* the session has failed */
};

/* Bits of 1 << enum errand. */
typedef unsigned errands;

/*
 * Runs errands, control held, on a thread of the JVM's. Returns those that cannot be done yet,
 * which are tried again.
 */
typedef errands errands_runner(errands errands);

/* Whose JVM it is, and who runs them; before any other call. */
void errands_prepare(JavaVM *vm, errands_runner *run);

/* The JVM is past VMInit, or has just got there: what was remembered is seen to. */
void errands_live(void);

/* On any thread; waits for nothing. False: no thread could be had; it is to be asked for again. */
bool errands_want(enum errand errand);

/* Control is held: none is wanted any more, for whose they were has ended. */
void errands_forget(void);

/* Makes the calling thread one of the JVM's, for DetachCurrentThread to undo. False: before VMInit,
 * and where the JVM refuses. A JVM that ends keeps it waiting for good. */
bool errands_attach(const char *name);

/* Whether the JVM is past VMInit, as far as we know. */
bool errands_are_live(void);

#endif
