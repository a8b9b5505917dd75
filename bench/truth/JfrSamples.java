import java.nio.file.Path;
import java.util.List;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

/**
 * The execution samples of a JFR file, one a line: the thread, then the frames from the leaf on as
 * NAME@LINE@KIND, parted by tabs. score.py reads it.
 */
public final class JfrSamples {
    public static void main(String[] args) throws Exception {
        StringBuilder out = new StringBuilder();
        try (RecordingFile file = new RecordingFile(Path.of(args[0]))) {
            while (file.hasMoreEvents()) {
                RecordedEvent event = file.readEvent();
                if (!event.getEventType().getName().equals("jdk.ExecutionSample")) {
                    continue;
                }
                RecordedThread thread = event.getValue("sampledThread");
                String name = thread == null ? "?" : thread.getJavaName() != null ? thread.getJavaName() : thread.getOSName();
                out.append(name);
                List<RecordedFrame> frames = event.getStackTrace() == null ? List.of() : event.getStackTrace().getFrames();
                for (RecordedFrame frame : frames) {
                    String type = frame.getMethod().getType().getName();
                    out.append('\t').append(type.isEmpty() ? "" : type + ".").append(frame.getMethod().getName())
                            .append('@').append(frame.getLineNumber()).append('@').append(frame.getType());
                }
                if (event.getStackTrace() != null && event.getStackTrace().isTruncated()) {
                    out.append("\t[truncated]@0@?");
                }
                out.append('\n');
                if (out.length() > 1 << 20) {
                    System.out.print(out);
                    out.setLength(0);
                }
            }
        }
        System.out.print(out);
    }
}
