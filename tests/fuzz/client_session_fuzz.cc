// A step of the program is a byte: the low four bits say what the coordinator sends next, the high ones choose among
// its forms; more bytes follow where a message has more choices.
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/session.h"
#include "compression/aggregate.h"
#include "compression/codec_table.h"
#include "compression/downstream.h"
#include "compression/update_history.h"
#include "core/random.h"
#include "storage/run_store.h"
#include "tests/compression/updates.h"
#include "tests/fuzz/memory_client_state.h"
#include "tests/fuzz/targets.h"
#include "tests/testing/fake_clock.h"

namespace terse {
namespace {

constexpr int kMaxConnections = 24;
constexpr int64_t kClientIndex = 1;
constexpr int64_t kRow = 12;

// A run that packs sends so many elements of the first tensor that a history tells something about them.
const Layout& SmallLayout() {
  static const Layout& layout = *new Layout(*Layout::Create({{"w", {16, kRow}}, {"b", {20}}, {"c", {9}}}));
  return layout;
}

// A run that the coordinator may name, and what the coordinator's side of it needs. Its root has one relay.
struct KnownRun {
  Id128 lineage;
  Id128 relay;
  std::shared_ptr<const RunConfig> config;
  std::unique_ptr<const Codec> codec;
  std::vector<Downstream> deltas;        // deltas[i] leads from version i to i + 1
  std::vector<std::string> checkpoints;  // files of versions 0, 1, ...
};

KnownRun MakeRun(const CodecSpec& codec, Durability durability) {
  auto config = std::make_shared<RunConfig>();
  config->name = absl::StrCat(codec.name, "_", codec.positions);
  config->data = {"none", "iid"};
  config->durability = durability;
  config->train.local_steps = 1;
  config->codec = codec;
  config->rounds.count = 9;
  config->rounds.clients = config->rounds.cohort = config->rounds.invited = config->rounds.quorum = 2;
  KnownRun run{HashBytes(config->name),
               HashBytes(absl::StrCat(config->name, " relay")),
               config,
               *MakeCodec(config->codec, SmallLayout()),
               {},
               {}};
  std::vector<float> weights(SmallLayout().size(), 0.5f), average(weights.size()), scratch;
  Random random(7);
  for (int64_t version = 0; version < 6; ++version) {
    run.checkpoints.push_back(SerializeCheckpoint({version, HashWeights(weights), weights}));
    const std::string update = *run.codec->Encode(RandomUpdate(SmallLayout().size(), &random));
    Require(AverageUpdates(*run.codec, {update}, {}, 1, absl::MakeSpan(average)).ok(), "an update has an average");
    auto message =
        std::make_shared<const std::string>(BuildDownstream(DownstreamMode::kForward, {update}, {}, average));
    Require(ApplyDownstream(*run.codec, *message, &scratch, absl::MakeSpan(weights)).ok(), "an average is applied");
    run.deltas.push_back({version + 1, HashWeights(weights), message});
  }
  return run;
}

const std::vector<KnownRun>& Runs() {
  static const auto& runs = *[] {
    auto* made = new std::vector<KnownRun>;
    made->push_back(MakeRun(SparseSpec("sbc", 0.1, "bf16"), Durability::kStrict));
    made->push_back(MakeRun(SparseSpec("top_k", 0.1, "bf16"), Durability::kRelaxed));
    made->push_back(MakeRun(SparseSpec("sbc", 0.2, "bf16", std::string(kSharedPositions)), Durability::kStrict));
    return made;
  }();
  return runs;
}

// The history of what was applied of the client's updates, which only grows while its residual and its run stay.
struct AppliedHistory {
  const KnownRun* run = nullptr;
  int number = 0;    // MemoryClientState::histories when it began
  size_t added = 0;  // messages
  absl::optional<UpdateHistory> history;
};

// The facts that the trainer and the coordinator know of each other in this program.
struct Watch {
  MemoryClientState state;
  const KnownRun* run = &Runs()[0];  // of the newest welcome
  std::set<Id128> models;            // hashes of weights that the client may hold
  std::vector<double> balance;       // sealed deltas less applied updates, and what was parted with then, since the
                                     // residual was zero
  int fresh = 0;                     // state.fresh then
  std::vector<std::string> applied;  // the messages that were, since the history began
  int applied_number = 0;            // state.histories then
  AppliedHistory known;              // of them, as far as a packed update needed it
  bool history_begun = false;        // by the coordinator, so that it is not known here which of them it is of
  Id128 named;                       // the lineage that the refusal of the connection before named
  bool may_pack = false;             // the message that the client reads is work whose update may come packed
  bool keep_going = true;
  bool trainer_fails = false;
};

// Deltas are multiples of 2^-10, so that sums of them are exact.
class SmallTrainer : public LocalTrainer {
 public:
  explicit SmallTrainer(Watch* watch) : watch_(watch) {}

