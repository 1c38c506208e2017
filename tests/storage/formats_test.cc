// The file formats of storage/SCHEMA.md against bytes that make_storage_golden.py wrote.
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "storage/byte_io.h"
#include "storage/client_sums.h"
#include "storage/manifest.h"
#include "storage/metric_bytes.h"
#include "storage/parted_lineages.h"
#include "storage/run_store.h"
#include "storage/weights_file.h"
#include "tests/storage/storage_testing.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

std::string Golden(const std::string& name) { return PosixFiles().Read(InSource("tests/golden/" + name)).value(); }

Id128 Counting(char first) {
  std::string bytes;
  for (int i = 0; i < 16; ++i) bytes.push_back(static_cast<char>(first + i));
  return Id128::FromBytes(bytes).value();
}

const std::vector<float>& FormatWeights() {
  static const auto* weights = new std::vector<float>{1.0f, -2.5f, 0.125f};
  return *weights;
}

BlobRef Ref(absl::string_view contents) { return {7, contents.size(), HashBytes(contents)}; }

Manifest Begun() {
  Manifest manifest;
  manifest.lineage = Counting(0);
  return manifest;
}

Manifest Sealed() {
  Manifest manifest = Begun();
  manifest.sealed = true;
  manifest.generation = 7;
  manifest.prev_applied = Counting(16);
  manifest.dense = Ref(absl::string_view(reinterpret_cast<const char*>(FormatWeights().data()), 12));
  manifest.outbox = Ref("message");
  manifest.trainer = Ref("trainer");
  manifest.update_id = Counting(32);
  manifest.round = 9;
  manifest.base_version = 8;
  manifest.train_us = 1234567;
  manifest.loss = 0.5f;
  return manifest;
}

Manifest Applied() {
  const Manifest sealed = Sealed();
  Manifest manifest = Begun();
  manifest.generation = 7;
  manifest.prev_applied = sealed.update_id;
  manifest.dense = sealed.dense;
  manifest.outbox = sealed.outbox;
  manifest.trainer = sealed.trainer;
  return manifest;
}

Manifest Dirty() {
  Manifest manifest = Begun();
  manifest.dirty = true;
  manifest.generation = 7;
  manifest.prev_applied = Counting(16);
  return manifest;
}

Manifest WithHistory() {
  Manifest manifest = Sealed();
  manifest.history = Ref("history");
  return manifest;
}

std::vector<NamedMetric> SomeMetrics() {
  return {{MetricKind::kTraining, "norm", -0.5, 640}, {MetricKind::kEvaluation, "accuracy", 0.75, 100}};
}

Manifest WithMetrics() {
  Manifest manifest = Sealed();
  manifest.metrics = SerializeMetrics(SomeMetrics());
  return manifest;
}

// A client of a relay.
Manifest OfFamily() {
  Manifest manifest = Begun();
  manifest.family = Counting(48);
  return manifest;
}

SealedUpdate LeftBehind() {
  SealedUpdate update;
  update.update_id = Counting(32);
  update.round = 9;
  update.base_version = 8;
  update.train_us = 1234567;
  update.loss = 0.5f;
  update.metrics = SomeMetrics();
  update.cohort = {3, 640};
  update.message = "left behind";
  return update;
}

std::vector<PartedLineage> SomeParted() {
  return {{Counting(64), Id128(), absl::nullopt}, {Counting(48), Counting(16), LeftBehind()}};
}

// A relay that has moved.
Manifest Moved() {
  Manifest manifest = WithMetrics();
  manifest.family = Counting(48);
  manifest.history = Ref("history");
  manifest.cohort = {5, 1000};
  manifest.parted = Ref(SerializeParted(SomeParted()));
  return manifest;
}

// A client of the root that has left a relay.
Manifest AtTheRoot() {
  Manifest manifest = Begun();
  manifest.lineage = manifest.family = Counting(48);
  manifest.generation = 7;
  manifest.prev_applied = Counting(16);
  manifest.dense = Sealed().dense;
  manifest.parted = Ref(SerializeParted({{Counting(64), Id128(), absl::nullopt}}));
  return manifest;
}

