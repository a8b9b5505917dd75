/*
 * oracle-check DUMP ORACLE: holds a dump against what the oracle wrote down in the same JVM.
 * oracle-check --held DUMP LOG: the dump holds every blob of the oracle's log.
 * oracle-check --live DUMP LOG TIME [EXCUSES]: the dump holds the blobs that live at its start or
 * came later: all that the log has alive at that time, ns, and none that was gone before the dump.
 * A line CLASS.METHOD of EXCUSES lets one piece of this method be missing.
 *
 * Rows: for every byte of every compiled method up to its last PCStackInfo, the dump's row must
 * give the file and line of the innermost frame of the first PCStackInfo whose pc is above the
 * byte. Inlines: for every PCStackInfo, the trailer's stack over the code that it describes must be
 * the oracle's: each frame's method and line.
 *
 * Strays: in C2's code a PCStackInfo at a call of which another one has the inlined method, and
 * that ends behind no call instruction, is HotSpot's mistake (agent/methods/inlines.c). What must
 * be there is what the PCStackInfos around it have in common.
 *
 * Prints the figures, the first differences, and exits 1 when row truth is below 99.99 % of the
 * bytes, one inline stack differs, or a method is missing on either side.
 */
#include "hotspot/call.h"
#include "jdtool/jitdump/code_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH  64
#define MAX_SHOWN  8 /* differences of each kind */
#define MAX_FIELDS 7

static struct {
    uint64_t methods, missing, wrong_name, stubs;
    uint64_t under_way; /* 1: the last method, of which the JVM told when it died */
    uint64_t bytes, bytes_right, bytes_silent, bytes_behind;
    uint64_t stacks, stacks_right, frames;
    uint64_t strays, stray_bytes;
} count;
static unsigned shown[128]; /* by the kind's letter */

/* One frame as the oracle or the dump has it. */
struct frame {
    char method[2048];
    char file[1024]; /* "": unknown */
    uint32_t line;
    int bci; /* oracle only */
};

/* The dump's blobs by address, then by order in the file. */
struct place {
    uint64_t address;
    uint32_t blob;
    bool used;
};

static struct place *places;
static uint32_t last_taken; /* what comes behind it came behind the oracle's end */
static uint32_t place_count;
static struct code_index *dump;
static struct code_details details;

static bool show(char kind)
{
    return shown[(unsigned char)kind % 128]++ < MAX_SHOWN;
}

/* Appends the Java spelling of one type of a descriptor; returns what follows it. */
static const char *append_type(char *to, size_t room, const char *type)
{
    static const char *const primitives[] = {"Bbyte", "Cchar",  "Ddouble",  "Ffloat", "Iint",
                                             "Jlong", "Sshort", "Zboolean", "Vvoid"};
    unsigned dimensions = 0;
    while (*type == '[') {
        dimensions++;
        type++;
    }
    size_t at = strlen(to);
    if (*type == 'L') {
        for (type++; *type != '\0' && *type != ';'; type++) {
            if (at + 1 < room) {
                to[at++] = *type == '/' ? '.' : *type;
            }
        }
        to[at] = '\0';
    } else {
        for (size_t i = 0; i < sizeof primitives / sizeof primitives[0]; i++) {
            if (primitives[i][0] == *type) {
                at += (size_t)snprintf(to + at, room - at, "%s", primitives[i] + 1);
            }
        }
    }
    while (dimensions-- > 0 && at + 3 < room) {
        at += (size_t)snprintf(to + at, room - at, "[]");
    }
    return *type == '\0' ? type : type + 1;
}

static void java_name(char *to, size_t room, const char *class_signature, const char *name,
                      const char *signature)
{
    to[0] = '\0';
    append_type(to, room, class_signature);
    size_t at = strlen(to);
    snprintf(to + at, room - at, ".%s(", name);
    const char *type = signature + 1;
    for (bool first = true; *type != '\0' && *type != ')'; first = false) {
        if (!first) {
            strncat(to, ",", room - strlen(to) - 1);
        }
        type = append_type(to, room, type);
    }
    strncat(to, ")", room - strlen(to) - 1);
}

/* invokeBasic, linkToStatic...: made by HotSpot for every signature. */
static bool is_handle_intrinsic(const char *name)
{
    static const char *const starts[] = {"java.lang.invoke.MethodHandle.linkTo",
                                         "java.lang.invoke.MethodHandle.invokeBasic("};
    return strncmp(name, starts[0], strlen(starts[0])) == 0 ||
           strncmp(name, starts[1], strlen(starts[1])) == 0;
}

