#include "tests/simulation/scenario.h"

#include <algorithm>
#include <string>

#include "tests/testing/fleet_simulation.h"

namespace terse {
namespace {

constexpr int64_t kManyRounds = 1'000'000;

void DrawRounds(Random* random, RoundPolicy* rounds) {
  rounds->cohort = rounds->clients;
  rounds->invited = rounds->clients;
  constexpr Selection kSelections[] = {Selection::kAll, Selection::kRandom, Selection::kSamples,
                                       Selection::kReliability};
  rounds->selection = kSelections[random->Below(4)];
  if (rounds->selection != Selection::kAll) {
    rounds->cohort = 1 + static_cast<int64_t>(random->Below(rounds->clients));
    rounds->invited = rounds->cohort + static_cast<int64_t>(random->Below(rounds->clients - rounds->cohort + 1));
  }
  rounds->quorum = 1 + static_cast<int64_t>(random->Below(rounds->cohort));
  rounds->deadline_seconds = 5.0 + static_cast<double>(random->Below(20));
  rounds->grace_seconds = random->Below(2) == 0 ? 0.0 : static_cast<double>(random->Below(20));
  rounds->weighting = random->Below(3) == 0 ? Weighting::kSamples : Weighting::kUniform;
}

// How the server moves the model, and what it says of it. Conservation can be checked of what it forwards, and of what
// it keeps to repeat its steps.
void DrawServer(Random* random, RunConfig* config) {
  if (random->Below(2) == 0) return;
  constexpr const char* kOptimizers[] = {"average", "sgd", "adam", "yogi", "adagrad"};
  config->server.name = kOptimizers[random->Below(5)];
  config->server.learning_rate = 0.25;
  config->downstream = DownstreamMode::kCoded;
  constexpr const char* kCodecs[] = {"sbc", "stc", "qsgd", "fp16"};
  config->downstream_codec.name = kCodecs[random->Below(4)];
  config->downstream_codec.density = 0.05;
  config->downstream_codec.feedback = "error_feedback";
  if (config->server.name != "average" && random->Below(3) == 0) {
    config->downstream = config->seed % 2 == 0 ? DownstreamMode::kDense : DownstreamMode::kAuto;
  }
}

// Clients that do not wait for each other.
void DrawBuffer(Random* random, RoundPolicy* rounds) {
  if (random->Below(4) != 0) return;
  rounds->buffered = true;
  rounds->selection = Selection::kAll;
  rounds->weighting = Weighting::kUniform;
  rounds->invited = rounds->clients;
  rounds->cohort = 1 + static_cast<int64_t>(random->Below(rounds->clients));
  rounds->quorum = 1 + static_cast<int64_t>(random->Below(rounds->cohort));
  rounds->staleness = static_cast<int64_t>(random->Below(5));
}

// Clients that send gradients, and receive models. They send their gradients whole, so that each seal can be told from
// the others.
void DrawEpochs(Random* random, RunConfig* config) {
  if (!config->rounds.buffered || random->Below(2) == 0) return;
  config->train.local_steps = 1;
  config->codec = {"dense"};
  config->codec.feedback = "discard";
  config->downstream = random->Below(3) == 0 ? DownstreamMode::kDense : DownstreamMode::kCoded;
  config->downstream_codec = {"low_precision"};
  config->downstream_codec.bits = 2 + static_cast<int64_t>(random->Below(9));
  config->server = {};
  config->server.name = random->Below(2) == 0 ? "svrg" : "acc_svrg";
  config->server.learning_rate = 0.01;
  config->server.epoch_length = 1 + static_cast<int64_t>(random->Below(6));
  if (config->downstream == DownstreamMode::kDense) return;
  config->server.precision_loss = random->Below(2) == 0 ? 0 : random->Uniform(0.01, 1);
  config->server.bit_centering = random->Below(3) == 0;
}

// A budget that is too small at times, in a run that its iterations may end.
void DrawJoint(Random* random, RunConfig* config) {
  ControlSpec& control = config->control;
  control.name = "joint";
  control.local_steps = {2 + static_cast<int64_t>(random->Below(4)), 1};
  control.density = {0.005, 0.03, random->Uniform(0.05, 0.2)};
  config->limits.iterations = 10 + static_cast<int64_t>(random->Below(200));
  (random->Below(2) == 0 ? control.budget : control.price) = random->Uniform(100, 20'000);
}

// Plans that change what clients do and how they say it, so that updates of one plan arrive under the next.
void DrawControl(Random* random, RunConfig* config) {
  if (config->rounds.buffered || random->Below(3) != 0) return;
  if (random->Below(3) == 0) return DrawJoint(random, config);
  ControlSpec& control = config->control;
  control.name = "schedule";
  constexpr const char* kBy[] = {"round", "iteration", "plateau"};
  control.by = kBy[random->Below(3)];
  control.patience = 1 + static_cast<int64_t>(random->Below(3));
  const int64_t stages = 2 + static_cast<int64_t>(random->Below(3));
  for (int64_t stage = 0; stage < stages; ++stage) {
    control.local_steps.push_back(1 + static_cast<int64_t>(random->Below(5)));
    control.density.push_back(random->Uniform(0.005, 0.2));
    if (stage > 0 && control.by != "plateau") control.at.push_back(3 * stage + static_cast<int64_t>(random->Below(3)));
  }
}

// Updates that travel packed with what both ends keep of the ones before. Dense enough that this makes some shorter.
void DrawHistories(Random* random, Scenario* scenario) {
  if (scenario->config.server.epoch_length > 0 || random->Below(3) != 0) return;
  scenario->config.codec.positions = std::string(kSharedPositions);
  scenario->config.codec.density = 0.1;
  if (random->Below(4) == 0) scenario->history_room = 1;
}

// Updates that are refused, honest as they are, and rules that make other steps of a round than the average, where the
// downstream can tell them. The numbers are its own, so that all else in a schedule is what it is without.
void DrawRobust(RunConfig* config) {
  Random random(config->seed + 1);
  if (config->server.epoch_length > 0 || random.Below(4) != 0) return;
  config->policy.z_score = random.Uniform(0.8, 3);
  const bool alike = !config->rounds.buffered && config->rounds.weighting == Weighting::kUniform;
  if (config->downstream == DownstreamMode::kForward || !alike) return;
  constexpr const char* kRules[] = {"mean", "median", "trimmed_mean", "majority_vote", "imputed_mean"};
  config->aggregation.rule = kRules[random.Below(5)];
}

}  // namespace

Scenario DrawScenario(Random* random) {
  Scenario scenario;
  const int64_t fleet = 2 + static_cast<int64_t>(random->Below(3));
  scenario.config = GridRunConfig(fleet, kManyRounds);
  RunConfig& config = scenario.config;
  DrawRounds(random, &config.rounds);
  DrawBuffer(random, &config.rounds);
  config.seed = random->Next();
  config.checkpoint_every = 1 + static_cast<int64_t>(random->Below(5));
  config.evaluate_every = 1 + static_cast<int64_t>(random->Below(6));
  scenario.clients = fleet;
  scenario.faithful = fleet;
  if (random->Below(8) == 0) {
    // One more wants to join whom the run does not admit.
    scenario.clients = fleet + 1;
    for (int64_t i = 0; i < fleet; ++i) config.clients.allow.push_back("client-" + std::to_string(i));
  }
  if (random->Below(4) == 0) {
    config.clients.set_aside_after = 1 + static_cast<int64_t>(random->Below(4));
    config.clients.set_aside_seconds = 1.0 + static_cast<double>(random->Below(60));
  }
  if (random->Below(12) == 0) config.rounds.count = 1 + static_cast<int64_t>(random->Below(8));
  if (random->Below(20) == 0) config.durability = Durability::kRelaxed;
  scenario.rollbacks = random->Below(4) == 0;
  scenario.starts_up = random->Below(10) != 0;
  if (random->Below(4) == 0) scenario.clock_step = config.rounds.deadline_seconds * random->Uniform(0.01, 0.04);
  if (random->Below(3) == 0) scenario.faithful = config.rounds.quorum;
  DrawServer(random, &config);
  DrawEpochs(random, &config);
  DrawControl(random, &config);
  scenario.make_start = random->Below(2) == 0;
  DrawHistories(random, &scenario);
  DrawRobust(&config);
  scenario.small_parts = Random(config.seed + 2).Below(3) == 0;
  Random log(config.seed + 3);
  if (log.Below(4) == 0) scenario.most_log = 1 + static_cast<int64_t>(log.Below(1000));
  return scenario;
}

}  // namespace terse
