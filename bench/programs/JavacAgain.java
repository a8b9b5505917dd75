import java.io.OutputStream;
import javax.tools.ToolProvider;

/** javac with these arguments, again and again; "idle" after the first time. */
public class JavacAgain {
    public static void main(String[] args) {
        for (boolean first = true;; first = false) {
            ToolProvider.getSystemJavaCompiler().run(null, OutputStream.nullOutputStream(),
                    OutputStream.nullOutputStream(), args);
            if (first) {
                System.out.println("idle");
            }
        }
    }
}
