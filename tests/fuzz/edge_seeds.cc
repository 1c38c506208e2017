#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "compression/bundle.h"
#include "compression/codec_table.h"
#include "proto/run_config_loader.h"
#include "proto/session_wire.h"
#include "storage/manifest.h"
#include "storage/model_files.h"
#include "storage/parted_lineages.h"
#include "storage/run_store.h"
#include "storage/weights_file.h"
#include "tests/fuzz/codec_cases.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/seeds.h"
#include "tests/testing/paths.h"
#include "trainer/frames.h"
#include "trainer/messages.h"

namespace terse {
namespace {

const Id128 kId = {0x0123456789abcdef, 0xfedcba9876543210};

void AddFileSeeds(Seeds* seeds) {
  Manifest manifest;
  manifest.lineage = kId;
  (*seeds)["manifest/fresh"] = Bytes({0}) + SerializeManifest(manifest);
  manifest.dirty = true;
  (*seeds)["manifest/dirty"] = Bytes({1}) + SerializeManifest(manifest);
  manifest.dirty = false;
  manifest.generation = 7;
  manifest.prev_applied = manifest.update_id = kId;
  manifest.dense = manifest.outbox = manifest.trainer = BlobRef{7, 400, kId};
  manifest.sealed = true;
  manifest.round = 8;
  manifest.base_version = 6;
  manifest.train_us = 1'000'000;
  manifest.loss = 0.5f;
  (*seeds)["manifest/sealed"] = Bytes({1}) + SerializeManifest(manifest);
  manifest.history = BlobRef{7, 2328, kId};
  (*seeds)["manifest/history"] = Bytes({1}) + SerializeManifest(manifest);
  const std::vector<NamedMetric> metrics = {{MetricKind::kTraining, "norm", -0.5, 640}};
  manifest.metrics = SerializeMetrics(metrics);
  (*seeds)["manifest/metrics"] = Bytes({1}) + SerializeManifest(manifest);
  manifest.family = {5, 5};
  manifest.cohort = {3, 640};
  manifest.parted = BlobRef{7, 200, kId};
  (*seeds)["manifest/moved"] = Bytes({1}) + SerializeManifest(manifest);
  (*seeds)["manifest/short"] = (*seeds)["manifest/sealed"].substr(0, 100);

  SealedUpdate update = {kId, 8, 6, 1'000'000, 0.5f, metrics, {3, 640}, "message"};
  const std::vector<PartedLineage> parted = {{{5, 5}, Id128(), absl::nullopt}, {kId, kId, update}};
  (*seeds)["parted/whole"] = SerializeParted(parted);
  (*seeds)["parted/short"] = SerializeParted(parted).substr(0, 100);

  const std::vector<float> weights = {1, -2, 0.5f, 0};
  const std::string checkpoint = SerializeCheckpoint({3, HashWeights(weights), weights});
  (*seeds)["checkpoint/whole"] = Bytes({0}) + checkpoint;
  (*seeds)["checkpoint/repaired"] = Bytes({3}) + checkpoint;
  (*seeds)["checkpoint/empty"] = Bytes({0}) + SerializeCheckpoint({0, HashWeights({}), {}});
  (*seeds)["checkpoint/short"] = Bytes({0}) + checkpoint.substr(0, 50);
  (*seeds)["cached_model/whole"] = Bytes({0}) + SerializeWeights(kCachedModelMagic, 3, kId, weights);
  (*seeds)["cached_model/repaired"] = Bytes({1}) + SerializeWeights(kCachedModelMagic, 0, kId, {});
  (*seeds)["cached_model/checkpoint"] = Bytes({0}) + checkpoint;
}

void AddTrainerSeeds(Seeds* seeds) {
  Hello hello;
  hello.protocol = kTrainerProtocol;
  hello.trainer = "seed 1";
  hello.layout = {{"a", {2, 3}, "parameter"}, {"b", {4}, "buffer"}};
  hello.dtype = "float32";
  hello.samples = 10;
  hello.result = "weights";
  (*seeds)["trainer_message/hello"] = Bytes({0}) + ToJson(hello);
  (*seeds)["trainer_message/result"] = Bytes({1}) + ToJson(WireResult{0.5, 20});
  const WireMetric metric = {"test", "accuracy", 0.5, 100};
  (*seeds)["trainer_message/metrics"] = Bytes({1}) + ToJson(WireResult{0.5, 20, std::vector<WireMetric>{metric}});
  (*seeds)["trainer_message/evaluation"] = Bytes({6}) + ToJson(WireEvaluation{{metric}});
  (*seeds)["trainer_message/evaluate"] = Bytes({7}) + ToJson(EvaluateRequest{3});
  (*seeds)["trainer_message/no_loss"] = Bytes({1}) + R"({"loss":null,"samples":1})";
  (*seeds)["trainer_message/failure"] = Bytes({2}) + ToJson(WireFailure{"UNAVAILABLE", "away", "a\nb"});
  (*seeds)["trainer_message/open"] = Bytes({3}) + ToJson(OpenRequest());
  (*seeds)["trainer_message/plan"] = Bytes({4}) + ToJson(LocalPlan{20, 140, 8, 7});
  (*seeds)["trainer_message/symbols"] = Bytes({8}) + PackSymbols({"e", "", "\xff"});
  (*seeds)["trainer_message/progress"] = Bytes({5}) + ToJson(ProgressReport{3});

  const absl::StatusOr<Layout> layout = Layout::Create({{"a", {2, 3}}, {"b", {}, TensorKind::kBuffer}});
  const std::string file = *ExportSafetensors(*layout, std::vector<float>{1, 2, 3, 4, 5, 6, -1});
  const std::string whole = file.substr(sizeof(uint64_t));
  const size_t length = whole.size() - 7 * sizeof(float);
  (*seeds)["model_file/whole"] = Bytes({1}) + Little(length, 2) + whole;
  (*seeds)["model_file/plain"] = Bytes({0, 0, 0}) + file;
  (*seeds)["model_file/short"] = Bytes({1}) + Little(length, 2) + whole.substr(0, whole.size() - 3);
}

template <typename Wire>
std::string Framed(const std::vector<Wire>& messages) {
  std::string bytes;
  for (const Wire& message : messages) {
    const std::string one = message.SerializeAsString();
    bytes += Little(one.size(), 2) + one;
  }
  return bytes;
}

std::string FramedClient(const FromClient& message) { return Framed(ToWire(message)); }

// A payload of `size` bytes in `chunks`, as a codec with larger messages would send it.
std::string ChunkedUpdate(int size, int chunks) {
  std::vector<v1::ClientMessage> messages(chunks);
  for (v1::ClientMessage& message : messages) message.mutable_update()->set_data(std::string(size / chunks, 'x'));
  v1::UpdateHeader* header = messages[0].mutable_update()->mutable_header();
  header->set_size(size);
  header->set_round(1);
  header->set_update_id(kId.ToBytes());
  header->set_loss(0.5f);
  return Framed(messages);
}

void AddClientMessageSeeds(Seeds* seeds) {
  const std::string limit = Little(600, 2);
  CheckIn check_in;
  check_in.name = "client-1";
  check_in.lineage = check_in.prev_applied = check_in.pending_update_id = kId;
  check_in.pending_round = 12;
  check_in.residual_lost = true;
  check_in.run = "demo";
  check_in.process = kId;
  check_in.connection = 3;
  Ready ready;
  ready.version = 3;
  ready.model_hash = ready.layout_hash = kId;
  ready.samples = 600;
  ready.history_hash = kId;
  Update update{4, kId, 1'000'000, 0.5f, "message"};
  const std::string session = FramedClient(check_in) + FramedClient(ready) + FramedClient(Progress{4, 5}) +
                              FramedClient(update) + FramedClient(Leaving{});
  (*seeds)["client_message/session"] = limit + session;
  update.packed = true;
  (*seeds)["client_message/packed"] = limit + FramedClient(update);
  update.packed = false;
  (*seeds)["client_message/update"] = limit + FramedClient(update) + FramedClient(update);
  (*seeds)["client_message/chunks"] = limit + ChunkedUpdate(90, 3) + ChunkedUpdate(600, 2);
  (*seeds)["client_message/too_large"] = Little(80, 2) + ChunkedUpdate(90, 3);
  (*seeds)["client_message/cut"] = (limit + session).substr(0, 40);
}

constexpr char kRunText[] = R"(name = "demo"
seed = 7
durability = "relaxed"
[train]
local_steps = 10
[train.optimizer]
learning_rate = 0.001
[codec]
name = "sbc"
density = 0.02
[rounds]
count = 140
clients = 4
quorum = 2
deadline_seconds = 30
selection = "random"
fraction = 0.5
over_selection = 0.5
weighting = "samples"
[clients]
set_aside_after = 3
[limits]
accuracy = 0.99
)";

constexpr char kShortText[] = R"(name = "a"
train = { local_steps = 1, optimizer = { learning_rate = 1 } } # inline
codec.name = 'dense'
rounds.count = 1
)";

