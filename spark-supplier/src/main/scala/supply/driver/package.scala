package supply

/** A run or a stream on the driver. Imports executor, failure, and what lies below them. */
package object driver
