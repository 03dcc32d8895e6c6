package supply

/** The entry points of Spark SQL. Imports driver and what lies below it; nothing imports it. */
package object datasource
