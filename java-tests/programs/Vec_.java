/* Stands for Scala's Vec.scala: the test changes the file's name in the class file. */
public class Vec_ {
    static int $plus$plus(int x) {
        return x * 31 + 7;
    }

    public static void main(String[] arguments) {
        int sum = 0;
        for (int i = 0; i < 200_000; i++) {
            sum += $plus$plus(i);
        }
        System.out.println(sum);
    }
}