  const Layout& layout() const override { return SmallLayout(); }
  int64_t samples() const override { return 5; }
  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    Require(watch_->models.count(HashWeights(weights)) > 0, "training starts from a model that the coordinator named");
    if (!keep_going()) return absl::CancelledError("stopped");
    if (watch_->trainer_fails) return absl::FailedPreconditionError("the loss is not finite");
    Random random(9, calls_++);
    for (size_t i = 0; i < delta.size(); ++i) {
      // Three of four rows move little, so that the same elements are sent often.
      const uint64_t span = i / kRow % 4 == 0 ? 2048 : 128;
      delta[i] = (static_cast<float>(random.Below(span)) - static_cast<float>(span / 2 - 1)) * 0x1p-10f;
      watch_->balance[i] += delta[i];
    }
    return TrainResult{0.5f, plan.steps};
  }
  void MaskMomentum(absl::Span<const int64_t> positions) override {}
  absl::StatusOr<std::string> SaveState() override { return std::string(1, static_cast<char>(calls_)); }
  absl::Status RestoreState(absl::string_view state) override {
    if (state.size() != 1) return absl::DataLossError("not the trainer's state");
    calls_ = static_cast<uint8_t>(state[0]);
    return absl::OkStatus();
  }

 private:
  Watch* const watch_;
  uint8_t calls_ = 0;
};

// The sum of what the client has parted with.
std::vector<float> SumOfParted(const Watch& watch) {
  std::vector<float> sum(watch.balance.size());
  for (const PartedLineage& one : watch.state.state().parted) {
    if (!one.sealed.has_value()) continue;
    Require(watch.run->codec->AddDecoded(one.sealed->message, 1.0f, absl::MakeSpan(sum)).ok(),
            "what was parted with decodes");
  }
  return sum;
}

// A reset leaves what was parted with.
void BeginBalanceIfFresh(Watch* watch) {
  if (watch->state.fresh == watch->fresh) return;
  watch->fresh = watch->state.fresh;
  const std::vector<float> parted = SumOfParted(*watch);
  watch->balance.assign(parted.begin(), parted.end());
}

// I1 of docs/PROTOCOL.md on one client: applied updates and what is still to be sent are what was sealed.
void CheckConservation(const Watch& watch) {
  const StoredState& state = watch.state.whole();
  if (state.dense.empty()) return;
  std::vector<float> minus(state.dense.size());
  const std::vector<float> parted = SumOfParted(watch);
  if (!state.sealed.has_value() && !state.minus.empty()) {
    Require(watch.run->codec->AddDecoded(state.minus, 1.0f, absl::MakeSpan(minus)).ok(), "what was sent decodes");
  }
  for (size_t i = 0; i < minus.size(); ++i) {
    Require(double{state.dense[i]} - minus[i] + parted[i] == watch.balance[i], "no update is lost or doubled");
  }
}

// Returns the history of the applied updates, in a run whose clients pack.
const UpdateHistory& HistoryOfApplied(Watch* watch) {
  AppliedHistory& known = watch->known;
  const Codec& codec = *watch->run->codec;
  if (known.run != watch->run || known.number != watch->state.histories || !known.history.has_value()) {
    known = {watch->run, watch->state.histories, 0, UpdateHistory(*codec.PackedLayout())};
  }
  for (; watch->applied_number == watch->state.histories && known.added < watch->applied.size(); ++known.added) {
    Require(codec.AddToHistory(watch->applied[known.added], &*known.history).ok(), "what was applied can be added");
  }
  return *known.history;
}

// Packed updates are for whom may have them, and say to whoever knows the client's applied updates what was sealed.
void CheckPacked(Watch* watch, const Update& update) {
  Require(watch->may_pack, "an update comes packed where its assignment allows it, and then once");
  const Codec& codec = *watch->run->codec;
  Require(SharesHistory(*watch->run->config) && codec.PackedLayout() != nullptr, "nothing is packed in other runs");
  if (watch->history_begun) return;
  const std::string& sealed = watch->state.state().sealed->message;
  const auto message = codec.Unpack(update.message, HistoryOfApplied(watch));
  Require(message.ok() && *message == sealed, "what is sent packed was sealed");
  Require(update.message.size() < sealed.size(), "only what becomes shorter is packed");
}

class FuzzCoordinator : public CoordinatorLink {
 public:
  FuzzCoordinator(Input* input, Watch* watch) : input_(input), watch_(watch) {}

