// The other end of the trainer protocol (docs/TRAINER.md): a program of the user's own that was opened for a run, and
// the memory that is shared with it. Trainers and evaluators stand on it.
#ifndef TERSE_TRAINER_TRAINER_PEER_H_
#define TERSE_TRAINER_TRAINER_PEER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/layout.h"
#include "core/named_metrics.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "trainer/dialogue.h"
#include "trainer/messages.h"
#include "trainer/shared_vectors.h"
#include "trainer/trainer_source.h"

namespace terse {

// The part that the program plays for its user, who reads it in messages.
struct PeerRole {
  const char* name;     // OpenRequest::role
  const char* subject;  // "the trainer"
  const char* option;   // that brings it: "--trainer"
  const char* asker;    // "this client"
  // It ends messages about answers that cannot be, for a confined program of this release (sandbox/). What such a
  // program says of its failures is worded for people already. Null for programs of the user's own.
  const char* distrust = nullptr;

  bool is_confined() const { return distrust != nullptr; }
};
inline constexpr PeerRole kTrainerRole = {"trainer", "the trainer", "--trainer", "this client"};
inline constexpr PeerRole kEvaluatorRole = {"evaluator", "the evaluator", "--evaluator", "this coordinator"};

struct PeerOptions {
  double seconds = 3600;                                  // that an answer may take
  std::function<bool()> stop = {};                        // Dialogue::Options::stop
  std::function<void(const std::string& line)> log = {};  // hears what the program says that it is; may be empty
  // Whether there is room for a model. May be empty: for any.
  std::function<absl::Status(const Layout& layout)> fits = {};
  std::function<std::string(int status)> how_it_ended = HowItEnded;  // of the program's process
};

// Describes a run to a program that is opened for it.
OpenRequest RequestFor(const RunConfig& config, const Shard& shard, const PeerRole& role);

// The program's answers are not believed: everything is checked before it is used, and copied before it is checked.
// Calls return, beside the statuses that the program answers,
//   UNAVAILABLE          it ended, took too long, or did not stop when asked: it is lost, and all later calls say so
//   INTERNAL             it answered what no such program answers: as above
// Not thread-safe. Memory: three vectors of the model, shared with the program.
class TrainerPeer {
 public:
  static constexpr uint64_t kMostAnswerBytes = 64 << 10;

  TrainerPeer(TrainerConnection connection, const PeerRole& role, const PeerOptions& options);
  // Connects and opens the run.
  static absl::StatusOr<std::unique_ptr<TrainerPeer>> Open(TrainerConnection connection, const PeerRole& role,
                                                           const PeerOptions& options, const OpenRequest& request);
  ~TrainerPeer();
  TrainerPeer(const TrainerPeer&) = delete;
  TrainerPeer& operator=(const TrainerPeer&) = delete;

  // Opens the run, once, and shares the memory for its model. FAILED_PRECONDITION for another version of the protocol,
  // a type of numbers that is not supported, and a layout that no run has.
  absl::Status OpenRun(const OpenRequest& request);

  const PeerRole& role() const { return role_; }
  // The program has said these of the opened run.
  const Hello& hello() const { return hello_; }  // without its layout
  const Layout& layout() const { return layout_; }
  Dialogue& dialogue() { return *dialogue_; }

  // Puts the weights where the program looks for them, rounded where it wants them so. They have the layout's size.
  void GiveWeights(absl::Span<const float> weights);
  // Puts the weights of GradientPlan::snapshot where a confined program looks for them. Likewise.
  void GiveSnapshot(absl::Span<const float> snapshot);
  // Takes the result as a change of `weights`, which were given; as what was left where those are empty, or where the
  // program says that it leaves changes. Whether all of it is finite. The program may write it at any time: it is
  // copied before it is looked at.
  bool TakeResult(absl::Span<const float> weights, absl::Span<float> delta) const;
  // The weights that the run starts from, as the program knows them. They are not checked; empty where it knows none.
  absl::StatusOr<std::vector<float>> StartWeights();

  // The status of an answer to `question` that is no message of the protocol; the program is lost.
  absl::Status Unreadable(absl::string_view question, const absl::Status& why);
  // The status of an answer that a sound program may give by mistake: `mistake` ends the sentence "the trainer ...".
  // FAILED_PRECONDITION; of a confined program INTERNAL, and it is lost.
  absl::Status Mistaken(absl::string_view mistake);
  // Reads metrics, whose kinds are among `kinds`. As Mistaken and Unreadable.
  absl::StatusOr<std::vector<NamedMetric>> ReadMetrics(const std::vector<WireMetric>& wire,
                                                       absl::Span<const MetricKind> kinds);

 private:
  std::string Introduction() const;
  std::string End(int socket, bool at_once);
  absl::Status SayOpen(const OpenRequest& request);
  absl::Status OrNeverStarts(const absl::Status& status);
  absl::Status CheckHello() const;
  absl::Status TakeLayout();
  absl::Status ShareMemory();

  const PeerRole role_;
  const PeerOptions options_;
  OwnedFile memory_;  // TrainerConnection::memory
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<Dialogue> dialogue_;
  Hello hello_;
  Layout layout_;
  SharedVectors vectors_;
};

}  // namespace terse

#endif  // TERSE_TRAINER_TRAINER_PEER_H_
