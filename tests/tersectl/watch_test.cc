// `tersectl watch` on a pseudo-terminal, as a program of its own, and how it waits for a coordinator.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tersectl/cli.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kEntered[] = "\033[?1049h\033[?25l";
constexpr char kLeft[] = "\033[?25h\033[?1049l";

// A terminal of 80 by 24 in which tersectl runs.
class TerminalSession {
 public:
  explicit TerminalSession(std::vector<std::string> arguments, bool color = false) {
    winsize size = {24, 80, 0, 0};
    EXPECT_EQ(openpty(&master_, &slave_, nullptr, nullptr, &size), 0);
    fcntl(master_, F_SETFD, FD_CLOEXEC);
    before_ = Modes();
    std::vector<std::string> environment = {"TERM=xterm"};
    if (!color) environment.push_back("NO_COLOR=1");
    arguments.insert(arguments.begin(), Program("tersectl"));
    std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
    child_ = fork();
    if (child_ == 0) {
      const rlimit no_core = {0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      login_tty(slave_);
      execve(argv[0], argv.data(), envp.data());
      _exit(127);
    }
  }
  ~TerminalSession() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    if (master_ >= 0) close(master_);
    close(slave_);
  }

  // Reads until `text` has come behind what was looked for before; false after ten seconds.
  bool Comes(const std::string& text) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    size_t at;
    while ((at = output_.find(text, seen_)) == std::string::npos) {
      if (absl::Now() > deadline || !ReadSome()) return false;
    }
    seen_ = at + text.size();
    return true;
  }
  void Type(const std::string& keys) {
    EXPECT_EQ(write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void Resize(unsigned short columns, unsigned short rows) {
    winsize size = {rows, columns, 0, 0};
    EXPECT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
  }
  void Signal(int signal) { kill(child_, signal); }
  void HangUp() {
    close(master_);
    master_ = -1;
  }
  // Returns the wait status of the command once it ends; -1 after ten seconds.
  int End() {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    int status = -1;
    while (waitpid(child_, &status, WNOHANG) == 0) {
      if (absl::Now() > deadline) return -1;
      if (master_ >= 0) ReadSome();
    }
    child_ = 0;
    while (master_ >= 0 && ReadSome()) {
    }
    return status;
  }
  // Returns the output behind the last text that Comes found.
  std::string Rest() const { return output_.substr(seen_); }
  const std::string& output() const { return output_; }
  bool HasModesOfBefore() const {
    const termios now = Modes();
    return now.c_iflag == before_.c_iflag && now.c_oflag == before_.c_oflag && now.c_cflag == before_.c_cflag &&
           now.c_lflag == before_.c_lflag && std::equal(std::begin(now.c_cc), std::end(now.c_cc), before_.c_cc);
  }

 private:
  static std::vector<char*> Pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(&text[0]);
    pointers.push_back(nullptr);
    return pointers;
  }
  termios Modes() const {
    termios modes = {};
    EXPECT_EQ(tcgetattr(slave_, &modes), 0);
    return modes;
  }
  // False when nothing came for a moment and the program has ended.
  bool ReadSome() {
    pollfd input = {master_, POLLIN, 0};
    if (poll(&input, 1, 200) <= 0) return child_ > 0;
    char bytes[4096];
    const ssize_t count = read(master_, bytes, sizeof(bytes));
    if (count > 0) output_.append(bytes, static_cast<size_t>(count));
    return count > 0;
  }

  int master_ = -1, slave_ = -1;
  pid_t child_ = 0;
  termios before_ = {};
  std::string output_;
  size_t seen_ = 0;
};

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() : server_(std::make_unique<FakeAdminServer>()) {
    server_->status.set_run("lenet5-sbc2");
    server_->status.set_state("active");
    server_->status.set_phase("collecting updates");
    server_->status.set_rounds_total(3);
    for (uint64_t id = 1; id <= 3; ++id) {
      v1::Round round;
      round.set_id(id);
      round.set_state(id == 3 ? "open" : "committed");
      round.set_opened_us(static_cast<int64_t>(id) * 1000000);
      round.set_committed_us(id == 3 ? 0 : static_cast<int64_t>(id) * 1000000 + 500000);
      server_->rounds.push_back(round);
    }
    server_->status.set_round(3);
    v1::Client client;
    client.set_name("berlin-1");
    client.set_state("training");
    client.set_connected(true);
    server_->clients = {client};
    v1::Event event;
    event.set_kind("joined");
    server_->events = {event};
  }
  std::vector<std::string> Arguments(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"watch", "--admin", server_->address()});
    return more;
  }
  static void ExpectRestored(const TerminalSession& session) {
    EXPECT_THAT(session.output(), HasSubstr(kEntered));
    EXPECT_THAT(session.Rest(), HasSubstr(kLeft));
    EXPECT_TRUE(session.HasModesOfBefore());
  }

  std::unique_ptr<FakeAdminServer> server_;
};

