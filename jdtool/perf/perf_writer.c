/*
 * A recording is laid out anew: header, ids and attributes as far as they are known, records,
 * features, and the ids and attributes once more where a pipe told of further ones. Nothing in the
 * features depends on where they stand (those that do, AUXTRACE and DIR_FORMAT, are refused by the
 * reader), so they are copied as they are but for two: HEADER_BUILD_ID gets our files, and
 * HEADER_EVENT_DESC, a second copy of the attributes, is changed as they are.
 */
#include "jdtool/perf/perf_data_private.h"

#include "jdtool/base/bytes.h"
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* ---- Records packed as 'perf record -z' packs them ---- */

/*
 * One zstd stream (perf_unpack), cut into PERF_RECORD_COMPRESSED records. Each holds a flushed
 * part of the stream, for perf takes one that gives nothing for damaged.
 */

/* What a record has of the stream, before it is packed: packed it has room in one even where it
 * cannot be made smaller. perf allots as much for each record (comp_mmap_len). */
#define CHUNK      ((size_t)56 * 1024)
#define CHUNK_ROOM ((size_t)64 * 1024)
#define LEVEL      1 /* a fifth of the time of 3, for a fifth more bytes */

_Static_assert(CHUNK + CHUNK / 64 + 512 < PERF_RECORD_SIZE_MAX, "a chunk that is not smaller");

struct perf_pack {
    ZSTD_CCtx *stream;
    size_t size; /* of what waits in the chunk */
    uint64_t plain_bytes, packed_bytes;
    uint8_t chunk[CHUNK];
    _Alignas(8) uint8_t record[PERF_RECORD_SIZE_MAX];
};

static void perf_pack_free(struct perf_pack *pack)
{
    if (pack) {
        (void)ZSTD_freeCCtx(pack->stream);
        free(pack);
    }
}

static struct perf_pack *perf_pack_new(void)
{
    struct perf_pack *pack = malloc(sizeof *pack);
    if (pack) {
        memset(pack, 0, offsetof(struct perf_pack, chunk));
        pack->stream = ZSTD_createCCtx();
    }
    if (!pack || !pack->stream ||
        ZSTD_isError(ZSTD_CCtx_setParameter(pack->stream, ZSTD_c_compressionLevel, LEVEL))) {
        perf_pack_free(pack);
        return NULL;
    }
    return pack;
}

/* An error is the file's. */
static void perf_pack_flush(struct perf_pack *pack, struct output_file *file)
{
    struct perf_event_header header = {.type = PERF_USER_COMPRESSED};
    ZSTD_inBuffer in = {.src = pack->chunk, .size = pack->size};
    ZSTD_outBuffer out = {.dst = pack->record + sizeof header,
                          .size = sizeof pack->record - sizeof header};
    if (pack->size == 0) {
        return;
    }
    if (ZSTD_compressStream2(pack->stream, &out, &in, ZSTD_e_flush) != 0) { /* or it has an error */
        output_file_fail(file, -ENOMEM);
        return;
    }
    header.size = (uint16_t)(sizeof header + out.pos);
    memcpy(pack->record, &header, sizeof header);
    output_file_put(file, pack->record, header.size);
    pack->plain_bytes += pack->size;
    pack->packed_bytes += header.size;
    pack->size = 0;
}

/* Packs so many bytes of records into the file, where they may stay behind until perf_pack_flush.
 */
static void perf_pack_put(struct perf_pack *pack, struct output_file *file, const void *bytes,
                          size_t size)
{
    const uint8_t *from = bytes;
    while (size > 0) {
        size_t n = CHUNK - pack->size < size ? CHUNK - pack->size : size;
        memcpy(pack->chunk + pack->size, from, n);
        pack->size += n;
        from += n;
        size -= n;
        if (pack->size == CHUNK) {
            perf_pack_flush(pack, file);
        }
    }
}

/* What HEADER_COMPRESSED says, when all is packed. */
#define PERF_PACK_WORDS 5

static void perf_pack_describe(const struct perf_pack *pack, uint32_t words[PERF_PACK_WORDS])
{
    uint64_t packed = pack->packed_bytes ? pack->packed_bytes : 1;
    words[0] = 0; /* the version */
    words[1] = 1; /* zstd */
    words[2] = LEVEL;
    words[3] = (uint32_t)((pack->plain_bytes + packed / 2) / packed); /* the ratio */
    words[4] = CHUNK_ROOM;
}

/* ---- The file ---- */

#define USER_STATE ((uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER))
#define NAME_ALIGN 64 /* of file names in HEADER_BUILD_ID */

struct perf_writer {
    struct perf_data *source;
    struct output_file *file;
    struct perf_pack *pack; /* NULL: records are not packed */
    bool drop_user_stacks;
    struct perf_file_header header;
    uint64_t id_count; /* of the events written */
    struct bytes build_ids;
};

static void put(struct perf_writer *writer, const void *bytes, size_t size)
{
    output_file_put(writer->file, bytes, size);
}