size_t BytesOf(const Manifest& manifest) {
  const bool plain = manifest.family.IsZero() && manifest.parted.empty() && manifest.cohort.clients == 0;
  if (!plain) return kLongManifestBytes + 4 + manifest.metrics.size() + kFamilyBytes;
  if (!manifest.metrics.empty()) return kLongManifestBytes + 4 + manifest.metrics.size();
  return manifest.history.empty() ? kManifestBytes : kLongManifestBytes;
}

TEST(ManifestFormat, MatchesGoldenBytesBothWays) {
  const std::pair<const char*, Manifest> cases[] = {
      {"manifest_begun.bin", Begun()},         {"manifest_dirty.bin", Dirty()},
      {"manifest_sealed.bin", Sealed()},       {"manifest_applied.bin", Applied()},
      {"manifest_history.bin", WithHistory()}, {"manifest_metrics.bin", WithMetrics()},
      {"manifest_family.bin", OfFamily()},     {"manifest_moved.bin", Moved()},
      {"manifest_root.bin", AtTheRoot()}};
  for (const auto& [name, manifest] : cases) {
    EXPECT_EQ(SerializeManifest(manifest), Golden(name)) << name;
    EXPECT_EQ(Golden(name).size(), BytesOf(manifest)) << name;
    const auto parsed = ParseManifest(Golden(name));
    ASSERT_OK(parsed.status());
    EXPECT_EQ(SerializeManifest(*parsed), Golden(name)) << name;
  }
}

TEST(ManifestFormat, TruncationAndEveryFlipIsRefused) {
  for (const char* name : {"manifest_begun.bin", "manifest_dirty.bin", "manifest_sealed.bin", "manifest_applied.bin",
                           "manifest_history.bin", "manifest_metrics.bin", "manifest_family.bin", "manifest_moved.bin",
                           "manifest_root.bin"}) {
    const std::string whole = Golden(name);
    for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(ParseManifest(whole.substr(0, size)).ok()) << size;
    EXPECT_FALSE(ParseManifest(whole + '\0').ok());
    for (size_t i = 0; i < whole.size() * 8; ++i) {
      std::string flipped = whole;
      flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << i % 8));
      EXPECT_CODE(ParseManifest(flipped).status(), kDataLoss, "it ") << i;
    }
  }
}

// A checksum that holds does not make nonsense sound.
TEST(ManifestFormat, ContradictionsAreRefused) {
  std::vector<Manifest> cases;
  const auto add = [&](Manifest manifest, const std::function<void(Manifest&)>& change) {
    change(manifest);
    cases.push_back(manifest);
  };
  add(Begun(), [](Manifest& m) { m.lineage = Id128(); });
  add(Begun(), [](Manifest& m) { m.generation = -1; });
  add(Sealed(), [](Manifest& m) { m.update_id = Id128(); });
  add(Sealed(), [](Manifest& m) { m.dirty = true; });
  add(Sealed(), [](Manifest& m) { m.dense.size = 13; });
  add(Sealed(), [](Manifest& m) { m.outbox.size = uint64_t{1} << 35; });
  add(Sealed(), [](Manifest& m) { m.trainer.generation = -1; });
  add(Sealed(), [](Manifest& m) { m.trainer.size = 0; });
  add(WithHistory(), [](Manifest& m) { m.history.generation = -1; });
  add(WithHistory(), [](Manifest& m) { m.history.size = uint64_t{1} << 35; });
  add(WithMetrics(), [](Manifest& m) { m.metrics.pop_back(); });
  add(Applied(), [](Manifest& m) { m.metrics = WithMetrics().metrics; });
  add(Applied(), [](Manifest& m) { m.cohort = {1, 1}; });
  add(Moved(), [](Manifest& m) { m.cohort = {1, 0}; });
  add(Moved(), [](Manifest& m) { m.cohort = {0, 1}; });
  add(Moved(), [](Manifest& m) { m.cohort = {-1, 1}; });
  add(Moved(), [](Manifest& m) { m.cohort = {CohortFacts::kMostClients + 1, 1}; });
  add(Moved(), [](Manifest& m) { m.cohort = {1, CohortFacts::kMostSamples + 1}; });
  add(Moved(), [](Manifest& m) { m.parted.size = uint64_t{1} << 35; });
  add(Moved(), [](Manifest& m) { m.parted.generation = -1; });
  add(OfFamily(), [](Manifest& m) {
    m.dirty = true;
    m.parted = Moved().parted;
  });
  add(Applied(), [](Manifest& m) { m.update_id = Id128{1, 1}; });
  add(Applied(), [](Manifest& m) { m.dirty = true; });
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_CODE(ParseManifest(SerializeManifest(cases[i])).status(), kDataLoss, "contradict") << i;
  }
}

