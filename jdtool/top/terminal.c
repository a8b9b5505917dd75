#include "jdtool/top/terminal.h"

#include <curses.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *keyboard; /* standard input is the recording's later */

const char *terminal_open(void)
{
    int fd = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                                           : -1;
    keyboard = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!keyboard) {
        return "it needs a terminal";
    }
    (void)setlocale(LC_CTYPE, "");
    if (!newterm(NULL, stdout, keyboard)) {
        return "the terminal's kind is not known (TERM)";
    }
    if (!tigetstr("cup")) { /* curses would show an empty screen */
        terminal_close();
        return "the terminal cannot place its cursor (TERM=dumb?)";
    }
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    if (has_colors() && !getenv("NO_COLOR")) {
        start_color();
        use_default_colors();
        init_pair(TERMINAL_HOT, COLOR_RED, -1);
        init_pair(TERMINAL_WARM, COLOR_GREEN, -1);
    }
    refresh();
    return NULL;
}

int terminal_keyboard(void)
{
    return fileno(keyboard);
}

void terminal_close(void)
{
    if (keyboard) {
        endwin();
        fclose(keyboard);
        keyboard = NULL;
    }
}
