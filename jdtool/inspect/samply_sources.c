#include "jdtool/inspect/samply_sources.h"

#include "format/samply.h"
#include "jdtool/base/intern.h"
#include "jdtool/inspect/class_listing.h"

#include <byteswap.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct samply_sources {
    struct source_texts *texts;
    struct intern asked; /* paths of sources and of listings, which never are the same */
    uint64_t sources;
    uint64_t listings;
};

struct samply_sources *samply_sources_new(struct source_texts *texts)
{
    struct samply_sources *sources = calloc(1, sizeof *sources);
    if (sources) {
        sources->texts = texts;
    }
    return sources;
}

void samply_sources_free(struct samply_sources *sources)
{
    if (sources) {
        intern_free(&sources->asked);
        free(sources);
    }
}

/* Whether a path is asked for the first time. 1, 0 or -ENOMEM. */
static int first_time(struct samply_sources *sources, const char *path)
{
    uint32_t before = sources->asked.count;
    return intern(&sources->asked, path) ? sources->asked.count > before : -ENOMEM;
}

int samply_sources_have(struct samply_sources *sources, const char *path)
{
    int first = first_time(sources, path);
    return first < 0 ? first : 0;
}

static uint32_t padded(size_t size)
{
    return (uint32_t)((size + SAMPLY_ALIGN - 1) / SAMPLY_ALIGN * SAMPLY_ALIGN);
}

static void put_padded(struct bytes *out, const void *from, size_t size)
{
    static const uint8_t zeros[SAMPLY_ALIGN];
    bytes_put(out, from, size);
    bytes_put(out, zeros, padded(size) - size);
}

static int put_record(struct bytes *out, const char *path, const char *text, size_t size,
                      uint64_t timestamp, bool swapped)
{
    uint32_t path_size = padded(strlen(path) + 1);
    const uint32_t words[] = {
        SAMPLY_EMBEDDED_SOURCE_FILE,
        (uint32_t)sizeof(struct samply_embedded_source) + path_size + padded(size),
        path_size,
        (uint32_t)size,
    };
    for (int i = 0; i < 4; i++) {
        if (i == 2) {
            bytes_u64(out, swapped ? bswap_64(timestamp) : timestamp);
        }
        bytes_u32(out, swapped ? bswap_32(words[i]) : words[i]);
    }
    put_padded(out, path, strlen(path) + 1);
    put_padded(out, text, size);
    return out->failed ? -ENOMEM : 0;
}

/*
 * The path of a method's class, without a suffix, as its source's directory and the last part of
 * the class's name tell it: of java/util/HashMap.java and "java.util.HashMap$Node.getKey()",
 * "HashMap$Node.getKey" or "Ljava/util/HashMap$Node;getKey()…" it is java/util/HashMap$Node. False:
 * they tell of none.
 */
static bool class_path_of(const char *file, const char *method, char path[PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    size_t directory = slash ? (size_t)(slash + 1 - file) : 0;
    const char *arguments = method + strcspn(method, "( ");
    const char *end = memchr(method, ';', (size_t)(arguments - method));
    if (!end) {
        end = memrchr(method, '.', (size_t)(arguments - method));
    }
    if (!end) {
        return false;
    }
    const char *name = end;
    while (name > method && name[-1] != '.' && name[-1] != '/') {
        name--;
    }
    name += name == method && *end == ';' && *name == 'L'; /* a class without a package */
    int size = snprintf(path, PATH_MAX, "%.*s%.*s", (int)directory, file, (int)(end - name), name);
    return name < end && size < PATH_MAX;
}

static int put_listing(struct samply_sources *sources, const char *file, const char *method,
                       uint64_t timestamp, bool swapped, struct bytes *out)
{
    char stem[PATH_MAX];
    char path[PATH_MAX + 16];
    char *class = NULL;
    size_t size;
    if (!class_path_of(file, method, stem)) {
        return 0;
    }
    snprintf(path, sizeof path, "%s.bytecode", stem);
    int err = first_time(sources, path);
    if (err <= 0) {
        return err;
    }
    snprintf(path, sizeof path, "%s.class", stem);
    err = source_texts_read(sources->texts, path, &class, &size);
    if (err || !class) {
        return err;
    }
    struct bytes text = {0};
    err = class_listing(&text, (const uint8_t *)class, size);
    if (!err && text.size > 0) {
        snprintf(path, sizeof path, "%s.bytecode", stem);
        err = put_record(out, path, (const char *)text.at, text.size, timestamp, swapped);
        sources->listings++;
    }
    bytes_free(&text);
    free(class);
    return err;
}

int samply_sources_put(struct samply_sources *sources, const char *file, const char *method,
                       uint64_t timestamp, bool swapped, struct bytes *out)
{
    char *text = NULL;
    size_t size;
    int err = first_time(sources, file);
    if (err > 0) {
        err = source_texts_read(sources->texts, file, &text, &size);
    }
    if (!err && text) {
        err = put_record(out, file, text, size, timestamp, swapped);
        sources->sources++;
        free(text);
        return err;
    }
    return err || !method ? err : put_listing(sources, file, method, timestamp, swapped, out);
}

uint64_t samply_sources_count(const struct samply_sources *sources)
{
    return sources->sources;
}

uint64_t samply_listings_count(const struct samply_sources *sources)
{
    return sources->listings;
}
