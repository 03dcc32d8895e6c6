package supply

/**
 * What the Python package `supply.spark` asks of the driver's JVM. It may import `driver` and all
 * packages below.
 */
package object python
