package org.apache.spark

/**
 * What the project uses of Spark's internals: each use names the public API that it replaces, and
 * why that does not do. It imports core and Spark only; driver and failure hide it from all others.
 */
package object supply
