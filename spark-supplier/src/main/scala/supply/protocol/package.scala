package supply

/** The contract's bytes and constants, as in proto/layout.tsv. Imports core. */
package object protocol
