// Forms of Groovy whose names its compiler mangles.
package bazaar

import groovy.transform.CompileStatic

trait Priced {
    int price = 3

    int twice() { price * 2 }

    static int unit() { 7 }

    private int hidden() { 4 }

    int shown() { hidden() + price }
}

@CompileStatic
class Stall implements Priced {
    private List<Integer> stock = []
    static int opened = 0

    Stall(int n) {
        n.times { int i -> stock << i }
        opened++
    }

    int sell(int n) {
        int sum = 0
        stock.each { Integer i -> [1, 2].each { Integer j -> sum += i * j } }
        return sum + n
    }

    Stall plus(Stall other) { new Stall(stock.size() + other.stock.size()) }

    Integer getAt(int i) { stock[i] }

    List<Integer> sorted() { stock.toSorted { Integer a, Integer b -> b <=> a } }

    Closure<Integer> counter() { return { -> stock.size() } }

    int lambda(int n) {
        java.util.function.IntUnaryOperator f = (int i) -> i + n
        return f.applyAsInt(3)
    }

    java.util.function.Supplier<Integer> supplier() { return this::size }

    Integer size() { stock.size() }

    Runnable runner() {
        return new Runnable() {
            void run() { opened += stock.size() }
        }
    }

    class Shelf {
        int count() { stock.size() }
    }

    static class Counter {
        int n
        int next() { ++n }
    }

    int 'with spaces in it'(int n) { n + stock.size() }
}

class Dynamic {
    def items = [1, 2, 3]
    def doubler = { it * 2 }
    static helper = { a, b = 3 -> a + b }

    def total(n = 1, m = 2) { items.collect { x -> doubler(x) }.sum() + n + m }

    def propertyMissing(String name) { name.length() }

    def nested() { items.collect { a -> items.collect { b -> items.findAll { it > a && it < b }.size() } } }

    String toString() { super.toString().take(3) }

    def call(n) { n }
}

enum Season {
    SUMMER { int rate() { 2 } },
    WINTER { int rate() { 3 } }

    abstract int rate()
}

def helper(n) { n + 1 }

def greet = { name = 'you' -> "hello $name" }

def rounds = args ? args[0] as int : 1
def sum = 0
rounds.times { round ->
    def stall = new Stall(100)
    sum += stall.sell(round) + (stall + stall)[3] + stall.sorted()[0] + stall.counter()() + stall.lambda(round)
    sum += stall.supplier().get() + new Dynamic().total() + new Dynamic().nasty + new Dynamic().nested().size()
    sum += stall.twice() + Stall.unit() + stall.shown() + helper(round) + greet().size() + Season.WINTER.rate()
    sum += Season.SUMMER.rate() + new Stall.Shelf(stall).count() + new Stall.Counter().next()
    sum += stall.'with spaces in it'(1) + Dynamic.helper(1) + new Dynamic()(3) + new Dynamic().toString().size()
    stall.runner().run()
}
println sum
