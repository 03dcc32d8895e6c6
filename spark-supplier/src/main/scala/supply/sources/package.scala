package supply

/**
 * Caffe's Datum as elements: tuples, batches that Spark keeps, and cursors over them; each package
 * below is one more kind of source. It imports core, protocol and data, and knows nothing of pairs.
 */
package object sources
