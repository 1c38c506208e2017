// Runs that are made and deleted while the coordinator serves: whole or not at all.
#include "coordinator/rpc/run_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "core/file_system.h"
#include "core/status.h"
#include "proto/run_config_loader.h"
#include "storage/module_file.h"
#include "storage/postgres_db.h"
#include "storage/postgres_run_stores.h"
#include "storage/state_directory.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/grid_learning.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/scripted_client.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRun[] =
    "name = 'NAME'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 0.1\n[codec]\nname = 'sbc'\n"
    "[rounds]\ncount = 3\n";

class RunRegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Open();
    registry_->Start();
  }
  void TearDown() override { EXPECT_EQ(registry_->Stop(), absl::OkStatus()); }

  static v1::RunConfig Config(const std::string& name, const std::string& module = "") {
    v1::RunConfig config = ParseRunConfig(absl::StrReplaceAll(kRun, {{"NAME", name}}), "run.toml").value();
    if (!module.empty()) {
      config.mutable_model()->set_name(std::string(kTorchScriptModel));
      config.mutable_model()->set_hash(ModuleHash(module));
    }
    return config;
  }
  void Open() {
    registry_.reset();
    RunRegistry::Options options;
    options.state_directory = state_;
    options.stores = make_stores_();
    options.clock = &clock_;
    options.make_learning = [this](const RunConfig& config, const std::string& module, const std::string& data) {
      before_learning_(config, module);
      return learning_.ok() ? GridLearningFactory(*layout_)(config, module, data) : learning_;
    };
    options.on_change = [this] { ++changes_; };
    options.on_sync_failure = [](const absl::Status& status) { ADD_FAILURE() << status; };
    registry_ = RunRegistry::Open(std::move(options), {}).value();
  }
  void Restart() {
    ASSERT_EQ(registry_->Stop(), absl::OkStatus());
    Open();
    registry_->Start();
  }
  std::vector<std::string> Served() const {
    std::vector<std::string> names;
    for (const RunHost* run : registry_->runs()) names.push_back(run->name());
    return names;
  }
  std::vector<std::string> Directories() const { return PosixFiles().List(state_ + "/runs").value(); }

  const TempDirectory directory_;
  std::string state_ = directory_.path() + "/state";
  std::function<std::shared_ptr<RunStores>()> make_stores_ = [this] { return RunsInDirectories(state_); };
  FakeClock clock_;
  absl::Status learning_;
  const Layout* layout_ = &GridLayout();  // of the models that the learning has
  std::atomic<int> changes_{0};
  std::function<void(const RunConfig&, const std::string& module)> before_learning_ = [](const auto&, const auto&) {};
  std::unique_ptr<RunRegistry> registry_;
};

TEST_F(RunRegistryTest, ARunThatIsMadeIsServedAndOutlivesARestart) {
  EXPECT_THAT(Served(), IsEmpty());
  const absl::StatusOr<RunHost*> plain = registry_->Create(Config("plain"), "");
  ASSERT_EQ(plain.status(), absl::OkStatus());
  EXPECT_EQ((*plain)->View().head.version, 0);
  EXPECT_EQ(registry_->FindLineage((*plain)->lineage()), *plain);
  const Id128 lineage = (*plain)->lineage();
  ASSERT_EQ(registry_->Create(Config("module", "a module"), "a module").status(), absl::OkStatus());
  EXPECT_THAT(Served(), ElementsAre("plain", "module"));
  std::string seen;
  before_learning_ = [&](const RunConfig& config, const std::string& module) {
    if (config.name == "module") seen = module;
  };
  Restart();
  EXPECT_THAT(Served(), ElementsAre("module", "plain"));
  EXPECT_EQ(seen, "a module");
  EXPECT_EQ(registry_->Find("plain").value()->lineage(), lineage);
}

