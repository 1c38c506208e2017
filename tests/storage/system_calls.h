// The C library's writes, syncs, renames and truncations as the tests of storage/ see them: SQLite's as well as our
// own. system_calls.cc stands in for them in the whole test program.
#ifndef TERSE_TESTS_STORAGE_SYSTEM_CALLS_H_
#define TERSE_TESTS_STORAGE_SYSTEM_CALLS_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace terse {

// The call succeeds without having done anything.
constexpr int kSkipCall = -1;

// Asked before every call: "write", "sync", "rename" or "truncate", and the path. 0: the call goes on; kSkipCall; any
// other number: it fails with that errno and does nothing.
using SystemCallHook = std::function<int(absl::string_view call, const std::string& path)>;

// Syncs cost nothing, where a test is not about them.
inline int SkipSync(absl::string_view call, const std::string&) { return call == "sync" ? kSkipCall : 0; }

// Hooks the whole program's calls while it lives. Of several, the newest alone is asked; they end in the reverse order.
class SystemCallWatch {
 public:
  explicit SystemCallWatch(SystemCallHook hook);
  ~SystemCallWatch();
  SystemCallWatch(const SystemCallWatch&) = delete;
  SystemCallWatch& operator=(const SystemCallWatch&) = delete;

 private:
  const SystemCallHook hook_;
  const SystemCallHook* const outer_;  // null: nobody was asked before
};

}  // namespace terse

#endif  // TERSE_TESTS_STORAGE_SYSTEM_CALLS_H_
