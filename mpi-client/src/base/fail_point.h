/** Lets a fault test end or stop a rank after a step of proto/PROTOCOL.md, if built with SUPPLY_FAIL_POINTS. */
#pragma once

#ifdef SUPPLY_FAIL_POINTS

/**
 * SUPPLY_FAIL_POINT of the environment names a file with `STEP:kill|stop[:after=N]`. When this step is passed for the
 * N + 1st time, renames the file to FILE.PID, and kills or stops this process. FailPoint.scala does the same for tasks.
 * Steps are those of the contract, and R0: before a wait for a notification.
 */
void supply__fail_point(const char *step);

#else

static inline void supply__fail_point(const char *step) { (void)step; }

#endif
