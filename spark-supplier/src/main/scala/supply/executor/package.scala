package supply

/** One Spark task. Imports sources, pair, plan and what lies below them. */
package object executor
