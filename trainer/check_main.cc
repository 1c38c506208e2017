// terse-trainer-check: tries a trainer against the trainer protocol.
#include <csignal>
#include <cstdio>

#include "CLI/CLI.hpp"
#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/cli/man_page.h"
#include "core/version.h"
#include "trainer/conformance.h"

namespace {

const char* MarkOf(terse::TrainerFinding::Kind kind) {
  switch (kind) {
    case terse::TrainerFinding::Kind::kPassed:
      return "ok";
    case terse::TrainerFinding::Kind::kFailed:
      return "FAILED";
    case terse::TrainerFinding::Kind::kNote:
      return "note";
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Starts a trainer and tries it against the trainer protocol (docs/TRAINER.md).");
  app.name("terse-trainer-check");
  app.set_version_flag("--version", terse::kVersion);
  terse::ConformanceOptions options;
  app.add_option("command", options.command, "command that starts the trainer, for /bin/sh")->required();
  app.add_option("--steps", options.steps, "local steps of each training")
      ->check(terse::WholeNumber(1, 1000000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "seconds that an answer may take")
      ->check(terse::Number(0.1, 86400.0))
      ->capture_default_str();
  app.footer("Exit codes: 0 the trainer passed, 1 it failed, 2 wrong usage.");
  terse::AddManFlag(app, terse::kUserCommands);
  if (const auto code = terse::ReadCommandLine(app, argc, argv); code.has_value()) return *code;
  std::signal(SIGPIPE, SIG_IGN);
  bool failed = false;
  for (const terse::TrainerFinding& finding : terse::CheckTrainer(options)) {
    std::printf("%-7s %s%s%s\n", MarkOf(finding.kind), finding.check.c_str(), finding.detail.empty() ? "" : ": ",
                finding.detail.c_str());
    failed = failed || finding.kind == terse::TrainerFinding::Kind::kFailed;
  }
  return failed ? 1 : 0;
}
