// A RunStore that fails on demand: a coordinator can be stopped at every call it makes, before or after the effect.
#ifndef TERSE_TESTS_TESTING_FAILING_STORE_H_
#define TERSE_TESTS_TESTING_FAILING_STORE_H_

#include <functional>

#include "core/status.h"
#include "storage/forwarding_store.h"

namespace terse {

// Asked twice for every call, with its name: before it has any effect (`after` false) and after it succeeded. An error
// is what the caller gets; with `after` true the effect is durable all the same, as when a process dies in between.
using StoreFault = std::function<absl::Status(absl::string_view call, bool after)>;

class FailingStore : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  StoreFault fault;  // may be empty

 protected:
  absl::Status Around(absl::string_view name, absl::FunctionRef<absl::Status()> call) override {
    if (!fault) return call();
    TERSE_RETURN_IF_ERROR(fault(name, /*after=*/false));
    TERSE_RETURN_IF_ERROR(call());
    return fault(name, /*after=*/true);
  }
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_FAILING_STORE_H_
