package supply

/** The entry points of Spark SQL. Imports driver and what lies below it; only `python` imports it. */
package object datasource
