/*
 * A chunk's way, by its word in `words`:
 *
 *     FREE --take_chunk--> tid|BUSY --commit--> tid|TAKEN
 *      ^                      ^  \                |   |
 *      |                      |   full           |   no record for a round
 *      |                      +-----\-- hold ----+   |
 *      |                             v              v
 *      +------------ drained ------- LEFT <---------+
 *
 * Whose it is stands in the word, so that a thread notices when it is no longer its own: the
 * drainer takes a chunk back whose thread has had no record since the last round. So threads that
 * live, and have nothing to tell, hold none: chunks are as many as threads that have records within
 * two rounds, however many there are. Only its owner writes to a chunk, while it is BUSY, and tells
 * by `count` how far; the drainer reads up to there at any time.
 *
 * A journal has a number. A chunk that was taken in an earlier journal is passed by until its
 * thread begins it anew, or the drainer takes it back. So opening and closing touch no chunk that
 * somebody might be writing to.
 *
 * Free chunks are a stack, linked by index, whose head has a number that rises, so that a thread
 * that was interrupted between looking and taking notices that others were there; those that were
 * never used are behind `used`. What was used last is used again first.
 *
 *   J1  Who writes to a chunk, or begins it, has it BUSY.
 *   J2  What is whole fits into the chunk, and the drainer has taken out no more than that.
 *   J3  The drainer frees a chunk that its thread has left, or lost.
 */
#include "agent/threads/journal.h"

#include "format/threads.h"
#include "writer/disk_room.h"
#include "writer/invariant.h"
#include "writer/message.h"
#include "writer/output_file.h"
#include "writer/own_thread.h"
#include "writer/process.h"
#include "writer/stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    CHUNKS = JOURNAL_CHUNKS,
    DRAIN_EVERY_MS = 50, /* a sample waits longer than that for what its JVM tells */
    END_WITHIN_MS = 2000,
    KNOWN = THREADS_TOLD_AGAIN,
    PIECE = 1 << 20, /* bytes of the file that are let go at a time */
    BATCH = 1 << 18, /* bytes of a write */
};

/* A chunk's word: its owner's number in the kernel << 2 | enum chunk_state. */
enum chunk_state { FREE, TAKEN, BUSY, LEFT };
#define WORD(tid, state) ((tid) << 2 | (uint32_t)(state))
#define STATE(word)      ((enum chunk_state)((word)&3))

struct chunk {
    _Atomic(uint32_t) journal; /* its number */
    _Atomic(uint32_t) count;   /* slots that are whole */
    uint32_t tid;
    uint32_t drained; /* the drainer's: slots that were taken out */
    uint64_t base;
    uint64_t
        mounted; /* before the first slot that was not taken out; the drainer's once slots are */
    uint64_t lost_from;
    struct threads_slot slots[THREADS_BLOCK_SLOTS];
};
_Static_assert(sizeof(struct chunk) <= JOURNAL_CHUNK_BYTES, "a chunk is half a page");

/* What a thread knows of itself. */
struct own {
    struct chunk *chunk; /* which the drainer may have taken back */
    uint32_t tid;
    uint32_t journal;
    bool has_destructor;
    uint64_t mounted;
    uint64_t lost_from;
};

static _Thread_local struct own own;
static struct chunk *chunks;
static _Atomic(uint32_t) words[CHUNKS];
static _Atomic(uint32_t) next_free[CHUNKS]; /* 1 + the index of the one below; 0: none */
static _Atomic(uint64_t) free_chunks;       /* a number << 32 | 1 + the topmost one's index */
static _Atomic(uint32_t) used;              /* chunks that ever were */
/* What was told already: id << 16 | the journal's number. */
static _Atomic(uint64_t) known_virtuals[KNOWN];
static _Atomic(uint64_t) known_labels[KNOWN];
static _Atomic(uint32_t) current; /* the journal's number; even: none is open */
static _Atomic(uint64_t) lost;
static atomic_bool stamps_tsc;
static pthread_key_t thread_key;

