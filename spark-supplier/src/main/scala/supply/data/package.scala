package supply

/**
 * A source as the block writer sees it: its schema, and cursors over its elements, in the order of
 * the source or shuffled. It imports core and protocol; a source knows nothing of pipes.
 */
package object data
