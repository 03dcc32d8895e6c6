package supply.sources

/** The rows of a DataFrame as elements. Imports core, protocol and data. */
package object rows