/*
 * Names that differ only in how the suffix of a hidden class is set off, or in blanks, are equal;
 * and all intrinsics of method handles, which have one jmethodID, so that the oracle, who has only
 * JVMTI to ask, knows just one of them. names.sh asks HotSpot otherwise.
 */
static bool same_name(const char *a, const char *b)
{
    if (is_handle_intrinsic(a) && is_handle_intrinsic(b)) {
        return true;
    }
    for (;; a++, b++) {
        while (*a == ' ') {
            a++;
        }
        while (*b == ' ') {
            b++;
        }
        char x = *a == '/' || *a == '+' ? '.' : *a;
        char y = *b == '/' || *b == '+' ? '.' : *b;
        if (x != y) {
            return false;
        }
        if (x == '\0') {
            return true;
        }
    }
}

static int by_address(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    if (x->address != y->address) {
        return x->address < y->address ? -1 : 1;
    }
    return x->blob < y->blob ? -1 : x->blob > y->blob;
}

static bool is_method(int64_t kind)
{
    return kind == JITDUMP_KIND_NMETHOD || kind == JITDUMP_KIND_NATIVE_WRAPPER;
}

/* The k-th method at an address is the k-th event there: both agents heard them in one order. */
static const struct code_blob *take(uint64_t address, uint64_t size)
{
    uint32_t low = 0;
    uint32_t high = place_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (places[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < place_count && places[low].address == address; low++) {
        if (places[low].used) {
            continue;
        }
        const struct code_blob *blob = code_index_blob(dump, places[low].blob);
        if (code_index_fetch(dump, places[low].blob, &details) != 0) {
            exit(1);
        }
        if (is_method(details.trailer.facts[JITDUMP_CODE_KIND]) && blob->size == size) {
            places[low].used = true;
            if (places[low].blob > last_taken) {
                last_taken = places[low].blob;
            }
            return blob;
        }
    }
    return NULL;
}

/* The dump's row at an offset, and where the next one begins. */
static const struct jitdump_entry *row_at(const struct code_blob *blob, uint64_t offset,
                                          uint64_t *next)
{
    static uint32_t row; /* within a blob the walk goes upwards */
    static const struct code_blob *last;
    if (blob != last) {
        last = blob;
        row = 0;
    }
    uint64_t address = blob->address + offset;
    while (row + 1 < details.entry_count && details.entries[row + 1].address <= address) {
        row++;
    }
    *next = UINT64_MAX;
    if (row + 1 < details.entry_count) {
        *next = details.entries[row + 1].address - blob->address;
    }
    if (details.entry_count == 0 || details.entries[row].address > address) {
        return NULL;
    }
    return &details.entries[row];
}

static void check_rows(const struct code_blob *blob, uint64_t from, uint64_t to,
                       const struct frame *leaf)
{
    if (leaf->line == 0 || leaf->file[0] == '\0') {
        count.bytes_silent += to - from; /* HotSpot has no line: nothing to hold the row against */
        return;
    }
    while (from < to) {
        uint64_t next = 0;
        const struct jitdump_entry *row = row_at(blob, from, &next);
        uint64_t end = next < to ? next : to;
        count.bytes += end - from;
        if (row != NULL && row->line == leaf->line && strcmp(row->file, leaf->file) == 0) {
            count.bytes_right += end - from;
        } else if (show('r')) {
            printf("row: %s+0x%" PRIx64 ": %s:%u, but HotSpot says %s:%u (bci %d)\n", blob->name,
                   from, row != NULL ? row->file : "(none)", row != NULL ? row->line : 0,
                   leaf->file, leaf->line, leaf->bci);
        }
        from = end;
    }
}

/* The dump's inline stack at an offset, innermost first. */
static uint32_t dump_stack(uint64_t offset, struct frame *stack, uint64_t *end)
{
    const struct trailer_range *range = trailer_range_at(&details.trailer, (uint32_t)offset);
    if (range == NULL) {
        return 0;
    }
    *end = (uint64_t)range->offset + range->size;
    uint32_t depth = 0;
    uint32_t line = range->line;
    for (uint32_t node = range->node; depth < MAX_DEPTH;) {
        const struct trailer_node *here = &details.trailer.nodes[node];
        const struct trailer_method *method =
            trailer_names_method(code_index_names(dump), here->method);
        snprintf(stack[depth].method, sizeof stack[depth].method, "%s", method->name);
        snprintf(stack[depth].file, sizeof stack[depth].file, "%s",
                 method->file != NULL ? method->file : "");
        stack[depth++].line = line;
        if (node == 0) {
            break;
        }
        line = here->call_line;
        node = here->parent;
    }
    return depth;
}

/* Without a line the file says nothing; of JDK 11's anonymous classes each has its own word for it.
 */
static bool same_frame(const struct frame *ours, const struct frame *theirs)
{
    return ours->line == theirs->line && same_name(ours->method, theirs->method) &&
           (ours->line == 0 || strcmp(ours->file, theirs->file) == 0);
}

static void check_stack(const struct code_blob *blob, uint64_t from, uint64_t to,
                        const struct frame *truth, uint32_t depth)
{
    static struct frame ours[MAX_DEPTH];
    count.stacks++;
    count.frames += depth;
    for (uint64_t at = from, end = to; at < to; at = end) {
        uint32_t found = dump_stack(at, ours, &end);
        uint32_t same = 0;
        while (same < found && same < depth && same_frame(&ours[same], &truth[same])) {
            same++;
        }
        if (found != depth || same != depth) {
            if (show('i')) {
                printf("inline: %s+0x%" PRIx64 ": frame %u of %u is %s:%u, but HotSpot says %s:%u "
                       "(bci %d), %u frames\n",
                       blob->name, at, same, found, same < found ? ours[same].method : "(none)",
                       same < found ? ours[same].line : 0,
                       same < depth ? truth[same].method : "(none)",
                       same < depth ? truth[same].line : 0, same < depth ? truth[same].bci : 0,
                       depth);
            }
            return;
        }
    }
    count.stacks_right++;
}

static uint32_t split(char *line, char **fields)
{
    uint32_t n = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *field = line; field != NULL && n < MAX_FIELDS; n++) {
        fields[n] = field;
        field = strchr(field, '\t');
        if (field != NULL) {
            *field++ = '\0';
        }
    }
    return n;
}

