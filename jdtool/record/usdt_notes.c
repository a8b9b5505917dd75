#include "jdtool/record/usdt_notes.h"

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Notes ---- */

/* A text of the note, behind which the next one begins. NULL: it does not end. */
static const char *take_text(const char **at, const char *end)
{
    const char *text = *at;
    const char *stop = memchr(text, '\0', (size_t)(end - text));
    if (!stop) {
        return NULL;
    }
    *at = stop + 1;
    return text;
}

/* The address, that of .stapsdt.base when it was written, a semaphore's; then three texts. */
static bool read_note(const char *at, const char *end, uint64_t base, struct usdt_note *note)
{
    uint64_t words[3];
    if ((size_t)(end - at) < sizeof words) {
        return false;
    }
    memcpy(words, at, sizeof words);
    at += sizeof words;
    note->provider = take_text(&at, end);
    note->name = note->provider ? take_text(&at, end) : NULL;
    note->arguments = note->name ? take_text(&at, end) : NULL;
    /* prelink moves the code and that section, and does not know of notes. */
    note->address = base ? words[0] + (base - words[1]) : words[0];
    return note->arguments != NULL;
}

void usdt_notes_walk(const struct elf_file *file,
                     bool (*take)(void *context, const struct usdt_note *note), void *context)
{
    size_t size;
    GElf_Shdr header;
    GElf_Nhdr head;
    size_t name_at;
    size_t at;
    Elf_Scn *section = elf_file_section(file, ".stapsdt.base", &size);
    uint64_t base = section && gelf_getshdr(section, &header) ? header.sh_addr : 0;
    section = elf_file_section(file, ".note.stapsdt", &size);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    if (!data || !data->d_buf || gelf_getclass(file->elf) != ELFCLASS64) {
        return;
    }
    size_t next = 0;
    while ((next = gelf_getnote(data, next, &head, &name_at, &at)) > 0) {
        static const char owner[] = "stapsdt";
        const char *bytes = data->d_buf;
        struct usdt_note note;
        if (head.n_namesz != sizeof owner || memcmp(bytes + name_at, owner, sizeof owner) != 0) {
            continue;
        }
        if (!read_note(bytes + at, bytes + at + head.n_descsz, base, &note) ||
            !take(context, &note)) {
            return;
        }
    }
}

/* ---- Operands ---- */

/* The kernel knows the 64-bit register alone, under the name of its 16-bit half. */
static bool x86_register(const char *name, size_t size, char out[8])
{
    static const char *const legacy[] = {"ax", "bx", "cx", "dx", "si", "di", "bp", "sp"};
    if (size >= 2 && size <= 4 && name[0] == 'r' && name[1] >= '0' && name[1] <= '9') {
        /* r8, r8d, r8w, r8b */
        size_t digits = strspn(name + 1, "0123456789");
        digits = digits < size ? digits : size - 1;
        snprintf(out, 8, "%%r%.*s", (int)digits, name + 1);
        return true;
    }
    if (size == 3 && (name[0] == 'r' || name[0] == 'e')) {
        name++;
        size--;
    }
    for (size_t i = 0; i < sizeof legacy / sizeof *legacy; i++) {
        /* ax, al; si, sil */
        bool is_whole = size == 2 && memcmp(name, legacy[i], 2) == 0;
        bool is_low = i < 4 ? size == 2 && name[0] == legacy[i][0] && name[1] == 'l'
                            : size == 3 && memcmp(name, legacy[i], 2) == 0 && name[2] == 'l';
        if (is_whole || is_low) {
            snprintf(out, 8, "%%%s", legacy[i]);
            return true;
        }
    }
    return false;
}

/* x3, w3, sp. */
static bool arm_register(const char *name, size_t size, char out[8])
{
    if (size == 2 && memcmp(name, "sp", 2) == 0) {
        snprintf(out, 8, "%%sp");
        return true;
    }
    bool is_one = size >= 2 && size <= 3 && (name[0] == 'x' || name[0] == 'w') &&
                  strspn(name + 1, "0123456789") >= size - 1;
    if (is_one) {
        snprintf(out, 8, "%%x%.*s", (int)size - 1, name + 1);
    }
    return is_one;
}

static bool read_number(const char *text, const char *end, long long *number)
{
    char *behind;
    if (text == end) {
        *number = 0;
        return true;
    }
    *number = strtoll(text, &behind, 0);
    return behind == end;
}

/* "-24(%rbp)", "(%rax)". */
static bool x86_memory(const char *text, const char *open, const char *end, char *out, size_t size)
{
    char name[8];
    long long number;
    if (open[1] != '%' || end[-1] != ')' || !read_number(text, open, &number) ||
        !x86_register(open + 2, (size_t)(end - open) - 3, name)) {
        return false;
    }
    return snprintf(out, size, "%+lld(%s)", number, name) < (int)size;
}

/* "[x1]", "[sp, 24]". */
static bool arm_memory(const char *text, const char *end, char *out, size_t size)
{
    char name[8];
    long long number = 0;
    const char *stop = end - 1;
    const char *comma = memchr(text, ',', (size_t)(end - text));
    const char *behind = comma ? comma : stop;
    if (end - text < 2 || *stop != ']' ||
        !arm_register(text + 1, (size_t)(behind - text) - 1, name)) {
        return false;
    }
    if (comma && !read_number(comma + 1 + strspn(comma + 1, " "), stop, &number)) {
        return false;
    }
    return snprintf(out, size, "%+lld(%s)", number, name) < (int)size;
}

static bool translate(const char *text, const char *end, char *out, size_t size)
{
    char name[8];
    long long number;
    const char *open = memchr(text, '(', (size_t)(end - text));
    if (text == end) {
        return false;
    }
    if (*text == '%') {
        return x86_register(text + 1, (size_t)(end - text) - 1, name) &&
               snprintf(out, size, "%s", name) < (int)size;
    }
    if (open) {
        return x86_memory(text, open, end, out, size);
    }
    if (*text == '[') {
        return arm_memory(text, end, out, size);
    }
    if (arm_register(text, (size_t)(end - text), name)) {
        return snprintf(out, size, "%s", name) < (int)size;
    }
    text += *text == '$';
    return text < end && read_number(text, end, &number) &&
           snprintf(out, size, "\\%lld", number) < (int)size;
}

bool usdt_operand(const char *arguments, unsigned index, char *out, size_t size)
{
    const char *at = arguments;
    for (;;) {
        at += strspn(at, " ");
        const char *operand = strchr(at, '@');
        if (!operand) {
            return false;
        }
        operand++;
        /* A blank stands between arguments, and within "[sp, 24]". */
        const char *end = *operand == '[' ? strchr(operand, ']') : NULL;
        end = end ? end + 1 : operand + strcspn(operand, " ");
        if (index == 0) {
            return translate(operand, end, out, size);
        }
        index--;
        at = end;
    }
}
