package supply

/** Block files as Spark reads them. Imports core, protocol, pair and types. */
package object results
