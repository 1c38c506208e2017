// The client's session engine: pull > apply > train > compress > seal > push > settle (docs/OVERVIEW.md).
// No gRPC and no LibTorch in here: the connection and the trainer are seams.
#ifndef TERSE_CLIENT_SESSION_H_
#define TERSE_CLIENT_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "client/coordinator_link.h"
#include "client/held_model.h"
#include "client/session_observer.h"
#include "client/shared_models.h"
#include "compression/codec.h"
#include "compression/downstream.h"
#include "compression/feedback.h"
#include "compression/update_history.h"
#include "core/clock.h"
#include "core/log/log.h"
#include "core/trainer.h"
#include "storage/client_state.h"

namespace terse {

// One client of one coordinator, over any number of connections. Not thread-safe.
class ClientSession {
 public:
  struct Options {
    std::string name;
    std::string run;  // to join; empty: the only one that the coordinator has
    // A random number of this ClientSession: tells its connections from those of the client's other processes.
    Id128 process;
    ClientState* state = nullptr;
    // A fresh `state` stands in for one that was lost: said at the first check-in, so that the loss is counted.
    bool residual_lost = false;
    TrainerFactory make_trainer;
    // SHA-256 (module_file.h) of the TorchScript files that this client trains. They are code: others are refused.
    std::vector<std::string> allow_models;
    Clock* clock = nullptr;
    // Asked between local steps; false ends Run with CANCELLED. Between messages the link says so (CoordinatorLink).
    std::function<bool()> keep_going;
    // A line for the log; of its fields, the run and the round are set where they are known.
    std::function<void(LogLevel level, const LogFields& about, const std::string& line)> log;
    SessionObserver* observer = nullptr;  // may be null; must outlive the session
    // Where the sessions of a process keep the weights that they hold, each version once; may be null, must outlive the
    // session. Such a session stores no model: it is there again from the others, or is downloaded.
    SharedModels* shared_models = nullptr;
  };

  explicit ClientSession(Options options);

  // Speaks on a fresh connection until it ends: OK when the run is finished, UNAVAILABLE when connecting again can
  // help, CANCELLED when the process should stop, RESOURCE_EXHAUSTED when the disk of the state directory is full or
  // fails for now: a new session on the state, opened again, can go on later. Anything else is final:
  // FAILED_PRECONDITION when the coordinator refuses this client, UNKNOWN when a sync failed, DATA_LOSS when the state
  // directory and the run do not fit, the trainer's own error. The coordinator is told of every error that is not its
  // own word, if the connection still holds.
  absl::Status Run(CoordinatorLink* link);

  // The same in steps, for a process that has many sessions and no thread for each. Start begins with a fresh
  // connection, and Take handles one of its messages: nullopt to go on, else the status with which Run would end.
  absl::Status Start(OutboundLink* link);
  absl::optional<absl::Status> Take(OutboundLink* link, const FromServer& message);
  // Between messages: frees what the state directory has or what can be made anew, the trainer and the residual, until
  // a message needs it. A run whose updates are packed keeps its history in memory.
  void Rest();

  // Saves what helps the next start (the model, and the state that relaxed durability kept in memory). The model is
  // stored meanwhile too, once it was downloaded and at most once in kSaveModelMicros, so that a process that dies need
  // not download it again.
  absl::Status Flush();
  static constexpr int64_t kSaveModelMicros = 60'000'000;

  // Whether the coordinator welcomed this client on the newest connection, so that it could take part.
  bool joined() const { return joined_; }
  // Whether it left the newest connection with a word about its error, which only an orderly close brings across.
  bool said_why() const { return said_why_; }
  // Whether the newest connection was refused with the advice to check in at the same coordinator again, at once. The
  // check-in after that does not lead to the same answer.
  bool sent_back() const { return !sent_back_to_.IsZero(); }
  // The run that it takes part in, or is to; empty while that is the coordinator's to say.
  const std::string& run() const { return work_.has_value() ? work_->config->name : options_.run; }

 private:
  // Everything that follows from the run, made when its lineage is first seen. It stays when the client moves to
  // another lineage of the family.
  struct Work {
    Id128 lineage;
    Id128 family;
    std::shared_ptr<const RunConfig> config;
    int64_t client_index = 0;
    Shard shard;                            // of the training data
    bool moved = false;                     // so that the trainer's state may be of another shard
    std::unique_ptr<LocalTrainer> trainer;  // null at rest
    std::unique_ptr<const Codec> codec;
    std::unique_ptr<const Codec> downstream_codec;  // null unless the downstream mode is coded
    std::unique_ptr<Feedback> feedback;             // null at rest
    // The residual's L2 norm after the newest verdict; nullopt while an update waits that an earlier process sealed,
    // and where it is not known at rest.
    absl::optional<double> residual_norm;
    HeldModel model;
    // The history of the client's applied updates; nullopt in a run whose updates are not packed.
    absl::optional<UpdateHistory> history;
    std::vector<float> scratch;  // what a downstream message carries, then the delta or the gradient

    // Begins a history of no updates.
    void BeginHistory();
    // Restores the history from what was stored of it.
    absl::Status RestoreHistory(const StoredState& stored);