static void broken(const char *line)
{
    fprintf(stderr, "oracle-check: failed to read the oracle: line '%s'\n", line);
    exit(1);
}

static void read_frames(FILE *oracle, struct frame *stack, uint32_t depth)
{
    static char line[8192];
    char *fields[MAX_FIELDS];
    for (uint32_t i = 0; i < depth; i++) {
        if (fgets(line, sizeof line, oracle) == NULL || split(line, fields) != 7) {
            broken(line);
        }
        struct frame *frame = &stack[i];
        java_name(frame->method, sizeof frame->method, fields[1], fields[2], fields[3]);
        bool known = strchr(fields[4], '?') == NULL;
        snprintf(frame->file, sizeof frame->file, "%s", known ? fields[4] : "");
        frame->line = (uint32_t)strtoul(fields[5], NULL, 10);
        frame->bci = (int)strtol(fields[6], NULL, 10);
    }
}

/* What the oracle has of one method. */
static struct told {
    uint64_t from, end;
    uint32_t depth;
    struct frame *stack; /* innermost first */
    bool stray;
} * told;
static uint32_t told_count;

static void tell(uint64_t from, uint64_t end, const struct frame *stack, uint32_t depth)
{
    static uint32_t room;
    if (told_count == room) {
        room = room == 0 ? 1024 : room * 2;
        told = realloc(told, room * sizeof *told);
    }
    struct frame *kept = told != NULL ? malloc(depth * sizeof *stack) : NULL;
    if (kept == NULL) {
        exit(1);
    }
    memcpy(kept, stack, depth * sizeof *stack);
    told[told_count++] = (struct told){from, end, depth, kept, false};
}

/* The k-th frame from the compiled method's on. */
static const struct frame *outer(const struct told *of, uint32_t k)
{
    return &of->stack[of->depth - 1 - k];
}

/* In how many methods, from the compiled one on, both are: called on the same lines. */
static uint32_t common_depth(const struct told *a, const struct told *b)
{
    uint32_t k = 0;
    while (k < a->depth && k < b->depth && strcmp(outer(a, k)->method, outer(b, k)->method) == 0 &&
           (k == 0 || outer(a, k - 1)->line == outer(b, k - 1)->line)) {
        k++;
    }
    return k;
}

static bool is_stray(const struct told *place)
{
    bool is = false;
    if (details.trailer.facts[JITDUMP_CODE_TIER] != 4 || place->stack[0].bci < 0 ||
        (details.bytes != NULL &&
         is_behind_call(code_index_header(dump)->elf_mach, details.bytes, (uint32_t)place->end))) {
        return false;
    }
    for (uint32_t i = 0; i < told_count && !is; i++) {
        is = told[i].depth > place->depth && common_depth(&told[i], place) == place->depth &&
             outer(&told[i], place->depth - 1)->bci == place->stack[0].bci;
    }
    return is;
}

