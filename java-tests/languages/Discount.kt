// What Shop.kt inlines: a line of this file in a class of the other.
package market

inline fun reduced(price: Int, factor: Int): Long {
    val base = price.toLong() * 9
    return base / factor
}

inline fun mix(sum: Long, n: Int): Long {
    var mixed = sum
    for (i in 0 until 50) {
        mixed = mixed * 31 + n
        mixed = mixed xor (mixed ushr 7)
    }
    return mixed
}
