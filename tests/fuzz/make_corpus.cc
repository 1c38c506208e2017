// Makes the seeds of all fuzzing targets, a folder each; the folders also say which targets there are (CMakeLists.txt).
//
//   fuzz_make_corpus FOLDER           writes the seeds, and removes what is no longer one
//   fuzz_make_corpus FOLDER --check   fails unless the folder holds these seeds
//
// Files named found_* were found by fuzzing and are kept.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "compression/adaptive_decay.h"
#include "compression/aggregate.h"
#include "compression/downstream.h"
#include "compression/downstream_model.h"
#include "compression/feedback_table.h"
#include "compression/position_coder_table.h"
#include "tests/compression/positions.h"
#include "tests/fuzz/codec_cases.h"
#include "tests/fuzz/packed_cases.h"
#include "tests/fuzz/seeds.h"

namespace terse {
namespace {

namespace fs = std::filesystem;

std::string EncodeOrFail(const Codec& codec, absl::Span<const float> update, uint64_t client) {
  auto message = codec.Encode(update, {CodecKey{1, 2, client}});
  Require(message.ok(), message.status().ToString());
  return *std::move(message);
}

// A message of every case on the first layout, one of the row's first case on every other layout, and one of zeros.
void AddCodecSeeds(const std::string& name, Seeds* seeds) {
  CodecCases cases(name);
  Random random(1);
  const std::string folder = "codec_" + name + "/";
  for (size_t i = 0; i < cases.cases().size(); ++i) {
    const Codec& codec = cases.Pick(i, 0);
    const std::vector<float> update = RandomUpdate(codec.layout().size(), &random);
    (*seeds)[folder + cases.cases()[i].name] =
        Bytes({static_cast<int>(i), 0, static_cast<int>(i % 6)}) + EncodeOrFail(codec, update, 3);
  }
  for (size_t layout = 1; layout < FuzzLayouts().size(); ++layout) {
    const Codec& codec = cases.Pick(0, layout);
    const std::vector<float> update = RandomUpdate(codec.layout().size(), &random);
    (*seeds)[absl::StrCat(folder, "layout", layout)] =
        Bytes({0, static_cast<int>(layout), 2}) + EncodeOrFail(codec, update, 3);
  }
  const Codec& codec = cases.Pick(0, 0);
  (*seeds)[folder + "zeros"] = Bytes({0, 0, 3}) + EncodeOrFail(codec, std::vector<float>(codec.layout().size()), 3);
}

void AddPositionSeeds(const std::string& name, Seeds* seeds) {
  const PositionCoder& coder = **FindPositionCoder(name);
  Random random(2);
  const std::string folder = "positions_" + name + "/";
  for (const auto& [count, size] : {std::pair<int, int>{1, 1}, {1, 1000000}, {40, 50}, {40, 4000}, {200, 3000}}) {
    const Positions positions = RandomPositions(count, size, &random);
    const std::string head = Bytes({0, 3, 5, 0}) + Little(count - 1, 2) + Little(size, 4);
    (*seeds)[absl::StrCat(folder, "read_", count, "_of_", size)] = head + EncodePositions(coder, positions, size, 3);
  }
  // 64 gaps below 2^31, of all magnitudes.
  std::string gaps = Bytes({1, 1, 7, 0, 63, 0, 255, 255, 255, 127});
  for (int i = 0; i < 64; ++i) gaps += Bytes({static_cast<int>(random.Below(256)), 8 * (i % 16)});
  (*seeds)[folder + "write_64"] = gaps;
}

void AddDownstreamSeeds(Seeds* seeds) {
  CodecCases cases("");
  Random random(3);
  for (size_t i = 0; i < cases.cases().size(); i += 9) {
    const Codec& codec = cases.Pick(i, 0);
    const int64_t size = codec.layout().size();
    const std::string first = EncodeOrFail(codec, RandomUpdate(size, &random), 1);
    const std::string second = EncodeOrFail(codec, RandomUpdate(size, &random), 2);
    const std::vector<absl::string_view> messages = {first, second};
    std::vector<float> average(size);
    Require(AverageUpdates(codec, messages, /*weights=*/{}, /*threads=*/1, absl::MakeSpan(average)).ok(),
            "what was encoded has an average");
    for (const DownstreamMode mode : {DownstreamMode::kForward, DownstreamMode::kDense}) {
      (*seeds)[absl::StrCat("downstream/", cases.cases()[i].name, mode == DownstreamMode::kDense ? "_dense" : "")] =
          Bytes({static_cast<int>(i)}) + BuildDownstream(mode, messages, /*samples=*/{}, average);
    }
    (*seeds)[absl::StrCat("downstream/", cases.cases()[i].name, "_sparse")] =
        Bytes({static_cast<int>(i)}) + BuildStepDownstream(DownstreamMode::kAuto, average);
    (*seeds)[absl::StrCat("downstream/", cases.cases()[i].name, "_weighted")] =
        Bytes({static_cast<int>(i)}) + BuildDownstream(DownstreamMode::kForward, messages, {600, 1}, average);
    (*seeds)[absl::StrCat("downstream/", cases.cases()[i].name, "_shares")] =
        Bytes({static_cast<int>(i)}) + BuildDownstream(DownstreamMode::kForward, messages, {600, 1}, average, 700);
    (*seeds)[absl::StrCat("downstream/", cases.cases()[i].name, "_imputed")] =
        Bytes({static_cast<int>(i)}) +
        BuildDownstream(DownstreamMode::kForward, messages, {}, average, /*total=*/0, /*trust=*/0.75f);
    (*seeds)[absl::StrCat("downstream/", cases.cases()[i].name, "_coded")] =
        Bytes({static_cast<int>(i)}) + BuildCodedDownstream(first);
    (*seeds)[absl::StrCat("downstream/", cases.cases()[i].name, "_model")] =
        Bytes({static_cast<int>(i)}) + BuildCodedModelDownstream(first);
    (*seeds)[absl::StrCat("downstream/", cases.cases()[i].name, "_centered")] =
        Bytes({static_cast<int>(i)}) + BuildCenteredModelDownstream(first);
    (*seeds)[absl::StrCat("downstream/", cases.cases()[i].name, "_whole")] =
        Bytes({static_cast<int>(i)}) + BuildModelDownstream(average);
  }
}

void AddRoundTripSeeds(Seeds* seeds) {
  const auto cases = AllCodecCases();
  Random random(4);
  for (size_t i = 0; i < cases.size(); ++i) {
    const int number = static_cast<int>(i);
    std::string seed = Bytes({number % 256, number / 256, number % 4, 9, 1, 4 * (number % 8)});
    for (int j = 0; j < 24; ++j) seed.push_back(static_cast<char>(random.Below(j % 3 == 0 ? 16 : 256)));
    (*seeds)["round_trip/" + cases[i].name] = seed;
  }
  (*seeds)["round_trip/rates"] = Bytes({0, 0, 2, 1, 3, 4, 0x3f, 0x81, 0x23, 0x45, 0xbe, 0x11, 0x22});
  (*seeds)["round_trip/not_finite"] = Bytes({0, 0, 0, 1, 0, 4, 0x3f, 0x81, 0x23, 0x45, 13, 0x3e, 1, 2, 3});
  const int buffers = static_cast<int>(FuzzLayouts().size()) - 1;
  (*seeds)["round_trip/buffers"] = Bytes({0, 0, buffers, 1, 3, 4, 0x3f, 0x81, 0x23, 0x45, 0xbe, 0x11, 0x22});
  (*seeds)["round_trip/buffers_sum"] = Bytes({4, 0, buffers, 1, 1, 7, 0x3f, 0x81, 0x23, 0x45, 0xbe, 0x11, 0x22});
}

// Adds what a feedback that observes stores, before the first delta and after it.
void AddObservationSeeds(const Codec& codec, Seeds* seeds) {
  const std::vector<std::string> names = FeedbackNames();
  const int row = static_cast<int>(std::find(names.begin(), names.end(), "adaptive_decay") - names.begin());
  AdaptiveDecay feedback(&codec);
  const auto add = [&](const std::string& name) {
    (*seeds)["feedback/observations_" + name] = absl::StrCat(Bytes({0, row, 32 + 8, 0, 0}), feedback.Observations());
  };
  add("none");
  std::vector<float> delta(codec.layout().size(), 0.5f);
  delta[0] = -3;
  feedback.Observe(std::vector<float>(delta.size(), 0.25f), delta);
  Require(feedback.Compress(&delta, {1, 2, 3}).ok(), "a delta is compressed");
  add("one");
}

void AddFeedbackSeeds(Seeds* seeds) {
  CodecCases cases("");
  Random random(5);
  const std::string pattern = Bytes({0x3f, 0x81, 0x23, 0x45, 0xbe, 0x11, 0x22, 0x33, 0});
  const size_t feedbacks = FeedbackNames().size();
  for (size_t i = 0; i < cases.cases().size(); i += 5) {
    const Codec& codec = cases.Pick(i, 0);
    const std::string message = EncodeOrFail(codec, RandomUpdate(codec.layout().size(), &random), 1);
    const int flags = i % 2 == 0 ? 8 + 2 : 8 + 4;
    (*seeds)["feedback/" + cases.cases()[i].name] = absl::StrCat(
        Bytes({static_cast<int>(i), static_cast<int>(i % feedbacks), flags, static_cast<int>(pattern.size()), 0}),
        pattern, message);
  }
  const Codec& codec = cases.Pick(0, FuzzLayouts().size() - 1);
  const std::string message = EncodeOrFail(codec, RandomUpdate(codec.layout().size(), &random), 1);
  for (int i = 0; i < static_cast<int>(feedbacks); ++i) {
    (*seeds)["feedback/buffers_" + FeedbackNames()[i]] =
        absl::StrCat(Bytes({0, i, 16 + 8 + 4, static_cast<int>(pattern.size()), 0}), pattern, message);
  }
  AddObservationSeeds(cases.Pick(0, 0), seeds);
}

std::string Repeated(const std::string& bytes, size_t size) {
  std::string repeated;
  while (repeated.size() < size) repeated += bytes;
  return repeated.substr(0, size);
}

// Packed messages of every kind of value, with and without what makes them packed by more than Rice's code: a history,
// and elements that are large in all messages.
void AddPackedSeeds(Seeds* seeds) {
  PackedCases cases;
  std::string numbers;
  for (int i = 0; i < 7; ++i) numbers += Bytes({i == 0 ? 0x41 : 0x3d, 0x80 + 9 * i, 0x23 + i, 0x45});
  for (size_t i = 0; i <= cases.cases().size(); i += 3) {
    const std::string name = i < cases.cases().size() ? cases.cases()[i].name : "choice";
    const int number = static_cast<int>(i), layout = number / 3 % static_cast<int>(PackedLayouts().size());
    const bool slow = layout >= static_cast<int>(kQuickLayouts);
    const int count = number % (slow ? 2 : 5), step = 7 * (number % 2);
    const std::string pattern = slow ? Repeated(numbers, kShortPacked) : numbers;
    const int length = static_cast<int>(pattern.size());
    const std::string head = Bytes({number, layout}), tail = Bytes({count, step, length}) + pattern;
    const Codec& codec = *cases.Pick(i, layout).codec;
    PackedMessages messages(codec, pattern, step, /*signs=*/false);
    const UpdateHistory history = messages.History(count);
    const auto packed = codec.Pack(messages.Next(), history);
    Require(packed.ok(), packed.status().ToString());
    // A large one may not fit into an input; there is its form as changes.
    if (packed->size() < 900)
      (*seeds)[absl::StrCat("packed/", name)] = absl::StrCat(head, Bytes({2, 5}), tail, *packed);
    (*seeds)[absl::StrCat("packed/", name, "_changed")] =
        absl::StrCat(head, Bytes({5, 16}), tail, Bytes({9, 0, 2, 5, 1, 7}));
    (*seeds)[absl::StrCat("history/", name)] = absl::StrCat(head, Bytes({number % 2}), tail);
  }
  // Counters, blocks, cells and elements that no message leaves so; and one byte.
  const std::string tail = Bytes({3, 5, static_cast<int>(numbers.size())}) + numbers, head = Bytes({0, 0, 1}) + tail;
  (*seeds)["history/changed"] = head + Bytes({16, 0, 2, 25, 0, 1, 46, 2, 7, 80, 5, 9, 0, 13, 3});
  const std::string row = Bytes({0, 1, 0}) + tail;
  const int64_t row_size = UpdateHistory(PackedLayouts()[1]).tensors()[0].StateBytes();
  (*seeds)["history/longer"] = row + Little(static_cast<uint64_t>(row_size), 2) + Bytes({9});
  (*seeds)["history/shorter"] = row + Little(static_cast<uint64_t>(row_size - 1), 2) + Bytes({0});
  (*seeds)["history/one_byte"] = Bytes({0, 0, 2, 0, 0, 0, 0, 0, 9});
}

Seeds AllSeeds() {
  Seeds seeds;
  for (const std::string& name : CodecNames()) AddCodecSeeds(name, &seeds);
  for (const std::string& name : PositionCoderNames()) AddPositionSeeds(name, &seeds);
  AddDownstreamSeeds(&seeds);
  AddRoundTripSeeds(&seeds);
  AddFeedbackSeeds(&seeds);
  AddPackedSeeds(&seeds);
  AddEdgeSeeds(&seeds);
  return seeds;
}

// The files of all folders of `root` but those that fuzzing found.
Seeds ReadSeeds(const fs::path& root) {
  Seeds seeds;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.rfind("found_", 0) == 0) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    seeds[entry.path().lexically_relative(root).generic_string()] =
        std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

int Check(const fs::path& root, const Seeds& wanted) {
  const Seeds present = ReadSeeds(root);
  std::vector<std::string> wrong;
  for (const auto& [name, bytes] : wanted) {
    const auto found = present.find(name);
    if (found == present.end()) wrong.push_back(name + " is missing");
    if (found != present.end() && found->second != bytes) wrong.push_back(name + " differs");
  }
  for (const auto& [name, bytes] : present) {
    if (wanted.count(name) == 0) wrong.push_back(name + " is no seed");
  }
  if (wrong.empty()) return 0;
  for (const std::string& line : wrong) std::fprintf(stderr, "%s\n", line.c_str());
  std::fprintf(stderr, "the seeds in %s are not those of the present formats; make them again: fuzz_make_corpus %s\n",
               root.c_str(), root.c_str());
  return 1;
}

int Write(const fs::path& root, const Seeds& wanted) {
  std::error_code error;
  for (const auto& [name, bytes] : ReadSeeds(root)) {
    if (wanted.count(name) == 0) fs::remove(root / name, error);
  }
  for (const auto& [name, bytes] : wanted) {
    fs::create_directories((root / name).parent_path(), error);
    std::ofstream file(root / name, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (file.flush()) continue;
    std::fprintf(stderr, "cannot write %s; is the folder writable?\n", (root / name).c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace terse

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::strcmp(argv[2], "--check") == 0;
  if (argc != 2 && !check) {
    std::fprintf(stderr, "usage: fuzz_make_corpus FOLDER [--check]\n");
    return 2;
  }
  const terse::Seeds seeds = terse::AllSeeds();
  return check ? terse::Check(argv[1], seeds) : terse::Write(argv[1], seeds);
}
