package supply

/**
 * The entry points of Spark SQL: `format("supply")` for DataFrames and streams, and
 * `format("lmdb")`. It imports driver and the packages below it; no other package imports it.
 */
package object datasource
