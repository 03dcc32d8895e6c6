package supply

/**
 * One Spark task: it attaches to a rank's pair, resumes, supplies and counts. It runs inside
 * executors, and imports sources, pair, plan and what lies below them; it reaches the driver only
 * through core.DriverCalls.
 */
package object executor
