// Session messages to the wire and back, chunks, limits, and what no honest peer sends.
#include "proto/session_wire.h"

#include <limits>

#include "core/random.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "proto/run_config_loader.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kChunkMessageLimit = 256 * 1024;
constexpr int64_t kMaxPayload = 4 * kChunkBytes;

Id128 Id(const char* text) { return HashBytes(text); }

std::string Payload(int64_t size) {
  std::string bytes(size, '\0');
  Random random(size);
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

// Everything through bytes, as gRPC does it.
template <typename Message>
Message Copied(const Message& message) {
  Message copy;
  EXPECT_TRUE(copy.ParseFromString(message.SerializeAsString()));
  return copy;
}

template <typename T>
T RoundTrip(const T& message) {
  ClientMessageReader reader(kMaxPayload);
  absl::optional<FromClient> result;
  for (const v1::ClientMessage& wire : ToWire(FromClient(message))) {
    EXPECT_FALSE(result.has_value());
    EXPECT_LE(wire.ByteSizeLong(), kChunkMessageLimit);
    auto fed = reader.Feed(Copied(wire));
    EXPECT_EQ(fed.status(), absl::OkStatus());
    if (fed.ok()) result = *std::move(fed);
  }
  return std::get<T>(result.value());
}

template <typename T>
T ServerRoundTrip(const T& message, const v1::RunConfig& config = {}) {
  ServerMessageReader reader;
  reader.set_max_downstream_bytes(kMaxPayload);
  absl::optional<FromServer> result;
  for (const v1::ServerMessage& wire : ToWire(FromServer(message), config)) {
    EXPECT_FALSE(result.has_value());
    EXPECT_LE(wire.ByteSizeLong(), kChunkMessageLimit);
    auto fed = reader.Feed(Copied(wire));
    EXPECT_EQ(fed.status(), absl::OkStatus());
    if (fed.ok()) result = *std::move(fed);
  }
  return std::get<T>(result.value());
}

TEST(SessionWire, ClientMessagesComeBack) {
  CheckIn check_in{7,  "client-1", Id("lineage"), Id("prev"),    Id("pending"),
                   12, true,       "run-7",       Id("process"), 4'000'000'000};
  const CheckIn back = RoundTrip(check_in);
  EXPECT_EQ(back.protocol_version, 7);
  EXPECT_EQ(back.name, "client-1");
  EXPECT_EQ(back.lineage, Id("lineage"));
  EXPECT_EQ(back.prev_applied, Id("prev"));
  EXPECT_EQ(back.pending_update_id, Id("pending"));
  EXPECT_EQ(back.pending_round, 12);
  EXPECT_TRUE(back.residual_lost);
  EXPECT_EQ(back.run, "run-7");
  EXPECT_EQ(back.process, Id("process"));
  EXPECT_EQ(back.connection, 4'000'000'000);

  const int64_t most = std::numeric_limits<int64_t>::max();
  const Ready ready = RoundTrip(Ready{42, Id("model"), Id("layout"), most, Id("history")});
  EXPECT_EQ(ready.version, 42);
  EXPECT_EQ(ready.model_hash, Id("model"));
  EXPECT_EQ(ready.layout_hash, Id("layout"));
  EXPECT_EQ(ready.samples, most);
  EXPECT_EQ(ready.history_hash, Id("history"));
  EXPECT_EQ(ready.device, "");
  EXPECT_EQ(RoundTrip(Ready{0, {}, {}, 1, {}, "cuda:0 (x)"}).device, "cuda:0 (x)");
  EXPECT_EQ(RoundTrip(Ready{0, Id("model"), Id("layout")}).version, 0);
  EXPECT_FALSE(RoundTrip(Ready{absl::nullopt, {}, Id("layout")}).version.has_value());

  const Progress progress = RoundTrip(Progress{3, 99});
  EXPECT_EQ(progress.round, 3);
  EXPECT_EQ(progress.steps_done, 99);
  EXPECT_EQ(RoundTrip(Leaving{}).reason, "");
  EXPECT_EQ(RoundTrip(Leaving{"training diverged"}).reason, "training diverged");
}

TEST(SessionWire, ACheckInSaysWhoseFamilyAndWhetherItIsARelays) {
  CheckIn message;
  message.name = "a";
  message.lineage = Id("lineage");
  message.family = Id("family");
  message.relay = true;
  const CheckIn back = RoundTrip(message);
  EXPECT_EQ(back.lineage, Id("lineage"));
  EXPECT_EQ(back.family, Id("family"));
  EXPECT_TRUE(back.relay);
  // Most lineages are their own family, which costs nothing; so does a client that is no relay.
  message.relay = false;
  const size_t bytes = ToWire(FromClient(message))[0].ByteSizeLong();
  message.family = message.lineage;
  EXPECT_EQ(ToWire(FromClient(message))[0].ByteSizeLong(), bytes - 18);
  EXPECT_EQ(RoundTrip(message).family, Id("lineage"));
  EXPECT_FALSE(RoundTrip(message).relay);
  EXPECT_TRUE(RoundTrip(CheckIn()).family.IsZero());
}

TEST(SessionWire, AnUpdateSaysForHowManyItStands) {
  ClientMessageReader reader(100);
  Update update{1, Id("u"), 5, 0.5f, Payload(60)};
  const size_t alone = ToWire(FromClient(update))[0].ByteSizeLong();
  const CohortFacts most{CohortFacts::kMostClients, CohortFacts::kMostSamples};
  for (const CohortFacts& cohort : {CohortFacts{1, 1}, most, CohortFacts{}, CohortFacts{7, 4200}}) {
    update.cohort = cohort;
    absl::optional<FromClient> heard;
    for (const v1::ClientMessage& chunk : ToWire(FromClient(update))) heard = *reader.Feed(Copied(chunk));
    EXPECT_EQ(std::get<Update>(*heard).cohort.clients, cohort.clients);
    EXPECT_EQ(std::get<Update>(*heard).cohort.samples, cohort.samples);
  }
  update.cohort = {};
  EXPECT_EQ(ToWire(FromClient(update))[0].ByteSizeLong(), alone);
}

TEST(SessionWire, ARelaySaysWhatIsBelowIt) {
  ClientMessageReader reader(100);
  Update update{1, Id("u"), 5, 0.5f, Payload(60)};
  update.cohort = {3, 90};
  for (const bool says : {true, false}) {
    update.below = says ? absl::make_optional(BelowFacts{7, 1, 2, 3, BelowFacts::kMostBytes}) : absl::nullopt;
    absl::optional<FromClient> heard;
    for (const v1::ClientMessage& chunk : ToWire(FromClient(update))) heard = *reader.Feed(Copied(chunk));
    const absl::optional<BelowFacts>& below = std::get<Update>(*heard).below;
    ASSERT_EQ(below.has_value(), says);
    if (!says) continue;
    EXPECT_EQ(below->clients, 7);
    EXPECT_EQ(below->payload_bytes_up, 1);
    EXPECT_EQ(below->wire_bytes_up, 2);
    EXPECT_EQ(below->payload_bytes_down, 3);
    EXPECT_EQ(below->wire_bytes_down, BelowFacts::kMostBytes);
  }
}

TEST(SessionWire, AReasonToLeaveIsBounded) {
  ClientMessageReader reader(0);
  for (const size_t bytes : {kMostReasonBytes, kMostReasonBytes + 1}) {
    const auto read = reader.Feed(ToWire(Leaving{std::string(bytes, 'x')})[0]);
    EXPECT_EQ(read.ok(), bytes == kMostReasonBytes) << read.status();
  }
}

// docs/PROTOCOL.md says these numbers.
TEST(SessionWire, WhatIsSaidOnceCostsItsBytesOnce) {
  const auto bytes = [](const FromClient& message) { return ToWire(message)[0].ByteSizeLong(); };
  Ready ready{7, Id("model"), Id("layout"), 600};
  const size_t silent = bytes(ready);
  ready.device = "cpu";
  EXPECT_EQ(bytes(ready), silent + 5);
  Update update{1, Id("u"), 5, 0.5f, Payload(50)};
  const size_t before = bytes(update);
  for (const int code : {0, 1, 64, 127}) {
    update.norm_code = code;
    EXPECT_EQ(bytes(update), before + 2) << code;
  }
  update.norm_code = absl::nullopt;
  update.metrics = {{MetricKind::kTraining, "norm", 0.1, 640}};
  EXPECT_EQ(bytes(update), before + 4 + 18) << "the name, and a kind, a value and the samples";
}

TEST(SessionWire, ANormBelongsToItsOwnUpdate) {
  ClientMessageReader reader(100);
  Update update{1, Id("u"), 5, 0.5f, Payload(60)};
  for (const absl::optional<int> code : {absl::make_optional(127), absl::optional<int>(), absl::make_optional(0)}) {
    update.norm_code = code;
    absl::optional<FromClient> heard;
    for (const v1::ClientMessage& chunk : ToWire(FromClient(update))) heard = *reader.Feed(chunk);
    EXPECT_EQ(std::get<Update>(*heard).norm_code, code);
  }
}

TEST(SessionWire, MetricsBelongToTheirOwnUpdate) {
  ClientMessageReader reader(100);
  Update update{1, Id("u"), 5, 0.5f, Payload(60)};
  const std::vector<NamedMetric> some = {{MetricKind::kTraining, "norm", -0.1, 640},
                                         {MetricKind::kEvaluation, "worst class", 0.75, 1}};
  for (const std::vector<NamedMetric>& metrics : {some, std::vector<NamedMetric>(), some}) {
    update.metrics = metrics;
    absl::optional<FromClient> heard;
    for (const v1::ClientMessage& chunk : ToWire(FromClient(update))) heard = *reader.Feed(chunk);
    EXPECT_EQ(std::get<Update>(*heard).metrics, metrics);
  }
}

TEST(SessionWire, IdsThatAreZeroTakeNoBytes) {
  CheckIn message;
  message.name = "a";
  EXPECT_LE(ToWire(FromClient(message))[0].ByteSizeLong(), 8);
  const CheckIn back = RoundTrip(message);
  EXPECT_TRUE(back.lineage.IsZero() && back.prev_applied.IsZero() && back.pending_update_id.IsZero());
  EXPECT_EQ(back.run, "");
  EXPECT_TRUE(RoundTrip(Ready{absl::nullopt, {}, {}}).model_hash.IsZero());
}

TEST(SessionWire, ServerMessagesComeBack) {
  for (Outcome outcome : {Outcome::kApplied, Outcome::kNotApplied, Outcome::kPending, Outcome::kReset}) {
    const Verdict verdict = ServerRoundTrip(Verdict{outcome, Id("update"), Id("last"), "why"});
    EXPECT_EQ(verdict.outcome, outcome);
    EXPECT_EQ(verdict.update_id, Id("update"));
    EXPECT_EQ(verdict.last_applied, outcome == Outcome::kReset ? Id("last") : Id128{});
    EXPECT_EQ(verdict.reason, "why");
  }
  ServerRoundTrip(BeginHistory{});
  const Resync resync = ServerRoundTrip(Resync{4, "too old"});
  EXPECT_EQ(resync.checkpoint_version, 4);
  EXPECT_EQ(resync.reason, "too old");
  const Assignment assignment = ServerRoundTrip(Assignment{5, 4, 10});
  EXPECT_EQ(assignment.round, 5);
  EXPECT_EQ(assignment.base_version, 4);
  EXPECT_EQ(assignment.local_steps, 10);
  EXPECT_EQ(assignment.choice, 0);
  EXPECT_FALSE(assignment.first_iteration.has_value());
  const Assignment planned = ServerRoundTrip(Assignment{5, 4, 10, 255, 0});
  EXPECT_EQ(planned.choice, 255);
  EXPECT_EQ(planned.first_iteration, absl::optional<int64_t>(0));
  EXPECT_FALSE(planned.packed);
  EXPECT_TRUE(ServerRoundTrip(Assignment{5, 4, 10, 255, 0, true}).packed);
  EXPECT_EQ(ServerRoundTrip(Receipt{Id("update")}).update_id, Id("update"));
  const Refusal refusal = ServerRoundTrip(Refusal{"no", true});
  EXPECT_EQ(refusal.reason, "no");
  EXPECT_TRUE(refusal.retry);
  EXPECT_TRUE(refusal.lineage.IsZero());
  EXPECT_EQ(ServerRoundTrip(Refusal{"it is known here", true, Id("lineage")}).lineage, Id("lineage"));
  EXPECT_EQ(ServerRoundTrip(Finished{"done"}).reason, "done");
}

TEST(SessionWire, WelcomeCarriesTheRun) {
  const absl::StatusOr<v1::RunConfig> config = LoadRunConfig(InSource("deploy/runs/demo.toml"));
  ASSERT_EQ(config.status(), absl::OkStatus());
  Welcome welcome;
  welcome.lineage = Id("lineage");
  welcome.client_index = 3;
  welcome.head_version = 17;
  EXPECT_TRUE(ServerRoundTrip(welcome, *config).start_hash.IsZero());
  welcome.start_hash = Id("start");
  const Welcome plain = ServerRoundTrip(welcome, *config);
  EXPECT_EQ(plain.lineage, Id("lineage"));
  EXPECT_EQ(plain.client_index, 3);
  EXPECT_EQ(plain.head_version, 17);
  EXPECT_EQ(plain.start_hash, Id("start"));
  EXPECT_FALSE(plain.verdict.has_value());
  ASSERT_NE(plain.config, nullptr);
  EXPECT_EQ(plain.config->name, config->name());
  welcome.verdict = Verdict{Outcome::kReset, {}, Id("last"), "reset"};
  EXPECT_EQ(ServerRoundTrip(welcome, *config).verdict->last_applied, Id("last"));
}

TEST(SessionWire, WelcomeSaysWhatAClientBelowARelayNeeds) {
  const absl::StatusOr<v1::RunConfig> config = LoadRunConfig(InSource("deploy/runs/demo.toml"));
  ASSERT_EQ(config.status(), absl::OkStatus());
  Welcome welcome;
  welcome.lineage = welcome.family = Id("lineage");
  const Welcome plain = ServerRoundTrip(welcome, *config);
  EXPECT_EQ(plain.family, Id("lineage")) << "where nothing else is said";
  EXPECT_FALSE(plain.shards.has_value());
  EXPECT_EQ(plain.layout, nullptr);
  EXPECT_EQ(plain.wire_config, "");
  const size_t bytes = ToWire(FromServer(welcome), *config)[0].ByteSizeLong();
  welcome.family = Id("root");
  EXPECT_EQ(ToWire(FromServer(welcome), *config)[0].ByteSizeLong(), bytes + 18);
  welcome.shards = ShardRange{40, 2};
  const Welcome below = ServerRoundTrip(welcome, *config);
  EXPECT_EQ(below.lineage, Id("lineage"));
  EXPECT_EQ(below.family, Id("root"));
  ASSERT_TRUE(below.shards.has_value());
  EXPECT_EQ(below.shards->first, 40);
  EXPECT_EQ(below.shards->count, 2);
  welcome.shards = ShardRange{0, 1};
  EXPECT_EQ(ServerRoundTrip(welcome, *config).shards->first, 0);
}

TEST(SessionWire, WelcomeSaysTheModelToARelay) {
  const absl::StatusOr<v1::RunConfig> config = LoadRunConfig(InSource("deploy/runs/demo.toml"));
  ASSERT_EQ(config.status(), absl::OkStatus());
  const Layout layout = *Layout::Create({{"conv.weight", {16, 3, 5, 5}},
                                         {"conv.bias", {16}},
                                         {"norm.running_mean", {16}, TensorKind::kBuffer},
                                         {"norm.batches", {}, TensorKind::kBuffer}});
  Welcome welcome;
  welcome.lineage = welcome.family = Id("lineage");
  welcome.layout = std::make_shared<const Layout>(layout);
  const Welcome relay = ServerRoundTrip(welcome, *config);
  ASSERT_NE(relay.layout, nullptr);
  EXPECT_EQ(relay.layout->Hash(), layout.Hash());
  ASSERT_EQ(relay.layout->tensors().size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(relay.layout->tensors()[i].name, layout.tensors()[i].name);
    EXPECT_EQ(relay.layout->tensors()[i].shape, layout.tensors()[i].shape);
    EXPECT_EQ(relay.layout->tensors()[i].kind, layout.tensors()[i].kind);
  }
  EXPECT_EQ(relay.wire_config, config->SerializeAsString()) << "it hands the run's configuration on as it is";
}

TEST(SessionWire, RunNamesAreCheckedBeforeAnyoneUsesThem) {
  for (const std::string& name : {std::string(".."), std::string("a/b"), std::string(65, 'a'), std::string("a\0", 2),
                                  std::string("\xc3\xa4"), std::string(" ")}) {
    v1::ClientMessage message;
    message.mutable_check_in()->set_name("a");
    message.mutable_check_in()->set_run(name);
    const absl::Status status = ClientMessageReader(100).Feed(message).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("' is not usable: 1 to 64 letters"));
  }
}

class Chunks : public ::testing::TestWithParam<int64_t> {};

TEST_P(Chunks, UpdatesAndDeltasComeBackWhole) {
  const int64_t size = GetParam();
  const int64_t expected = (size + kChunkBytes - 1) / kChunkBytes;
  const Update update{std::numeric_limits<int64_t>::max(),
                      Id("u"),
                      std::numeric_limits<int64_t>::max(),
                      0.25f,
                      Payload(size),
                      /*packed=*/size % 2 == 0};
  EXPECT_EQ(ToWire(FromClient(update)).size(), expected);
  const Update back = RoundTrip(update);
  EXPECT_EQ(back.round, update.round);
  EXPECT_EQ(back.update_id, update.update_id);
  EXPECT_EQ(back.train_us, update.train_us);
  EXPECT_EQ(back.loss, update.loss);
  EXPECT_EQ(back.message, update.message);
  EXPECT_EQ(back.packed, update.packed);

  const Downstream delta{std::numeric_limits<int64_t>::max(), Id("m"),
                         std::make_shared<const std::string>(Payload(size))};
  EXPECT_EQ(ToWire(FromServer(delta), {}).size(), expected);
  const Downstream delta_back = ServerRoundTrip(delta);
  EXPECT_EQ(delta_back.version, delta.version);
  EXPECT_EQ(delta_back.model_hash, delta.model_hash);
  EXPECT_EQ(*delta_back.message, *delta.message);
}

INSTANTIATE_TEST_SUITE_P(SessionWire, Chunks,
                         ::testing::Values(1, 2, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1, 2 * kChunkBytes,
                                           2 * kChunkBytes + 1, 3 * kChunkBytes - 1, kMaxPayload));

TEST(SessionWire, SeveralPayloadsFollowEachOther) {
  ClientMessageReader reader(kMaxPayload);
  for (int64_t size : {kChunkBytes + 5, int64_t{1}, 2 * kChunkBytes}) {
    absl::optional<FromClient> result;
    for (const v1::ClientMessage& wire : ToWire(FromClient(Update{1, Id("u"), 0, 0, Payload(size)}))) {
      result = *reader.Feed(wire);
    }
    EXPECT_EQ(std::get<Update>(result.value()).message, Payload(size));
  }
}

v1::ClientMessage UpdateChunk(absl::optional<uint64_t> announced, const std::string& data) {
  v1::ClientMessage message;
  message.mutable_update()->set_data(data);
  if (announced.has_value()) {
    message.mutable_update()->mutable_header()->set_size(*announced);
    message.mutable_update()->mutable_header()->set_round(1);
    message.mutable_update()->mutable_header()->set_update_id(Id("u").ToBytes());
  }
  return message;
}

// The reader's answer to the last of `messages`; those before it are accepted.
absl::Status LastAnswer(const std::vector<v1::ClientMessage>& messages) {
  ClientMessageReader reader(100);
  absl::Status status;
  for (size_t i = 0; i < messages.size(); ++i) {
    status = reader.Feed(messages[i]).status();
    EXPECT_TRUE(status.ok() || i + 1 == messages.size()) << status;
  }
  return status;
}

TEST(SessionWire, SizesAreHeldToTheLimitAndToTheAnnouncement) {
  EXPECT_EQ(LastAnswer({UpdateChunk(100, "x")}), absl::OkStatus());
  EXPECT_THAT(std::string(LastAnswer({UpdateChunk(101, "x")}).message()), HasSubstr("101"));
  for (const std::vector<v1::ClientMessage>& bad : std::vector<std::vector<v1::ClientMessage>>{
           {UpdateChunk(101, "x")},
           {UpdateChunk(std::numeric_limits<uint64_t>::max(), "x")},
           {UpdateChunk(0, "")},
           {UpdateChunk(0, "x")},
           {UpdateChunk(3, "abcd")},
           {UpdateChunk(3, "ab"), UpdateChunk(absl::nullopt, "cd")},
           {UpdateChunk(3, "ab"), UpdateChunk(absl::nullopt, "")},
           {UpdateChunk(3, "")},
           {UpdateChunk(absl::nullopt, "x")},
           {UpdateChunk(3, "ab"), UpdateChunk(3, "c")},
           {UpdateChunk(2, "ab"), UpdateChunk(absl::nullopt, "c")},
       }) {
    EXPECT_TRUE(absl::IsInvalidArgument(LastAnswer(bad))) << bad.back().ShortDebugString();
  }
}

TEST(SessionWire, DeltasAreHeldToTheirLimitToo) {
  v1::ServerMessage message;
  message.mutable_downstream()->mutable_header()->set_size(11);
  message.mutable_downstream()->mutable_header()->set_model_hash(Id("m").ToBytes());
  message.mutable_downstream()->set_data("x");
  ServerMessageReader reader;
  EXPECT_TRUE(absl::IsInvalidArgument(reader.Feed(message).status()));  // nothing is allowed before the run is known
  reader.set_max_downstream_bytes(10);
  EXPECT_TRUE(absl::IsInvalidArgument(reader.Feed(message).status()));
  message.mutable_downstream()->mutable_header()->set_size(10);
  EXPECT_EQ(reader.Feed(message).status(), absl::OkStatus());
}

TEST(SessionWire, MessagesThatNoPeerSendsAreRefused) {
  std::vector<v1::ClientMessage> bad(9);
  bad[1].mutable_check_in()->set_lineage("short");
  bad[2].mutable_check_in()->set_prev_applied(std::string(17, 'x'));
  bad[3].mutable_check_in()->set_pending_round(std::numeric_limits<uint64_t>::max());
  bad[4].mutable_ready()->set_version(std::numeric_limits<uint64_t>::max());
  bad[5].mutable_ready()->set_layout_hash("x");
  bad[6].mutable_progress()->set_steps_done(std::numeric_limits<uint64_t>::max());
  bad[7] = UpdateChunk(1, "x");
  bad[7].mutable_update()->mutable_header()->set_update_id("x");
  bad[8].mutable_ready()->set_samples(std::numeric_limits<uint64_t>::max());
  for (const v1::ClientMessage& message : bad) {
    EXPECT_TRUE(absl::IsInvalidArgument(ClientMessageReader(100).Feed(message).status())) << message.ShortDebugString();
  }
  std::vector<v1::ServerMessage> from_server(7);
  from_server[1].mutable_verdict();
  from_server[2].mutable_verdict()->set_outcome(static_cast<v1::Verdict::Outcome>(77));
  from_server[3].mutable_welcome();
  from_server[4].mutable_welcome()->set_lineage(Id("l").ToBytes());  // without a usable run
  from_server[5].mutable_assignment();
  from_server[6].mutable_receipt()->set_update_id("x");
  for (const v1::ServerMessage& message : from_server) {
    EXPECT_TRUE(absl::IsInvalidArgument(ServerMessageReader().Feed(message).status())) << message.ShortDebugString();
  }
}

TEST(SessionWire, AnythingElseIsAStatusAndNotACrash) {
  const std::string whole = ToWire(FromClient(Update{1, Id("u"), 5, 0.5f, Payload(60)}))[0].SerializeAsString();
  Random random(1);
  const google::protobuf::LogSilencer silencer;
  int64_t parsed = 0;
  for (int64_t repeat = 0; repeat < 20'000; ++repeat) {
    std::string bytes = whole.substr(0, 1 + random.Below(whole.size()));
    for (uint64_t flips = random.Below(4); flips > 0; --flips)
      bytes[random.Below(bytes.size())] ^= 1 << random.Below(8);
    v1::ClientMessage from_client;
    v1::ServerMessage from_server;
    ClientMessageReader client_reader(100);
    ServerMessageReader server_reader;
    server_reader.set_max_downstream_bytes(100);
    if (from_client.ParseFromString(bytes)) parsed += client_reader.Feed(from_client).ok();
    if (from_server.ParseFromString(bytes)) parsed += server_reader.Feed(from_server).ok();
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace terse
