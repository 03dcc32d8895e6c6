/**
 * Lets a fault test end or stop a rank directly after a step of proto/PROTOCOL.md. Nothing unless built with
 * SUPPLY_FAIL_POINTS.
 */
#ifndef SUPPLY_FAIL_POINT_H
#define SUPPLY_FAIL_POINT_H

#ifdef SUPPLY_FAIL_POINTS

/**
 * Where the environment's SUPPLY_FAIL_POINT names a file that holds `STEP:kill|stop[:after=N]` with this step, and it
 * is passed for the N + 1st time: takes the file away, to FILE.PID, and kills or stops this process. The same as
 * FailPoint.scala for tasks.
 */
void supply_fail_point(const char *step);

#else

static inline void supply_fail_point(const char *step) { (void)step; }

#endif

#endif
