// Logarithms, powers and gamma variates that are the same on every machine, unlike the standard library's: made of
// operations that IEEE 754 rounds exactly. For partitions, which every client of a fleet computes for itself.
#ifndef TERSE_LEARNING_PORTABLE_MATH_H_
#define TERSE_LEARNING_PORTABLE_MATH_H_

#include "core/random.h"

namespace terse {

// Natural logarithm of a finite number above 0, to about 1e-15.
double PortableLog(double x);
// e^x, to about 1e-15 of its size; 0 below -700; x must be below 700.
double PortableExp(double x);
// The logarithm of a draw from the gamma distribution of that shape, above 0, and scale 1 (Marsaglia, Tsang 2000): the
// logarithm, because draws of a small shape are often too small for a double.
double LogGammaDraw(double shape, Random* random);

}  // namespace terse

#endif  // TERSE_LEARNING_PORTABLE_MATH_H_