// A manifest without a history is written in format 1 and in no other way.
TEST(ManifestFormat, AnEmptyHistoryIsNotWritten) {
  constexpr size_t kFormatAt = 4, kTrailer = 16;
  for (const Manifest& manifest : {Begun(), Dirty(), Sealed(), Applied(), WithHistory()}) {
    std::string bytes = SerializeManifest(manifest);
    bytes.resize(kLongManifestBytes - kTrailer - 32);  // what stands before the history; a trailer goes, or that too
    bytes.append(32, '\0');
    bytes[kFormatAt] = 2;
    bytes += HashBytes(bytes).ToBytes();
    ASSERT_EQ(bytes.size(), kLongManifestBytes);
    EXPECT_CODE(ParseManifest(bytes).status(), kDataLoss, "contradict");
  }
}

// Nor are fields of relays, where there is no relay.
TEST(ManifestFormat, APlainFamilyIsNotWritten) {
  constexpr size_t kFormatAt = 4, kTrailer = 16;
  for (const auto& [name, family] :
       std::initializer_list<std::pair<const char*, Id128>>{{"manifest_family.bin", Begun().lineage},
                                                            {"manifest_family.bin", Id128()},
                                                            {"manifest_moved.bin", Id128()}}) {
    std::string bytes = Golden(name);
    bytes.replace(bytes.size() - kTrailer - kFamilyBytes, 16, family.ToBytes());
    ASSERT_EQ(bytes[kFormatAt], 4);
    bytes.resize(bytes.size() - kTrailer);
    bytes += HashBytes(bytes).ToBytes();
    EXPECT_CODE(ParseManifest(bytes).status(), kDataLoss, "contradict");
  }
  Manifest plain = Begun();
  plain.family = plain.lineage;
  EXPECT_EQ(SerializeManifest(plain), Golden("manifest_begun.bin"));
  EXPECT_EQ(ParseManifest(Golden("manifest_begun.bin"))->family, Begun().lineage);
}

TEST(PartedFormat, MatchesGoldenBytesBothWays) {
  EXPECT_EQ(SerializeParted(SomeParted()), Golden("parted.bin"));
  const auto parsed = ParseParted(Golden("parted.bin"));
  ASSERT_OK(parsed.status());
  ASSERT_EQ(parsed->size(), 2);
  EXPECT_EQ((*parsed)[1].sealed->metrics, SomeMetrics());
  EXPECT_EQ((*parsed)[1].sealed->cohort.samples, 640);
  EXPECT_EQ(SerializeParted(*parsed), Golden("parted.bin"));
  EXPECT_EQ(SerializeParted({}), "");
  EXPECT_TRUE(ParseParted("")->empty());
}

TEST(PartedFormat, WhatIsReadHasOneForm) {
  const std::string whole = Golden("parted.bin");
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(ParseParted(whole.substr(0, size)).status().code(), absl::StatusCode::kDataLoss) << size;
  }
  EXPECT_CODE(ParseParted(whole + '\0').status(), kDataLoss, "1 bytes after its lineages");
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    std::string flipped = whole;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << i % 8));
    const auto parsed = ParseParted(flipped);
    if (parsed.ok()) {
      EXPECT_EQ(SerializeParted(*parsed), flipped) << i;
    } else {
      EXPECT_CODE(parsed.status(), kDataLoss, "it") << i;
    }
  }
}