/* The drainer, and who waits for it. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool running, ending, given_up;
    bool ended; /* the file takes no more */
    unsigned generation;
    struct output_file file;
    uint64_t max_bytes, reserve;
    bool endless;
    uint64_t gone; /* up to there the file is a hole */
    uint32_t journal;
    uint8_t *batch;
    size_t batch_size;
} drain = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Chunks, on the thread that writes ---- */

static uint32_t index_of(const struct chunk *chunk)
{
    return (uint32_t)(chunk - chunks);
}

/* Takes the chunk that the thread had into its hands, to write to it. False: it has none. */
static bool hold(struct own *self)
{
    uint32_t word = WORD(self->tid, TAKEN);
    if (self->chunk && !atomic_compare_exchange_strong_explicit(
                           &words[index_of(self->chunk)], &word, WORD(self->tid, BUSY),
                           memory_order_acquire, memory_order_relaxed)) {
        self->chunk = NULL;
    }
    return self->chunk != NULL;
}

/* The opposite: to the drainer (LEFT), or for the next record (TAKEN). */
static void put_down(struct own *self, enum chunk_state state)
{
    atomic_store_explicit(&words[index_of(self->chunk)], WORD(self->tid, state),
                          memory_order_release);
    if (state == LEFT) {
        self->chunk = NULL;
    }
}

/* Of a thread that ends, whatever it was. */
static void at_thread_end(void *self)
{
    if (hold(self)) {
        put_down(self, LEFT);
    }
    own.has_destructor = false; /* who has a record now is called again */
}

/* A chunk that nobody has, BUSY. NULL: all are in use. */
static struct chunk *take_chunk(uint32_t tid)
{
    uint64_t head = atomic_load_explicit(&free_chunks, memory_order_acquire);
    uint32_t index = CHUNKS;
    while ((uint32_t)head) {
        index = (uint32_t)head - 1;
        uint64_t below = atomic_load_explicit(&next_free[index], memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&free_chunks, &head,
                                                  ((head >> 32) + 1) << 32 | below,
                                                  memory_order_acquire, memory_order_acquire)) {
            break;
        }
        index = CHUNKS;
    }
    if (index == CHUNKS) {
        index = atomic_load_explicit(&used, memory_order_relaxed);
        while (index < CHUNKS && !atomic_compare_exchange_weak(&used, &index, index + 1)) {
        }
    }
    if (index == CHUNKS) {
        return NULL;
    }
    atomic_store_explicit(&words[index], WORD(tid, BUSY), memory_order_relaxed);
    return &chunks[index];
}

/* The drainer's alone. Who takes it next begins it while the drainer passes it by. */
static void free_chunk(uint32_t index)
{
    atomic_store_explicit(&chunks[index].journal, 0, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&free_chunks, memory_order_relaxed);
    atomic_store_explicit(&words[index], FREE, memory_order_relaxed);
    do {
        atomic_store_explicit(&next_free[index], (uint32_t)head, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&free_chunks, &head,
                                                    ((head >> 32) + 1) << 32 | (index + 1),
                                                    memory_order_release, memory_order_relaxed));
}

static void begin_chunk(struct own *self, struct chunk *chunk, uint64_t now)
{
    invariant(J1, STATE(atomic_load(&words[index_of(chunk)])) == BUSY);
    /* The drainer passes it by until it has the journal's number. */
    atomic_store_explicit(&chunk->journal, 0, memory_order_release);
    atomic_store_explicit(&chunk->count, 0, memory_order_relaxed);
    chunk->tid = self->tid;
    chunk->drained = 0;
    chunk->base = now;
    chunk->mounted = self->mounted;
    chunk->lost_from = self->lost_from;
    self->lost_from = 0;
    self->chunk = chunk;
    atomic_store_explicit(&chunk->journal, self->journal, memory_order_release);
}

/* So many slots in a row in the thread's chunk, for a record of that time, until `commit`; NULL:
 * there are none. */