int perf_writer_pack(struct perf_writer *writer)
{
    writer->pack = perf_pack_new();
    return writer->pack ? 0 : -ENOMEM;
}

void perf_writer_put(struct perf_writer *writer, const void *record, size_t size)
{
    if (writer->pack) {
        perf_pack_put(writer->pack, writer->file, record, size);
    } else {
        put(writer, record, size);
    }
}

void perf_writer_fail(struct perf_writer *writer, int err)
{
    output_file_fail(writer->file, err);
}

/*
 * Changes an attribute, `size` bytes of it, so that it says what is in the samples now. Of
 * --call-graph lbr perf would make the user's frames of the branches, and not of the chain.
 */
static void change_attr(const struct perf_writer *writer, uint8_t *bytes, size_t size)
{
    struct perf_event_attr attr = {0};
    size_t known = size < sizeof attr ? size : sizeof attr;
    memcpy(&attr, bytes, known);
    attr.branch_sample_type &= ~(uint64_t)PERF_SAMPLE_BRANCH_CALL_STACK;
    if (writer->drop_user_stacks) {
        if (attr.sample_type & USER_STATE) {
            attr.exclude_callchain_user = 0;
        }
        attr.sample_type &= ~USER_STATE;
        attr.sample_regs_user = 0;
        attr.sample_stack_user = 0;
    }
    memcpy(bytes, &attr, known);
}

static uint64_t count_ids(const struct perf_data *source)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < source->event_count; i++) {
        count += source->events[i].id_count;
    }
    return count;
}

/* The ids of all events, then the attributes, each with where its ids are. */
static void put_events(struct perf_writer *writer)
{
    const struct perf_data *source = writer->source;
    size_t attr_size = source->header.attr_size;
    size_t attrs_size = source->event_count * attr_size;
    uint8_t *attrs = malloc(attrs_size + 1);
    if (!attrs) {
        perf_writer_fail(writer, -ENOMEM);
        return;
    }
    memcpy(attrs, source->raw_attrs, attrs_size);
    for (uint32_t i = 0; i < source->event_count; i++) {
        const struct perf_event *event = &source->events[i];
        struct perf_section ids = {output_file_tell(writer->file),
                                   event->id_count * sizeof(uint64_t)};
        uint8_t *attr = attrs + i * attr_size;
        put(writer, event->ids, ids.size);
        change_attr(writer, attr, attr_size - sizeof ids);
        memcpy(attr + attr_size - sizeof ids, &ids, sizeof ids);
    }
    writer->id_count = count_ids(source);
    writer->header.attr_size = attr_size;
    writer->header.attrs = (struct perf_section){output_file_tell(writer->file), attrs_size};
    put(writer, attrs, attrs_size);
    free(attrs);
}

int perf_writer_open(const char *path, struct perf_data *source, bool drop_user_stacks,
                     struct perf_writer **out)
{
    struct perf_writer *writer = calloc(1, sizeof *writer);
    *out = NULL;
    if (!writer) {
        return failed_to(-ENOMEM, "write %s", path);
    }
    writer->source = source;
    writer->drop_user_stacks = drop_user_stacks;
    int err = output_file_open(path, &writer->file);
    if (err) {
        perf_writer_abort(writer);
        return err;
    }
    writer->header.magic = PERF_FILE_MAGIC;
    writer->header.size = sizeof writer->header;
    put(writer, &writer->header, sizeof writer->header);
    put_events(writer);
    writer->header.data.offset = output_file_tell(writer->file);
    *out = writer;
    return 0;
}

void perf_writer_add_build_id(struct perf_writer *writer, const char *path,
                              const uint8_t build_id[BUILD_ID_MAX])
{
    size_t length = strlen(path);
    size_t name_size = (length + NAME_ALIGN) / NAME_ALIGN * NAME_ALIGN; /* with its NUL */
    struct perf_build_id_entry entry = {
        .header = {.misc = PERF_RECORD_MISC_USER | PERF_BUILD_ID_SIZE,
                   .size = (uint16_t)(sizeof entry + name_size)},
        .pid = -1, /* of the host, not of a guest */
        .size = BUILD_ID_MAX,
    };
    if (name_size > PATH_MAX + NAME_ALIGN) {
        perf_writer_fail(writer, -ENAMETOOLONG);
        return;
    }
    memcpy(entry.build_id, build_id, BUILD_ID_MAX);
    uint8_t *at = bytes_grow(&writer->build_ids, sizeof entry + name_size);
    if (at) {
        memcpy(at, &entry, sizeof entry);
        memset(at + sizeof entry, 0, name_size);
        memcpy(at + sizeof entry, path, length + 1);
    }
}

/* ---- Features ---- */

/*
 * HEADER_EVENT_DESC: u32 number of events, u32 bytes of an attribute, and for each event the
 * attribute, u32 number of ids, u32 bytes of the name and the name, the ids. Of an event that the
 * recording has as several the last one's stands for all. Returns the new size; a section that is
 * not like that is left alone.
 */
