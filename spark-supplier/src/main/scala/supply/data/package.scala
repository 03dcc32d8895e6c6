package supply

/**
 * What the block writer needs from a source: cursors over elements, and whether elements repeat. It
 * imports core and protocol; a source knows nothing of pipes.
 */
package object data
