// One run of the coordinator process: its directory, engine, thread, and what happens when its disk is in trouble.
#ifndef TERSE_COORDINATOR_RPC_RUN_HOST_H_
#define TERSE_COORDINATOR_RPC_RUN_HOST_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "coordinator/background.h"
#include "coordinator/engine.h"
#include "coordinator/event_loop.h"
#include "coordinator/rpc/relay_learning.h"
#include "coordinator/rpc/round_traces.h"
#include "coordinator/rpc/run_learning.h"
#include "core/run_config.h"
#include "storage/run_store.h"
#include "storage/run_stores.h"
#include "storage/update_spool.h"
#include "terse/v1/admin.pb.h"

namespace terse {

// A model's file, and the version whose weights it holds.
struct ExportedModel {
  std::string bytes;
  int64_t version = 0;
};

// Which run to host, and where.
struct RunPlan {
  std::string name;
  std::string directory;
  absl::optional<v1::RunConfig> wanted;   // what the run file says; nullopt: only resume
  std::string run_file;                   // for messages
  absl::optional<RelayStart> relay = {};  // with `wanted`: the run is a relay's
};

// Puts something in front of a run's store, for as long as the run is served.
using StoreWrapper = std::function<std::unique_ptr<RunStore>(const std::string& run, std::unique_ptr<RunStore> store)>;

// The run is served by a thread of its own. When its disk is full or fails for now, the run is suspended: its clients
// are sent away with the advice to come back, its store is closed, and it is opened again, with a back-off, until that
// works. A sync that failed ends the process: the kernel may have dropped what was written, so only a fresh look at the
// disk tells what is there. Any other error leaves the run down until an operator repairs it. Thread-safe but for
// Start, Stop and Retire.
class RunHost {
 public:
  struct Options {
    RunPlan plan;
    RunStores* stores = nullptr;
    // Makes the model of the run, whose TorchScript file is `module` where it has one.
    std::function<absl::StatusOr<std::shared_ptr<RunLearning>>(const RunConfig& config, const std::string& module)>
        make_learning;
    Clock* clock = nullptr;
    // Called in the run's thread after every change of condition().
    std::function<void(const RunHost&)> on_change;
    // Called in some thread when a sync failed; does not return.
    std::function<void(const absl::Status&)> on_sync_failure;
    StoreWrapper wrap_store = {};  // may be empty
    int64_t trace_rounds = 0;      // of which traces are kept
    RelayHosting relay = {};
  };

  enum class Condition { kServing, kSuspended, kDown };

  // The parts that serve the run while its condition is kServing.
  struct Live {
    std::unique_ptr<RunStore> store;
    std::shared_ptr<EventLoop> loop;  // shared with sessions, which may outlive it
    std::unique_ptr<BackgroundWorker> worker;
    std::unique_ptr<Engine> engine;
  };

  // Creates or opens the run and rebuilds its head. Any trouble is an error here: INVALID_ARGUMENT when the directory
  // holds no run and none is wanted, FAILED_PRECONDITION when it holds another one or is in use, and those of RunStore,
  // Engine and the learning library. Pointers must outlive the host.
  static absl::StatusOr<std::unique_ptr<RunHost>> Open(Options options);
  ~RunHost();
  RunHost(const RunHost&) = delete;
  RunHost& operator=(const RunHost&) = delete;

