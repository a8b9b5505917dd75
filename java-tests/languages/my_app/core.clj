;; Forms of Clojure whose names its compiler mangles.
(ns my-app.core
  (:gen-class))

(defprotocol Shape
  (area [this])
  (grow! [this by]))

(defrecord Square-Of [side]
  Shape
  (area [_] (* side side))
  (grow! [this by] (assoc this :side (+ side by))))

(deftype Circle [^double radius]
  Shape
  (area [_] (* 3.14 radius radius))
  (grow! [_ by] (Circle. (+ radius by)))
  Object
  (toString [_] (str "circle of " radius)))

(extend-protocol Shape
  String
  (area [s] (count s))
  (grow! [s _] s))

(definterface Counting
  (^long tally [^long n]))

(def state (atom 0))

(defn valid? [x] (and (some? x) (pos? (area x))))

(defn reset-all! [] (reset! state 0))

(defn a->b [x] (str x "b"))

(defn <=> [a b] (compare a b))

(defn +' [a b] (+ a b))

(defn *twice* [x] (* 2 x))

(defn many
  ([] 0)
  ([a] a)
  ([a b & more] (apply + a b more)))

(defn primitive ^long [^long n]
  (loop [i 0 sum 0]
    (if (< i n) (recur (inc i) (+ sum i)) sum)))

(defn- hidden-helper [x] (inc x))

(defn adder [n]
  (fn [x] (+ x n)))

(defn named-inside [n]
  (fn step-by [x] (if (pos? x) (step-by (- x n)) x)))

(defn nested [xs]
  (map (fn [x] (mapv #(+ % x) xs)) xs))

(defn mutual [n]
  (letfn [(even-one? [i] (if (zero? i) true (odd-one? (dec i))))
          (odd-one? [i] (if (zero? i) false (even-one? (dec i))))]
    (even-one? n)))

(defn runnable []
  (reify
    Runnable
    (run [_] (swap! state inc))
    Counting
    (^long tally [_ ^long n] (+ n 1))))

(defn comparator-of []
  (proxy [java.util.Comparator] []
    (compare [a b] (<=> a b))))

(defmulti price :kind)
(defmethod price :fixed [order] (:amount order))
(defmethod price :default [_] (hidden-helper 1))

(defmacro twice [form] `(do ~form ~form))

(def ^:dynamic *depth* (fn [] 3))

(defn lazy-ones [n] (when (pos? n) (lazy-seq (cons 1 (lazy-ones (dec n))))))

(defn delayed [] (delay (a->b "x")))

(defn guarded [f] (try (f) (catch Exception e (.getMessage e)) (finally (swap! state inc))))

(defn locals []
  (let [square (fn [x] (* x x)) cube #(* % % %)]
    (+ (square 3) (cube 2))))

(defn -main [& args]
  (dotimes [round (if-let [n (first args)] (Long/parseLong n) 1)]
    (reset-all!)
    (twice (many round 2 3))
    (.run ^Runnable (runnable))
    (.tally ^my_app.core.Counting (runnable) 3)
    (.compare ^java.util.Comparator (comparator-of) 1 2)
    (dorun (nested [1 2 3]))
    (swap! state + (primitive 100) ((adder 3) round) ((named-inside 2) 9) (*depth*) (locals))
    (guarded #(valid? (->Square-Of 3)))
    (grow! (Circle. 3.0) 1)
    (area (grow! (->Square-Of 3) 2))
    (area "text")
    (mutual 10)
    (price {:kind :fixed :amount 3})
    (price {})
    (a->b @(delayed))
    (+' (*twice* 3) (many))
    (count (lazy-ones 10)))
  (println @state))
