package org.apache.spark.ml

/**
 * What of MLlib is visible inside its own packages only: the constructors of its models. Imports
 * nothing of this product.
 */
package object supply
