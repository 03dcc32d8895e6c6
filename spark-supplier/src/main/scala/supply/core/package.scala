package supply

/** What all packages share. Imports none of them; knows nothing of Spark SQL, files or pipes. */
package object core
