package supply.sources

/**
 * Copies of remote files on a node, shared by its executors and by later runs. It imports core
 * only.
 */
package object cache
