import java.io.File;
import java.util.List;
import org.openjdk.jmc.common.IMCFrame;
import org.openjdk.jmc.common.IMCStackTrace;
import org.openjdk.jmc.common.IMCThread;
import org.openjdk.jmc.common.IMCType;
import org.openjdk.jmc.common.item.Attribute;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemCollection;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.common.item.IType;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.common.unit.UnitLookup;
import org.openjdk.jmc.flightrecorder.JfrAttributes;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;
import org.openjdk.jmc.flightrecorder.jdk.JdkAttributes;

/** What JDK Mission Control's parser finds in a file: "EVENT<tab>WEIGHT<tab>thread;root;…;leaf", a line a sample. */
public class JmcStacks {
    public static void main(String[] arguments) throws Exception {
        IItemCollection events = JfrLoaderToolkit.loadEvents(new File(arguments[0]));
        for (IItemIterable items : events) {
            IType<IItem> type = items.getType();
            IMemberAccessor<IMCStackTrace, IItem> stack = JfrAttributes.EVENT_STACKTRACE.getAccessor(type);
            IMemberAccessor<IMCThread, IItem> thread = JfrAttributes.EVENT_THREAD.getAccessor(type);
            IMemberAccessor<IQuantity, IItem> duration = JfrAttributes.DURATION.getAccessor(type);
            IMemberAccessor<IQuantity, IItem> weight = JdkAttributes.SAMPLE_WEIGHT.getAccessor(type);
            IMemberAccessor<IMCType, IItem> allocated = JdkAttributes.OBJECT_CLASS.getAccessor(type);
            IMemberAccessor<IMCType, IItem> thrown = JdkAttributes.EXCEPTION_THROWNCLASS.getAccessor(type);
            IMemberAccessor<IMCType, IItem> object = allocated != null ? allocated : thrown;
            for (IItem item : items) {
                if (stack == null || thread == null) {
                    continue;
                }
                long value = weight != null ? weight.getMember(item).longValue()
                    : duration != null ? duration.getMember(item).clampedLongValueIn(UnitLookup.NANOSECOND) : 0;
                StringBuilder line = new StringBuilder(type.getIdentifier() + "\t" + value + "\t");
                line.append(thread.getMember(item).getThreadName());
                IMCStackTrace trace = stack.getMember(item);
                List<? extends IMCFrame> frames = trace == null ? List.of() : trace.getFrames();
                for (int i = frames.size(); i-- > 0;) {
                    IMCFrame frame = frames.get(i);
                    String method = frame.getMethod().getMethodName();
                    String kind = frame.getType().getName();
                    boolean isNative = kind.equals("NATIVE") || kind.equals("CPP") || kind.equals("KERNEL");
                    line.append(';').append(isNative ? method : frame.getMethod().getType().getFullName() + "." + method);
                }
                if (object != null && object.getMember(item) != null) {
                    line.append(';').append(object.getMember(item).getFullName());
                }
                System.out.println(line);
            }
        }
    }
}
