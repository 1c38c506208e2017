// Tests messages that no honest peer sends, one row each: they give a status that says where and what, memory stays
// bounded, and the connection can still be closed with the reader.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "proto/run_config_loader.h"
#include "proto/session_wire.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSmallPayload = 100;
constexpr uint64_t kTooLarge = std::numeric_limits<uint64_t>::max();

std::string Id() { return HashBytes("id").ToBytes(); }

template <typename Wire>
struct Row {
  std::string name;
  std::function<void(Wire*)> spoil;
  std::vector<std::string> says;  // parts of the status
};

// Everything but `spoil` is what a client says.
v1::ClientMessage GoodUpdate() {
  v1::ClientMessage message;
  v1::UpdateHeader* header = message.mutable_update()->mutable_header();
  header->set_round(1);
  header->set_update_id(Id());
  header->set_size(3);
  message.mutable_update()->set_data("abc");
  return message;
}

v1::RunConfig GoodRun() {
  return *ParseRunConfig(
      "name = 'a'\ncodec.name = 'dense'\nrounds.count = 1\n"
      "train = {local_steps = 1, optimizer = {learning_rate = 1}}\n",
      "good.toml");
}

v1::ServerMessage GoodWelcome() {
  v1::ServerMessage message;
  message.mutable_welcome()->set_lineage(Id());
  *message.mutable_welcome()->mutable_config() = GoodRun();
  return message;
}

v1::ServerMessage GoodDelta() {
  v1::ServerMessage message;
  v1::DownstreamHeader* header = message.mutable_downstream()->mutable_header();
  header->set_version(1);
  header->set_model_hash(Id());
  header->set_size(3);
  message.mutable_downstream()->set_data("abc");
  return message;
}

absl::Status Answer(const v1::ClientMessage& message) {
  return ClientMessageReader(kSmallPayload).Feed(message).status();
}

absl::Status Answer(const v1::ServerMessage& message) {
  ServerMessageReader reader;
  reader.set_max_downstream_bytes(kSmallPayload);
  return reader.Feed(message).status();
}

