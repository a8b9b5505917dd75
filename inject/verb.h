/*
 * jdtool's verbs. Each gets the arguments behind its name, prints to stdout and returns jdtool's
 * exit status.
 */
#ifndef JD_INJECT_VERB_H
#define JD_INJECT_VERB_H

enum exit_status {
    STATUS_DONE = 0,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
};

int verb_dump(int argc, char **argv);
int verb_verify(int argc, char **argv);
int verb_stat(int argc, char **argv);
int verb_map(int argc, char **argv);
int verb_repair(int argc, char **argv);
int verb_inject(int argc, char **argv);
int verb_unwind(int argc, char **argv);

#endif