  // Begins to serve. Once.
  void Start();
  // Ends the run's thread in order and returns how that went. The store stays open for reading until Retire or the end
  // of the object.
  absl::Status Stop();
  // Ends the run for good, instead of Stop. Calls `unname`, which durably takes the directory's name away, while
  // nothing writes to it any more; then tells the clients that the run is over, because of `reason`, and closes the
  // store. The object stays for sessions and calls that have it: they get the status of a run that is down. After an
  // error of `unname`, which is returned, the clients are told to come back, and the run is down until the process
  // starts again.
  absl::Status Retire(absl::FunctionRef<absl::Status()> unname, const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string& name() const { return options_.plan.name; }
  const std::string& directory() const { return options_.plan.directory; }
  const v1::RunConfig& wire_config() const { return wire_config_; }
  const RunConfig& config() const { return config_; }
  // Whether somebody evaluates the model.
  bool evaluates() const { return learning_->evaluator() != nullptr; }
  const Codec& codec() const { return *codec_; }
  // Null in a run whose updates are not packed.
  const UpdateHistories* histories() const { return histories_.get(); }
  // Where updates of the run wait for the end of their round.
  UpdateSpool& spool() const { return *spool_; }
  // Null where no traces are kept.
  RoundTraces* traces() const { return traces_.get(); }
  Id128 lineage() const { return lineage_; }
  // The lineage at the root: another one than lineage() in a relay.
  Id128 family() const { return relay_.has_value() ? relay_->family : lineage_; }
  // A session whose unsent messages exceed this does not read, and is cancelled.
  int64_t max_queued_bytes() const;

  Condition condition() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Why the condition is not kServing: "suspended: REASON" or "down: REASON"; empty while it is.
  std::string Trouble() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the view that the engine published last.
  EngineView View() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The stored row of the run, as of now or as it was known last.
  absl::StatusOr<RunRecord> Record() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the loop that a session posts to. UNAVAILABLE with the reason unless the run is served.
  absl::StatusOr<std::shared_ptr<EventLoop>> Loop() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs `use` while the store is open and keeps it open until `use` returns. FAILED_PRECONDITION with the reason
  // unless the run is served; otherwise what `use` returns.
  absl::Status Use(absl::FunctionRef<absl::Status(const Live&)> use) const ABSL_LOCKS_EXCLUDED(mutex_);
  // A model file made from the head's weights. UNIMPLEMENTED for a TorchScript file of a model that has none.
  absl::StatusOr<ExportedModel> Export(v1::ExportRequest::Format format) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<std::string> WriteModelAs(v1::ExportRequest::Format format, absl::Span<const float> weights,
                                           const RunLearning& learning) const;
  explicit RunHost(Options options) : options_(std::move(options)) {}
  // Learns the configuration from the store and the plan, creates the run when there is none, and makes codec and
  // model.
  absl::Status Prepare(RunStore* store);
  // The most of the log that goes to one client: two downstream messages of this size fit what may be queued for it, so
  // that no session is cut for one of them.
  int64_t MostLogBytes() const;
  // The run as a relay's, or not, as it is stored or is to be made. FAILED_PRECONDITION when the process is another
  // kind than the run.
  absl::Status PrepareRelay(const absl::optional<RunRecord>& stored);
  // Takes an open store into service.
  absl::StatusOr<std::unique_ptr<Live>> Resume(std::unique_ptr<RunStore> store);

  // The thread: serves, and after trouble with the disk serves again. It alone replaces what `live` points to, and
  // takes no lock to get at it: callers hold a reader's share while they wait for its event loop.
  void Supervise(Live* live) ABSL_LOCKS_EXCLUDED(mutex_);
  // The end of it when the loop was told to quit.
  absl::Status Conclude(Live* live);
  // Takes the parts out of service, and keeps what is known of the run last. Nobody may be reading through the store.
  std::unique_ptr<Live> TakeLive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends the clients away and closes the store.
  void TakeDown(Condition condition, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens the store again and again, until that works, is hopeless or the process ends.
  absl::StatusOr<Live*> Recover() ABSL_LOCKS_EXCLUDED(mutex_);
  // One attempt; `since` is when the run was suspended.
  absl::StatusOr<Live*> Reopen(absl::Time since) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetCondition(Condition condition, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits; false when the process ends meanwhile.
  bool Sleep(absl::Duration wait) const ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  // Set by Open, constant from then on.
  bool is_new_ = false;  // the run was made by this object
  v1::RunConfig wire_config_;
  RunConfig config_;
  Id128 lineage_;
  std::unique_ptr<const Codec> codec_;
  std::unique_ptr<const Codec> downstream_codec_;  // null unless the downstream mode is coded
  std::unique_ptr<UpdateHistories> histories_;     // changed by the engine that serves
  std::unique_ptr<UpdateSpool> spool_;
  std::unique_ptr<RoundTraces> traces_;
  absl::optional<RelaySetup> relay_;       // of a relay's run
  std::shared_ptr<RunLearning> learning_;  // dropped by Retire, under mutex_

  // A thread that reads through the store or asks the engine holds a reader's share, so that both stay.
  mutable absl::Mutex mutex_;
  std::unique_ptr<Live> live_ ABSL_GUARDED_BY(mutex_);
  Condition condition_ ABSL_GUARDED_BY(mutex_) = Condition::kServing;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  EngineView last_view_ ABSL_GUARDED_BY(mutex_);
  RunRecord last_record_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status ended_;  // the thread's until it is joined
  std::thread thread_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RUN_HOST_H_