/* Holds the method against what was told of it. */
static void judge(const struct code_blob *blob)
{
    const struct told *before = NULL; /* the last one that is none */
    uint32_t sure = 0;                /* the next one */
    for (uint32_t i = 0; i < told_count && blob != NULL; i++) {
        told[i].stray = is_stray(&told[i]);
    }
    for (uint32_t i = 0; i < told_count && blob != NULL; i++) {
        struct told at = told[i];
        for (; sure < told_count && (sure < i || told[sure].stray); sure++) {
        }
        if (!at.stray) {
            before = &told[i];
        } else if (sure < told_count) {
            at.depth = before != NULL ? common_depth(before, &told[sure]) : 1;
            at.stack = told[sure].stack + (told[sure].depth - at.depth);
            count.strays++;
            count.stray_bytes += at.end - at.from;
        }
        check_rows(blob, at.from, at.end, &at.stack[0]);
        check_stack(blob, at.from, at.end, at.stack, at.depth);
    }
    while (told_count > 0) {
        free(told[--told_count].stack);
    }
}

static void miss(const char *what)
{
    if (what[0] != '\0') {
        count.missing++;
        if (show('m')) {
            printf("missing: %s\n", what);
        }
    }
}

/*
 * One thread of HotSpot's (the Service Thread) tells of methods, each agent in its turn, the oracle
 * first. Another one may tell of the JVM's death meanwhile: whatever follows shows that it did not.
 */
static void check(FILE *oracle)
{
    static char line[8192];
    static struct frame stack[MAX_DEPTH];
    static char name[2048];
    static char lost[4096]; /* the last method told of, when the dump has it not */
    char *fields[MAX_FIELDS];
    const struct code_blob *blob = NULL;
    uint64_t at = 0;
    while (fgets(line, sizeof line, oracle) != NULL && line[0] != 'X') {
        uint32_t n = split(line, fields);
        if (fields[0][0] == 'L' && n == 7) {
            judge(blob);
            count.methods++;
            if (blob != NULL) {
                count.bytes_behind += blob->size > at ? blob->size - at : 0;
            }
            at = 0;
            java_name(name, sizeof name, fields[4], fields[5], fields[6]);
            blob = take(strtoull(fields[2], NULL, 16), strtoull(fields[3], NULL, 10));
            miss(lost);
            lost[0] = '\0';
            if (blob == NULL) {
                snprintf(lost, sizeof lost, "%s at 0x%s, %s bytes", name, fields[2], fields[3]);
            } else if (!same_name(blob->name, name)) {
                count.wrong_name++;
                if (show('n')) {
                    printf("name: %s, but the method is %s\n", blob->name, name);
                }
            }
        } else if (fields[0][0] == 'p' && n == 3) {
            uint64_t end = strtoull(fields[1], NULL, 16);
            uint32_t depth = (uint32_t)strtoul(fields[2], NULL, 10);
            if (depth == 0 || depth > MAX_DEPTH) {
                broken(line);
            }
            read_frames(oracle, stack, depth);
            if (blob != NULL && end > at) {
                tell(at, end, stack, depth);
                at = end;
            }
        } else if (fields[0][0] == 'D') {
            count.stubs++;
        } else if (fields[0][0] == 'U') {
            miss(lost);
            lost[0] = '\0';
        } else {
            broken(line);
        }
    }
    judge(blob);
    count.under_way = lost[0] != '\0';
}

/* One stay in the oracle's log. */
struct stay {
    uint64_t address;
    uint64_t size;
    uint64_t from;
    uint64_t until; /* UINT64_MAX: still there */
    bool method;
    char *name;
};

static struct stay *stays;
static size_t stay_count;

static void add_stay(const struct stay *stay)
{
    static size_t room;
    if (stay_count == room) {
        room = room == 0 ? 4096 : room * 2;
        stays = realloc(stays, room * sizeof *stays);
        if (stays == NULL) {
            exit(1);
        }
    }
    stays[stay_count++] = *stay;
}

/* Ends whatever lives in a range. Linear, for a log is short. */
static void end_stays(uint64_t address, uint64_t size, uint64_t now)
{
    for (size_t i = stay_count; i-- > 0;) {
        if (stays[i].until == UINT64_MAX && stays[i].address < address + size &&
            address < stays[i].address + stays[i].size) {
            stays[i].until = now;
        }
    }
}