TEST_F(WatchTest, HoldsTheScreenUntilTheUserHasEnough) {
  TerminalSession session(Arguments());
  ASSERT_TRUE(session.Comes(kEntered));
  ASSERT_TRUE(session.Comes("run lenet5-sbc2  active  collecting updates, waits for 1: berlin-1\033[2;1H"))
      << session.output();
  ASSERT_TRUE(session.Comes("2 of 3 rounds")) << session.output();
  EXPECT_FALSE(session.HasModesOfBefore());
  session.Type("?");
  ASSERT_TRUE(session.Comes("leave; the run goes on")) << session.output();
  session.Type("?");
  ASSERT_TRUE(session.Comes("berlin-1")) << session.output();
  session.Resize(40, 10);
  ASSERT_TRUE(session.Comes("\033[1;1H\033[2Krun lenet5-sbc2  active  collecting upd\u2026\033[2;1H"))
      << session.output();
  session.Type("q");
  EXPECT_EQ(session.End(), 0) << session.output();
  ExpectRestored(session);
  EXPECT_THAT(session.output(), Not(HasSubstr("\033[1m"))) << "NO_COLOR";
  EXPECT_THAT(session.output(), Not(HasSubstr("ended after")));
}

TEST_F(WatchTest, LeavesItAtTheEndOfTheRun) {
  TerminalSession session(Arguments(), true);
  ASSERT_TRUE(session.Comes("2 of 3 rounds")) << session.output();
  EXPECT_THAT(session.output(), HasSubstr("\033[1mlenet5-sbc2\033[0m"));
  server_->finished = true;
  EXPECT_EQ(session.End(), 0) << session.output();
  ExpectRestored(session);
  EXPECT_THAT(session.Rest(), HasSubstr("\033[?1049lrun lenet5-sbc2 ended after 2 of 3 rounds\r\n"));
}

TEST_F(WatchTest, LeavesItWhenASignalEndsIt) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    TerminalSession session(Arguments());
    ASSERT_TRUE(session.Comes("2 of 3 rounds")) << session.output();
    if (signal == SIGINT) {
      session.Type("\003");
    } else {
      session.Signal(signal);
    }
    const int status = session.End();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    ExpectRestored(session);
  }
}

TEST_F(WatchTest, EndsWithItsTerminal) {
  TerminalSession session(Arguments());
  ASSERT_TRUE(session.Comes("2 of 3 rounds")) << session.output();
  session.HangUp();
  EXPECT_NE(session.End(), -1);
}

TEST_F(WatchTest, WaitsForACoordinatorThatRestartsAndSaysSo) {
  TerminalSession session(Arguments());
  ASSERT_TRUE(session.Comes("2 of 3 rounds")) << session.output();
  server_->presence = grpc::StatusCode::UNAVAILABLE;
  ASSERT_TRUE(session.Comes("the coordinator went away; calling again")) << session.output();
  server_->presence = grpc::StatusCode::OK;
  ASSERT_TRUE(session.Comes("payload -\033[4;1H\033[2Kaccuracy")) << session.output();
  server_->finished = true;
  EXPECT_EQ(session.End(), 0) << session.output();
  ExpectRestored(session);
}

TEST_F(WatchTest, LeavesItWhenTheCoordinatorStaysAway) {
  TerminalSession session(Arguments({"--patience", "1"}));
  ASSERT_TRUE(session.Comes("2 of 3 rounds")) << session.output();
  server_.reset();
  const int status = session.End();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitUnreachable) << status;
  ExpectRestored(session);
  EXPECT_THAT(session.output(), HasSubstr("the coordinator went away; calling again"));
  EXPECT_THAT(session.Rest(), HasSubstr("\033[?1049ltersectl: the coordinator at 127.0.0.1:"));
}

TEST_F(WatchTest, PrintsLinesWhereTheyAreWanted) {
  server_->rounds.pop_back();
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--lines"}, {"--first", "1"}, {"--json"}}) {
    TerminalSession session(Arguments(more));
    EXPECT_EQ(session.End(), 0) << session.output();
    EXPECT_THAT(session.output(), Not(HasSubstr("\033[?1049h")));
    EXPECT_THAT(session.output(), HasSubstr(more[0] == "--json" ? "{\"id\":2," : "ended after 2 of 3 rounds"));
  }
}

TEST_F(WatchTest, HasPatienceWithACoordinatorThatIsNotThereYet) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"watch"}, {"events", "-f"}}) {
    server_->presence = grpc::StatusCode::UNAVAILABLE;
    server_->SetFollowed({grpc::Status::OK}, {});
    std::thread coordinator([this] {
      absl::SleepFor(absl::Milliseconds(700));
      server_->presence = grpc::StatusCode::OK;
    });
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--admin", server_->address()});
    const CtlOutcome outcome = Invoke(arguments);
    coordinator.join();
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(command.size() == 1 ? "ended after 2 of 3 rounds" : "joined"));
    EXPECT_THAT(outcome.err, HasSubstr("does not answer (as the test has it)"));
    EXPECT_THAT(outcome.err, HasSubstr("; waiting up to 30 s for it\n"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST_F(WatchTest, HasNoneWithARefusalAtTheStart) {
  server_->presence = grpc::StatusCode::UNAUTHENTICATED;
  const absl::Time begun = absl::Now();
  EXPECT_EQ(Invoke(Arguments()).code, kExitFailed);
  EXPECT_EQ(Invoke({"events", "-f", "--admin", server_->address()}).code, kExitFailed);
  server_->presence = grpc::StatusCode::UNAVAILABLE;
  EXPECT_EQ(Invoke(Arguments({"--patience", "0"})).code, kExitUnreachable);
  EXPECT_LT(absl::Now() - begun, absl::Seconds(10));
}

}  // namespace
}  // namespace terse
