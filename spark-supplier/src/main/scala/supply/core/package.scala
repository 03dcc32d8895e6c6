package supply

/**
 * Errors, deadlines, threads, fail points, and the reading of sizes and options. It imports none of
 * the other packages, and knows nothing of Spark SQL, mapped files or pipes.
 */
package object core
