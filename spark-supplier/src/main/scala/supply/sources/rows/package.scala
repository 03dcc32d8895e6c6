package supply.sources

/** The rows of a DataFrame as elements. Imports core, protocol, data and types. */
package object rows
