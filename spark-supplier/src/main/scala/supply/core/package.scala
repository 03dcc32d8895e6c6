package supply

/** What all packages share. Imports none of them; knows nothing of Spark SQL, mapped files or pipes. */
package object core