TEST_F(RunRegistryTest, APausedOneOpensNoRoundUntilItIsResumed) {
  RunHost* const made = registry_->Create(Config("new"), "", /*paused=*/true).value();
  EXPECT_EQ(made->View().phase, "paused") << "from its first moment on";
  EXPECT_THAT(made->Record()->reason, HasSubstr("`tersectl run start new`"));
  Restart();
  RunHost* const run = registry_->Find("new").value();
  EXPECT_EQ(run->View().phase, "paused");
  EXPECT_EQ(run->Record()->state, RunState::kPaused);
  const absl::Status resumed = run->Use([](const RunHost::Live& live) {
    live.loop->Post(ResumeRequested{});
    return live.loop->Call([] {});
  });
  EXPECT_EQ(resumed, absl::OkStatus());
  EXPECT_EQ(run->Record()->state, RunState::kActive);
  EXPECT_NE(run->View().phase, "paused");
  EXPECT_EQ(registry_->Create(Config("other"), "").value()->Record()->state, RunState::kActive);
}

TEST_F(RunRegistryTest, ItsNameAppearsOnceEverythingIsThere) {
  std::vector<std::vector<std::string>> directories;
  before_learning_ = [&](const RunConfig&, const std::string&) { directories.push_back(Directories()); };
  ASSERT_EQ(registry_->Create(Config("new", "a module"), "a module").status(), absl::OkStatus());
  EXPECT_THAT(directories, ElementsAre(ElementsAre("new.partial"), ElementsAre("new")));
  EXPECT_THAT(*PosixFiles().List(state_ + "/runs/new"), ::testing::IsSupersetOf({"module.pt", "run.sqlite"}));
}

TEST_F(RunRegistryTest, WhatACrashLeftIsNotServedAndInNobodysWay) {
  ASSERT_EQ(registry_->Create(Config("kept"), "").status(), absl::OkStatus());
  ASSERT_EQ(registry_->Stop(), absl::OkStatus());
  registry_.reset();
  // As a process leaves it that dies before the rename.
  std::filesystem::rename(state_ + "/runs/kept", state_ + "/runs/new.partial");
  Open();
  registry_->Start();
  EXPECT_THAT(Served(), IsEmpty());
  ASSERT_EQ(registry_->Create(Config("new"), "").status(), absl::OkStatus());
  EXPECT_THAT(Directories(), ElementsAre("new"));
}

TEST_F(RunRegistryTest, OneThatCannotBeMadeLeavesNothing) {
  learning_ = absl::InvalidArgumentError("no TorchScript");
  const absl::Status refused = registry_->Create(Config("new", "a module"), "a module").status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("run 'new': no TorchScript"));
  EXPECT_THAT(Served(), IsEmpty());
  EXPECT_THAT(Directories(), IsEmpty());
  // Nor when it fails at the last moment.
  learning_ = absl::OkStatus();
  before_learning_ = [&](const RunConfig&, const std::string&) {
    if (std::filesystem::exists(state_ + "/runs/new")) learning_ = absl::ResourceExhaustedError("no memory");
  };
  EXPECT_TRUE(absl::IsResourceExhausted(registry_->Create(Config("new"), "").status()));
  EXPECT_THAT(Directories(), IsEmpty());
  learning_ = absl::OkStatus();
  before_learning_ = [](const RunConfig&, const std::string&) {};
  EXPECT_EQ(registry_->Create(Config("new"), "").status(), absl::OkStatus());
}

TEST_F(RunRegistryTest, ANameIsGivenOnce) {
  ASSERT_EQ(registry_->Create(Config("new"), "").status(), absl::OkStatus());
  const absl::Status twice = registry_->Create(Config("new", "a module"), "a module").status();
  EXPECT_TRUE(absl::IsAlreadyExists(twice));
  EXPECT_THAT(std::string(twice.message()), HasSubstr("'new' already; choose another name"));
  EXPECT_THAT(Served(), ElementsAre("new"));
  // A run of another time, which is not served.
  ASSERT_EQ(PosixFiles().MakeDirectory(state_ + "/runs/old"), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(registry_->Create(Config("old"), "").status()));
}

