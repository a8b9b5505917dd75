/* Texts of profiles in the columns of a terminal. */
#ifndef JD_TOOL_CELLS_H
#define JD_TOOL_CELLS_H

#include "jdtool/base/packed_output.h"

#include <stdbool.h>
#include <stdint.h>

#define CELL_MAX 1024 /* bytes of a cell's text */

/* Puts at most `width` columns of a text, padded to them; of a longer one, its end is left out. A
 * name is the program's: no control character of it reaches the terminal. */
void cell_put(struct packed_output *output, const char *text, uint32_t width, bool pad);

/* How many columns a text of UTF-8 takes. */
uint32_t cell_columns(const char *text);

/* A method's name in at most `width` columns, where it can be: without its arguments, then with
 * packages as their first letters. Returns `name` or `text`. */
const char *cell_fit_name(const char *name, uint32_t width, char text[CELL_MAX]);

/* A file and line in at most `width` columns, where it can be: the file loses its end, the line
 * stays. */
void cell_fit_place(char text[CELL_MAX], uint32_t width);

/* How wide standard output is: $COLUMNS, the terminal's own columns, else 120. */
uint32_t cell_terminal_width(void);

#endif
