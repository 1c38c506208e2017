// A client's disk that is full or fails, at every operation of every step.
#include <functional>

#include "tests/storage/client_state_testing.h"
#include "tests/storage/faulty_files.h"

namespace terse {
namespace {

struct Step {
  const char* name;
  std::function<absl::Status(ClientState&)> prepare;
  std::function<absl::Status(ClientState&)> call;
};

std::vector<Step> Steps() {
  const auto nothing = [](ClientState&) { return absl::OkStatus(); };
  const auto begin = [](ClientState& state) { return state.Begin(kLineage, kLineage, Durability::kStrict); };
  const auto seal = [=](ClientState& state) {
    const absl::Status begun = begin(state);
    return begun.ok() ? SealNumber(state, 1) : begun;
  };
  const auto settle = [=](ClientState& state) {
    const absl::Status sealed = seal(state);
    return sealed.ok() ? state.Settle(true) : sealed;
  };
  const auto relaxed = [](ClientState& state) {
    const absl::Status begun = state.Begin(kLineage, kLineage, Durability::kRelaxed);
    return begun.ok() ? SealNumber(state, 1) : begun;
  };
  const auto move = [=](ClientState& state) {
    const absl::Status sealed = seal(state);
    return sealed.ok() ? state.Move(Id128{8, 8}, Dense(7)).status() : sealed;
  };
  const auto leave = [=](ClientState& state) {
    const absl::Status moved = move(state);
    return moved.ok() ? SealNumber(state, 2) : moved;
  };
  const auto leave_relaxed = [=](ClientState& state) {
    const absl::Status begun = relaxed(state);
    return begun.ok() ? state.Move(Id128{8, 8}, Dense(7)).status() : begun;
  };
  return {
      {"Begin", nothing, begin},
      {"Begin, another run", settle,
       [](ClientState& state) {
         return state.Begin(Id128{8, 8}, Id128{8, 8}, Durability::kStrict);
       }},
      {"Begin, relaxed", settle,
       [](ClientState& state) { return state.Begin(kLineage, kLineage, Durability::kRelaxed); }},
      {"Begin, strict again", relaxed, begin},
      {"first Seal", begin, [](ClientState& state) { return SealNumber(state, 1); }},
      {"second Seal", settle, [](ClientState& state) { return SealNumber(state, 2); }},
      {"Settle, applied", seal, [](ClientState& state) { return state.Settle(true); }},
      {"Settle, not applied", seal, [](ClientState& state) { return state.Settle(false); }},
      {"Reset", settle,
       [](ClientState& state) {
         return state.Reset(Id128{9, 9});
       }},
      {"Reset, sealed", seal, [](ClientState& state) { return state.Reset(Id128()); }},
      {"Move", seal,
       [](ClientState& state) {
         return state.Move(Id128{8, 8}, Dense(7)).status();
       }},
      {"Move back", leave, [](ClientState& state) { return state.Move(kLineage, Dense(8)).status(); }},
      {"Move, relaxed", relaxed,
       [](ClientState& state) {
         return state.Move(Id128{8, 8}, Dense(7)).status();
       }},
      {"Flush after a move", leave_relaxed, [](ClientState& state) { return state.Flush(); }},
      {"Seal after a move", move, [](ClientState& state) { return SealNumber(state, 2); }},
      {"Flush", relaxed, [](ClientState& state) { return state.Flush(); }},
      {"SaveModel", seal,
       [](ClientState& state) {
         return state.SaveModel({kLineage, 3, Dense(3)});
       }},
  };
}

// The state in memory, and the state that a restart finds.
struct Both {
  std::string memory;
  std::string disk;
  friend bool operator==(const Both& a, const Both& b) { return a.memory == b.memory && a.disk == b.disk; }
  friend std::ostream& operator<<(std::ostream& out, const Both& both) {
    return out << "memory: " << both.memory << "\ndisk: " << both.disk;
  }
};

class Trial {
 public:
  explicit Trial(const Step& step) : state_(ClientState::Open(directory_.Path(), files_).value()) {
    EXPECT_OK(step.prepare(*state_));
  }
  ClientState& state() { return *state_; }
  FaultyFiles& files() { return files_; }
  Both Now() {
    const auto model = state_->LoadModel();
    return {Describe(*state_), absl::StrCat(Reopened(directory_.Path()), model ? " with a model" : "")};
  }

 private:
  TempDirectory directory_;
  FaultyFiles files_;
  std::unique_ptr<ClientState> state_;
};

void CheckFailure(Trial& trial, const Step& step, const absl::Status& status, const Both& before, const Both& after) {
  const Both now = trial.Now();
  if (status.ok()) {  // what failed was only tidying up
    EXPECT_EQ(now, after);
    return;
  }
  EXPECT_EQ(now.memory, before.memory);
  if (IsDiskTrouble(status)) {
    // A model is only a cache: it may be there though saving it seemed to fail.
    EXPECT_TRUE(now.disk == before.disk || now.disk == before.disk + " with a model") << now.disk;
    EXPECT_OK(step.call(trial.state()));
    EXPECT_EQ(trial.Now(), after);
    return;
  }
  ASSERT_TRUE(IsSyncFailure(status)) << status;
  EXPECT_TRUE(now.disk == before.disk || now.disk == after.disk) << now.disk;
  EXPECT_CODE(step.call(trial.state()), kUnknown, "restart the client");
  EXPECT_CODE(trial.state().Begin(Id128{5, 5}, Id128{5, 5}, Durability::kStrict), kUnknown, "restart the client");
  EXPECT_EQ(trial.Now(), now);
}

TEST(ClientStateFaults, EveryOperationMayFail) {
  for (const Step& step : Steps()) {
    Trial reference(step);
    const Both before = reference.Now();
    ASSERT_OK(step.call(reference.state()));
    const Both after = reference.Now();
    ASSERT_FALSE(before == after);
    for (FileFault fault : {FileFault::kFull, FileFault::kError, FileFault::kTooLate}) {
      int n = 0;
      for (bool fired = true; fired;) {
        ASSERT_LT(++n, 100);
        Trial trial(step);
        trial.files().Arm(n, fault);
        const absl::Status status = step.call(trial.state());
        SCOPED_TRACE(absl::StrCat(step.name, ", fault ", static_cast<int>(fault), ": ", trial.files().seen(),
                                  "which is ", status.ToString()));
        fired = trial.files().Disarm();
        CheckFailure(trial, step, status, before, after);
      }
      EXPECT_GT(n, 4) << step.name;
    }
  }
}

// A rename that reports an error may have happened; what it left tells.
TEST(ClientStateFaults, ARenameThatHappenedAfterAllStopsTheState) {
  TempDirectory directory;
  FaultyFiles files;
  auto state = ClientState::Open(directory.Path(), files).value();
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  ASSERT_OK(SealNumber(*state, 1));
  files.Arm(4, FileFault::kTooLate);  // create, append, sync, rename
  EXPECT_CODE(state->Settle(true), kUnknown, "cannot rename");
  EXPECT_CODE(state->Settle(true), kUnknown, "restart the client");
  EXPECT_CODE(state->SaveModel({kLineage, 1, Dense(1)}), kUnknown, "restart the client");
  EXPECT_TRUE(state->state().sealed.has_value());
  EXPECT_THAT(Reopened(directory.Path()), ::testing::HasSubstr("minus 'message 1'"));
}

}  // namespace
}  // namespace terse
