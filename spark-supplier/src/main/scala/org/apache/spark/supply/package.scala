package org.apache.spark

/** Uses of Spark's internals, each with the public API that does not do. Imports core only. */
package object supply
