// The bytes of tests/golden/compression.txt, which a Python encoder made from compression/FORMAT.md, and the examples
// in that document.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compression/aggregate.h"
#include "compression/bit_stream.h"
#include "compression/bundle.h"
#include "compression/choice_codec.h"
#include "compression/downstream.h"
#include "compression/downstream_model.h"
#include "compression/update_history.h"
#include "tests/compression/golden_files.h"
#include "tests/compression/updates.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// The key of every stochastic message in the file.
constexpr CodecKey kKey = {20180522, 3, 1};

struct Case {
  std::string name;
  std::vector<CodecSpec> choices;  // of the run; usually one
  int64_t choice = 0;
  std::unique_ptr<const Codec> codec;
  std::vector<float> update;
  std::vector<std::string> decoded;  // hexadecimal bits
  std::vector<std::string> messages;
  std::vector<int64_t> samples;
  int64_t total = 0;
  float trust = 0;
  std::vector<CohortFacts> cohorts;
  std::string bundle;
  std::string forward;
  std::string average;
  std::string step;
  std::string coded;
  std::vector<float> snapshot;
  std::vector<std::pair<std::string, std::vector<std::string>>> models;  // a message, and the bits of what is then held
};

std::vector<float> ReadFloats(const std::vector<std::string>& digits) {
  std::vector<float> values;
  for (const std::string& one : digits) {
    values.push_back(FloatFromBits(static_cast<uint32_t>(std::stoul(one, nullptr, 16))));
  }
  return values;
}

std::vector<std::string> BitsOf(absl::Span<const float> values) {
  std::vector<std::string> bits;
  for (const float value : values) bits.push_back(absl::StrCat(absl::Hex(FloatBits(value), absl::kZeroPad8)));
  return bits;
}

void ReadLine(absl::string_view key, const std::vector<std::string>& fields, Case* into) {
  if (key == "codec") {
    into->choices.emplace_back();
    for (const std::string& setting : fields) ReadSetting(setting, &into->choices.back());
  } else if (key == "choices") {
    into->choice = std::stoll(fields[0]);
  } else if (key == "layout") {
    // "6 3 buffers 2": two parameters and a buffer.
    const auto word = std::find(fields.begin(), fields.end(), "buffers");
    std::vector<int64_t> sizes;
    for (const std::string& field : fields) {
      if (field != "buffers") sizes.push_back(std::stoll(field));
    }
    const size_t buffers = word == fields.end() ? 0 : static_cast<size_t>(fields.end() - word) - 1;
    into->codec = *ChoiceCodec::Create(into->choices, MakeLayout(sizes, buffers));
  } else if (key == "update") {
    into->update = ReadFloats(fields);
  } else if (key == "decoded") {
    into->decoded = fields;
  } else if (key == "message") {
    into->messages.push_back(absl::HexStringToBytes(fields[0]));
  } else if (key == "samples") {
    for (const std::string& number : fields) into->samples.push_back(std::stoll(number));
  } else if (key == "total") {
    into->total = std::stoll(fields[0]);
  } else if (key == "trust") {
    into->trust = ReadFloats(fields)[0];
  } else if (key == "cohorts") {
    for (size_t i = 0; i + 1 < fields.size(); i += 2) {
      into->cohorts.push_back({std::stoll(fields[i]), std::stoll(fields[i + 1])});
    }
  } else if (key == "bundle") {
    into->bundle = absl::HexStringToBytes(fields[0]);
  } else if (key == "forward") {
    into->forward = absl::HexStringToBytes(fields[0]);
  } else if (key == "step") {
    into->step = absl::HexStringToBytes(fields[0]);
  } else if (key == "average") {
    into->average = absl::HexStringToBytes(fields[0]);
  } else if (key == "snapshot") {
    into->snapshot = ReadFloats(fields);
  } else if (key == "model") {
    into->models.emplace_back(absl::HexStringToBytes(fields[0]),
                              std::vector<std::string>(fields.begin() + 1, fields.end()));
  } else if (key == "coded") {
    into->coded = absl::HexStringToBytes(fields[0]);
  } else {
    ADD_FAILURE() << "unknown line " << key;
  }
}

