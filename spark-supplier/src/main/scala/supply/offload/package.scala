package supply

/**
 * Matrices that ranks hold, and routines that they run on them. Imports driver, and what lies below
 * it.
 */
package object offload