    DownstreamCodecs downstream_codecs() const { return {*codec, downstream_codec.get()}; }
  };

  // The payload (absl::Status::SetPayload) of an error whose text may quote the client's data.
  static constexpr char kOfData[] = "terse.of_data";
  // Returns what the coordinator is told of an error: one line of UTF-8, whatever a trainer wrote, cut between
  // characters, and nothing of an error that may quote the client's data.
  static std::string ReasonOf(const absl::Status& status);
  // Says that a client whose connection was lost is back.
  void TellReturn();

  // Handlers of one message each; nullopt to go on, a status to end Run.
  using Next = absl::optional<absl::Status>;

  absl::Status Converse(CoordinatorLink* link);
  absl::Status CheckInWith(OutboundLink* link);
  absl::Status OnRefusal(const Refusal& refusal);
  absl::Status OnWelcome(OutboundLink* link, const Welcome& welcome);
  absl::Status Adopt(OutboundLink* link, const Welcome& welcome);
  // Begins to work with what is stored for `lineage`, or afresh.
  absl::Status Join(OutboundLink* link, const Welcome& welcome, Id128 lineage);
  void TellJoined() const;
  // The part of the training data that the welcome gives the client.
  static Shard ShardIn(const Welcome& welcome);
  // Leaves the lineage of the state for the welcome's. After an error there is no work: what it says of the residual
  // may not be what is stored.
  absl::Status MoveTo(const Welcome& welcome);
  absl::Status TryMoveTo(const Welcome& welcome);
  // Computes the residual that the state has in the other lineage, and stores the move.
  absl::Status MoveState(Id128 lineage);
  // The bytes of the run's TorchScript file; nothing for other models.
  absl::StatusOr<std::string> FetchModule(OutboundLink* link, const Welcome& welcome);
  // Makes the trainer, and all that is not there of what follows from the run, with what is stored.
  absl::Status Equip(absl::string_view module, Work* work) const;
  absl::Status MakeTrainer(absl::string_view module, Work* work) const;
  // Gives the trainer what is stored of it. One that has moved goes on without where that is of another shard.
  absl::Status RestoreTrainer(absl::string_view state, absl::string_view module, Work* work) const;
  // Ends a rest.
  absl::Status Wake();
  void LoadModel(Work* work) const;
  // Version 0 as this machine makes it, when that is the coordinator's.
  void StartFromScratch(Id128 start_hash, Work* work) const;
  absl::Status LoadState(absl::string_view module, Work* work) const;
  // Stores the version that stands alone; SaveModelIfDue unless it is stored or that was a short time ago.
  absl::Status SaveModel();
  absl::Status SaveModelIfDue();
  absl::Status SendReady(OutboundLink* link);
  Next OnMessage(OutboundLink* link, const FromServer& message);
  absl::Status OnResync(OutboundLink* link, const Resync& resync);
  absl::Status OnDownstream(OutboundLink* link, const Downstream& delta);
  absl::Status OnAssignment(OutboundLink* link, const Assignment& assignment);
  absl::Status OnReceipt(const Receipt& receipt);
  absl::Status OnVerdict(const Verdict& verdict);
  // Sends the sealed update. Packed only where the coordinator said that it can read that, and only when the update was
  // just sealed: what did not arrive whole, or was refused, comes again as it is.
  absl::Status Push(OutboundLink* link, bool may_pack);
  absl::Status TrainAndSeal(OutboundLink* link, const Assignment& assignment);
  // Does the work that the assignment asks of the trainer, into work_->scratch.
  absl::StatusOr<TrainResult> DoTask(const Assignment& assignment, const std::function<bool()>& keep_going);
  // The residual is what the verdict has left of it.
  void NoteSettled(Outcome outcome);
  absl::Status SealUpdate(const Assignment& assignment, std::string message, int64_t train_us,
                          const TrainResult& result);
  // A state directory that fails is not a connection that failed: connecting again cannot help.
  static absl::Status StoredStatus(const absl::Status& status) {
    return absl::IsUnavailable(status) ? absl::ResourceExhaustedError(status.message()) : status;
  }
  // `round` is 0 for what belongs to none.
  void Log(LogLevel level, int64_t round, const std::string& line) const { options_.log(level, {run(), round}, line); }

  const Options options_;
  uint32_t connections_ = 0;
  bool joined_ = false;
  bool said_why_ = false;
  // The lineage that the newest connection's refusal named, for the next check-in; zero for none.
  Id128 sent_back_to_;
  bool came_back_ = false;  // the newest check-in followed such a refusal
  // When the connection was lost, by the monotonic clock; nullopt unless the client is on its way back.
  absl::optional<int64_t> lost_us_;
  // The coordinator has been told this on the present connection and need not be told again.
  bool said_device_ = false;
  absl::optional<int> said_norm_code_;
  absl::optional<Work> work_;
  // The version that this object stored; nullopt for none yet. When the next one is due, by the monotonic clock.
  absl::optional<int64_t> saved_version_;
  int64_t save_due_us_ = 0;
};

}  // namespace terse

#endif  // TERSE_CLIENT_SESSION_H_