static struct threads_slot *reserve(struct own *self, uint32_t journal, uint64_t now,
                                    uint32_t slots)
{
    bool held = hold(self);
    if (self->journal != journal) {
        *self = (struct own){.chunk = self->chunk,
                             .tid = (uint32_t)process_thread_id(),
                             .journal = journal,
                             .has_destructor = self->has_destructor,
                             .mounted = THREADS_NOT_KNOWN};
        if (held) {
            begin_chunk(self, self->chunk, now);
        }
    }
    if (held && atomic_load_explicit(&self->chunk->count, memory_order_relaxed) + slots >
                    THREADS_BLOCK_SLOTS) {
        put_down(self, LEFT);
        held = false;
    }
    if (!held) {
        struct chunk *chunk = take_chunk(self->tid);
        if (!chunk) {
            atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
            self->lost_from = self->lost_from ? self->lost_from : now;
            return NULL;
        }
        begin_chunk(self, chunk, now);
        if (!self->has_destructor) {
            self->has_destructor = pthread_setspecific(thread_key, self) == 0;
        }
    }
    return &self->chunk->slots[atomic_load_explicit(&self->chunk->count, memory_order_relaxed)];
}

static void commit(struct own *self, uint32_t slots)
{
    struct chunk *chunk = self->chunk;
    uint32_t count = atomic_load_explicit(&chunk->count, memory_order_relaxed);
    invariant(J1, STATE(atomic_load(&words[index_of(chunk)])) == BUSY);
    invariant(J2, count + slots <= THREADS_BLOCK_SLOTS);
    atomic_store_explicit(&chunk->count, count + slots, memory_order_release);
    put_down(self, TAKEN);
}

static uint64_t stamp_of(const struct chunk *chunk, uint64_t now, enum threads_kind kind)
{
    return (now > chunk->base ? now - chunk->base : 0) << 8 | (uint64_t)kind;
}

/* The number of the open journal; 0: none is. */
static uint32_t open_journal(void)
{
    uint32_t number = atomic_load_explicit(&current, memory_order_acquire);
    return number & 1 ? number : 0;
}

static void put(uint32_t journal, enum threads_kind kind, uint64_t value)
{
    struct own *self = &own;
    uint64_t now = stamp_now(atomic_load_explicit(&stamps_tsc, memory_order_relaxed));
    struct threads_slot *slot = reserve(self, journal, now, 1);
    if (slot) {
        *slot = (struct threads_slot){stamp_of(self->chunk, now, kind), value};
        commit(self, 1);
    }
}

/* Bytes of the text that are kept: no character in halves. */
static size_t kept_length(const char *text, size_t length)
{
    if (length <= THREADS_TEXT_MAX) {
        return length;
    }
    length = THREADS_TEXT_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
        length--;
    }
    return length;
}

static void put_text(enum threads_kind kind, uint64_t value, uint32_t tid, const char *text,
                     size_t length)
{
    uint32_t journal = open_journal();
    if (!journal) {
        return;
    }
    struct own *self = &own;
    size_t kept = kept_length(text, length);
    uint32_t slots =
        2 + (uint32_t)((kept + sizeof(struct threads_slot) - 1) / sizeof(struct threads_slot));
    uint64_t now = stamp_now(atomic_load_explicit(&stamps_tsc, memory_order_relaxed));
    struct threads_slot *slot = reserve(self, journal, now, slots);
    if (!slot) {
        return;
    }
    const struct threads_text head = {
        .tid = tid, .length = (uint16_t)kept, .flags = kept < length ? THREADS_TEXT_CUT : 0};
    *slot = (struct threads_slot){stamp_of(self->chunk, now, kind), value};
    memset(slot + 1, 0, (slots - 1) * sizeof(*slot));
    memcpy(slot + 1, &head, sizeof(head));
    memcpy(slot + 2, text, kept);
    commit(self, slots);
}

/* ---- Records ---- */

bool journal_is_open(void)
{
    return open_journal() != 0;
}

void journal_mount(uint64_t id)
{
    uint32_t journal = open_journal();
    if (journal) {
        put(journal, THREADS_MOUNT, id);
        own.mounted = id;
    }
}

void journal_unmount(uint64_t id)
{
    uint32_t journal = open_journal();
    if (journal) {
        put(journal, THREADS_UNMOUNT, id);
        own.mounted = 0;
    }
}