  absl::Status Send(const FromClient& message) override {
    const StoredHead& state = watch_->state.state();
    if (const auto* update = std::get_if<Update>(&message)) {
      Require(state.sealed.has_value() && state.sealed->update_id == update->update_id &&
                  state.sealed->round == update->round && (update->packed || state.sealed->message == update->message),
              "what is sent was sealed");
      if (update->packed) CheckPacked(watch_, *update);
      watch_->may_pack = false;
    } else if (const auto* ready = std::get_if<Ready>(&message)) {
      Require(!ready->version.has_value() || watch_->models.count(ready->model_hash) > 0,
              "the client holds a model that the coordinator named");
      Require(ready->layout_hash == SmallLayout().Hash(), "the client says what it trains");
      Require(ready->history_hash.IsZero() == !SharesHistory(*watch_->run->config), "the client says what it keeps");
    } else if (const auto* check_in = std::get_if<CheckIn>(&message)) {
      CheckCheckIn(*check_in, state);
    }
    return lose_sends_ ? absl::UnavailableError("the connection is gone") : absl::OkStatus();
  }

  absl::StatusOr<FromServer> Receive() override {
    BeginBalanceIfFresh(watch_);
    CheckConservation(*watch_);
    watch_->state.verdict.reset();
    watch_->may_pack = false;
    if (input_->empty()) return absl::UnavailableError("the connection is gone");
    return Next();
  }

  void SetMaxDownstreamBytes(int64_t bytes) override { Require(bytes > 0, "a downstream message has a size"); }

  absl::StatusOr<std::string> DownloadModule(Id128, int64_t) override {
    Require(false, "no client of this target may train a module");
    return absl::InternalError("unreachable");
  }

  absl::StatusOr<std::string> DownloadCheckpoint(Id128, int64_t version, int64_t max_bytes) override {
    const uint8_t form = input_->Byte();
    if (form % 8 == 1) return absl::NotFoundError("replaced");
    if (form % 8 == 2) return absl::UnavailableError("the connection is gone");
    std::string bytes = watch_->run->checkpoints[form / 8 % watch_->run->checkpoints.size()];
    Require(static_cast<int64_t>(bytes.size()) <= max_bytes, "a checkpoint of the run is not too large");
    if (form % 8 == 3) bytes.resize(input_->Byte() % bytes.size());
    if (form % 8 == 4) bytes[input_->Byte() % bytes.size()] ^= 4;
    const std::vector<float> other(SmallLayout().size() + 1, 1.0f);
    if (form % 8 == 5) bytes = SerializeCheckpoint({version, HashWeights(other), other});
    const absl::StatusOr<Checkpoint> whole = ParseCheckpoint(bytes);
    if (whole.ok()) watch_->models.insert(whole->model_hash);
    return bytes;
  }

 private:
  void CheckCheckIn(const CheckIn& check_in, const StoredHead& state) {
    PartedLineage kept = {state.lineage, state.prev_applied, state.sealed};
    if (check_in.lineage != state.lineage) {
      Require(check_in.lineage == watch_->named, "a client says another lineage where it was sent back");
      const PartedLineage* const parted = FindParted(state.parted, check_in.lineage);
      kept = parted != nullptr ? *parted : PartedLineage{check_in.lineage, Id128(), absl::nullopt};
    }
    watch_->named = Id128();
    Require(check_in.prev_applied == kept.prev_applied && check_in.family == state.family,
            "a check-in says what is stored");
    Require(check_in.pending_update_id == (kept.sealed.has_value() ? kept.sealed->update_id : Id128()),
            "a sealed update is named");
  }

  absl::StatusOr<FromServer> Next() {
    const uint8_t step = input_->Byte();
    const int form = step / 16;
    switch (step % 16) {
      case 0:
      case 1:
        return MakeWelcome(form);
      case 2:
        return FromServer(Resync{form, "too old"});
      case 3:
      case 4:
      case 5:
        return FromServer(MakeDelta(form));
      case 6:
      case 7:
        return MakeAssignment(form, /*packed=*/step % 16 == 7);
      case 8:
        return FromServer(Receipt{AnyId(form)});
      case 9:
      case 10:
        return FromServer(MakeVerdict(form));
      case 11:
        if (form > 1) return FromServer(MakeRefusal(form));
        if (form == 0) return FromServer(Finished{"done"});
        watch_->history_begun = true;
        return FromServer(BeginHistory{});
      case 12:
        held_ = form % 8;
        break;
      case 13:
        watch_->keep_going = form % 2 == 0;
        watch_->trainer_fails = form >= 12;
        break;
      case 14:
        lose_sends_ = true;
        break;
      default:
        break;
    }
    if (step % 16 == 15) return absl::UnavailableError("the connection is gone");
    return FromServer(Receipt{});
  }

  Id128 AnyId(int form) {
    const StoredHead& state = watch_->state.state();
    if (form < 10 && state.sealed.has_value()) return state.sealed->update_id;
    return form % 2 == 0 ? state.prev_applied : Id128{7, static_cast<uint64_t>(form)};
  }

