// What only Scala 3 has.
package geometry3

extension (n: Int)
  def doubled: Int = n * 2
  def **(m: Int): Int = (0 until m).foldLeft(1)((a, _) => a * n)

opaque type Grams = Double
object Grams:
  def apply(d: Double): Grams = d
  extension (g: Grams) def toKilos: Double = g / 1000

enum Color(val rgb: Int):
  case Red extends Color(0xff0000)
  case Mixed(a: Int, b: Int) extends Color(a + b)
  def bright: Boolean = rgb > 3

trait Monoid[T]:
  def combine(a: T, b: T): T
  extension (a: T) def |+|(b: T): T = combine(a, b)

given Monoid[Int] with
  def combine(a: Int, b: Int): Int = a + b

given strings: Monoid[String] with
  def combine(a: String, b: String): String = a + b

given listed[T](using m: Monoid[T]): Monoid[List[T]] with
  def combine(a: List[T], b: List[T]): List[T] = a.zip(b).map((x, y) => m.combine(x, y))

lazy val table: Map[Int, Int] = (0 until 10).map(i => i -> i * i).toMap

inline def twice(inline n: Int): Int = n + n

class Machine(start: Int):
  private var state = start
  lazy val slow: Int = state * 7
  def run(n: Int): Int =
    def step(i: Int): Int = if i == 0 then state else step(i - 1) + slow
    val adders = (0 until n).map(i => (j: Int) => i + j + state)
    adders.map(f => f(n)).sum + step(n)
  def unary_~ : Int = -state
  def onEach(f: Int ?=> Int): Int = f(using state)
  def choose: PartialFunction[Int, Int] = { case i if i > 3 => i + state }

def total(n: Int): Int = n.doubled + (n ** 3) + summon[Monoid[Int]].combine(n, 1)

@main def three(rounds: Int): Unit =
  var sum = 0.0
  for round <- 0 until rounds do
    val machine = Machine(round)
    sum += machine.run(10) + ~machine + total(round) + (1 |+| 2) + twice(round)
    sum += Grams(3).toKilos + Color.Mixed(1, 2).rgb + table(3) + ("a" |+| "b").length
    sum += machine.onEach(summon[Int] + 1) + (List(1, 2) |+| List(3, 4)).sum + machine.choose.lift(round).size
    if Color.Red.bright then sum += 1
  println(sum)
