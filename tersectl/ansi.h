// The sequences (ECMA-48, SGR) with which a terminal's text gets colors.
#ifndef TERSE_TERSECTL_ANSI_H_
#define TERSE_TERSECTL_ANSI_H_

namespace terse::ansi {

inline constexpr char kReset[] = "\033[0m";
inline constexpr char kBold[] = "\033[1m";
inline constexpr char kDim[] = "\033[2m";
inline constexpr char kRed[] = "\033[31m";
inline constexpr char kGreen[] = "\033[32m";
inline constexpr char kYellow[] = "\033[33m";
inline constexpr char kCyan[] = "\033[36m";
inline constexpr char kBoldRed[] = "\033[1;31m";

}  // namespace terse::ansi

#endif  // TERSE_TERSECTL_ANSI_H_
