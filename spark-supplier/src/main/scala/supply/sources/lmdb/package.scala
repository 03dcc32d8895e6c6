package supply.sources

/** An LMDB of Caffe Datums as an RDD. Imports sources, sources.cache and what those import. */
package object lmdb
