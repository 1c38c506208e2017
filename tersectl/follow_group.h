// `tersectl follow` with its options.
#ifndef TERSE_TERSECTL_FOLLOW_GROUP_H_
#define TERSE_TERSECTL_FOLLOW_GROUP_H_

#include "tersectl/invocation.h"

namespace terse {

void AddFollow(CLI::App& app, Invocation* invocation);

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_GROUP_H_
