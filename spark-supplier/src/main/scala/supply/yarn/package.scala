package supply

/**
 * The programs of launch/submit-supplier: what a submission to YARN needs, and ending an
 * application. It imports driver and what lies below it.
 */
package object yarn