  FromServer MakeAssignment(int form, bool packed) {
    Assignment assignment{1 + form, form % 4 == 3 ? input_->Byte() : held_, 1 + form % 3};
    assignment.packed = watch_->may_pack = packed;
    return assignment;
  }

  Verdict MakeVerdict(int form) {
    const Outcome outcomes[] = {Outcome::kApplied, Outcome::kNotApplied, Outcome::kPending, Outcome::kReset};
    watch_->state.verdict = Verdict{outcomes[form % 4], AnyId(form), Id128{}, "because"};
    if (form % 4 == 3) watch_->state.verdict->last_applied = AnyId(input_->Byte() % 16);
    return *watch_->state.verdict;
  }

  Refusal MakeRefusal(int form) {
    Refusal refusal = {"no", form % 2 == 0};
    if (form / 4 == 1) refusal.lineage = form % 4 < 2 ? watch_->run->lineage : watch_->run->relay;
    watch_->named = refusal.lineage;
    return refusal;
  }

  FromServer MakeWelcome(int form) {
    const size_t others = Runs().size() - 1;  // the last forms name them
    watch_->run = form + others < 16 ? &Runs()[0] : &Runs()[16 - form];
    Welcome welcome;
    const bool is_relay = form < 8 && form / 2 % 2 == 1;
    welcome.lineage = is_relay ? watch_->run->relay : watch_->run->lineage;
    welcome.family = watch_->run->lineage;
    welcome.config = watch_->run->config;
    welcome.client_index = kClientIndex;
    if (form / 4 % 2 == 1) welcome.verdict = MakeVerdict(form);
    const PartedLineage* const parted = FindParted(watch_->state.state().parted, welcome.lineage);
    if (welcome.verdict.has_value() && parted != nullptr && parted->sealed.has_value()) {
      welcome.verdict->update_id = watch_->state.verdict->update_id = parted->sealed->update_id;
    }
    return FromServer(std::move(welcome));
  }

  // Returns the delta of the version after the one that the program says the client holds.
  Downstream MakeDelta(int form) {
    Downstream delta = watch_->run->deltas[held_ % watch_->run->deltas.size()];
    if (form < 12) {
      held_ = delta.version;
    } else if (form == 12) {
      delta.model_hash = Id128{5, 5};
    } else if (form == 13) {
      delta.message = std::make_shared<const std::string>(input_->Take(input_->Byte() % 32));
    } else if (form == 14) {
      delta.version += 1;
    }
    watch_->models.insert(delta.model_hash);
    return delta;
  }

  Input* const input_;
  Watch* const watch_;
  int64_t held_ = 0;  // the version that the program takes the client to hold
  bool lose_sends_ = false;
};

std::unique_ptr<ClientSession> NewProcess(Watch* watch, Clock* clock) {
  ClientSession::Options options;
  options.name = "a";
  options.state = &watch->state;
  options.make_trainer = [watch](const RunConfig&, const Shard&,
                                 absl::string_view) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    return std::unique_ptr<LocalTrainer>(std::make_unique<SmallTrainer>(watch));
  };
  options.clock = clock;
  options.keep_going = [watch] { return watch->keep_going; };
  options.log = [](LogLevel, const LogFields&, const std::string&) {};
  return std::make_unique<ClientSession>(std::move(options));
}

}  // namespace

void FuzzClientSession(const char*, const uint8_t* data, size_t size) {
  Input input(data, size);
  Watch watch;
  watch.balance.assign(SmallLayout().size(), 0);
  watch.state.on_applied = [&watch](const std::string& message) {
    if (watch.applied_number != watch.state.histories) watch.applied.clear();
    watch.applied_number = watch.state.histories;
    watch.applied.push_back(message);
    std::vector<float> applied(watch.balance.size());
    Require(watch.run->codec->AddDecoded(message, 1.0f, absl::MakeSpan(applied)).ok(), "what was sent decodes");
    for (size_t i = 0; i < applied.size(); ++i) watch.balance[i] -= applied[i];
  };
  FakeClock clock;
  std::unique_ptr<ClientSession> session = NewProcess(&watch, &clock);
  for (int i = 0; i < kMaxConnections && !input.empty(); ++i) {
    FuzzCoordinator coordinator(&input, &watch);
    const absl::Status status = session->Run(&coordinator);
    Require(status.ok() || !status.message().empty(), "the status says what is wrong");
    watch.keep_going = true;
    watch.trainer_fails = false;
    if (input.Byte() % 2 == 0) continue;
    if (input.Byte() % 2 == 0) Require(session->Flush().ok(), "what is in memory can be saved");
    session = NewProcess(&watch, &clock);
  }
}

}  // namespace terse
