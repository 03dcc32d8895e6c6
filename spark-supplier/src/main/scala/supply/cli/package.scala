package supply

/**
 * The programs that spark-submit runs: the Supplier, the Spark side of supply-doctor, and the
 * writer of docs/OPTIONS.md. It imports driver and what lies below it.
 */
package object cli
