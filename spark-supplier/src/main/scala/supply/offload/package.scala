package supply

/**
 * Matrices that ranks hold, and routines that they run on them. Imports driver, what lies below it,
 * and org.apache.spark.supply.
 */
package object offload
