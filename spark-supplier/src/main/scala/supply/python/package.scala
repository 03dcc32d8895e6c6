package supply

/**
 * What the Python package `supply.spark` asks of the driver's JVM. It may import `datasource`,
 * `offload`, `driver`, all packages below, and org.apache.spark.supply.
 */
package object python
