/*
 * What a process that reads others' data may have opened for it (confined.h): what its command line
 * names, files that are what profiles consist of, and what the system tells everybody. The one
 * place where it says so.
 */
#ifndef JD_TOOL_RIGHTS_H
#define JD_TOOL_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct rights;

/* None. NULL: there is no memory. */
struct rights *rights_new(void);
void rights_free(struct rights *rights);

/* An open directory (borrowed) is what this absolute path means from now on, here and to the
 * process, whatever stands at the path by then. */
void rights_hold(struct rights *rights, const char *path, int directory);

/* It is to be closed, and its path means nothing more than any other's. */
void rights_let_go(struct rights *rights, int directory);

/* Whether this open directory is a process' that is held: its root and its memory may be read. */
bool rights_hold_process(const struct rights *rights, int directory);

/* What is to be held, said by a command line: "FD:PATH". False: it says something else. */
bool rights_hold_word(struct rights *rights, const char *word);

/* The directory so held that the path leads into, and in *rest how it goes on; -1: none. */
int rights_held(const struct rights *rights, const char *path, const char **rest);

/* A file, or a directory with what is below it, may be read. So may a file that is not there
 * yet. NULL and "-" add nothing, here and below. */
void rights_read(struct rights *rights, const char *path);

/* The same of each of several, parted by ':'. */
void rights_read_list(struct rights *rights, const char *paths);

/* Where perf keeps copies of files: NULL: its default. */
void rights_read_objects(struct rights *rights, const char *build_id_dir);

/* A file at this path may be made, replaced and removed, and what is written for it beside it:
 * names that go on with a '.' or a '-'. Its directory is held from now on: later a link in its path
 * leads nowhere else. */
void rights_write(struct rights *rights, const char *path);

/* perf.data: and the images beside it, whose names begin as its own does without its ending. */
void rights_write_images(struct rights *rights, const char *path);

/* All that the words of a command line name may be read, and the one behind -o be written. */
void rights_of_words(struct rights *rights, char *const *words);

/* Whether this file, which is open for reading, or this directory may be read. */
bool rights_may_read(const struct rights *rights, int fd, const struct stat *status);

/*
 * The directory to be written into, a descriptor of ours, where such a file may be made, or -1;
 * name NULL: a file without one. It is called as it was given, or by its absolute path; whatever is
 * at that path by now, what was there when it was given is meant. `status` is that of another name
 * of it, NULL: it has none.
 */
int rights_writable(const struct rights *rights, const char *directory, const struct stat *status,
                    const char *name);

#endif