TEST_F(RunRegistryTest, RefusesWhatDoesNotBelongTogetherOrBreaksARule) {
  const auto refusal = [&](const v1::RunConfig& config, const std::string& module) {
    const absl::Status status = registry_->Create(config, module).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(Config("new"), "a module"), HasSubstr("do not belong together"));
  EXPECT_THAT(refusal(Config("new", "a module"), ""), HasSubstr("do not belong together"));
  EXPECT_THAT(refusal(Config("new", "a module"), "another"), HasSubstr(ModuleHash("another")));
  for (const char* name : {"new.partial", "new.before-restore"}) {
    EXPECT_THAT(refusal(Config(name), ""), HasSubstr("choose another name"));
  }
  v1::RunConfig broken = Config("new");
  broken.mutable_rounds()->set_count(0);
  EXPECT_THAT(refusal(broken, ""), HasSubstr("rounds.count"));
  broken = Config("new");
  broken.set_name("../new");
  EXPECT_THAT(refusal(broken, ""), HasSubstr("not a name of a run"));
  EXPECT_FALSE(std::filesystem::exists(state_ + "/runs"));
}

TEST_F(RunRegistryTest, ADeletedOneLeavesNoHistoriesInMemory) {
  v1::RunConfig config = Config("new");
  config.mutable_codec()->set_positions(std::string(kSharedPositions));
  RunHost* const run = registry_->Create(config, "").value();
  const auto link = std::make_shared<RecordingLink>();
  const Head head = run->View().head;
  const UpdateHistory none(*run->codec().PackedLayout());
  ASSERT_EQ(run->Use([&](const RunHost::Live& live) {
    live.loop->Post(Connected{1, link});
    CheckIn check_in;
    check_in.name = "a";
    live.loop->Post(Received{1, check_in});
    live.loop->Post(Received{1, Ready{head.version, head.model_hash, run->codec().layout().Hash(), 1, none.Hash()}});
    return live.loop->Call([] {});
  }),
            absl::OkStatus());
  ASSERT_TRUE(run->histories()->Holds(0));
  ASSERT_EQ(registry_->Delete("new", true).status(), absl::OkStatus());
  EXPECT_FALSE(run->histories()->Holds(0));
}

// As an operator who stops the run sees it.
RunState StopAndWait(const RunHost& run) {
  const absl::Status stopped = run.Use([](const RunHost::Live& live) {
    live.loop->Post(StopRequested{});
    return live.loop->Call([] {});
  });
  EXPECT_EQ(stopped, absl::OkStatus());
  for (int i = 0; i < 1000 && run.Record()->state != RunState::kStopped; ++i) absl::SleepFor(absl::Milliseconds(10));
  return run.Record()->state;
}

