package supply

/**
 * Layout, notifications, requests and schema of proto/PROTOCOL.md: bytes and constants only, made
 * from proto/layout.tsv. It imports core.
 */
package object protocol
