// A norm in one byte: how large a client's residual is, for people who look at a fleet.
#ifndef TERSE_CORE_NORM_CODE_H_
#define TERSE_CORE_NORM_CODE_H_

namespace terse {

// The largest code; protobuf's varints take one byte for all of them.
inline constexpr int kMostNormCode = 127;

// The code of an L2 norm, in quarter powers of two: 0 for 0, else the nearest whole number to 64 + 4 * log2(norm), at
// least 1 and at most kMostNormCode, also for what is not finite.
int NormCode(double norm);

// Returns 0 for the code 0, else 2^((code - 64) / 4), which is within 9.1% (a factor of 2^(1/8)) of every norm from
// 2^-15.75 = 0.0000181 to 2^15.75 = 55,100 that has this code; 1 and kMostNormCode also stand for the norms beyond.
// `code` is in 0..kMostNormCode.
double NormFrom(int code);

}  // namespace terse

#endif  // TERSE_CORE_NORM_CODE_H_