TEST_F(RunRegistryTest, ADeletedOneIsGoneAndItsNameIsFree) {
  RunHost* const gone = registry_->Create(Config("gone", "a module"), "a module").value();
  ASSERT_EQ(registry_->Create(Config("kept"), "").status(), absl::OkStatus());
  ASSERT_EQ(StopAndWait(*gone), RunState::kStopped);
  const int changes = changes_;
  const absl::StatusOr<uint64_t> bytes = registry_->Delete("gone", /*force=*/false);
  ASSERT_EQ(bytes.status(), absl::OkStatus());
  EXPECT_GT(*bytes, 4096u) << "a database is larger";
  EXPECT_GT(changes_, changes);
  EXPECT_THAT(Served(), ElementsAre("kept"));
  EXPECT_THAT(Directories(), ElementsAre("kept"));
  EXPECT_TRUE(absl::IsNotFound(registry_->Find("gone").status()));
  EXPECT_EQ(registry_->FindLineage(gone->lineage()), nullptr);
  EXPECT_TRUE(absl::IsNotFound(registry_->Delete("gone", true).status()));
  // A caller that found the run before its deletion is told about it.
  const absl::Status late = gone->Use([](const RunHost::Live&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsFailedPrecondition(late));
  EXPECT_THAT(std::string(late.message()), HasSubstr("it was deleted by an operator"));
  EXPECT_TRUE(absl::IsUnavailable(gone->Loop().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(gone->Export(v1::ExportRequest::FORMAT_NPZ).status()));
  EXPECT_EQ(gone->Record()->state, RunState::kStopped);

  RunHost* const again = registry_->Create(Config("gone"), "").value();
  EXPECT_NE(again->lineage(), gone->lineage());
  Restart();
  EXPECT_THAT(Served(), ElementsAre("gone", "kept"));
}

TEST_F(RunRegistryTest, OneThatGoesOnIsDeletedByForceOnly) {
  for (const bool paused : {false, true}) {
    RunHost* const run = registry_->Create(Config("new"), "", paused).value();
    const absl::Status refused = registry_->Delete("new", /*force=*/false).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_THAT(std::string(refused.message()), HasSubstr(paused ? "'new' is paused" : "'new' is active"));
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("`tersectl run stop new`, or delete it as it is with --force"));
    EXPECT_EQ(run->condition(), RunHost::Condition::kServing);
    EXPECT_THAT(Served(), ElementsAre("new"));
    EXPECT_EQ(registry_->Delete("new", /*force=*/true).status(), absl::OkStatus());
    EXPECT_THAT(Directories(), IsEmpty());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(registry_->Delete("", true).status()));
}

TEST_F(RunRegistryTest, ItsClientsHearThatItIsOver) {
  RunHost* const run = registry_->Create(Config("new"), "").value();
  const auto link = std::make_shared<RecordingLink>();
  ASSERT_EQ(run->Use([&](const RunHost::Live& live) {
    live.loop->Post(Connected{1, link});
    return live.loop->Call([] {});
  }),
            absl::OkStatus());
  const std::shared_ptr<EventLoop> loop = run->Loop().value();
  ASSERT_EQ(registry_->Delete("new", true).status(), absl::OkStatus());
  ASSERT_EQ(link->sent.size(), 1u);
  EXPECT_THAT(std::get<Finished>(link->sent[0]).reason, HasSubstr("deleted by an operator"));
  bool handled = true;
  loop->Post(Disconnected{1}, [&](bool was_handled) { handled = was_handled; });
  EXPECT_FALSE(handled) << "a session that is still there does not wait for an answer";
}

TEST_F(RunRegistryTest, CallsInFlightEndWithAStatus) {
  for (int i = 0; i < 20; ++i) {
    RunHost* const run = registry_->Create(Config("new"), "").value();
    std::atomic<bool> done{false};
    std::atomic<int> refused{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller) {
      callers.emplace_back([&] {
        while (!done || refused < 3) {
          const absl::Status status = run->Use([](const RunHost::Live& live) -> absl::Status {
            TERSE_RETURN_IF_ERROR(live.store->GetHead().status());
            return live.loop->Call([] {});
          });
          EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status) || absl::IsCancelled(status)) << status;
          refused += absl::IsFailedPrecondition(status);
          EXPECT_EQ(run->Record().status(), absl::OkStatus());
          EXPECT_EQ(run->View().head.version, 0);
          const absl::Status exported = run->Export(v1::ExportRequest::FORMAT_NPZ).status();
          EXPECT_TRUE(exported.ok() || absl::IsFailedPrecondition(exported) || absl::IsCancelled(exported)) << exported;
        }
      });
    }
    EXPECT_EQ(registry_->Delete("new", true).status(), absl::OkStatus());
    done = true;
    for (std::thread& caller : callers) caller.join();
  }
  EXPECT_THAT(Directories(), IsEmpty());
}

