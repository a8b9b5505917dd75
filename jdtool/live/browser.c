#include "jdtool/live/browser.h"

#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/live/child.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* xdg-open may stay as long as the browser does. */
#define WAIT_MS 5000

/* His settings, not root's, which sudo may have left. */
static int at_home(void *context)
{
    const struct passwd *user = getpwuid(getuid());
    (void)context;
    return user && setenv("HOME", user->pw_dir, 1) != 0;
}

void browser_open(const char *path, struct waiting *waiting)
{
    char *absolute = realpath(path, NULL);
    char program[] = "xdg-open";
    char *const arguments[] = {program, absolute, NULL};
    struct child_options options = {.arguments = arguments,
                                    .in = -1,
                                    .out = -1,
                                    .err = -1,
                                    .own_group = true, /* Ctrl-C is not for the browser */
                                    .prepare = at_home};
    struct child child = NO_CHILD;
    options.drop = geteuid() == 0 && output_caller(&options.uid, &options.gid);
    int err = absolute ? child_start(&child, &options) : -1;
    err = err ? err : child_wait(&child, waiting, deadline_in(WAIT_MS), true);
    if (child.pidfd < 0 || (child_ended(&child) && child.status != 0)) {
        info_message("xdg-open cannot show it: open %s%s in a browser", absolute ? "file://" : "",
                     absolute ? absolute : path);
    }
    if (child.pidfd >= 0) {
        close(child.pidfd); /* it goes on by itself */
    }
    free(absolute);
}
