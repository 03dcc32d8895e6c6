package supply

/** Which rank gets which partitions, in which order, on which host. Imports core and protocol. */
package object plan
