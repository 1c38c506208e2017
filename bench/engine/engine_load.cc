#include "bench/engine/engine_load.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/engine/scripted_fleet.h"
#include "bench/measure.h"
#include "bench/synthetic.h"
#include "compression/run_codecs.h"
#include "coordinator/event_loop.h"
#include "core/status.h"
#include "simulation/process_facts.h"

namespace terse {
namespace {

Layout PerceptronTensors(int64_t inputs) {
  return *Layout::Create(
      {{"fc1.weight", {100, inputs}}, {"fc1.bias", {100}}, {"fc2.weight", {10, 100}}, {"fc2.bias", {10}}});
}

RunConfig RunOf(const EngineLoadOptions& options) {
  RunConfig run;
  run.name = "load";
  run.seed = 1;
  run.data.partition = "iid";
  run.train.local_steps = 1;
  run.codec.density = options.density;
  run.rounds.count = options.rounds;
  run.rounds.clients = run.rounds.quorum = run.rounds.cohort = run.rounds.invited = options.sessions;
  run.rounds.deadline_seconds = 86'400;
  run.evaluate_every = options.rounds;
  run.checkpoint_every = 10;
  run.checkpoint_keep = 2;
  run.ledger_keep_rounds = 1000;
  run.events_keep = 1'000'000;
  return run;
}

// The engine's background work, which waits until the engine is not at work.
class Later : public Background {
 public:
  Later(RunStore* store, int64_t keep) : store_(store), keep_(keep) {}

  void Evaluate(int64_t round, SharedWeights) override { done_.push_back(Evaluated{round, Evaluation{0.5, 1.0}}); }
  void WriteCheckpoint(HeldCheckpoint checkpoint) override { checkpoints_.push_back(std::move(checkpoint)); }

  // Does it, and returns the events of that.
  std::vector<Event> TakeDone() {
    for (const HeldCheckpoint& checkpoint : std::exchange(checkpoints_, {})) {
      done_.push_back(CheckpointWritten{checkpoint.version, store_->WriteCheckpoint(checkpoint.View(), keep_)});
    }
    return std::exchange(done_, {});
  }

 private:
  RunStore* const store_;
  const int64_t keep_;
  std::vector<Event> done_;
  std::vector<HeldCheckpoint> checkpoints_;
};

// One run, from its making to its end.
class Load {
 public:
  explicit Load(const EngineLoadOptions& options)
      : options_(options), run_(RunOf(options)), layout_(PerceptronTensors(options.inputs)) {}

  absl::StatusOr<EngineFigures> Run();

 private:
  absl::Status Begin();
  absl::Status Play();
  absl::StatusOr<std::vector<Event>> NextBatch();
  absl::Status Handle(std::vector<Event> events);
  // The part of the run that the batch in hand belongs to, by what was said when it began.
  EngineSpan& CurrentSpan();
  absl::Status Check();
  absl::Status CheckRounds();
  absl::Status CheckLedger();

