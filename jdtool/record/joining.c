#include "jdtool/record/joining.h"

#include "jdtool/base/message.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/verbs.h"

#include <errno.h>
#include <stdlib.h>

static int use_running_session(struct joining *joining, const struct session_status *status,
                               const struct joining_options *options)
{
    int pid = (int)joining->session.target->process.pid;
    if (!status->has_dump) {
        error_message(
            "a session without a dump runs in process %d (mode=map?): first run jdperf stop %d",
            pid, pid);
        return -EBUSY;
    }
    info_message(
        "a session already runs in process %d: using its dump, and leaving the session running",
        pid);
    if (*options->agent_options) {
        info_message("--agent-options has no effect on it");
    }
    return 0;
}

/* 0, or -EAGAIN: the session that was found is just being ended by its last user, or that which was
 * not there has begun meanwhile, or has no dump where the JVM was not `asked`. */
static int join_or_start(struct joining *joining, struct session_status *status,
                         const struct joining_options *options, bool asked)
{
    struct live_session *session = &joining->session;
    int err = asked ? session_status(session, status) : 0;
    if (err) {
        return err;
    }
    if (status->running) {
        err = use_running_session(joining, status, options);
        int joined = err ? 0 : session_join(session, status);
        joining->joined = true;
        return joined == -EAGAIN ? joined : err;
    }
    joining->joined = false;
    session_announce_warning(session->target);
    err = session_start(session, options->dir ? options->dir : SESSION_STAGED, true,
                        options->agent_options, options->more);
    return err == -EEXIST ? -EAGAIN : err;
}

int joining_start(struct joining *joining, const struct target *target, struct waiting *waiting,
                  struct guarded *guarded, const struct joining_options *options)
{
    struct session_status *status = calloc(1, sizeof *status);
    char dump[PATH_MAX];
    int pid = (int)target->process.pid;
    if (!status) {
        return failed_to(-ENOMEM, "start");
    }
    session_init(&joining->session, target, waiting, guarded, live_agent());
    /* One that has the agent is asked for its state next, which tells as much. */
    int err = target_agent(target, dump) ? 0 : ask_whether_it_answers(target, waiting);
    for (int tries = 0; !err && tries < 20; tries++) {
        /* A JVM that maps no dump has no session as a rule, and need not be asked. */
        bool asked = tries > 0 || target_dump(target, dump);
        err = join_or_start(joining, status, options, asked);
        if (err != -EAGAIN || tries == 19) {
            break;
        }
        err = wait_ms(waiting, asked ? 250 : 0);
    }
    free(status);
    if (err) {
        return err;
    }
    if (!target_dump(target, dump)) {
        error_message("the agent in process %d writes no dump", pid);
        return -ENOENT;
    }
    err = fetch_find(&joining->fetch, target, dump, options->at ? options->at : "");
    return failed_to(err, "open the dump %s of process %d", dump, pid);
}