/* Reads a log; a torn last line is what a killed JVM leaves. */
static void read_log(FILE *log)
{
    static char line[8192];
    static char name[2048];
    char *fields[MAX_FIELDS];
    while (fgets(line, sizeof line, log) != NULL && line[0] != 'X' && strchr(line, '\n') != NULL) {
        uint32_t n = split(line, fields);
        struct stay stay = {.until = UINT64_MAX, .method = line[0] == 'L'};
        stay.from = strtoull(fields[1], NULL, 10);
        stay.address = strtoull(fields[2], NULL, 16);
        if (line[0] == 'U') {
            end_stays(stay.address, 1, stay.from);
            continue;
        }
        if ((line[0] != 'L' || n != 7) && (line[0] != 'D' || n != 5)) {
            broken(line);
        }
        stay.size = strtoull(fields[3], NULL, 10);
        if (stay.method) {
            java_name(name, sizeof name, fields[4], fields[5], fields[6]);
        } else {
            snprintf(name, sizeof name, "%s", fields[4]);
        }
        stay.name = strdup(name);
        end_stays(stay.address, stay.size, stay.from);
        add_stay(&stay);
    }
}

/* Is there a blob in the dump with these bounds, and, for a method, with this name? */
static bool held(const struct stay *stay)
{
    for (uint32_t i = 0; i < place_count; i++) {
        const struct code_blob *blob = code_index_blob(dump, places[i].blob);
        if (blob->address == stay->address && blob->size == stay->size &&
            (!stay->method || same_name(blob->name, stay->name))) {
            return true;
        }
    }
    return false;
}

/*
 * The agent hands records to a thread of its own, and a killed JVM takes those with it that were
 * told of in its last instants: so many ns, on a machine with more to do than it can.
 */
#define LAST_INSTANTS UINT64_C(100000000)

static int check_held(void)
{
    uint64_t lost = 0;
    uint64_t late = 0;
    uint64_t end = stay_count > 0 ? stays[stay_count - 1].from : 0;
    for (size_t i = 0; i < stay_count; i++) {
        if (!held(&stays[i])) {
            if (end - stays[i].from < LAST_INSTANTS) {
                late++;
                continue;
            }
            lost++;
            if (show('l')) {
                printf("lost: %s at 0x%" PRIx64 "\n", stays[i].name, stays[i].address);
            }
        }
    }
    printf("held: %zu blobs reported, %" PRIu64 " lost, %" PRIu64 " in the last instants\n",
           stay_count, lost, late);
    return stay_count > 0 && lost == 0 ? 0 : 1;
}

/* The names CLASS.METHOD in a file, of code that may be missing: each excuses one piece. */
static struct {
    char (*names)[512];
    size_t count;
} excuses;

static void read_excuses(FILE *list)
{
    char line[512];
    while (fgets(line, sizeof line, list) != NULL) {
        excuses.names = realloc(excuses.names, (excuses.count + 1) * sizeof *excuses.names);
        if (excuses.names == NULL) {
            exit(1);
        }
        line[strcspn(line, "\n")] = '\0';
        memcpy(excuses.names[excuses.count++], line, sizeof line);
    }
}

static bool is_excused(const struct stay *stay)
{
    size_t size = strcspn(stay->name, "(");
    for (size_t i = 0; stay->method && i < excuses.count; i++) {
        if (strlen(excuses.names[i]) == size && strncmp(excuses.names[i], stay->name, size) == 0) {
            excuses.names[i][0] = '\0';
            return true;
        }
    }
    return false;
}

