import io.jdagent.jmh.JdagentProfiler;
import org.openjdk.jmh.profile.ProfilerException;

/** What JMH finds for -prof jdagent: it takes a discovered profiler's class name for its name. */
public final class jdagent extends JdagentProfiler {
    public jdagent(String options) throws ProfilerException {
        super(options);
    }

    public jdagent() throws ProfilerException {
        super("");
    }
}
