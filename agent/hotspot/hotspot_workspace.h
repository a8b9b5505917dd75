/*
 * Memory to read methods into, used again and again. The inside of agent/hotspot/hotspot.h.
 */
#ifndef JD_AGENT_HOTSPOT_WORKSPACE_H
#define JD_AGENT_HOTSPOT_WORKSPACE_H

#include "agent/hotspot/hotspot_fields.h"
#include "writer/array.h"

/* What is being read of one method. */
struct raw_method {
    uint64_t address;      /* of the Method */
    uint64_t const_method; /* its address */
    const char *copy;      /* of the ConstMethod, with bytecodes and lines, or itself */
    size_t size;           /* of it */
    uint64_t pool;         /* its ConstantPool's address */
    size_t pool_copy;      /* the small piece that has a copy of its head */
    uint64_t symbols[2];   /* addresses: name, descriptor */
    int64_t lengths[2];    /* of them */
    int64_t access;        /* flags, JVMS 4.6 */
};

struct hotspot_workspace {
    struct hotspot_method *methods;
    struct raw_method *raw;
    struct memory_piece *pieces;
    char *small; /* SMALL_PIECE bytes for each piece */
    size_t room, raw_room, piece_room, small_room;
    uint64_t *array;   /* the Methods of classes, one class's behind another's */
    uint64_t *holders; /* the Klass of each */
    size_t array_room, holder_room;
    char *copies; /* ConstMethods */
    size_t copies_room;
    char *text;
    size_t text_room;
    struct line_entry *lines;
    size_t line_count, line_room;
};

/* A copy of a Method's or ConstMethod's head is no larger; nor is a ConstantPool's. */
enum { SMALL_PIECE = 96 };

/*
 * Reads the methods at these addresses into methods->methods. `holders` are what their constant
 * pools have to belong to; NULL: anything. False: one of them is not to be had, or no memory.
 */
bool hotspot_read_methods(struct hotspot *hotspot, const uint64_t *addresses,
                          const uint64_t *holders, size_t count, bool brief,
                          struct hotspot_methods *methods);

/* The workspace, made at the first use; NULL: no memory. */
struct hotspot_workspace *hotspot_workspace(struct hotspot_methods *methods);

/* ---- What reading many (hotspot_method.c) and reading one (hotspot_one.c) have in common ---- */

/* Whether all is known that reading methods takes. */
bool hotspot_has_method_fields(const struct hotspot *hotspot);

/* Room for so many methods. On failure what is there stays. */
bool hotspot_reserve_methods(struct hotspot_workspace *space, size_t count);

/* How many bytes of an object these two fields take. */
size_t hotspot_reach(const struct hotspot *hotspot, enum field one, enum field other);

/* A ConstMethod's size in bytes, told by its head; 0: that makes no sense. */
size_t hotspot_const_method_size(const struct hotspot *hotspot, const char *head);

/* Fills in space->methods, but for the names, out of space->raw. False: its lines make no sense. */
bool hotspot_finish_methods(const struct hotspot *hotspot, struct hotspot_workspace *space,
                            size_t count);

#endif