static int check_live(uint64_t then)
{
    uint64_t start = code_index_header(dump)->timestamp;
    uint64_t live = 0;
    uint64_t lost = 0;
    uint64_t excused = 0;
    uint64_t dead = 0;
    uint64_t stubs = 0;
    for (size_t i = 0; i < stay_count; i++) {
        if (stays[i].from <= then && stays[i].until > then) {
            live++;
            if (!held(&stays[i]) && is_excused(&stays[i])) {
                excused++;
            } else if (!held(&stays[i])) {
                lost++;
                if (show('l')) {
                    printf("lost: %s at 0x%" PRIx64 "\n", stays[i].name, stays[i].address);
                }
            }
        }
    }
    for (uint32_t i = 0; i < place_count; i++) {
        const struct code_blob *blob = code_index_blob(dump, places[i].blob);
        bool alive = false;
        for (size_t k = 0; k < stay_count && !alive; k++) {
            alive = stays[k].until > start && stays[k].address == blob->address &&
                    stays[k].size == blob->size &&
                    (!stays[k].method || same_name(blob->name, stays[k].name));
        }
        if (!alive && code_index_fetch(dump, places[i].blob, &details) == 0 &&
            !is_method(details.trailer.facts[JITDUMP_CODE_KIND])) {
            stubs++; /* some stubs are spoken of in a replay only */
        } else if (!alive) {
            dead++;
            if (show('n')) {
                printf("not alive: %s at 0x%" PRIx64 ", %" PRIu64 " bytes\n", blob->name,
                       blob->address, blob->size);
            }
        }
    }
    printf("live: %" PRIu64 " blobs, %" PRIu64 " of them not in the dump, %" PRIu64
           " excused; the dump has %u, %" PRIu64
           " stubs among them that the JVM tells of in a replay only; not alive: %" PRIu64 "\n",
           live, lost, excused, place_count, stubs, dead);
    return live > 0 && lost == 0 && dead == 0 ? 0 : 1;
}

static int check_truth(FILE *oracle)
{
    check(oracle);

    uint64_t stubs = 0;
    uint64_t extra = 0;
    for (uint32_t i = 0; i < place_count; i++) {
        if (!places[i].used && code_index_fetch(dump, places[i].blob, &details) == 0) {
            bool method = is_method(details.trailer.facts[JITDUMP_CODE_KIND]);
            stubs += !method;
            extra += method && places[i].blob < last_taken;
        }
    }
    double rows = count.bytes > 0 ? 100.0 * (double)count.bytes_right / (double)count.bytes : 0;
    printf("methods: %" PRIu64 ", missing in the dump: %" PRIu64 ", only in the dump: %" PRIu64
           ", misnamed: %" PRIu64 "; stubs: %" PRIu64 " events, %" PRIu64 " in the dump%s\n",
           count.methods, count.missing, extra, count.wrong_name, count.stubs, stubs,
           count.under_way ? "; the JVM died while it told of the last method" : "");
    printf("rows: %.4f %% of %" PRIu64 " bytes right; without a line: %" PRIu64
           ", behind the last pc: %" PRIu64 "\n",
           rows, count.bytes, count.bytes_silent, count.bytes_behind);
    printf("strays: %" PRIu64 " places, %" PRIu64 " bytes\n", count.strays, count.stray_bytes);
    printf("inlines: %" PRIu64 " of %" PRIu64 " stacks right, %" PRIu64 " frames\n",
           count.stacks_right, count.stacks, count.frames);
    bool sound = count.methods > 0 && count.missing == 0 && extra == 0 && count.wrong_name == 0 &&
                 rows >= 99.99 && count.stacks_right == count.stacks;
    return sound ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool only_held = argc == 4 && strcmp(argv[1], "--held") == 0;
    bool live = (argc == 5 || argc == 6) && strcmp(argv[1], "--live") == 0;
    if (argc != 3 && !only_held && !live) {
        fprintf(stderr, "usage: oracle-check DUMP ORACLE | --held DUMP LOG | --live DUMP LOG TIME "
                        "[EXCUSES]\n");
        return 2;
    }
    char **files = argc == 3 ? argv + 1 : argv + 2;
    FILE *oracle = fopen(files[1], "re");
    if (oracle == NULL) {
        fprintf(stderr, "oracle-check: failed to open %s: %s\n", files[1], strerror(errno));
        return 1;
    }
    if (code_index_open(files[0], &dump) != 0) {
        return 1;
    }
    place_count = code_index_blob_count(dump);
    places = calloc(place_count + 1, sizeof *places);
    if (places == NULL) {
        return 1;
    }
    for (uint32_t i = 0; i < place_count; i++) {
        places[i].address = code_index_blob(dump, i)->address;
        places[i].blob = i;
    }
    qsort(places, place_count, sizeof *places, by_address);

    int status = 0;
    if (argc == 3) {
        status = check_truth(oracle);
    } else {
        read_log(oracle);
        FILE *list = argc == 6 ? fopen(argv[5], "re") : NULL;
        if (list != NULL) {
            read_excuses(list);
            fclose(list);
        }
        status = only_held ? check_held() : check_live(strtoull(argv[4], NULL, 10));
    }
    code_details_free(&details);
    code_index_close(dump);
    free(places);
    free(excuses.names);
    fclose(oracle);
    return status;
}
