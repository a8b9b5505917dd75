/** The shortest of programs, for what starting and ending a profile costs. */
public final class Hello {
    public static void main(String[] args) {
        System.out.println("hello");
    }
}
