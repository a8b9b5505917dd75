// Forms of Scala whose names its compiler mangles; Scala 2.13 and 3 read it both.
package geometry

import scala.collection.mutable.ArrayBuffer

trait Shape {
  def area: Double
  def twice: Double = area * 2
  lazy val named: String = "shape " + area
  private def hidden: Int = 3
  def shown: Int = hidden
  val sides: Int = 4
}

class Meters(val value: Double) extends AnyVal {
  def +(other: Meters): Meters = new Meters(value + other.value)
  def isLong: Boolean = value > 100
}

case class Vec(x: Double, y: Double = 0) extends Shape {
  def +(o: Vec): Vec = Vec(x + o.x, y + o.y)
  def -(o: Vec): Vec = Vec(x - o.x, y - o.y)
  def *:(d: Double): Vec = Vec(x * d, y * d)
  def unary_! : Vec = Vec(-x, -y)
  def ==>(o: Vec): Boolean = x < o.x
  def area: Double = x * y
  var weight: Int = 0
  def weight_+=(n: Int): Unit = weight += n
  lazy val length: Double = math.sqrt(x * x + y * y)

  def scaled(factors: Seq[Double]): Seq[Vec] = factors.map(f => Vec(x * f, y * f))

  def nested(n: Int): Seq[Int] = (0 until n).flatMap(i => (0 until i).map(j => i + j + weight))

  def walk(n: Int): Int = {
    def step(i: Int): Int = if (i == 0) 0 else weight + step2(i - 1)
    def step2(i: Int): Int = if (i == 0) 1 else 1 + step(i - 1)
    step(n)
  }

  def plus(vs: Seq[Vec]): Seq[Vec] = vs.map(v => this + v)
  def update(vs: Seq[Vec]): Seq[Vec] = vs.map(v => v)
  def ++(vs: Seq[Vec]): Seq[Vec] = vs.map(v => v + this)

  private def shared(vs: Seq[Vec]): Seq[Double] = vs.map(v => v.x + weight)
  class Up { def times(vs: Seq[Vec]): Double = { def at(i: Int) = shared(vs)(i); at(0) } }

  def ordering: Ordering[Vec] = new Ordering[Vec] {
    def compare(a: Vec, b: Vec): Int = a.x.compare(b.x)
  }

  def local: Int = {
    class Counter(var n: Int) {
      def up(): Int = { n += 1; n }
    }
    new Counter(weight).up()
  }

  def partial: PartialFunction[Int, String] = { case i if i > 3 => "more" }

  def lazily(n: => Int): Int = if (weight > 3) n else 0

  def curried(a: Int)(b: Int): Int = a * b + weight

  def cached: Int = {
    lazy val slow = weight * 3
    slow + slow
  }

  private[this] def secret(n: Int) = n + weight
  def revealed: Int => Int = n => secret(n)

  def `with spaces in it`: Int = weight

  def `type`: Int = 1
}

object Vec {
  val zero: Vec = Vec(0, 0)
  def sum(vs: Seq[Vec]): Vec = vs.foldLeft(zero)((a, b) => a + b)

  private def hidden(i: Int) = i * 3
  class Reader { def read(i: Int): Int = hidden(i) }

  object Parser {
    def parse(s: String): Vec = { val a = s.split(','); Vec(a(0).toDouble, a(1).toDouble) }
    object Strict { def parse(s: String): Option[Vec] = if (s.contains(',')) Some(Parser.parse(s)) else None }
  }

  implicit class Times(private val n: Int) {
    def times(v: Vec): Vec = Vec(v.x * n, v.y * n)
  }

  def `1 more?!`(n: Int): Int = n + 1
}

sealed abstract class |>[A, B](val f: A => B) { def run(a: A): B = f(a) }
class Doubled extends |>[Int, Int](i => i * 2)

class Buffer[@specialized(Int) T](val item: T) { def get: T = item; def same(o: T): Boolean = item == o }

abstract class Base { protected def guarded(i: Int): Int = i + 1 }
class Derived extends Base {
  override def guarded(i: Int): Int = super.guarded(i) + 1
  def later: Int => Int = i => super.guarded(i)
}

package object units {
  def inches(n: Int): Int = n * 25
  object minus { def apply(n: Int): Int = -n }
}

object Main {
  def main(args: Array[String]): Unit = {
    val rounds = args.headOption.map(_.toInt).getOrElse(1)
    val out = ArrayBuffer[Double]()
    for (round <- 0 until rounds) {
      val v = Vec(round, 3)
      v.weight_=(round)
      v.weight_+=(1)
      out += Vec.sum(v.scaled(Seq(1, 2, 3))).length + v.nested(10).sum + v.walk(30)
      out += (!v - (2.0 *: v)).area + v.local + v.lazily(round) + v.curried(1)(2) + v.cached
      out += v.partial.applyOrElse(round, (_: Int) => "no").length + v.revealed(3) + v.`with spaces in it`
      out += new Meters(3).+(new Meters(round)).value + v.shown + v.sides + v.named.length + v.twice
      out += v.plus(Seq(v)).head.x + v.update(Seq(v)).head.x + (v ++ Seq(v)).head.x + units.inches(round)
      val up = new v.Up
      out += up.times(Seq(v)) + units.minus(round)
      out += Vec.Parser.parse("1,2").x + Vec.Parser.Strict.parse("3,4").size + new Vec.Reader().read(round)
      out += new Doubled().run(3) + new Buffer(3).get + new Derived().later(2) + new Derived().guarded(1)
      out += Vec.`1 more?!`(round) + v.copy(y = 1).y + v.`type` + (if (v ==> v) 1 else 0)
      import Vec.Times
      out += 3.times(v).x + (if (v.ordering.compare(v, v) == 0) 1 else 0) + (if (new Meters(3).isLong) 1 else 0)
    }
    println(out.sum)
  }
}
