package supply

/**
 * The task's side of a pair: mapped file, pipes, credit, and the block writer. It imports core,
 * protocol and data, and knows nothing of LMDB, Datum or Spark SQL.
 */
package object pair
