// Helpers that the tests of a client's state share.
#ifndef TERSE_TESTS_STORAGE_CLIENT_STATE_TESTING_H_
#define TERSE_TESTS_STORAGE_CLIENT_STATE_TESTING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "storage/client_state.h"
#include "tests/storage/storage_testing.h"

namespace terse {

constexpr Id128 kLineage{1, 1};

inline std::unique_ptr<ClientState> OpenState(const std::string& directory) {
  auto state = ClientState::Open(directory);
  EXPECT_OK(state.status());
  return state.ok() ? *std::move(state) : nullptr;
}

inline SealedUpdate Update(uint64_t n) {
  SealedUpdate update;
  update.update_id = Id128{2, n};
  update.round = static_cast<int64_t>(n);
  update.base_version = static_cast<int64_t>(n) - 1;
  update.train_us = 123;
  update.loss = 0.25f;
  update.cohort = {static_cast<int64_t>(n), static_cast<int64_t>(10 * n)};
  update.message = absl::StrCat("message ", n);
  return update;
}

inline std::vector<float> Dense(uint64_t n) { return {static_cast<float>(n), -1.5f, 0.0f}; }

inline absl::Status SealNumber(ClientState& state, uint64_t n) {
  return state.Seal(Dense(n), Update(n), absl::StrCat("trainer ", n), absl::StrCat("history ", n));
}

inline std::string Describe(const SealedUpdate& update) {
  return absl::StrCat(update.update_id.ToHex(), " ", update.round, " ", update.base_version, " ", update.train_us, " ",
                      update.loss, " '", update.message, "' of ", update.cohort.clients, " with ",
                      update.cohort.samples);
}

// Everything that is stored, for comparison.
inline std::string Describe(const ClientState& client) {
  const absl::StatusOr<StoredState> read = client.Read();
  if (!read.ok()) return read.status().ToString();
  const StoredState& state = *read;
  std::string text = absl::StrCat(state.lineage.ToHex(), " generation ", state.generation, " prev ",
                                  state.prev_applied.ToHex(), " dense [", absl::StrJoin(state.dense, ","), "] minus '",
                                  state.minus, "' trainer '", state.trainer_state, "' history '", state.history, "'");
  if (state.sealed) absl::StrAppend(&text, " sealed ", Describe(*state.sealed));
  if (state.family != state.lineage) absl::StrAppend(&text, " family ", state.family.ToHex());
  for (const PartedLineage& one : state.parted) {
    absl::StrAppend(&text, " parted ", one.lineage.ToHex(), " prev ", one.prev_applied.ToHex());
    if (one.sealed) absl::StrAppend(&text, " sealed ", Describe(*one.sealed));
  }
  return text;
}

// Returns the state that a restart finds, or the error, as text.
inline std::string Reopened(const std::string& directory) {
  TempDirectory copy;
  CopyDirectory(directory, copy.Path());
  const auto state = ClientState::Open(copy.Path());
  return state.ok() ? Describe(**state) : state.status().ToString();
}

}  // namespace terse

#endif  // TERSE_TESTS_STORAGE_CLIENT_STATE_TESTING_H_