  const EngineLoadOptions& options_;
  const RunConfig run_;
  const Layout layout_;
  SystemClock clock_;
  std::unique_ptr<ScriptedFleet> fleet_;
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<const Codec> downstream_codec_;
  std::unique_ptr<Later> background_;
  std::unique_ptr<Engine> engine_;
  EngineFigures figures_;
};

absl::StatusOr<EngineFigures> Load::Run() {
  figures_.parameters = layout_.size();
  figures_.rounds.resize(options_.rounds);
  TERSE_RETURN_IF_ERROR(Begin());
  TERSE_RETURN_IF_ERROR(ForgetPeakMemory());
  TERSE_ASSIGN_OR_RETURN(const ProcessMemory before, ReadProcessMemory("self"));
  figures_.base_kib = before.resident_kib;
  TERSE_RETURN_IF_ERROR(Play());
  TERSE_ASSIGN_OR_RETURN(const ProcessMemory after, ReadProcessMemory("self"));
  figures_.peak_kib = after.peak_kib;
  TERSE_RETURN_IF_ERROR(Check());
  TERSE_RETURN_IF_ERROR(engine_->Close());
  figures_.database_bytes = static_cast<int64_t>(std::filesystem::file_size(options_.directory + "/run.sqlite"));
  return figures_;
}

absl::Status Load::Begin() {
  std::vector<float> initial = Gaussian(layout_.size(), run_.seed);
  TERSE_ASSIGN_OR_RETURN(store_, RunStore::Open(options_.directory));
  RunRecord record;
  record.name = run_.name;
  record.lineage = Id128::Random();
  record.parameters = layout_.size();
  record.created_us = clock_.NowMicros();
  TERSE_RETURN_IF_ERROR(store_->CreateRun(record, initial));
  TERSE_RETURN_IF_ERROR(store_->SetRetention({run_.ledger_keep_rounds, run_.events_keep}));
  TERSE_ASSIGN_OR_RETURN(fleet_, ScriptedFleet::Make(run_, layout_, std::move(initial)));
  TERSE_ASSIGN_OR_RETURN(downstream_codec_, MakeDownstreamCodec(run_, layout_));
  background_ = std::make_unique<Later>(store_.get(), run_.checkpoint_keep);
  Engine::Options options;
  options.config = run_;
  options.codec = &fleet_->codec();
  options.downstream_codec = downstream_codec_.get();
  options.store = store_.get();
  options.background = background_.get();
  options.clock = &clock_;
  TERSE_ASSIGN_OR_RETURN(engine_, Engine::Resume(std::move(options)));
  return absl::OkStatus();
}

absl::Status Load::Play() {
  while (true) {
    TERSE_ASSIGN_OR_RETURN(std::vector<Event> events, NextBatch());
    if (events.empty()) break;
    TERSE_RETURN_IF_ERROR(Handle(std::move(events)));
  }
  if (fleet_->is_over()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("nobody has anything to say at version ", fleet_->version()));
}

absl::StatusOr<std::vector<Event>> Load::NextBatch() {
  std::vector<Event> events = background_->TakeDone();
  TERSE_ASSIGN_OR_RETURN(std::vector<Event> more, fleet_->NextEvents(EventLoop::kMostEvents - events.size()));
  std::move(more.begin(), more.end(), std::back_inserter(events));
  return events;
}

EngineSpan& Load::CurrentSpan() {
  if (!fleet_->has_work()) return figures_.joining;
  return fleet_->version() < options_.rounds ? figures_.rounds[fleet_->version()] : figures_.leaving;
}

absl::Status Load::Handle(std::vector<Event> events) {
  EngineSpan& span = CurrentSpan();
  span.events += static_cast<int64_t>(events.size());
  ++span.batches;
  const int64_t syncs = options_.sync_count ? options_.sync_count() : 0;
  const double wall = WallSeconds(), processor = ProcessSeconds();
  if (engine_->NextDeadlineMicros() <= clock_.MonotonicMicros()) events.insert(events.begin(), Tick{});
  TERSE_RETURN_IF_ERROR(engine_->Handle(std::move(events)));
  span.processor_seconds += ProcessSeconds() - processor;
  const double took = WallSeconds() - wall;
  span.seconds += took;
  span.longest_seconds = std::max(span.longest_seconds, took);
  if (options_.sync_count) span.syncs += options_.sync_count() - syncs;
  return absl::OkStatus();
}

absl::Status Load::Check() {
  const EngineView view = engine_->View();
  if (view.head.version != options_.rounds || !view.ended || !view.sessions.empty()) {
    return absl::InternalError(absl::StrCat("the run is at version ", view.head.version, " of ", options_.rounds,
                                            ", in phase ", view.phase, ", with ", view.sessions.size(), " sessions"));
  }
  if (!engine_->IsConsistent()) return absl::InternalError("the engine's rooms do not agree");
  TERSE_RETURN_IF_ERROR(fleet_->Check(view.head.version, view.head.model_hash));
  TERSE_RETURN_IF_ERROR(CheckRounds());
  return CheckLedger();
}

absl::Status Load::CheckRounds() {
  TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, store_->Rounds(1, options_.rounds + 1));
  if (static_cast<int64_t>(rounds.size()) != options_.rounds) {
    return absl::InternalError(absl::StrCat(rounds.size(), " rounds were opened, not ", options_.rounds));
  }
  for (const RoundRecord& round : rounds) {
    if (round.state == RoundState::kCommitted && round.updates == options_.sessions) continue;
    return absl::InternalError(
        absl::StrCat("round ", round.id, " is ", RoundStateName(round.state), " with ", round.updates, " updates"));
  }
  return absl::OkStatus();
}

absl::Status Load::CheckLedger() {
  TERSE_ASSIGN_OR_RETURN(const std::vector<LedgerEntry> totals, store_->ClientTotals());
  if (static_cast<int64_t>(totals.size()) != 2 * options_.sessions) {
    return absl::InternalError(absl::StrCat("the ledger has ", totals.size(), " totals"));
  }
  for (const LedgerEntry& total : totals) {
    const bool up = total.direction == Direction::kUp;
    const int64_t sent = up ? fleet_->bytes_up(total.client) : fleet_->bytes_down(total.client);
    if (total.payload_bytes == sent) continue;
    return absl::InternalError(absl::StrCat("the ledger has ", total.payload_bytes, " bytes ", up ? "up" : "down",
                                            " of client ", total.client, ", which are ", sent));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EngineFigures> RunEngineLoad(const EngineLoadOptions& options) { return Load(options).Run(); }

}  // namespace terse
