/** SIGINT and SIGTERM as something to poll, so that a tool removes its pair before it ends. */
#ifndef INTERRUPTION_H
#define INTERRUPTION_H

/** Installs the handlers, and ignores SIGPIPE: a closed pipe then is an error of write(). 0, or -1 and errno. */
int interruption_install(void);

/** A descriptor that becomes readable with the first signal. */
int interruption_fd(void);

/** The signal that came; 0: none. */
int interruption_signal(void);

#endif
