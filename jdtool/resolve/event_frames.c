#include "jdtool/resolve/event_frames.h"

#include "jdtool/base/text.h"

#include <string.h>

static bool is_java(const struct resolved_frame *frame)
{
    switch (frame->kind) {
    case RESOLVED_COMPILED:
    case RESOLVED_INTERPRETED:
        return true;
    case RESOLVED_INLINED: /* native functions are inlined, too */
        return frame->method && frame->method->kind == RESOLVED_COMPILED;
    case RESOLVED_STUB: /* by frame pointers alone interpreted methods have no names */
        return frame->method && strcmp(frame->method->name, "Interpreter") == 0;
    default:
        return false;
    }
}

uint32_t event_frames_java(const struct resolved_frame *frames, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && !is_java(&frames[i])) {
        i++;
    }
    return i;
}

/* ---- Exceptions ---- */

static bool is_method(const struct resolved_frame *frame, const char *name)
{
    const struct resolved_method *method = frame->method;
    return method && method->method_name && strcmp(method->method_name, name) == 0;
}

static bool is_named_so(const char *class_name)
{
    return text_ends(class_name, "Exception") || text_ends(class_name, "Error") ||
           text_ends(class_name, "Throwable") || text_ends(class_name, "Failure");
}

const char *event_frames_exception(const struct resolved_frame *frames, uint32_t count)
{
    const char *found = NULL;
    uint32_t i = event_frames_java(frames, count);
    while (i < count && is_method(&frames[i], "fillInStackTrace")) {
        i++;
    }
    for (; i < count && is_method(&frames[i], "<init>"); i++) {
        const char *name = frames[i].method->class_name;
        if (name && (!found || is_named_so(name))) {
            found = name;
        }
    }
    return found;
}

/* ---- Idle waits ---- */

/*
 * Threads of the JVM's own, by the 15 bytes that the kernel keeps of their names; since 26 those
 * are the first seven, two dots and the last six (os::set_native_thread_name).
 */
static const char *const jvm_threads[] = {
    "GC Thread#",
    "G1 ",
    "VM Thread",
    "VM Periodic Tas",
    "C1 CompilerThre",
    "C2 CompilerThre",
    "Sweeper thread",
    "Signal Dispatch",
    "Service Thread",
    "Monitor Deflati",
    "Notification Th",
    "ZWorker",
    "ZDriver",
    "ZDirector",
    "ZStat",
    "Shenandoah",
    "ParGC Thread",
    "StringDedupProc",
    "JFR ",
    "Attach Listener",
    "jdagent ", /* the agent's own */
    "VM Peri..Thread",
    "C1 Comp..",
    "C2 Comp..",
    "Signal ..atcher",
    "Monitor..Thread",
    "Notific..Thread",
    "StringD..",
    "Shenand..",
};

/* What waits for work, a connection or a moment: the class, perhaps in another package, as Netty is
 * in gRPC's, and the method. One that does the work as well waits where it parks, sleeps or polls.
 */
