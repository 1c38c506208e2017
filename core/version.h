// The release of this tree.
#ifndef TERSE_CORE_VERSION_H_
#define TERSE_CORE_VERSION_H_

namespace terse {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace terse

#endif  // TERSE_CORE_VERSION_H_