static size_t change_event_desc(const struct perf_writer *writer, uint8_t *section, size_t size)
{
    const struct perf_data *source = writer->source;
    uint32_t head[2];
    if (size < sizeof head) {
        return size;
    }
    memcpy(head, section, sizeof head);
    size_t at = sizeof head;
    size_t to = sizeof head;
    uint32_t event = 0;
    uint32_t part = 0;
    uint32_t left_out = 0;
    for (uint32_t i = 0; i < head[0]; i++) {
        uint32_t counts[2]; /* ids, bytes of the name */
        if (head[1] > size - at || sizeof counts > size - at - head[1]) {
            break; /* of what is left nothing is known */
        }
        memcpy(counts, section + at + head[1], sizeof counts);
        uint64_t rest = counts[1] + (uint64_t)counts[0] * sizeof(uint64_t);
        size_t known = head[1] + sizeof counts;
        if (rest > size - at - known) {
            break;
        }
        memmove(section + to, section + at, known + rest);
        change_attr(writer, section + to, head[1]);
        at += known + rest;
        if (event < source->event_count && ++part < source->events[event].parts) {
            left_out++;
            continue;
        }
        to += known + rest;
        part = 0;
        event++;
    }
    head[0] -= left_out;
    memcpy(section, head, sizeof head);
    memmove(section + to, section + at, size - at);
    return to + (size - at);
}

static void make_feature(struct perf_writer *writer, unsigned feature, struct bytes *made)
{
    size_t size;
    if (feature == PERF_FEATURE_COMPRESSED) {
        uint32_t words[PERF_PACK_WORDS];
        perf_pack_describe(writer->pack, words);
        bytes_put(made, words, sizeof words);
        return;
    }
    const uint8_t *bytes = perf_data_feature(writer->source, feature, &size);
    bytes_put(made, bytes, size);
    if (feature == PERF_FEATURE_EVENT_DESC && made->at) {
        made->size = change_event_desc(writer, made->at, made->size);
    } else if (feature == PERF_FEATURE_BUILD_ID) {
        bytes_put(made, writer->build_ids.at, writer->build_ids.size);
    }
}

void perf_features_put(const struct perf_file_header *head, struct bytes *features, uint64_t at,
                       struct bytes *to)
{
    struct perf_section section = {.offset = at};
    for (unsigned i = 0; i < PERF_FEATURE_BITS; i++) {
        section.offset += perf_features_has(head, i) ? sizeof section : 0;
    }
    for (unsigned i = 0; i < PERF_FEATURE_BITS; i++) {
        section.size = features[i].size;
        bytes_put(to, &section, perf_features_has(head, i) ? sizeof section : 0);
        section.offset += section.size;
    }
    for (unsigned i = 0; i < PERF_FEATURE_BITS; i++) {
        bytes_put(to, features[i].at, features[i].size);
        to->failed |= features[i].failed;
        bytes_free(&features[i]);
    }
}

static void put_features(struct perf_writer *writer)
{
    struct bytes features[PERF_FEATURE_BITS] = {0};
    struct bytes all = {0};
    for (unsigned i = 0; i < PERF_FEATURE_BITS; i++) {
        bool packed = i == PERF_FEATURE_COMPRESSED; /* the reader has unpacked the records */
        bool ours = packed ? writer->pack != NULL
                           : i == PERF_FEATURE_BUILD_ID && writer->build_ids.size > 0;
        if ((perf_data_has_feature(writer->source, i) && !packed) || ours) {
            perf_features_add(&writer->header, i);
            make_feature(writer, i, &features[i]);
        }
    }
    perf_features_put(&writer->header, features, output_file_tell(writer->file), &all);
    put(writer, all.at, all.size);
    if (all.failed) {
        perf_writer_fail(writer, -ENOMEM);
    }
    bytes_free(&all);
}

int perf_writer_finish(struct perf_writer *writer)
{
    const struct perf_data *source = writer->source;
    if (writer->pack) {
        perf_pack_flush(writer->pack, writer->file);
    }
    writer->header.data.size = output_file_tell(writer->file) - writer->header.data.offset;
    put_features(writer);
    if (writer->header.attrs.size != source->event_count * source->header.attr_size ||
        writer->id_count != count_ids(source)) {
        put_events(writer);
    }
    if (writer->build_ids.failed) {
        perf_writer_fail(writer, -ENOMEM);
    }
    output_file_put_at(writer->file, 0, &writer->header, sizeof writer->header);
    int err = output_file_finish(writer->file);
    writer->file = NULL;
    perf_writer_abort(writer);
    return err;
}

void perf_writer_abort(struct perf_writer *writer)
{
    if (writer) {
        output_file_abort(writer->file);
        perf_pack_free(writer->pack);
        bytes_free(&writer->build_ids);
        free(writer);
    }
}