void journal_label(uint64_t label)
{
    uint32_t journal = open_journal();
    if (journal) {
        put(journal, THREADS_LABEL, label);
    }
}

void journal_thread_end(void)
{
    uint32_t journal = open_journal();
    if (journal) {
        put(journal, THREADS_END, 0);
        if (hold(&own)) {
            put_down(&own, LEFT);
        }
    }
}

static bool knows(_Atomic(uint64_t) *known, uint64_t id)
{
    _Atomic(uint64_t) *place = &known[id % KNOWN];
    uint64_t mark = id << 16 | (open_journal() & 0xffff);
    if (atomic_load_explicit(place, memory_order_relaxed) == mark) {
        return true;
    }
    atomic_store_explicit(place, mark, memory_order_relaxed);
    return false;
}

bool journal_knows_virtual(uint64_t id)
{
    return knows(known_virtuals, id);
}

bool journal_knows_label(uint64_t label)
{
    return knows(known_labels, label);
}

void journal_virtual_name(uint64_t id, const char *name, size_t length)
{
    put_text(THREADS_VIRTUAL, id, 0, name, length);
}

void journal_platform_name(uint64_t id, uint32_t tid, const char *name, size_t length)
{
    put_text(THREADS_PLATFORM, id, tid ? tid : (uint32_t)process_thread_id(), name, length);
}

void journal_label_text(uint64_t label, const char *text, size_t length)
{
    put_text(THREADS_LABEL_TEXT, label, 0, text, length);
}

/* ---- The drainer ---- */

/* The file takes no more: so nothing more is asked for. */
static void end_file(void)
{
    drain.ended = true;
    uint32_t number = drain.journal;
    (void)atomic_compare_exchange_strong(&current, &number, drain.journal + 1);
}

/* Lets go of what is older. Where the file system cannot, the file ends as others do. */
static void forget_oldest(void)
{
    if (!drain.endless || drain.file.size < drain.gone + THREADS_KEPT + PIECE) {
        return;
    }
    /* The header's page stays. */
    const uint64_t from = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t until = drain.file.size - THREADS_KEPT;
    until -= until % from;
    if (fallocate(drain.file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                  (off_t)(until - from)) != 0) {
        drain.endless = false;
    }
    drain.gone = until;
}

static void write_batch(void)
{
    if (drain.batch_size == 0 || drain.ended) {
        drain.batch_size = 0;
        return;
    }
    forget_oldest();
    if (!drain.endless && drain.file.size + drain.batch_size > drain.max_bytes) {
        message(MESSAGE_WARNING, "%s ends here: it has reached its limit of %llu bytes",
                drain.file.path, (unsigned long long)drain.file.size);
        end_file();
    } else if (disk_room(drain.file.fd, drain.reserve) < drain.batch_size) {
        message(MESSAGE_WARNING, "%s ends here: only the reserve is free on its disk",
                drain.file.path);
        end_file();
    } else if (output_file_append(&drain.file, drain.batch, drain.batch_size) != 0) {
        end_file(); /* which has been told */
    }
    drain.batch_size = 0;
}

/* Which virtual thread runs behind these slots. */
static uint64_t mounted_behind(uint64_t mounted, const struct threads_slot *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t kind = slots[i].stamp & 0xff;
        if (kind == THREADS_MOUNT) {
            mounted = slots[i].value;
        } else if (kind == THREADS_UNMOUNT) {
            mounted = 0;
        } else if (kind == THREADS_VIRTUAL || kind == THREADS_PLATFORM ||
                   kind == THREADS_LABEL_TEXT) {
            struct threads_text text;
            memcpy(&text, &slots[i + 1], sizeof(text)); /* our own thread wrote it */
            i += 1 + (text.length + (uint32_t)sizeof(text) - 1) / (uint32_t)sizeof(text);
        }
    }
    return mounted;
}

