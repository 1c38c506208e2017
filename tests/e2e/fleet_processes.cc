#include "tests/e2e/fleet_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/testing/paths.h"

extern char** environ;

namespace terse {
namespace {

// Held while a process starts.
std::mutex& StartMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

}  // namespace

void AwaitStartingProcesses() { const std::lock_guard<std::mutex> lock(StartMutex()); }

Process::Process(std::vector<std::string> argv, std::string log_path, bool own_group) : log_path_(std::move(log_path)) {
  std::vector<char*> raw;
  for (std::string& argument : argv) raw.push_back(argument.data());
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (own_group) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  // It returns when the child runs its own program.
  StartMutex().lock();
  const int error = posix_spawnp(&pid_, raw[0], &actions, &attributes, raw.data(), environ);
  StartMutex().unlock();
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    ADD_FAILURE() << "cannot start " << argv[0] << ": " << strerror(error);
    exit_code_ = 127;
  }
}

Process::~Process() { Kill(); }

absl::optional<int> Process::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!exit_code_.has_value()) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    } else if (absl::Now() > deadline) {
      break;
    } else {
      absl::SleepFor(absl::Milliseconds(5));
    }
  }
  return exit_code_;
}

void Process::Signal(int signal) {
  if (!exit_code_.has_value()) kill(pid_, signal);
}

void Process::Kill() {
  Signal(SIGKILL);
  Wait(absl::InfiniteDuration());
}

std::string Process::Output() const {
  std::ifstream file(log_path_);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ScratchDirectory::ScratchDirectory() {
  std::string pattern = testing::TempDir() + "/terse-XXXXXX";
  path_ = mkdtemp(pattern.data());
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

namespace {

std::vector<std::string> CommandLine(const Place& place, std::vector<std::string> argv) {
  argv.insert(argv.begin(), place.launcher.begin(), place.launcher.end());
  argv.insert(argv.end(), place.extra.begin(), place.extra.end());
  return argv;
}

}  // namespace

FleetProcesses::FleetProcesses(std::string coordinator, std::string client, std::vector<std::string> extra)
    : coordinator_path_(std::move(coordinator)), client_path_(std::move(client)), extra_(std::move(extra)) {}

void FleetProcesses::StartCoordinator(const std::string& run_file, const Place& place) {
  const std::string listen = place.address.empty() ? "127.0.0.1:0" : place.address;
  const std::string ready = directory_ / absl::StrCat("ready-", starts_++, ".json");
  std::vector<std::string> argv = {coordinator_path_,
                                   "--state",
                                   coordinator_state(),
                                   "--listen",
                                   addresses_.listen.empty() ? listen : addresses_.listen,
                                   "--admin",
                                   addresses_.admin.empty() ? "127.0.0.1:0" : addresses_.admin,
                                   "--ready-file",
                                   ready};
  if (!run_file.empty()) argv.insert(argv.end(), {"--run-file", run_file});
  if (!place.address.empty()) argv.push_back("--insecure");  // another host's
  argv.insert(argv.end(), extra_.begin(), extra_.end());
  coordinator_ = std::make_unique<Process>(CommandLine(place, argv), directory_ / "coordinator.log");
  while (!std::filesystem::exists(ready)) {
    ASSERT_FALSE(coordinator_->Wait(absl::Milliseconds(20)).has_value()) << coordinator_->Output();
  }
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(ready));
  addresses_ = {json.at("listen"), json.at("admin"), json.at("http")};
}

void FleetProcesses::StartClient(int index, const Place& place) {
  const std::string& coordinator = place.address.empty() ? addresses_.listen : place.address;
  std::vector<std::string> argv = {
      client_path_, "--coordinator",    coordinator, "--name", absl::StrCat("client-", index),
      "--state",    client_state(index)};
  if (!place.address.empty()) argv.push_back("--insecure");
  argv.insert(argv.end(), extra_.begin(), extra_.end());
  if (static_cast<int>(clients_.size()) <= index) clients_.resize(index + 1);
  clients_[index] =
      std::make_unique<Process>(CommandLine(place, argv), directory_ / absl::StrCat("client-", index, ".log"));
}

std::string FleetProcesses::run_state(const std::string& run) const {
  const std::string runs = coordinator_state() + "/runs/";
  if (!run.empty()) return runs + run;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(runs, none)) {
    if (std::filesystem::exists(entry.path() / "run.sqlite")) return entry.path().string();
  }
  return runs + "none";
}

bool FleetProcesses::WaitForRounds(int64_t rounds, absl::Duration timeout, const std::string& run) const {
  const auto are_there = [&] {
    return QueryNumber(database(run), "SELECT count(*) FROM rounds WHERE state = 'committed'") >= rounds;
  };
  return WaitUntil(are_there, timeout);
}

std::string FleetProcesses::Ctl(std::vector<std::string> arguments, int* exit_code) const {
  arguments.insert(arguments.begin(), {Program("tersectl"), "--admin", addresses_.admin});
  return RunCommand(arguments, exit_code);
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  ASSERT_TRUE(file.flush()) << path;
}

std::string RunCommand(const std::vector<std::string>& argv, int* exit_code) {
  ScratchDirectory directory;
  Process process(argv, directory / "output");
  const absl::optional<int> code = process.Wait(absl::Seconds(120));
  EXPECT_TRUE(code.has_value()) << argv[0] << " did not end";
  if (exit_code != nullptr) *exit_code = code.value_or(-1);
  return process.Output();
}

int64_t QueryNumber(const std::string& database, const std::string& sql) {
  sqlite3* db = nullptr;
  sqlite3_stmt* statement = nullptr;
  int64_t number = -1;
  if (sqlite3_open_v2(database.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK) {
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
      number = sqlite3_column_int64(statement, 0);
    }
  }
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return number;
}

}  // namespace terse
