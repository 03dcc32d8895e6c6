package supply.sources

/**
 * The rows of a DataFrame as elements, from Spark's internal rows. It imports core, protocol and
 * data.
 */
package object rows