template <typename Wire>
void ExpectRefused(const std::vector<Row<Wire>>& rows, const Wire& good) {
  for (const Row<Wire>& row : rows) {
    SCOPED_TRACE(row.name);
    Wire message = good;
    row.spoil(&message);
    const absl::Status status = Answer(message);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    for (const std::string& part : row.says) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(SessionWireBadInput, TheGoodMessagesAreGood) {
  EXPECT_EQ(Answer(GoodUpdate()), absl::OkStatus());
  EXPECT_EQ(Answer(GoodWelcome()), absl::OkStatus());
  EXPECT_EQ(Answer(GoodDelta()), absl::OkStatus());
}

TEST(SessionWireBadInput, ClientsFieldsAreNamed) {
  using Wire = v1::ClientMessage;
  ExpectRefused<Wire>(
      {
          {"lineage", [](Wire* m) { m->mutable_check_in()->set_lineage("short"); }, {"lineage", "got 5"}},
          {"prev", [](Wire* m) { m->mutable_check_in()->set_prev_applied(Id() + "x"); }, {"prev_applied", "got 17"}},
          {"huge id",
           [](Wire* m) { m->mutable_check_in()->set_pending_update_id(std::string(1 << 20, 'x')); },
           {"pending_update_id", "got 1048576"}},
          {"family", [](Wire* m) { m->mutable_check_in()->set_family("root"); }, {"family", "got 4"}},
          {"pending round", [](Wire* m) { m->mutable_check_in()->set_pending_round(kTooLarge); }, {"pending_round"}},
          {"run above", [](Wire* m) { m->mutable_check_in()->set_run("../other"); }, {"run name", "../other"}},
          {"run with zero", [](Wire* m) { m->mutable_check_in()->set_run(std::string("a\0b", 3)); }, {"run name"}},
          {"run not UTF-8", [](Wire* m) { m->mutable_check_in()->set_run("a\xff\xfe"); }, {"run name", "\\xff"}},
          {"run too long", [](Wire* m) { m->mutable_check_in()->set_run(std::string(1 << 20, 'a')); }, {"run name"}},
          {"version", [](Wire* m) { m->mutable_ready()->set_version(kTooLarge); }, {"version", "out of range"}},
          {"model hash", [](Wire* m) { m->mutable_ready()->set_model_hash("x"); }, {"model_hash", "got 1"}},
          {"layout hash", [](Wire* m) { m->mutable_ready()->set_layout_hash("x"); }, {"layout_hash", "got 1"}},
          {"samples", [](Wire* m) { m->mutable_ready()->set_samples(kTooLarge); }, {"samples", "out of range"}},
          {"device too long",
           [](Wire* m) { m->mutable_ready()->set_device(std::string(1 << 20, 'a')); },
           {"device", "1 to 64 printable"}},
          {"device by one", [](Wire* m) { m->mutable_ready()->set_device(std::string(65, 'a')); }, {"device"}},
          {"device with a line", [](Wire* m) { m->mutable_ready()->set_device("cpu\n2"); }, {"device", "cpu\\n2"}},
          {"device with an escape", [](Wire* m) { m->mutable_ready()->set_device("\x1b[2J"); }, {"device", "\\x1b"}},
          {"device not UTF-8", [](Wire* m) { m->mutable_ready()->set_device("\xff"); }, {"device", "\\xff"}},
          {"progress", [](Wire* m) { m->mutable_progress()->set_round(kTooLarge); }, {"round", "out of range"}},
          {"steps", [](Wire* m) { m->mutable_progress()->set_steps_done(kTooLarge); }, {"steps_done"}},
          {"nothing", [](Wire* m) { m->Clear(); }, {"empty message"}},
      },
      v1::ClientMessage());
}

TEST(SessionWireBadInput, UpdatesAreHeldToTheirHeader) {
  using Wire = v1::ClientMessage;
  const auto header = [](Wire* m) { return m->mutable_update()->mutable_header(); };
  ExpectRefused<Wire>(
      {
          {"size above limit", [&](Wire* m) { header(m)->set_size(kSmallPayload + 1); }, {"101", "1 to 100"}},
          {"size of the world", [&](Wire* m) { header(m)->set_size(kTooLarge); }, {"18446744073709551615"}},
          {"no size", [&](Wire* m) { header(m)->set_size(0); }, {"0 bytes"}},
          {"more than announced", [&](Wire* m) { header(m)->set_size(2); }, {"chunk of 3", "2 are still to come"}},
          {"no data", [](Wire* m) { m->mutable_update()->clear_data(); }, {"chunk of 0"}},
          {"no header", [](Wire* m) { m->mutable_update()->clear_header(); }, {"header"}},
          {"id", [&](Wire* m) { header(m)->set_update_id("x"); }, {"update_id", "got 1"}},
          {"round", [&](Wire* m) { header(m)->set_round(kTooLarge); }, {"round", "out of range"}},
          {"norm", [&](Wire* m) { header(m)->set_norm_code(128); }, {"norm_code", "out of range: 128"}},
          {"norm that wraps", [&](Wire* m) { header(m)->set_norm_code(0xffffffff); }, {"norm_code", "4294967295"}},
          {"metric of no kind", [&](Wire* m) { header(m)->add_metrics()->set_kind(v1::Metric::Kind(4)); }, {"kind 4"}},
          {"samples", [&](Wire* m) { header(m)->add_metrics()->set_samples(kTooLarge); }, {"samples", "out of range"}},
          {"too many metrics",
           [&](Wire* m) {
             for (int i = 0; i < 65; ++i) header(m)->add_metrics();
           },
           {"65 metrics"}},
          {"time", [&](Wire* m) { header(m)->set_train_us(kTooLarge); }, {"train_us", "out of range"}},
          {"too many clients",
           [&](Wire* m) {
             header(m)->set_cohort_clients(CohortFacts::kMostClients + 1);
             header(m)->set_cohort_samples(1);
           },
           {"cohort_clients is out of range: 100000001"}},
          {"clients beyond all numbers",
           [&](Wire* m) {
             header(m)->set_cohort_clients(kTooLarge);
             header(m)->set_cohort_samples(1);
           },
           {"cohort_clients", "out of range"}},
          {"too many samples",
           [&](Wire* m) {
             header(m)->set_cohort_clients(1);
             header(m)->set_cohort_samples(CohortFacts::kMostSamples + 1);
           },
           {"cohort_samples is out of range: 281474976710657"}},
          {"clients without samples",
           [&](Wire* m) { header(m)->set_cohort_clients(3); },
           {"stands for 3 clients with 0 samples"}},
          {"samples of nobody",
           [&](Wire* m) { header(m)->set_cohort_samples(3); },
           {"stands for 0 clients with 3 samples"}},
          {"a tree below a client",
           [&](Wire* m) { header(m)->mutable_below()->set_clients(3); },
           {"a client that has others below it"}},
          {"too many clients below",
           [&](Wire* m) {
             header(m)->set_cohort_clients(1);
             header(m)->set_cohort_samples(1);
             header(m)->mutable_below()->set_clients(CohortFacts::kMostClients + 1);
           },
           {"below.clients is out of range: 100000001"}},
          {"too many bytes below",
           [&](Wire* m) {
             header(m)->set_cohort_clients(1);
             header(m)->set_cohort_samples(1);
             header(m)->mutable_below()->set_wire_bytes_down(BelowFacts::kMostBytes + 1);
           },
           {"below.wire_bytes_down is out of range"}},
      },
      GoodUpdate());
}

TEST(SessionWireBadInput, TheCoordinatorsFieldsAreNamed) {
  using Wire = v1::ServerMessage;
  ExpectRefused<Wire>(
      {
          {"no lineage", [](Wire* m) { m->mutable_welcome()->clear_lineage(); }, {"no lineage"}},
          {"lineage", [](Wire* m) { m->mutable_welcome()->set_lineage("x"); }, {"lineage", "got 1"}},
          {"no run", [](Wire* m) { m->mutable_welcome()->clear_config(); }, {"run config: "}},
          {"run name", [](Wire* m) { m->mutable_welcome()->mutable_config()->set_name("../x"); }, {"run config: name"}},
          {"not a number",
           [](Wire* m) {
             m->mutable_welcome()->mutable_config()->mutable_rounds()->set_deadline_seconds(
                 std::numeric_limits<double>::quiet_NaN());
           },
           {"run config: rounds.deadline_seconds"}},
          {"infinite",
           [](Wire* m) {
             m->mutable_welcome()->mutable_config()->mutable_codec()->set_density(
                 std::numeric_limits<double>::infinity());
           },
           {"run config: codec.density"}},
          {"verdict", [](Wire* m) { m->mutable_welcome()->mutable_verdict(); }, {"unknown verdict 0"}},
          {"head", [](Wire* m) { m->mutable_welcome()->set_head_version(kTooLarge); }, {"head_version"}},
          {"family", [](Wire* m) { m->mutable_welcome()->set_family("root"); }, {"family", "got 4"}},
          {"no shard", [](Wire* m) { m->mutable_welcome()->mutable_shards()->set_first(3); }, {"gives no shard"}},
          {"tensor of nothing",
           [](Wire* m) {
             m->mutable_welcome()->add_tensors()->set_name("a");
             m->mutable_welcome()->mutable_tensors(0)->add_shape(0);
           },
           {"tensor 'a' has the unusable shape [0]"}},
          {"tensor beyond all numbers",
           [](Wire* m) {
             m->mutable_welcome()->add_tensors()->set_name("a");
             m->mutable_welcome()->mutable_tensors(0)->add_shape(kTooLarge);
           },
           {"shape is out of range"}},
          {"tensor that is too large",
           [](Wire* m) {
             m->mutable_welcome()->add_tensors()->set_name("a");
             for (int i = 0; i < 3; ++i) m->mutable_welcome()->mutable_tensors(0)->add_shape(uint64_t{1} << 40);
           },
           {"tensor 'a' has the unusable shape"}},
          {"a tensor twice",
           [](Wire* m) {
             for (int i = 0; i < 2; ++i) m->mutable_welcome()->add_tensors()->set_name("a");
           },
           {"tensor 'a' appears twice"}},
          {"buffers alone",
           [](Wire* m) {
             m->mutable_welcome()->add_tensors()->set_name("a");
             m->mutable_welcome()->mutable_tensors(0)->set_buffer(true);
           },
           {"at least one trainable tensor"}},
      },
      GoodWelcome());
  ExpectRefused<Wire>(
      {
          {"size above limit",
           [](Wire* m) { m->mutable_downstream()->mutable_header()->set_size(101); },
           {"downstream message", "101"}},
          {"more than announced",
           [](Wire* m) { m->mutable_downstream()->mutable_header()->set_size(1); },
           {"chunk of 3"}},
          {"hash",
           [](Wire* m) { m->mutable_downstream()->mutable_header()->set_model_hash("x"); },
           {"model_hash", "got 1"}},
          {"version", [](Wire* m) { m->mutable_downstream()->mutable_header()->set_version(kTooLarge); }, {"version"}},
          {"resync", [](Wire* m) { m->mutable_resync()->set_checkpoint_version(kTooLarge); }, {"checkpoint_version"}},
          {"no such coding",
           [](Wire* m) {
             m->mutable_assignment()->set_local_steps(1);
             m->mutable_assignment()->set_choice(256);
           },
           {"no coding"}},
          {"an iteration that no run has",
           [](Wire* m) {
             m->mutable_assignment()->set_local_steps(1);
             m->mutable_assignment()->set_first_iteration(100'000'000'000'001);
           },
           {"last iteration"}},
          {"no steps", [](Wire* m) { m->mutable_assignment()->set_round(1); }, {"local steps"}},
          {"refusal", [](Wire* m) { m->mutable_refusal()->set_lineage("x"); }, {"lineage", "got 1"}},
          {"receipt", [](Wire* m) { m->mutable_receipt()->set_update_id("x"); }, {"update_id", "got 1"}},
          {"outcome",
           [](Wire* m) { m->mutable_verdict()->set_outcome(static_cast<v1::Verdict::Outcome>(9)); },
           {"verdict 9"}},
      },
      GoodDelta());
}

// A text that is not UTF-8 does not come through parsing, so that no log or database ever holds one.
TEST(SessionWireBadInput, NamesThatAreNotUtf8DoNotParse) {
  const google::protobuf::LogSilencer silencer;
  v1::ClientMessage message;
  message.mutable_check_in()->set_name("a\xff");
  EXPECT_FALSE(v1::ClientMessage().ParseFromString(message.SerializeAsString()));
  message.mutable_check_in()->set_name("a");
  message.mutable_check_in()->set_run("\xc0\xaf");
  EXPECT_FALSE(v1::ClientMessage().ParseFromString(message.SerializeAsString()));
}

// Chunks of one payload do not mix with another's, and one that came whole may come again: the engine, not the reader,
// knows a replay.
TEST(SessionWireBadInput, PayloadsDoNotMix) {
  ClientMessageReader reader(kSmallPayload);
  v1::ClientMessage first = GoodUpdate();
  first.mutable_update()->mutable_header()->set_size(6);
  ASSERT_EQ(reader.Feed(first).status(), absl::OkStatus());
  const absl::Status second = reader.Feed(GoodUpdate()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(second));
  EXPECT_THAT(std::string(second.message()), HasSubstr("before the one before it ended"));

  ClientMessageReader again(kSmallPayload);
  for (int i = 0; i < 2; ++i) {
    const auto fed = again.Feed(GoodUpdate());
    ASSERT_EQ(fed.status(), absl::OkStatus());
    ASSERT_TRUE(fed->has_value());
    EXPECT_EQ(std::get<Update>(**fed).message, "abc");
  }
}

}  // namespace
}  // namespace terse
