// Tests that tersectl escapes the texts of a coordinator that contain control sequences for the terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tersectl/cli.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// Sets the window's title, clears the screen by the one-byte form of its escape, turns the direction of writing, and
// begins a line of its own.
constexpr char kHostile[] = "x\033]0;owned\a\u009b2J\u202e\x7f\nspoofed line";

// Whatever a terminal could obey, apart from the ends of lines.
bool CanSteer(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f || is_c1) return true;
  }
  return absl::StrContains(text, "\u202e") || absl::StrContains(text, "\nspoofed");
}

class PlainTextTest : public ::testing::Test {
 protected:
  PlainTextTest() {
    server_.status.set_run(kHostile);
    server_.status.set_state("finished");
    server_.status.set_reason(kHostile);
    server_.status.set_phase(kHostile);
    server_.status.mutable_config()->mutable_codec()->set_name(kHostile);
    server_.status.mutable_config()->mutable_model()->set_name(kHostile);
    v1::Round round;
    round.set_id(1);
    round.set_state("aborted");
    server_.rounds = {round};
    v1::Client client;
    client.set_name(kHostile);
    client.set_state(kHostile);
    client.set_device(kHostile);
    client.set_set_aside_until_us(1'700'000'000'000'000);
    client.set_set_aside_reason(kHostile);
    server_.clients = {client};
    v1::Event event;
    event.set_id(1);
    event.set_kind(kHostile);
    event.set_detail(kHostile);
    server_.events = {event};
    v1::Run run;
    run.set_name(kHostile);
    run.set_state(kHostile);
    run.set_phase(kHostile);
    server_.runs = {run};
  }
  CtlOutcome Ask(const std::vector<std::string>& command) { return InvokeAt(server_.address(), command); }

  FakeAdminServer server_;
};

TEST_F(PlainTextTest, NoCommandHandsTheTerminalOver) {
  const std::vector<std::vector<std::string>> commands = {
      {"status"}, {"rounds"},       {"rounds", "--why"}, {"rounds", "--csv"}, {"clients"},
      {"events"}, {"events", "-f"}, {"summary"},         {"watch"},           {"run", "list"}};
  for (std::vector<std::string> command : commands) {
    for (const bool json : {false, true}) {
      if (json && command.back() == "--csv") continue;
      if (json) command.push_back("--json");
      const CtlOutcome shown = Ask(command);
      EXPECT_EQ(shown.code, kExitOk) << command[0] << ": " << shown.err;
      EXPECT_FALSE(CanSteer(shown.out)) << command[0] << (json ? " --json" : "") << ": " << shown.out;
      EXPECT_FALSE(CanSteer(shown.err)) << command[0] << (json ? " --json" : "") << ": " << shown.err;
    }
  }
  EXPECT_THAT(Ask({"events"}).out, HasSubstr("x\\u001b]0;owned\\u0007\\u009b2J\\u202e\\u007f\\nspoofed line"));
}

TEST_F(PlainTextTest, JsonStillSaysWhatTheCoordinatorSaid) {
  const auto events = nlohmann::json::parse(Ask({"events", "--json"}).out);
  EXPECT_EQ(events[0]["detail"], kHostile);
}

TEST_F(PlainTextTest, ErrorsToo) {
  server_.deletion = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, kHostile);
  const CtlOutcome refused = Ask({"run", "delete", "r", "--yes"});
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("\\u001b]0;owned"));
  EXPECT_FALSE(CanSteer(refused.err)) << refused.err;
}

}  // namespace
}  // namespace terse
