// Forms of Kotlin whose names its compiler mangles. What they should read as is in
// tests/golden/source_names.tsv; Discount.kt has what is inlined from another file.
@file:Suppress("unused", "UNUSED_PARAMETER", "NOTHING_TO_INLINE")

package market

import kotlin.coroutines.Continuation
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine
import kotlin.coroutines.suspendCoroutine

@JvmInline
value class Money(val cents: Long) {
    operator fun plus(other: Money): Money = Money(cents + other.cents)

    fun half(): Money = Money(cents / 2)

    init {
        require(cents > -1000000)
    }
}

data class Order(val id: Int, val price: Money = Money(1))

interface Priced {
    fun price(): Long

    fun twice(): Long = price() * 2
}

fun interface Rule {
    fun holds(order: Int): Boolean
}

enum class Season(val factor: Int) {
    SUMMER(1) {
        override fun rate() = factor + 1
    },
    WINTER(2) {
        override fun rate() = factor * 3
    };

    abstract fun rate(): Int
}

class Shop(private val stock: IntArray) : Priced {
    private var sold = 0L
    val sign: String by lazy { "open since " + stock.size }
    var isOpen = true
        set(value) {
            field = value && stock.isNotEmpty()
        }

    companion object {
        @JvmStatic
        fun open(size: Int): Shop = Shop(IntArray(size) { it * 3 + 1 })

        private var opened = 0

        fun count(): Int = ++opened
    }

    inner class Till {
        fun count(): Long = sold
    }

    class Shelf<T>(val items: List<T>) {
        operator fun get(i: Int): T = items[i]

        operator fun contains(t: T): Boolean = items.contains(t)

        infix fun or(other: Shelf<T>): Shelf<T> = Shelf(items + other.items)
    }

    override fun price(): Long = stock.sumOf { it.toLong() }

    internal fun restock(n: Int): Int {
        for (i in stock.indices) {
            stock[i] += n
        }
        val more = { n + stock.size }
        return more()
    }

    fun sell(n: Int, factor: Int = 2): Long {
        var sum = 0L
        stock.forEach { sum += reduced(it, factor) }
        repeat(n) { sum = mix(sum, it) }
        sold += sum
        return sum
    }

    fun pay(price: Money): Money = price + Money(3)

    fun rules(): List<Rule> = listOf(Rule { it > 3 }, object : Rule {
        override fun holds(order: Int) = order % 2 == 0
    })

    fun sorted(): List<Int> = stock.sortedWith(compareBy({ it % 7 }, { -it }))

    fun nested(): () -> (() -> Int) = { { stock.size } }

    fun walk(): Int {
        fun step(i: Int): Int = if (i == 0) 0 else stock[i % stock.size] + step(i - 1)
        return step(stock.size)
    }

    fun twiceNested(): Int {
        fun outer(i: Int): Int {
            fun inner(j: Int): Int = { j + i + stock.size }()
            return inner(i) + { inner(3) }()
        }
        return outer(2)
    }

    fun `hash-awesome`(): Int = stock.size

    fun `with spaces in it`(): Int = stock.size

    suspend fun deliver(n: Int): Long {
        var sum = 0L
        for (i in 0 until n) {
            sum += later(i.toLong())
        }
        return sum
    }

    tailrec fun gcd(a: Int, b: Int): Int = if (b == 0) a else gcd(b, a % b)

    private fun secret(): Int = 42

    fun revealed(): () -> Int = { secret() }

    fun thread(): Runnable = object : Runnable {
        var ran = 0

        override fun run() {
            ran += secret()
        }
    }

    fun reference(): (Int) -> Boolean = ::bought

    private fun bought(n: Int): Boolean = n > 1
}

object Till {
    fun ring(): Int = 7

    @JvmStatic
    fun rings(): Int = 9
}

class Cached(priced: Priced) : Priced by priced

suspend fun later(value: Long): Long = suspendCoroutine { it.resumeWith(Result.success(value)) }

fun greet(name: String = "you"): String = "hello $name"

fun Shop.busy(): Boolean = price() > 3

operator fun Shop.unaryMinus(): Long = -price()

val Shop.size: Int
    get() = sorted().size

var counter = 0

inline fun <reified T> kinds(things: List<Any>): Int = things.count { it is T }

inline fun later(crossinline block: () -> Int): Runnable = Runnable { counter += block() }

fun <T> blocking(block: suspend () -> T): T {
    var outcome: Result<T>? = null
    block.startCoroutine(Continuation(EmptyCoroutineContext) { outcome = it })
    return outcome!!.getOrThrow()
}

fun main(args: Array<String>) {
    val shop = Shop.open(1000)
    Shop.count()
    var total = 0L
    for (round in 0 until (args.firstOrNull()?.toInt() ?: 1)) {
        total += shop.sell(100) + shop.sell(round, 3) + shop.walk() + -shop
        total += shop.pay(Order(round).price).half().cents
        shop.restock(1)
        total += blocking { shop.deliver(100) } + blocking { val n = later(3L); n + later(n) }
        total += shop.rules().count { it.holds(round) } + shop.sorted()[3] + shop.nested()()()
        total += shop.`with spaces in it`() + shop.`hash-awesome`() + shop.twiceNested() + shop.gcd(round + 36, 24) + shop.revealed()()
        shop.thread().run()
        later { shop.size }.run()
        total += Till.ring() + Till.rings() + Cached(shop).twice() + Season.WINTER.rate() + Season.SUMMER.rate()
        total += kinds<String>(listOf("a", 1)) + greet().length + shop.sign.length + Order(3).copy(id = 4).id
        total += (Shop.Shelf(listOf(1)) or Shop.Shelf(listOf(2)))[1] + shop.Till().count()
        total += if (1 in Shop.Shelf(listOf(1)) && shop.busy() && shop.reference()(2)) 1 else 0
        shop.isOpen = false
    }
    println(total)
}
