/** SIGINT and SIGTERM as a descriptor to poll, so that a tool removes its pair before it exits. */
#ifndef INTERRUPTION_H
#define INTERRUPTION_H

/** Installs the handlers. Ignores SIGPIPE, so that write() to a closed pipe fails. 0, or -1 and errno. */
int interruption_install(void);

/** A descriptor that becomes readable with the first signal. */
int interruption_fd(void);

/** The signal that was received; 0: none. */
int interruption_signal(void);

#endif