TEST(PartedFormat, NonsenseIsRefused) {
  const auto refuse = [](const std::function<void(std::vector<PartedLineage>&)>& change, absl::string_view reason) {
    std::vector<PartedLineage> parted = SomeParted();
    change(parted);
    EXPECT_CODE(ParseParted(SerializeParted(parted)).status(), kDataLoss, std::string(reason));
  };
  using Lineages = std::vector<PartedLineage>;
  refuse([](Lineages& p) { p[0].lineage = p[1].lineage; }, "a lineage twice");
  refuse([](Lineages& p) { p[0].lineage = Id128(); }, "a lineage of zero");
  refuse([](Lineages& p) { p[1].sealed->update_id = Id128(); }, "without an id");
  refuse([](Lineages& p) { p[1].sealed->cohort.samples = 0; }, "a cohort that cannot be");
  refuse([](Lineages& p) { p[1].sealed->metrics.push_back(p[1].sealed->metrics[0]); }, "is there twice");
  const auto grow = [](size_t count, bool updates) {
    return [=](Lineages& p) {
      for (uint64_t n = 1; p.size() < count; ++n) p.push_back({{9, n}, {}, absl::nullopt});
      for (PartedLineage& one : p) {
        if (updates) one.sealed = LeftBehind();
      }
    };
  };
  refuse(grow(ClientState::kMostParted + 1, true), "more than 16 updates");
  refuse(grow(kMostPartedLineages + 1, false), "announces 257 lineages");
  std::vector<PartedLineage> most = SomeParted();
  grow(kMostPartedLineages, false)(most);
  EXPECT_OK(ParseParted(SerializeParted(most)).status());
}

TEST(PartedFormat, AbsurdNumbersTakeNoMemory) {
  const std::string whole = Golden("parted.bin");
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string other = whole;
    return ParseParted(other.replace(at, bytes.size(), bytes)).status();
  };
  const size_t update = 12 + 36 + 36, sizes = update + 60;
  EXPECT_CODE(with(4, "\x02"), kDataLoss, "format 2");
  EXPECT_CODE(with(8, std::string(4, '\0')), kDataLoss, "announces 0 lineages");
  EXPECT_CODE(with(8, std::string(4, '\xff')), kDataLoss, "announces 4294967295 lineages");
  EXPECT_CODE(with(update - 4, "\x02"), kDataLoss, "flags 2");
  EXPECT_CODE(with(sizes, std::string(4, '\xff')), kDataLoss, "ends within a lineage");
  EXPECT_CODE(with(sizes + 4, std::string(8, '\xff')), kDataLoss, "ends within a lineage");
}

TEST(MetricBytes, AreReadAsTheyWereWritten) {
  const std::string bytes = SerializeMetrics(SomeMetrics());
  ASSERT_OK(ParseMetrics(bytes).status());
  EXPECT_EQ(*ParseMetrics(bytes), SomeMetrics());
  EXPECT_EQ(SerializeMetrics({}), "");
  EXPECT_TRUE(ParseMetrics("")->empty());
  std::vector<NamedMetric> most;
  for (int i = 0; i < 64; ++i) {
    most.push_back(
        {MetricKind::kTraining, std::string(62, 'a') + absl::StrCat(i / 10, i % 10), 1e300, kMostMetricSamples});
  }
  EXPECT_EQ(SerializeMetrics(most).size(), kMostMetricsBytes);
  EXPECT_EQ(*ParseMetrics(SerializeMetrics(most)), most);
}

