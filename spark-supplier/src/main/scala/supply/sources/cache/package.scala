package supply.sources

/** Copies of remote files on a node, kept for later runs. Imports core only. */
package object cache