static const struct {
    const char *class_name;
    const char *method;
    bool works;
} waiters[] = {
    {"java.util.concurrent.ThreadPoolExecutor", "getTask", false},
    {"java.util.concurrent.ForkJoinPool", "awaitWork", false},
    {"java.util.concurrent.ThreadPerTaskExecutor", "awaitTermination", false},
    {"java.util.concurrent.CompletableFuture$Delayer", "run", false},
    {"java.util.concurrent.DelayScheduler", "loop", true},
    {"java.util.concurrent.DelayQueue", "take", false},
    {"java.lang.VirtualThread", "takeVirtualThreadListToUnblock", false},
    {"java.util.TimerThread", "mainLoop", false},
    {"java.lang.ref.Reference$ReferenceHandler", "run", false},
    {"java.lang.ref.ReferenceQueue", "remove", false},
    {"sun.nio.ch.EPollSelectorImpl", "doSelect", false},
    {"sun.nio.ch.EPollPoller", "poll", false},
    {"sun.nio.ch.EPollPort$EventHandlerTask", "poll", false},
    {"sun.nio.ch.Net", "accept", false},
    {"sun.nio.ch.NioSocketImpl", "accept", false},
    {"java.net.PlainSocketImpl", "socketAccept", false},
    {"channel.epoll.Native", "epollWait", false}, /* Netty */
    {"channel.uring.Native", "ioUringEnter", false},
    {"org.apache.tomcat.util.threads.ThreadPoolExecutor", "getTask", false},
    {"org.apache.catalina.core.StandardServer", "await", false},
    {"org.eclipse.jetty.util.thread.QueuedThreadPool$Runner", "idleJobPoll", false},
    {"org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread", "reservedWait", false},
    {"org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread", "waitForTask", false},
    {"org.jboss.threads.EnhancedQueueExecutor$PoolThreadNode", "park", false}, /* Quarkus */
    {"kotlinx.coroutines.scheduling.CoroutineScheduler$Worker", "park", false},
    {"kotlinx.coroutines.scheduling.CoroutineScheduler$Worker", "runWorker", true},
    {"kotlinx.coroutines.DefaultExecutor", "run", true},
    {"actor.LightArrayRevolverScheduler", "waitNanos", false},      /* Akka, Pekko */
    {"datadog.trace.agent.common.metrics.Aggregator", "run", true}, /* Datadog's agent */
    {"datadog.trace.agent.core.datastreams.DefaultDataStreamsMonitoring$InboxProcessor", "run",
     true},
    {"datadog.trace.agent.common.writer.TraceProcessingWorker$TraceSerializingHandler",
     "consumeFromPrimaryQueue", true},
    {"com.timgroup.statsd.StatsDSender", "sendLoop", true},
    {"com.timgroup.statsd.StatsDNonBlockingProcessor$ProcessingTask", "getMessage", false},
    {"com.hazelcast.internal.util.concurrent.MPSCQueue", "takeAll", false},
};

static bool is_class(const char *name, const char *wanted)
{
    size_t length = strlen(name);
    size_t behind = strlen(wanted);
    return text_ends(name, wanted) && (length == behind || name[length - behind - 1] == '.');
}

/* callee: NULL: none. Whether it waits, for work or a moment. */
static bool is_wait(const struct resolved_frame *callee)
{
    static const char *const waits[] = {"park", "sleep", "poll"};
    const char *name = callee && callee->method ? callee->method->method_name : NULL;
    for (size_t i = 0; name && i < sizeof waits / sizeof *waits; i++) {
        if (strncmp(name, waits[i], strlen(waits[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* callee: NULL: none. */
static bool is_waiter(const struct resolved_frame *frame, const struct resolved_frame *callee)
{
    const struct resolved_method *method = frame->method;
    if (!method || !method->class_name || !method->method_name) {
        return false;
    }
    for (size_t i = 0; i < sizeof waiters / sizeof *waiters; i++) {
        if (strcmp(method->method_name, waiters[i].method) == 0 &&
            is_class(method->class_name, waiters[i].class_name) &&
            (!waiters[i].works || is_wait(callee))) {
            return true;
        }
    }
    return false;
}

bool event_frames_idle(const struct resolved_frame *frames, uint32_t count, const char *comm,
                       bool is_first)
{
    for (size_t i = 0; i < sizeof jvm_threads / sizeof *jvm_threads; i++) {
        if (strncmp(comm, jvm_threads[i], strlen(jvm_threads[i])) == 0) {
            return true;
        }
    }
    bool has_java = false;
    for (uint32_t i = 0; i < count; i++) {
        has_java |= is_java(&frames[i]);
        if (is_waiter(&frames[i], i ? &frames[i - 1] : NULL)) {
            return true;
        }
    }
    /* The launcher's first thread waits for the one that runs main. */
    return !has_java && is_first && strcmp(comm, "java") == 0;
}
