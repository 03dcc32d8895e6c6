/** The last words of a rank that a signal ends while it runs a routine. */
#ifndef CRASH_H
#define CRASH_H

/** Installs the handlers of the signals of faults. */
void crash_install(void);

/**
 * From now on a crash writes {"ended": true, "error": "TEXT: SIGNAL"} to this descriptor. NULL: no routine runs. The
 * text is copied.
 */
void crash_report_to(int connection, const char *text);

#endif
