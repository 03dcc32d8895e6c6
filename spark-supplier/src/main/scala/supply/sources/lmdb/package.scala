package supply.sources

/**
 * An LMDB of Caffe Datums as an RDD, read from LMDB's own pages. It imports what sources imports,
 * sources itself and sources.cache; no other package imports lmdbjni.
 */
package object lmdb
