package supply

/** Caffe's Datum as elements; packages below are more sources. Imports core, protocol and data. */
package object sources
