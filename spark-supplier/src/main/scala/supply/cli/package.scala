package supply

/** The programs that spark-submit runs. Imports driver and what lies below it. */
package object cli
