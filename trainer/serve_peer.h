// The other end of TrainerPeer: serves the requests of the trainer protocol (docs/TRAINER.md) in C++, for trainers
// (serve_trainer.h) and sandboxed models alike.
#ifndef TERSE_TRAINER_SERVE_PEER_H_
#define TERSE_TRAINER_SERVE_PEER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/layout.h"
#include "core/run_config.h"
#include "trainer/channel.h"
#include "trainer/messages.h"
#include "trainer/owned_file.h"
#include "trainer/shared_vectors.h"

namespace terse {

// A run is opened with these.
struct RunOpening {
  OpenRequest request;
  // For sandboxed processes alone: all settings of the run, and the bytes of its TorchScript file where it has one.
  absl::optional<RunConfig> settings = {};
  std::string module = {};
};

// Answers the requests of the process that asks. They are believed.
class PeerService {
 public:
  // Tells the other end that `steps` of the present request are done, and returns whether to go on.
  using Progress = std::function<bool(int64_t steps)>;

  virtual ~PeerService() = default;
  // Opens a run, in place of the one before.
  virtual absl::StatusOr<Hello> Open(const RunOpening& opening) = 0;
  // Answers any other request about the opened run. `vectors` are mapped once the other end has shared them.
  virtual absl::StatusOr<std::string> Answer(const Channel::Frame& request, const SharedVectors& vectors,
                                             const Progress& may_go_on) = 0;
  // Hears kSealed and kFinished, which nothing answers.
  virtual void Hear(const Channel::Frame& word, const SharedVectors& vectors) {}
};

// Serves the process at the other end of `socket` until it is gone. `memory` is the memory file where this process was
// given it at its start (TrainerConnection::memory), and otherwise none: it then comes with kMemory.
void ServePeer(OwnedFile socket, OwnedFile memory, PeerService* service);

// Sends the answer to a request, or its failure. ABORTED when the other end is gone.
absl::Status SendAnswer(const absl::StatusOr<std::string>& answer, Channel* channel);

// Parts of answers: a layout for Hello, the start weights (empty: there are none), and what is said of a request that
// is not known.
std::vector<WireTensor> ToWire(const Layout& layout);
std::string AnswerStart(const std::vector<float>& weights, const SharedVectors& vectors);
absl::Status UnknownRequest(const Channel::Frame& request);

}  // namespace terse

#endif  // TERSE_TRAINER_SERVE_PEER_H_
