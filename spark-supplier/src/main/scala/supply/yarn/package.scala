package supply

/** The programs of launch/submit-supplier. Imports driver and what lies below it. */
package object yarn
