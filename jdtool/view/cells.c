#include "jdtool/view/cells.h"

#include "jdtool/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_WIDTH 120 /* where there is no terminal */

void cell_put(struct packed_output *output, const char *text, uint32_t width, bool pad)
{
    size_t size = strlen(text);
    uint32_t columns = 0;
    for (size_t at = 0; at < size && columns < width; columns++) {
        size_t length = text_utf8_size(text + at, size - at);
        bool is_last = columns + 1 == width && at + (length ? length : 1) < size;
        if (is_last) {
            packed_output_text(output, "…");
        } else if (length == 0 || text_is_control(text + at)) {
            packed_output_text(output, "?");
        } else {
            packed_output_put(output, text + at, length);
        }
        at += length ? length : 1;
    }
    if (pad) {
        packed_output_printf(output, "%*s", (int)(width - columns), "");
    }
}

uint32_t cell_columns(const char *text)
{
    uint32_t columns = 0;
    for (; *text; text++) {
        columns += (*text & 0xc0) != 0x80;
    }
    return columns;
}

const char *cell_fit_name(const char *name, uint32_t width, char text[CELL_MAX])
{
    size_t size = strcspn(name, "(");
    if (cell_columns(name) <= width || size >= CELL_MAX - 4) {
        return name;
    }
    snprintf(text, CELL_MAX, "%.*s%s", (int)size, name,
             name[size] && strcmp(name + size, "()") != 0 ? "(…)" : name + size);
    while (cell_columns(text) > width) {
        /* The first package that is longer than a letter; a class begins with a capital, or, as
         * Clojure's and scripts' do not, is what the method's name is behind. */
        char *part = text;
        size_t length;
        while ((length = strcspn(part, ".(")) == 1 && part[1] == '.') {
            part += 2;
        }
        const char *behind = part + length + (part[length] == '.');
        if (part[0] < 'a' || part[0] > 'z' || behind[strcspn(behind, ".(")] != '.' ||
            part + length > text + size) {
            break;
        }
        memmove(part + 1, part + length, strlen(part + length) + 1);
    }
    return text;
}

void cell_fit_place(char text[CELL_MAX], uint32_t width)
{
    static const char left_out[] = "…";
    const char *line = strrchr(text, ':');
    size_t size = line ? strlen(line) : 0;
    if (!line || strspn(line + 1, "0123456789") != size - 1 || cell_columns(text) <= width ||
        size + 1 >= width || strlen(text) + sizeof left_out > CELL_MAX) {
        return;
    }
    char *end = text;
    for (size_t left = width - size - 1; left > 0; left--) {
        do {
            end++;
        } while ((*end & 0xc0) == 0x80);
    }
    memmove(end + sizeof left_out - 1, line, size + 1);
    memcpy(end, left_out, sizeof left_out - 1);
}

uint32_t cell_terminal_width(void)
{
    struct winsize size;
    const char *set = getenv("COLUMNS");
    char *end;
    long wanted = set ? strtol(set, &end, 10) : 0;
    if (wanted > 0 && wanted <= 10000 && *end == '\0') {
        return (uint32_t)wanted;
    }
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col
                                                                       : DEFAULT_WIDTH;
}