TEST_F(RunRegistryTest, WhatADeletionLeftGoesAtTheNextStart) {
  for (const char* name : {"cut-short", "kept"})
    ASSERT_EQ(registry_->Create(Config(name), "").status(), absl::OkStatus());
  ASSERT_EQ(registry_->Stop(), absl::OkStatus());
  registry_.reset();
  // As a process leaves it that dies after the rename.
  std::filesystem::rename(state_ + "/runs/cut-short", state_ + "/runs/cut-short~deleted");
  Open();
  registry_->Start();
  EXPECT_THAT(Served(), ElementsAre("kept"));
  EXPECT_THAT(Directories(), ElementsAre("kept"));
  // The remains of a deletion that failed are in nobody's way.
  ASSERT_EQ(PosixFiles().MakeDirectory(state_ + "/runs/kept~deleted/checkpoints"), absl::OkStatus());
  EXPECT_EQ(registry_->Delete("kept", true).status(), absl::OkStatus());
  EXPECT_THAT(Directories(), IsEmpty());
}

TEST_F(RunRegistryTest, ADeletionThatFailsLeavesTheRunWholeAndDown) {
  RunHost* const run = registry_->Create(Config("new"), "").value();
  const Id128 lineage = run->lineage();
  const auto link = std::make_shared<RecordingLink>();
  ASSERT_EQ(run->Use([&](const RunHost::Live& live) {
    live.loop->Post(Connected{1, link});
    return live.loop->Call([] {});
  }),
            absl::OkStatus());
  std::filesystem::rename(state_ + "/runs/new", state_ + "/elsewhere");
  const absl::Status failed = registry_->Delete("new", true).status();
  std::filesystem::rename(state_ + "/elsewhere", state_ + "/runs/new");
  EXPECT_TRUE(absl::IsNotFound(failed)) << failed;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("run 'new' is not deleted, and down until"));
  EXPECT_THAT(Served(), ElementsAre("new"));
  EXPECT_EQ(run->condition(), RunHost::Condition::kDown);
  ASSERT_EQ(link->sent.size(), 1u);
  EXPECT_TRUE(std::get<Refusal>(link->sent[0]).retry) << "clients come back";
  Restart();
  EXPECT_EQ(registry_->Find("new").value()->lineage(), lineage);
  EXPECT_EQ(registry_->Delete("new", true).status(), absl::OkStatus());
}

TEST_F(RunRegistryTest, ARunInTheStateDirectoryItselfStaysThere) {
  ASSERT_EQ(registry_->Create(Config("old"), "").status(), absl::OkStatus());
  ASSERT_EQ(registry_->Stop(), absl::OkStatus());
  registry_.reset();
  for (const char* name : {"run.sqlite", "checkpoints"}) {
    std::filesystem::rename(absl::StrCat(state_, "/runs/old/", name), absl::StrCat(state_, "/", name));
  }
  std::filesystem::remove_all(state_ + "/runs");
  Open();
  registry_->Start();
  const absl::Status refused = registry_->Delete("old", true).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("remove run.sqlite*, checkpoints and segments there"));
  EXPECT_EQ(registry_->Find("old").value()->condition(), RunHost::Condition::kServing);
}

TEST_F(RunRegistryTest, MakesRunsWhileItServesOnly) {
  ASSERT_EQ(registry_->Stop(), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(registry_->Create(Config("late"), "").status()));
  EXPECT_TRUE(absl::IsUnavailable(registry_->Delete("late", true).status()));
  Open();
  EXPECT_TRUE(absl::IsUnavailable(registry_->Create(Config("early"), "").status()));
  registry_->Start();
  EXPECT_EQ(registry_->Create(Config("new"), "").status(), absl::OkStatus());
}

// A run on PostgreSQL is in its schema; directories have what is made anew.
class RunRegistryOnPostgres : public RunRegistryTest {
 protected:
  RunRegistryOnPostgres() {
    make_stores_ = [this] {
      stores_ = nullptr;
      stores_ = RunsInPostgres(server_.address(), state_).value();
      EXPECT_EQ(stores_->lease()->Take().value(), "");
      return stores_;
    };
  }
  std::vector<std::string> Schemas() {
    const auto db = PostgresDb::Open(server_.address(), "public", PostgresDb::Mode::kReader).value();
    Statement rows =
        db->Prepare("SELECT CAST(nspname AS TEXT) FROM pg_namespace WHERE starts_with(nspname, 'terse_') ORDER BY 1");
    std::vector<std::string> names;
    while (rows.Step().value()) names.emplace_back(rows.GetText(0));
    return names;
  }

