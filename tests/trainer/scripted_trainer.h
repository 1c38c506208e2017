// A trainer that a test writes: what it does with its end of the socket, in a thread.
#ifndef TERSE_TESTS_TRAINER_SCRIPTED_TRAINER_H_
#define TERSE_TESTS_TRAINER_SCRIPTED_TRAINER_H_

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/testing/grid_trainer.h"
#include "trainer/channel.h"
#include "trainer/external_trainer.h"
#include "trainer/messages.h"

namespace terse {

// The two ends of a connected socket.
inline std::pair<OwnedFile, OwnedFile> SocketPair() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) abort();
  return {OwnedFile(ends[0]), OwnedFile(ends[1])};
}

// Connects to `script`, which runs in a thread with the trainer's end. Must outlive what it connected.
class ScriptedTrainer {
 public:
  using Script = std::function<void(OwnedFile socket)>;
  explicit ScriptedTrainer(Script script) : script_(std::move(script)) {}
  ~ScriptedTrainer() {
    if (thread_.joinable()) thread_.join();
  }

  TrainerSource Source() {
    return [this]() -> absl::StatusOr<TrainerConnection> {
      auto [ours, theirs] = SocketPair();
      if (thread_.joinable()) thread_.join();
      thread_ = std::thread([this, socket = std::move(theirs)]() mutable { script_(std::move(socket)); });
      return TrainerConnection{std::move(ours), nullptr};
    };
  }

 private:
  const Script script_;
  std::thread thread_;
};

// The hello of an honest trainer of the grid's layout.
inline Hello GridHello() {
  Hello hello;
  hello.protocol = kTrainerProtocol;
  hello.trainer = "scripted 1";
  for (const TensorSpec& tensor : GridLayout().tensors())
    hello.layout.push_back({tensor.name, tensor.shape, "parameter"});
  hello.dtype = "float32";
  hello.samples = 7;
  hello.device = "cpu";
  hello.result = "delta";
  hello.has_state = true;
  hello.has_momentum = true;
  return hello;
}

}  // namespace terse

#endif  // TERSE_TESTS_TRAINER_SCRIPTED_TRAINER_H_
