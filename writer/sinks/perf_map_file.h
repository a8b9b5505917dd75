/*
 * A perf map that may be changed: a text file of lines "START SIZE NAME", bare hex, single spaces,
 * none of which overlaps another, not even for a moment.
 *
 * Readers take the map as the truth for the whole run, so a range that is used again has to lose
 * its old line before it gets the new one. The old line is blanked in place, with newlines, which
 * all readers skip; then the new one is appended, in one write, with what the old code has left at
 * its sides. When blanks make up more than half of the file it is written anew without them and
 * renamed into its place. So each line is written, blanked and copied a bounded number of times,
 * whatever comes and goes.
 *
 * A process that is killed leaves a true map: at worst the line that was just being replaced is
 * missing. Not thread-safe.
 */
#ifndef JD_WRITER_PERF_MAP_FILE_H
#define JD_WRITER_PERF_MAP_FILE_H

#include "writer/buffer.h"
#include "writer/occupancy/range_map.h"
#include "writer/output_file.h"

struct perf_map_file {
    struct output_file file;
    struct range_map *lines; /* what is in the file, and where */
    struct buffer text;      /* what perf_map_file_commit appends */
    struct buffer name;      /* of the line that is being cut, moved or copied */
    struct buffer blanks;
    struct buffer moved;
    uint64_t blank_bytes;
    uint64_t compact_at; /* blank bytes that make the next compaction worth trying */
    uint64_t reserve; /* of the disk, which a second file leaves free (disk_room.h); 0 at first */
};

/* Creates the map, in the place of a stale one: readers know it by this name alone, and one that is
 * nobody's any more would be taken for ours. 0 or a negative errno after a message. */
int perf_map_file_create(struct perf_map_file *map, const char *path);

/*
 * Gives a range a name, taking it from the lines that have a part in it now. In the file after the
 * next commit. Control characters in the name turn into '?'. An empty range has no line. 0 or a
 * negative errno: without memory this line only is missing, other errors end the map.
 */
int perf_map_file_put(struct perf_map_file *map, struct range range, const char *name);

/* Moves the names of a range's code to where it is now. In the file after the next commit. */
int perf_map_file_move(struct perf_map_file *map, struct range from, uint64_t to);

/* Writes what was put since the last time. 0, or a negative errno: the map has ended, or, where its
 * file outlives a full disk and that is what was met, all is as before the call. */
int perf_map_file_commit(struct perf_map_file *map);

/* Leaves the file complete and without blanks, closes it and frees what belongs to the struct. */
void perf_map_file_close(struct perf_map_file *map);

/* Frees what belongs to the struct and leaves the file alone, as in a fork of the process. */
void perf_map_file_abandon(struct perf_map_file *map);

#endif