  PostgresServer server_;
  std::shared_ptr<RunStores> stores_;
};

TEST_F(RunRegistryOnPostgres, ARunIsServedFromADirectoryThatKnowsNothingOfIt) {
  ASSERT_EQ(registry_->Create(Config("plain"), "").status(), absl::OkStatus());
  const std::string module(3 << 20, 'm');
  ASSERT_EQ(registry_->Create(Config("module", module), module).status(), absl::OkStatus());
  const Id128 lineage = registry_->Find("plain").value()->lineage();
  EXPECT_THAT(Schemas(), ElementsAre("terse_module", "terse_plain"));
  std::string seen;
  before_learning_ = [&](const RunConfig& config, const std::string& bytes) {
    if (config.name == "module") seen = bytes;
  };
  state_ = directory_.path() + "/another machine";
  Restart();
  EXPECT_THAT(Served(), ElementsAre("module", "plain"));
  EXPECT_EQ(seen, module);
  EXPECT_EQ(registry_->Find("plain").value()->lineage(), lineage);
}

TEST_F(RunRegistryOnPostgres, ADeletedRunIsGoneAndItsNameIsFree) {
  ASSERT_EQ(registry_->Create(Config("gone"), "").status(), absl::OkStatus());
  const absl::StatusOr<uint64_t> bytes = registry_->Delete("gone", /*force=*/true);
  ASSERT_EQ(bytes.status(), absl::OkStatus());
  EXPECT_GT(*bytes, 100'000u) << "its tables are larger";
  EXPECT_THAT(Schemas(), IsEmpty());
  EXPECT_THAT(Directories(), IsEmpty());
  EXPECT_EQ(registry_->Create(Config("gone"), "").status(), absl::OkStatus());
}

TEST_F(RunRegistryOnPostgres, WhatACrashLeftIsNotServedAndInNobodysWay) {
  for (const char* name : {"one", "other"}) {
    ASSERT_EQ(registry_->Create(Config(name), "").status(), absl::OkStatus());
  }
  ASSERT_EQ(registry_->Stop(), absl::OkStatus());
  registry_.reset();
  // As processes leave it that die while they make a run, and while they delete one.
  make_stores_();
  ASSERT_EQ(stores_->Rename(state_ + "/runs/one", state_ + "/runs/new.partial"), absl::OkStatus());
  ASSERT_EQ(stores_->Rename(state_ + "/runs/other", state_ + "/runs/other~deleted"), absl::OkStatus());
  Open();
  registry_->Start();
  EXPECT_THAT(Served(), IsEmpty());
  EXPECT_THAT(Schemas(), ElementsAre("terse_new.partial"));
  ASSERT_EQ(registry_->Create(Config("new"), "").status(), absl::OkStatus());
  EXPECT_THAT(Schemas(), ElementsAre("terse_new"));
}

TEST_F(RunRegistryOnPostgres, RunsInTheStateDirectoryAreNotForgotten) {
  state_ = directory_.path() + "/own";
  make_stores_ = [this] { return std::shared_ptr<RunStores>(RunsInDirectories(state_)); };
  Restart();
  ASSERT_EQ(registry_->Create(Config("mine"), "").status(), absl::OkStatus());
  const absl::Status refused = RunsInPostgres(server_.address(), state_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("(mine), and nobody would serve them"));
}

TEST_F(RunRegistryOnPostgres, ANameThatIsTooLongForASchemaIsRefused) {
  const absl::Status refused = registry_->Create(Config(std::string(60, 'n')), "").status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("give the run a shorter name"));
  EXPECT_THAT(Schemas(), IsEmpty());
}

}  // namespace
}  // namespace terse