constexpr char kOddText[] = R"(name = """a"""
x = [[1, 2], ["\u0041", 1979-05-27T07:32:00Z], {a.b = nan}]
[[rounds]]
count = 0x1f
)";

v1::RunConfig ParsedRun(absl::string_view text) {
  auto run = ParseRunConfig(text, "seed.toml");
  Require(run.ok(), run.status().ToString());
  return *std::move(run);
}

void AddRunConfigSeeds(Seeds* seeds) {
  (*seeds)["run_config/all"] = kRunText;
  (*seeds)["run_config/short"] = kShortText;
  (*seeds)["run_config/odd"] = kOddText;
  (*seeds)["stored_run_config/all"] = ParsedRun(kRunText).SerializeAsString();
  (*seeds)["stored_run_config/short"] = ParsedRun(kShortText).SerializeAsString();
  v1::RunConfig shared = ParsedRun(kShortText);
  shared.mutable_codec()->set_name("sbc");
  shared.mutable_codec()->set_positions("shared");
  (*seeds)["stored_run_config/shared"] = shared.SerializeAsString();
  v1::RunConfig bad = ParsedRun(kShortText);
  bad.set_name("../x");
  bad.mutable_rounds()->set_fraction(2);
  (*seeds)["stored_run_config/bad"] = bad.SerializeAsString();
}

void AddServerMessageSeeds(Seeds* seeds) {
  const v1::RunConfig run = ParsedRun(kShortText);
  const auto framed = [&run](const FromServer& message) { return Framed(ToWire(message, run)); };
  const std::string limit = Little(600, 2);
  Welcome welcome;
  welcome.lineage = kId;
  welcome.client_index = 3;
  welcome.verdict = Verdict{Outcome::kReset, kId, kId, "another past"};
  welcome.head_version = 17;
  const Downstream delta{18, kId, std::make_shared<const std::string>("message")};
  (*seeds)["server_message/welcome"] = limit + framed(welcome);
  (*seeds)["server_message/round"] = limit + framed(delta) + framed(Assignment{1, 18, 10}) + framed(Receipt{kId}) +
                                     framed(Verdict{Outcome::kApplied, kId, {}, ""}) + framed(Resync{17, "too old"});
  Assignment packed{1, 18, 10};
  packed.packed = true;
  (*seeds)["server_message/packed"] = limit + framed(BeginHistory{}) + framed(packed);
  (*seeds)["server_message/refusal"] = limit + framed(Refusal{"full", true});
  (*seeds)["server_message/finished"] = limit + framed(Finished{"done"});
  (*seeds)["server_message/too_large"] = Little(3, 2) + framed(delta);
}

void AddUpdateSeeds(Seeds* seeds) {
  CodecCases cases("");
  Random random(8);
  for (size_t i = 0; i < cases.cases().size(); i += 7) {
    const Codec& codec = cases.Pick(i, 0);
    const auto message = codec.Encode(RandomUpdate(codec.layout().size(), &random), {CodecKey{1, 2, 3}});
    Require(message.ok(), message.status().ToString());
    (*seeds)["update/" + cases.cases()[i].name] = Little(i, 2) + Bytes({0, static_cast<int>(i % 3)}) + Little(1, 8) +
                                                  Little(5, 8) + Little(0x3f000000, 4) + Bytes({0}) + *message;
  }
  // A case of 0x8000 is the codec that has all the others as its choices.
  const Codec& all = cases.Choice(0);
  for (const int64_t choice : {0, 9, 40}) {
    EncodeOptions options;
    options.choice = choice;
    const auto message = all.Encode(RandomUpdate(all.layout().size(), &random), options);
    Require(message.ok(), message.status().ToString());
    (*seeds)["update/choice_" + std::to_string(choice)] =
        Little(0x8000, 2) + Bytes({0, 1}) + Little(1, 8) + Little(5, 8) + Little(0x3f000000, 4) + Bytes({0}) + *message;
  }
  // A relay sends a mean or a bundle.
  const Codec& codec = cases.Pick(0, 0);
  const std::string message = codec.Encode(RandomUpdate(codec.layout().size(), &random), {CodecKey{1, 2, 3}}).value();
  const std::string header = Little(0, 2) + Bytes({0, 1}) + Little(1, 8) + Little(5, 8) + Little(0x3f000000, 4);
  (*seeds)["update/relay"] = header + Bytes({2}) + message;
  (*seeds)["update/bundle"] = header + Bytes({2}) + BuildBundle({{message, {1, 300}}, {message, {3, 60}}}).value();
}

// A run of `clients` who all deliver for some rounds of five or more, with one of the servers of session_world.cc and
// one of the languages of session_language.cc.
std::string HonestRounds(int clients, int server = 0, int language = 0, int rounds = 2) {
  const int count = std::max(rounds, 4);
  std::string program = Bytes({1, language, clients - 1, 0, 0, clients - 1, 0, count, 6 * server});
  for (int i = 0; i < clients; ++i) program += Bytes({16 * i + 2, 16 * i + 4, 16 * i + 4});
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < clients; ++i) program += Bytes({16 * i + 6});
  }
  return program + Bytes({13, 200, 0xf0 + 15});
}

// Programs of session_fuzz.cc and client_session_fuzz.cc.
void AddSessionSeeds(Seeds* seeds) {
  (*seeds)["session/one_client"] = HonestRounds(1);
  (*seeds)["session/three_clients"] = HonestRounds(3);
  (*seeds)["session/restart"] = HonestRounds(2) + Bytes({15, 2, 4, 4, 18, 20, 20, 6, 22});
  (*seeds)["session/coded"] = HonestRounds(3, 1) + Bytes({15, 2, 4, 4, 18, 20, 20, 34, 36, 36, 6, 22, 38});
  (*seeds)["session/momentum"] = HonestRounds(2, 2) + Bytes({15, 2, 4, 4, 18, 20, 20, 6, 22});
  (*seeds)["session/adam"] = HonestRounds(1, 3) + Bytes({15, 2, 4, 4, 6});
  (*seeds)["session/deadline"] = Bytes({1, 1, 1, 0, 0, 0, 8, 4, 0, 2, 4, 4, 18, 20, 20, 6, 12, 3, 6, 12, 4, 22});
  (*seeds)["session/forged"] = Bytes({0, 0, 1, 0, 0, 1, 0, 4, 0, 2, 4, 4, 18, 20, 20, 6, 33, 40, 2, 1, 0, 1, 2, 1, 0});
  (*seeds)["session/replay"] = HonestRounds(2) + Bytes({11, 0, 27, 1, 10, 1, 0, 26, 2, 0xff, 3, 4, 5, 6, 7});
  (*seeds)["session/operator"] = Bytes(
      {1, 2, 2, 1, 0x12, 1, 2, 7, 1, 2, 4, 4, 18, 20, 20, 34, 36, 36, 14, 1, 6, 22, 38, 14, 3, 14, 5, 14, 7, 14, 6});

  const std::string joined = Bytes({0, 2, 0});  // a welcome, and a checkpoint to download
  (*seeds)["client_session/round"] = joined + Bytes({6, 8, 9, 3, 6, 9, 3});
  (*seeds)["client_session/late"] = joined + Bytes({6, 0x19, 6, 0x39, 0, 6, 9});
  (*seeds)["client_session/again"] = joined + Bytes({6, 15, 0, 0x40, 3, 6, 15, 1, 0, 0x50});
  (*seeds)["client_session/drift"] = joined + Bytes({0xc3, 2, 3, 6, 0xd3, 5, 1, 2, 3, 4, 5, 2, 2});
  (*seeds)["client_session/other_run"] = joined + Bytes({6, 0xf0, 2, 0, 6, 9, 0, 2, 0, 6, 11, 1, 1});
  // It moves to a relay with an update that it has sealed, and comes back to its verdict: applied, or not.
  const std::string moved = joined + Bytes({6, 15, 0, 0x20, 6, 9, 0x4b, 0});
  (*seeds)["client_session/moved"] = moved + Bytes({0x40, 6, 9, 3});
  (*seeds)["client_session/moved_back"] = moved + Bytes({0x50, 6, 15, 0, 0x60, 0x20, 6, 9});
}

// Adds the same programs where updates are packed.
void AddPackedSessionSeeds(Seeds* seeds) {
  const int shared = 4;  // of the languages
  (*seeds)["session/shared"] = HonestRounds(2, 0, shared, 6);
  (*seeds)["session/shared_coded"] = HonestRounds(3, 1, shared, 7);
  (*seeds)["session/shared_restart"] = HonestRounds(2, 0, shared, 3) + Bytes({15, 2, 4, 4, 18, 20, 20, 6, 22, 6, 22});
  (*seeds)["session/shared_misled"] = HonestRounds(2, 0, shared, 3) + Bytes({0xcf, 8, 6, 22, 1, 2, 4, 4, 6, 22, 6});
  (*seeds)["session/shared_forged"] =
      HonestRounds(2, 0, shared, 3) + Bytes({10, 0x24, 0, 26, 0x64, 16, 17, 18, 20, 20});
  (*seeds)["session/shared_replay"] = HonestRounds(2, 0, shared, 3) + Bytes({11, 5, 1, 2, 4, 4, 6, 11, 2});

  const std::string joined = Bytes({0xe0, 2, 0});
  std::string rounds = joined;
  for (int i = 0; i < 5; ++i) rounds += Bytes({7, 8, 9, 3});
  (*seeds)["client_session/packed"] = rounds;
  (*seeds)["client_session/packed_restart"] = rounds + Bytes({7, 15, 1, 0}) + joined + Bytes({7, 9, 3, 7});
  (*seeds)["client_session/packed_again"] = rounds + Bytes({7, 15, 0}) + joined + Bytes({7, 9, 7});
  (*seeds)["client_session/packed_reset"] = rounds + Bytes({7, 0x39, 1, 7, 9, 3, 7, 9, 3, 7});
}

// Adds the certificates of the golden files, since every key and signature that is made here would be another: as PEM,
// and as DER, where a changed byte changes more than base64.
void AddCertificateSeeds(Seeds* seeds) {
  struct Golden {
    const char* name;
    int reader;  // of the target's four
  };
  for (const auto& [name, reader] : {Golden{"certificate", 0}, {"request", 1}, {"crl", 2}, {"authority", 3}}) {
    std::ifstream file(InSource(absl::StrCat("tests/golden/pki_", name, ".pem")));
    const std::string pem((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const size_t begin = pem.find('\n'), end = pem.find("-----END");
    std::string der;
    Require(end != std::string::npos && absl::Base64Unescape(pem.substr(begin, end - begin), &der),
            "a golden file is PEM");
    (*seeds)[absl::StrCat("certificates/", name)] = Bytes({2 * reader}) + pem;
    (*seeds)[absl::StrCat("certificates/", name, "_der")] = Bytes({2 * reader + 1}) + der;
  }
  (*seeds)["certificates/identity"] = Bytes({0}) + "terse:client:berlin-1";
}

}  // namespace

void AddEdgeSeeds(Seeds* seeds) {
  AddFileSeeds(seeds);
  AddTrainerSeeds(seeds);
  AddCertificateSeeds(seeds);
  AddClientMessageSeeds(seeds);
  AddServerMessageSeeds(seeds);
  AddRunConfigSeeds(seeds);
  AddUpdateSeeds(seeds);
  AddSessionSeeds(seeds);
  AddPackedSessionSeeds(seeds);
}

}  // namespace terse
