// terse-client: the client daemon with a trainer of the user's own, without LibTorch. Without such a trainer it becomes
// terse-client-torch, which trains Terse's own models and TorchScript.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "client/rpc/daemon.h"
#include "core/lock_order.h"

namespace {

constexpr char kTorchClient[] = "terse-client-torch";

// Returns only when there is no such program.
int BecomeTorchClient(char** argv) {
  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  execv((here / kTorchClient).c_str(), argv);
  std::fprintf(stderr,
               "terse-client: cannot start %s: %s. It trains Terse's own models and TorchScript: install it, or train "
               "with a program of your own (--trainer)\n",
               (here / kTorchClient).c_str(), std::strerror(errno));
  return terse::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  terse::DaemonOptions options;
  if (const int code = terse::ParseDaemonOptions(argc, argv, &options); code >= 0) return code;
  if (!options.trainer.any()) return BecomeTorchClient(argv);
  terse::SkipLockOrderChecks();
  return terse::RunDaemon(options, terse::TrainerFactory());
}