std::vector<Case> ReadCases() {
  std::vector<Case> cases;
  for (absl::string_view line :
       absl::StrSplit(ReadAll(InSource("tests/golden/compression.txt")), '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    std::vector<std::string> fields = absl::StrSplit(line, ' ');
    const std::string key = fields[0];
    fields.erase(fields.begin());
    if (key == "case") {
      cases.emplace_back();
      cases.back().name = fields[0];
    } else {
      ReadLine(key, fields, &cases.back());
    }
  }
  return cases;
}

// The bits of what a message decodes to, also of a negative zero, which an addition would lose.
std::vector<std::string> DecodedBits(const Codec& codec, const std::string& message) {
  std::vector<std::string> decoded(codec.layout().size(), "00000000");
  auto cursor = *codec.Open(message);
  DecodedRun run;
  do {
    EXPECT_EQ(cursor->Next(codec.layout().size(), &run), absl::OkStatus());
    for (int64_t i = 0; i < run.count; ++i) {
      const int64_t at = run.PositionOf(i);
      decoded[at] = absl::StrCat(absl::Hex(FloatBits(run.values[i]), absl::kZeroPad8));
    }
  } while (run.count > 0);
  return decoded;
}

TEST(Golden, UpdatesBecomeTheirMessages) {
  int checked = 0;
  for (const Case& golden : ReadCases()) {
    if (golden.update.empty()) continue;
    EncodeOptions options;
    options.key = kKey;
    options.choice = golden.choice;
    const auto message = golden.codec->Encode(golden.update, options);
    ASSERT_TRUE(message.ok()) << golden.name << ": " << message.status();
    EXPECT_EQ(absl::BytesToHexString(*message), absl::BytesToHexString(golden.messages[0])) << golden.name;
    EXPECT_EQ(DecodedBits(*golden.codec, golden.messages[0]), golden.decoded) << golden.name;
    ++checked;
  }
  EXPECT_GT(checked, 250);
}

TEST(Golden, DownstreamMessagesAreTheirBytes) {
  int checked = 0, sparse = 0, imputed = 0;
  for (const Case& golden : ReadCases()) {
    if (golden.forward.empty()) continue;
    SCOPED_TRACE(golden.name);
    const std::vector<absl::string_view> views(golden.messages.begin(), golden.messages.end());
    std::vector<float> average(golden.codec->layout().size());
    ASSERT_TRUE(ImputeUpdates(*golden.codec, views, AveragingWeights(golden.samples, golden.total), golden.trust, 1,
                              absl::MakeSpan(average))
                    .ok());
    const auto build = [&](DownstreamMode mode) {
      return BuildDownstream(mode, views, golden.samples, average, golden.total, golden.trust);
    };
    EXPECT_EQ(build(DownstreamMode::kForward), golden.forward);
    EXPECT_EQ(build(DownstreamMode::kDense), golden.average);
    EXPECT_EQ(BuildDenseDownstream(average), golden.average);
    EXPECT_EQ(absl::BytesToHexString(BuildStepDownstream(DownstreamMode::kAuto, average)),
              absl::BytesToHexString(golden.step));
    sparse += static_cast<int>(golden.step[0] == '\x89');
    EXPECT_EQ(BuildCodedDownstream(golden.messages[0]), golden.coded);
    const auto forwarded = ParseForwarded(golden.forward);
    ASSERT_TRUE(forwarded.ok()) << forwarded.status();
    EXPECT_EQ(forwarded->updates, views);
    EXPECT_EQ(forwarded->samples, golden.samples);
    EXPECT_EQ(forwarded->total, golden.total);
    EXPECT_EQ(forwarded->trust, golden.trust);
    ++checked;
    imputed += static_cast<int>(golden.trust > 0);
  }
  EXPECT_EQ(checked, 15);
  EXPECT_EQ(sparse, 15);
  EXPECT_EQ(imputed, 4);
}

TEST(Golden, BundlesAreTheirBytes) {
  int checked = 0;
  for (const Case& golden : ReadCases()) {
    if (golden.bundle.empty()) continue;
    SCOPED_TRACE(golden.name);
    std::vector<BundledUpdate> updates;
    for (size_t i = 0; i < golden.messages.size(); ++i) updates.push_back({golden.messages[i], golden.cohorts[i]});
    EXPECT_EQ(absl::BytesToHexString(BuildBundle(updates).value()), absl::BytesToHexString(golden.bundle));
    const auto parsed = ParseBundle(golden.bundle);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_EQ(parsed->size(), updates.size());
    for (size_t i = 0; i < updates.size(); ++i) {
      EXPECT_EQ((*parsed)[i].message, updates[i].message);
      EXPECT_EQ((*parsed)[i].cohort.clients, updates[i].cohort.clients);
      EXPECT_EQ((*parsed)[i].cohort.samples, updates[i].cohort.samples);
    }
    ++checked;
  }
  EXPECT_EQ(checked, 15);
}

TEST(Golden, ModelsAreTheirBytes) {
  int checked = 0;
  for (const Case& golden : ReadCases()) {
    for (const auto& [message, bits] : golden.models) {
      SCOPED_TRACE(golden.name);
      std::vector<float> weights(golden.snapshot.size()), scratch;
      ASSERT_EQ(
          ApplyModel({*golden.codec, golden.codec.get()}, message, golden.snapshot, &scratch, absl::MakeSpan(weights)),
          absl::OkStatus());
      EXPECT_EQ(BitsOf(weights), bits);
      const std::string again[] = {BuildModelDownstream(weights), BuildCodedModelDownstream(golden.messages[0]),
                                   BuildCenteredModelDownstream(golden.messages[0]), BuildSnapshotDownstream()};
      EXPECT_EQ(message, again[checked++ % 4]);
    }
  }
  EXPECT_EQ(checked, 12);
}

// "02 02 00", as the document writes bytes.
std::string Spaced(absl::string_view bytes) {
  return absl::StrJoin(bytes, " ", [](std::string* out, char byte) {
    out->append(absl::BytesToHexString(absl::string_view(&byte, 1)));
  });
}

TEST(Golden, TheDocumentShowsTheBytesOfItsExample) {
  const std::string document = ReadAll(InSource("compression/FORMAT.md"));
  const auto codec = NewCodec("sbc", 0.3, "fp32", MakeLayout({6, 3}));
  const std::string message = *codec->Encode({0.5, -4, 3, 0, 2.5, 1, 0, 0, 0});
  const std::vector<absl::string_view> views = {message, message};
  std::vector<float> average(9);
  ASSERT_TRUE(AverageUpdates(*codec, views, {}, 1, absl::MakeSpan(average)).ok());
  const auto with_buffers = NewCodec("sbc", 0.3, "fp32", MakeLayout({6, 3, 2}, /*buffers=*/1));
  const std::string buffers = *with_buffers->Encode({0.5, -4, 3, 0, 2.5, 1, 0, 0, 0, 0.125, -2});
  // The message is packed with a history of no messages.
  const std::string packed = *with_buffers->Pack(buffers, UpdateHistory(*with_buffers->PackedLayout()));
  for (const std::string& bytes :
       {message, buffers, packed, BuildDownstream(DownstreamMode::kForward, views, {}, average),
        BuildDownstream(DownstreamMode::kForward, views, {600, 200}, average),
        BuildDownstream(DownstreamMode::kForward, views, {600, 200}, average, 1000),
        BuildDownstream(DownstreamMode::kForward, views, {}, average, /*total=*/0, /*trust=*/0.5f),
        BuildDownstream(DownstreamMode::kDense, views, {}, average), BuildCodedDownstream(message),
        BuildStepDownstream(DownstreamMode::kAuto, average),
        *BuildBundle({{message, {1, 600}}, {message, {3, 200}}})}) {
    EXPECT_THAT(document, HasSubstr(absl::StrCat("\n    ", Spaced(bytes), "\n")));
  }
}

TEST(Golden, TheDocumentShowsTheBytesOfSparseLoCo) {
  CodecSpec spec = SparseSpec("sparseloco", 0.5);
  spec.bits = 2;
  spec.bucket = 4;
  const std::string message = *(*MakeCodec(spec, MakeLayout({8})))->Encode({1, -2, 0.5, 8, 0, 3, 0.25, -1});
  EXPECT_THAT(ReadAll(InSource("compression/FORMAT.md")), HasSubstr(absl::StrCat("\n    ", Spaced(message), "\n")));
}

TEST(Golden, TheDocumentShowsTheBytesOfAModel) {
  const std::string document = ReadAll(InSource("compression/FORMAT.md"));
  CodecSpec spec;
  spec.name = "low_precision";
  spec.bits = 4;
  const std::vector<float> model = {1, -7, 0, 3};
  const std::string message = *(*MakeCodec(spec, MakeLayout({4})))->Encode(model);
  for (const std::string& bytes : {BuildModelDownstream(model), BuildCodedModelDownstream(message),
                                   BuildCenteredModelDownstream(message), BuildSnapshotDownstream()}) {
    EXPECT_THAT(document, HasSubstr(absl::StrCat("\n    ", Spaced(bytes), "\n")));
  }
}

}  // namespace
}  // namespace terse
