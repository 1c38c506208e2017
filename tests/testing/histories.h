// The histories that client and coordinator hold of a client's applied updates, as they are stored, and whether they
// are one.
#ifndef TERSE_TESTS_TESTING_HISTORIES_H_
#define TERSE_TESTS_TESTING_HISTORIES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compression/codec.h"
#include "storage/client_state.h"
#include "storage/run_store.h"

namespace terse {

// Checks that the coordinator and the client with index `client`, whose process may be down, keep the same history of
// its updates. OK where there is nothing to compare: the client did not hear yet what became of its last update or of
// its residual. INTERNAL when they differ.
absl::Status CheckHistories(RunStore* store, const Codec& codec, int64_t client, const ClientState& state);

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_HISTORIES_H_