TEST(MetricBytes, DamagedOnesAreRefused) {
  const std::string whole = SerializeMetrics(SomeMetrics());
  const size_t first = 2 + 4 + 8 + 2;
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(ParseMetrics(whole.substr(0, size)).ok(), size == first) << size;
  }
  EXPECT_CODE(ParseMetrics(whole + whole).status(), kDataLoss, "'norm' is there twice");
  std::string other = whole;
  other[0] = 7;
  EXPECT_CODE(ParseMetrics(other).status(), kDataLoss, "unknown kind 7");
  other = whole;
  other.back() = static_cast<char>(0x80 | other.back());
  EXPECT_CODE(ParseMetrics(other + '\0').status(), kDataLoss, "in another form");
}

TEST(CheckpointFormat, MatchesGoldenBytesBothWays) {
  const Checkpoint checkpoint{12, HashWeights(FormatWeights()), FormatWeights()};
  EXPECT_EQ(SerializeCheckpoint(checkpoint), Golden("checkpoint.bin"));
  const auto parsed = ParseCheckpoint(Golden("checkpoint.bin"));
  ASSERT_OK(parsed.status());
  EXPECT_EQ(parsed->version, 12);
  EXPECT_EQ(parsed->model_hash, checkpoint.model_hash);
  EXPECT_EQ(parsed->weights, FormatWeights());
  EXPECT_EQ(SerializeWeights(kCachedModelMagic, 12, Counting(0), FormatWeights()), Golden("cached_model.bin"));
}

TEST(CheckpointFormat, TruncationAndEveryFlipIsRefused) {
  const std::string whole = Golden("checkpoint.bin");
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(ParseCheckpoint(whole.substr(0, size)).ok()) << size;
  EXPECT_FALSE(ParseCheckpoint(whole + "1234").ok());
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    std::string flipped = whole;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << i % 8));
    EXPECT_EQ(ParseCheckpoint(flipped).status().code(), absl::StatusCode::kDataLoss) << i;
  }
  EXPECT_FALSE(ParseCheckpoint(Golden("cached_model.bin")).ok());
}

TEST(CheckpointFormat, AnAbsurdCountAllocatesNothing) {
  std::string bytes = Golden("checkpoint.bin");
  bytes.replace(32, 8, std::string("\xff\xff\xff\xff\xff\xff\xff\x3f", 8));
  EXPECT_CODE(ParseCheckpoint(bytes).status(), kDataLoss, "announces 4611686018427387903 weights");
}

TEST(CheckpointFormat, TheModelHashIsChecked) {
  EXPECT_CODE(ParseCheckpoint(SerializeCheckpoint({1, Id128{1, 1}, FormatWeights()})).status(), kDataLoss,
              "model hash");
  EXPECT_CODE(ParseCheckpoint(SerializeCheckpoint({-1, HashWeights(FormatWeights()), FormatWeights()})).status(),
              kDataLoss, "-1");
}

TEST(BytesOfClients, AreThoseOfTheDocument) {
  ClientSums sums;
  sums[1] = {1, 300, 7, 0, 0, 0};
  sums[3] = {0, 0, 0, 128, 2, 3};
  const std::string bytes = SerializeSums(sums);
  EXPECT_EQ(absl::BytesToHexString(bytes), "0101ac02070000000100000080010203");
  const ClientSums parsed = *ParseSums(bytes);
  EXPECT_EQ(parsed.size(), 2u);
  EXPECT_EQ(parsed.at(1).payload_up, 300);
  EXPECT_EQ(parsed.at(3).dense_down, 128);
  EXPECT_EQ(SerializeSums(parsed), bytes);
  EXPECT_TRUE(ParseSums("")->empty());
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == 8) continue;  // the first client alone
    EXPECT_CODE(ParseSums(bytes.substr(0, size)).status(), kDataLoss, "cut off");
  }
  ClientSums large;
  large[0].wire_down = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ParseSums(SerializeSums(large))->at(0).wire_down, std::numeric_limits<int64_t>::max());
  EXPECT_CODE(ParseSums(std::string(9, '\xff') + std::string(7, '\0')).status(), kDataLoss, "too large");
  std::string far;
  PutVarint(&far, uint64_t{1} << 32);
  EXPECT_CODE(ParseSums(far + std::string(6, '\0')).status(), kDataLoss, "too large");
}

}  // namespace
}  // namespace terse
