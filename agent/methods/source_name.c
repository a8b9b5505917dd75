#include "agent/methods/source_name.h"

#include "agent/methods/source_parts.h"

/* Ends the string, at a character's end. */
static size_t finish(struct source_text *text)
{
    if (text->room > 0) {
        size_t end = text->length < text->room ? text->length : text->room - 1;
        if (end < text->length) {
            while (end > 0 && ((unsigned char)text->out[end] & 0xc0) == 0x80) {
                end--;
            }
        }
        text->out[end] = '\0';
    }
    return text->length;
}

enum source_language source_language(const char *source_file)
{
    static const struct {
        const char *extension;
        enum source_language language;
    } extensions[] = {
        {".kt", SOURCE_KOTLIN},     {".kts", SOURCE_KOTLIN},    {".scala", SOURCE_SCALA},
        {".sc", SOURCE_SCALA},      {".clj", SOURCE_CLOJURE},   {".cljc", SOURCE_CLOJURE},
        {".groovy", SOURCE_GROOVY}, {".gradle", SOURCE_GROOVY},
    };
    for (size_t i = 0; source_file && i < sizeof(extensions) / sizeof(*extensions); i++) {
        if (part_ends(part_of(source_file), extensions[i].extension)) {
            return extensions[i].language;
        }
    }
    /* What Clojure calls that which was typed in. */
    return source_file && part_is(part_of(source_file), "NO_SOURCE_FILE") ? SOURCE_CLOJURE
                                                                          : SOURCE_OTHER;
}

static bool put_other(struct source_text *text, const struct source_method *method)
{
    put_string(text, method->class_name);
    put_string(text, ".");
    put_string(text, method->method);
    return false;
}

size_t source_name(char *out, size_t room, enum source_language language,
                   const struct source_method *method)
{
    static bool (*const languages[])(struct source_text *, const struct source_method *) = {
        [SOURCE_OTHER] = put_other,     [SOURCE_KOTLIN] = put_kotlin, [SOURCE_SCALA] = put_scala,
        [SOURCE_CLOJURE] = put_clojure, [SOURCE_GROOVY] = put_groovy,
    };
    struct source_text text = {.out = out, .room = room};
    if (!languages[language](&text, method)) {
        put_string(&text, method->parameters);
    }
    return finish(&text);
}
