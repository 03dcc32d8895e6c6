package supply

/**
 * One Spark task. Imports sources, pair, plan, results, what lies below them,
 * and org.apache.spark.supply.
 */
package object executor
