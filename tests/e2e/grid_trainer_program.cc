// The grid trainer as a program of its own, over the trainer protocol.
#include <cstdio>

#include "tests/testing/grid_trainer.h"
#include "trainer/serve_trainer.h"

int main() {
  absl::StatusOr<terse::OwnedFile> socket = terse::SocketOfClient();
  if (!socket.ok()) {
    std::fprintf(stderr, "grid-trainer: %s\n", std::string(socket.status().message()).c_str());
    return 1;
  }
  const terse::Layout& layout = terse::EnvironmentGridLayout();
  terse::ServeTrainer(*std::move(socket), "grid-trainer 1", [&layout](const terse::RunOpening& opening) {
    return std::unique_ptr<terse::LocalTrainer>(
        std::make_unique<terse::GridTrainer>(opening.request.shard.index, layout, terse::EnvironmentGridStarts()));
  });
  return 0;
}
