// terse-bench: measures, and reruns the papers' tables.
#include <cstdio>

#include "bench/codec_command.h"
#include "bench/distortion_command.h"
#ifdef TERSE_BENCH_LEARNING
#include "bench/fleet/fleet_command.h"
#include "bench/fleet/load_process.h"
#include "bench/memory_command.h"
#include "bench/paper/paper_command.h"
#include "bench/paper/worker.h"
#include "bench/partition_command.h"
#include "bench/positions_command.h"
#include "bench/robust/norms_command.h"
#include "bench/robust/robust_command.h"
#include "bench/train_command.h"
#include "bench/updates_command.h"
#include "learning/runtime.h"
#include "security/connection_failure.h"
#endif
#include "core/cli/command_line.h"
#include "core/lock_order.h"
#include "core/version.h"

int main(int argc, char** argv) {
  terse::SkipLockOrderChecks();
#ifdef TERSE_BENCH_LEARNING
  terse::ConfigureBlas();
#endif
  CLI::App app("Measures Terse: speed and size of compression, what is lost, and the tables of papers");
  app.name("terse-bench");
  app.require_subcommand(1);
  app.set_version_flag("--version", terse::kVersion);
  app.footer("Exit codes: 0 ok, 1 failed or (with --check) a target missed, 2 wrong usage.");
  terse::Command command;
  terse::AddCodecCommand(&app, &command);
  terse::AddDistortionCommand(&app, &command);
#ifdef TERSE_BENCH_LEARNING
  terse::AddFleetCommand(&app, &command);
  terse::AddLoadProcessCommand(&app, &command);
  terse::AddMemoryCommand(&app, &command);
  terse::AddPartitionCommand(&app, &command);
  terse::AddPositionsCommand(&app, &command);
  terse::AddTrainCommand(&app, &command);
  terse::AddUpdatesCommand(&app, &command);
  terse::AddPaperCommand(&app, &command);
  terse::AddRobustCommand(&app, &command);
  terse::AddNormsCommand(&app, &command);
  terse::AddWorkerCommand(&app, &command);
#endif
  if (const absl::optional<int> code = terse::ReadCommandLine(app, argc, argv); code.has_value()) return *code;
#ifdef TERSE_BENCH_LEARNING
  terse::QuietGrpc();
#endif
  const absl::StatusOr<int> code = command();
  if (code.ok()) return *code;
  std::fprintf(stderr, "terse-bench: %s\n", std::string(code.status().message()).c_str());
  return 1;
}
