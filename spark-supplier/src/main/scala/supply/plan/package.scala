package supply

/**
 * Which rank gets which partitions, in which order, in which epoch, and on which host each rank is.
 * It imports core only, and knows nothing of Spark.
 */
package object plan