/* False: there was nothing new. */
static bool drain_chunk(struct chunk *chunk)
{
    if (atomic_load_explicit(&chunk->journal, memory_order_acquire) != drain.journal) {
        return false;
    }
    uint32_t count = atomic_load_explicit(&chunk->count, memory_order_acquire);
    if (count <= chunk->drained) {
        return false;
    }
    invariant(J2, count <= THREADS_BLOCK_SLOTS);
    const struct threads_slot *slots = &chunk->slots[chunk->drained];
    uint32_t slot_count = count - chunk->drained;
    const struct threads_block head = {.tid = chunk->tid,
                                       .slots = slot_count,
                                       .base = chunk->base,
                                       .mounted = chunk->mounted,
                                       .lost_from = chunk->lost_from};
    size_t size = sizeof(head) + slot_count * sizeof(*slots);
    if (drain.batch_size + size > BATCH) {
        write_batch();
    }
    memcpy(drain.batch + drain.batch_size, &head, sizeof(head));
    memcpy(drain.batch + drain.batch_size + sizeof(head), slots, slot_count * sizeof(*slots));
    drain.batch_size += size;
    chunk->mounted = mounted_behind(chunk->mounted, slots, slot_count);
    chunk->lost_from = 0;
    chunk->drained = count;
    return true;
}

static void drain_all(void)
{
    uint32_t end = atomic_load_explicit(&used, memory_order_acquire);
    for (uint32_t i = 0; i < end; i++) {
        uint32_t word = atomic_load_explicit(&words[i], memory_order_acquire);
        if (STATE(word) == FREE || drain_chunk(&chunks[i])) {
            continue;
        }
        bool is_left = STATE(word) == LEFT;
        if (STATE(word) == TAKEN) { /* its thread has nothing to tell, or something just now */
            is_left = atomic_compare_exchange_strong(&words[i], &word, WORD(0, LEFT));
            (void)(is_left && drain_chunk(&chunks[i]));
        }
        if (is_left) {
            invariant(J3, STATE(atomic_load(&words[i])) == LEFT);
            free_chunk(i);
        }
    }
    write_batch();
}

static void release_file(void)
{
    uint64_t left_out = atomic_exchange(&lost, 0);
    if (left_out > 0) {
        message(MESSAGE_WARNING,
                "%s lacks %llu records of threads, which came faster than they could be written",
                drain.file.path, (unsigned long long)left_out);
    }
    output_file_release(&drain.file);
    free(drain.batch);
    drain.batch = NULL;
}

static void *run(void *unused)
{
    bool ending = false;
    pthread_setname_np(pthread_self(), "jdagent threads");
    while (!ending) {
        pthread_mutex_lock(&drain.lock);
        const struct timespec next = stamp_in_ms(DRAIN_EVERY_MS);
        while (!drain.ending &&
               pthread_cond_timedwait(&drain.changed, &drain.lock, &next) != ETIMEDOUT) {
        }
        ending = drain.ending;
        pthread_mutex_unlock(&drain.lock);
        drain_all();
    }
    drain_all(); /* takes back what threads that live had until now */
    release_file();
    pthread_mutex_lock(&drain.lock);
    drain.running = false;
    pthread_cond_broadcast(&drain.changed);
    pthread_mutex_unlock(&drain.lock);
    return unused;
}

/* ---- Open and close ---- */

static int prepare_error;

static void prepare(void)
{
    pthread_condattr_t monotonic;
    void *memory = mmap(NULL, CHUNKS * sizeof(struct chunk), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    prepare_error = memory == MAP_FAILED ? -errno : -pthread_key_create(&thread_key, at_thread_end);
    chunks = memory == MAP_FAILED ? NULL : memory;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&drain.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static int create_file(const struct journal_options *options)
{
    struct threads_header header = {
        .magic = THREADS_MAGIC,
        .version = THREADS_VERSION,
        .total_size = sizeof(header),
        .pid = options->pid,
        .timestamp = stamp_now(options->tsc),
        .flags = (options->tsc ? THREADS_FLAGS_ARCH_TIMESTAMP : 0) |
                 (options->endless ? THREADS_FLAGS_ENDLESS : 0),
    };
    int error =
        output_file_create(&drain.file, options->directory, options->path, OUTPUT_FILE_REFUSE);
    if (!error && (error = output_file_append(&drain.file, &header, sizeof(header))) != 0) {
        output_file_discard(&drain.file);
    }
    return error;
}

static int open_drainer(const struct journal_options *options)
{
    int error = prepare_error ? prepare_error : process_watch_forks();
    drain.batch = error ? NULL : malloc(BATCH);
    error = error || drain.batch ? error : -ENOMEM;
    if (error) {
        message(MESSAGE_ERROR, "failed to start %s: %s", options->path, strerror(-error));
        return error;
    }
    error = create_file(options);
    if (!error) {
        drain.max_bytes = options->max_bytes ? options->max_bytes : JOURNAL_BYTES;
        drain.reserve = options->reserve;
        drain.endless = options->endless;
        drain.gone = 0;
        drain.journal = atomic_load(&current) + 1;
        drain.generation = process_generation();
        drain.ending = drain.ended = false;
        drain.running = true;
        error = own_thread_start(run, NULL, OWN_THREAD_JAVA_STACK, NULL);
        if (error) {
            message(MESSAGE_ERROR, "failed to start %s: %s", options->path, strerror(-error));
            output_file_discard(&drain.file);
            drain.running = false;
        }
    }
    if (error) {
        free(drain.batch);
        drain.batch = NULL;
    }
    return error;
}

int journal_open(const struct journal_options *options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    pthread_mutex_lock(&drain.lock);
    int error = drain.running ? -EBUSY : open_drainer(options);
    if (drain.running && error == -EBUSY) {
        message(MESSAGE_ERROR, "failed to start %s: the previous one is still waiting for its disk",
                options->path);
    }
    if (!error) {
        atomic_store(&lost, 0);
        atomic_store(&stamps_tsc, options->tsc);
        atomic_store(&current, drain.journal);
    }
    pthread_mutex_unlock(&drain.lock);
    return error;
}

/* Memory of the free chunks, which are off their stack meanwhile; the drainer has ended. */
static void give_memory_back(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uint32_t in_page = (uint32_t)(page / sizeof(struct chunk));
    const uint32_t mark = WORD(0, BUSY); /* no thread's */
    uint64_t head = atomic_load(&free_chunks);
    while (!atomic_compare_exchange_weak(&free_chunks, &head, ((head >> 32) + 1) << 32)) {
    }
    for (uint32_t i = (uint32_t)head; i; i = atomic_load(&next_free[i - 1])) {
        atomic_store(&words[i - 1], mark);
    }
    for (uint32_t i = (uint32_t)head; i; i = atomic_load(&next_free[i - 1])) {
        uint32_t marked = 0;
        if ((i - 1) % in_page == 0) {
            while (marked < in_page && i - 1 + marked < CHUNKS &&
                   atomic_load(&words[i - 1 + marked]) == mark) {
                marked++;
            }
        }
        if (marked == in_page) {
            (void)madvise(&chunks[i - 1], page, MADV_DONTNEED);
        }
    }
    for (uint32_t i = (uint32_t)head, below; i; i = below) {
        below = atomic_load(&next_free[i - 1]);
        free_chunk(i - 1);
    }
}

void journal_close(void)
{
    uint32_t number = open_journal();
    if (number) {
        (void)atomic_compare_exchange_strong(&current, &number, number + 1);
    }
    if (!chunks || (drain.running && drain.generation != process_generation())) {
        return; /* a fork has the file, but not the drainer */
    }
    const struct timespec end = stamp_in_ms(END_WITHIN_MS);
    pthread_mutex_lock(&drain.lock);
    bool was_running = drain.running;
    drain.ending = true;
    pthread_cond_broadcast(&drain.changed);
    while (drain.running &&
           pthread_cond_timedwait(&drain.changed, &drain.lock, &end) != ETIMEDOUT) {
    }
    bool hangs = drain.running;
    pthread_mutex_unlock(&drain.lock);
    if (hangs) {
        message(
            MESSAGE_WARNING,
            "the journal of threads is still waiting for its disk: its last records may be lost");
    } else if (was_running) {
        give_memory_back();
    }
}
