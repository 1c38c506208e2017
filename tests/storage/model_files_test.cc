// Files of weights, read back as their formats' own descriptions say.
#include "storage/model_files.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/storage/storage_testing.h"

namespace terse {
namespace {

Layout SomeLayout() { return Layout::Create({{"ip1.weight", {3, 5}}, {"ip1.bias", {3}}, {"scale", {}}}).value(); }

std::vector<float> SomeWeights() {
  std::vector<float> weights(SomeLayout().size());
  std::iota(weights.begin(), weights.end(), -2.5f);
  return weights;
}

template <typename T>
T Number(const std::string& bytes, size_t at) {
  T value = 0;
  EXPECT_LE(at + sizeof value, bytes.size());
  std::memcpy(&value, &bytes[at], sizeof value);
  return value;
}

TEST(ExportSafetensorsTest, HeaderAndValuesFollowTheFormat) {
  const Layout layout = SomeLayout();
  const std::vector<float> weights = SomeWeights();
  const std::string bytes = ExportSafetensors(layout, weights).value();
  const auto length = Number<uint64_t>(bytes, 0);
  EXPECT_EQ(length % 8, 0u);
  ASSERT_EQ(bytes.size(), 8 + length + 4 * weights.size());
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header.size(), layout.tensors().size());
  for (const TensorSpec& tensor : layout.tensors()) {
    const auto& entry = header.at(tensor.name);
    EXPECT_EQ(entry.at("dtype"), "F32");
    EXPECT_EQ(entry.at("shape").get<std::vector<int64_t>>(), tensor.shape);
    EXPECT_EQ(entry.at("data_offsets").get<std::vector<int64_t>>(),
              (std::vector<int64_t>{4 * tensor.offset, 4 * (tensor.offset + tensor.size)}));
  }
  EXPECT_EQ(std::memcmp(bytes.data() + 8 + length, weights.data(), 4 * weights.size()), 0);
}

TEST(ExportSafetensorsTest, RefusesBadInput) {
  const Layout quoted = Layout::Create({{"a\"b", {2}}}).value();
  EXPECT_CODE(ExportSafetensors(quoted, {1.0f, 2.0f}).status(), kInvalidArgument, "use letters");
  EXPECT_CODE(ExportSafetensors(SomeLayout(), {1.0f}).status(), kInvalidArgument, "has 19 weights, got 1");
}

std::string Safetensors(const std::string& header, const std::string& values) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + values;
}

TEST(ParseSafetensorsTest, ReadsWhatIsExported) {
  const std::string bytes = ExportSafetensors(SomeLayout(), SomeWeights()).value();
  const absl::StatusOr<NamedWeights> model = ParseSafetensors(bytes);
  ASSERT_OK(model.status());
  EXPECT_EQ(model->layout.Hash(), SomeLayout().Hash());
  EXPECT_EQ(model->weights, SomeWeights());
}

TEST(ParseSafetensorsTest, TheOrderIsThatOfTheOffsetsAndBuffersAreNamed) {
  const std::string header =
      R"({"a.mean":{"dtype":"F32","shape":[],"data_offsets":[8,12]},"__metadata__":{"terse.buffers":"a.mean"},)"
      R"("z":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  const absl::StatusOr<NamedWeights> model = ParseSafetensors(Safetensors(header, std::string(12, '\0')));
  ASSERT_OK(model.status());
  ASSERT_EQ(model->layout.tensors().size(), 2u);
  EXPECT_EQ(model->layout.tensors()[0].name, "z");
  EXPECT_EQ(model->layout.tensors()[1].kind, TensorKind::kBuffer);
  EXPECT_EQ(model->layout.tensors()[1].shape, std::vector<int64_t>());
  EXPECT_EQ(ParseSafetensors(*ExportSafetensors(model->layout, model->weights))->layout.Hash(), model->layout.Hash());
}

TEST(ParseSafetensorsTest, RefusesWhatIsNoSuchFile) {
  const auto refuses = [](const std::string& header, const std::string& values, const std::string& why) {
    EXPECT_CODE(ParseSafetensors(Safetensors(header, values)).status(), kInvalidArgument, why);
  };
  const auto tensor = [](const std::string& members) { return "{\"a\":{" + members + "}}"; };
  const std::string four(4, '\0');
  EXPECT_CODE(ParseSafetensors("short").status(), kInvalidArgument, "shorter than the length of a header");
  EXPECT_CODE(ParseSafetensors(std::string(8, '\xff')).status(), kInvalidArgument,
              "header would have 18446744073709551615");
  refuses("[]", "", "header is no JSON object");
  refuses("{}", "", "no safetensors file of float32 tensors");
  refuses(tensor(R"("dtype":"F64","shape":[1],"data_offsets":[0,8])"), four + four, "'a' is not of type F32");
  refuses(tensor(R"("dtype":"F32","shape":[1])"), four, "'a' has no shape or offsets");
  refuses(tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), four, "'a' has no shape or offsets");
  refuses(tensor(R"("dtype":"F32","shape":[0],"data_offsets":[0,0])"), "", "'a' has a shape that no model has");
  refuses(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), four,
          "a shape that no model");
  refuses(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), four, "'a' has other bytes than its shape");
  refuses(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), four + four, "a gap before tensor 'a'");
  refuses(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), four + four, "have 4 bytes, and 8 are there");
  refuses(R"({"a b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four, "other characters than letters");
  refuses(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"__metadata__":{"terse.buffers":1}})", four,
          "'terse.buffers' is no string");
}

TEST(ExportVocabularyTest, ASymbolALineInTheOrderOfItsNumber) {
  const std::vector<std::string> symbols = {"e", "\n", "\"", "\xc3\xa9", "<unk>"};
  const std::string bytes = ExportVocabulary(symbols);
  EXPECT_EQ(nlohmann::json::parse(bytes).get<std::vector<std::string>>(), symbols);
  EXPECT_EQ(bytes, "[\n\"e\",\n\"\\n\",\n\"\\\"\",\n\"\xc3\xa9\",\n\"<unk>\"\n]\n");
  EXPECT_EQ(nlohmann::json::parse(ExportVocabulary({"\xff"})).at(0), "\xef\xbf\xbd");
}

// tests/e2e opens such a file with NumPy; here are the offsets that it does not look at.
TEST(ExportNpzTest, TheDirectoryLeadsToEveryArray) {
  const Layout layout = SomeLayout();
  const std::vector<float> weights = SomeWeights();
  const std::string bytes = ExportNpz(layout, weights).value();
  ASSERT_EQ(bytes.substr(bytes.size() - 22, 4), std::string("PK\x05\x06"));
  ASSERT_EQ(Number<uint16_t>(bytes, bytes.size() - 12), layout.tensors().size());
  size_t entry = Number<uint32_t>(bytes, bytes.size() - 6);
  for (const TensorSpec& tensor : layout.tensors()) {
    const std::string name = tensor.name + ".npy";
    ASSERT_EQ(bytes.substr(entry, 4), std::string("PK\x01\x02"));
    EXPECT_EQ(bytes.substr(entry + 46, name.size()), name);
    const size_t local = Number<uint32_t>(bytes, entry + 42), size = Number<uint32_t>(bytes, entry + 24);
    const std::string array = bytes.substr(local + 30 + name.size(), size);
    EXPECT_EQ(array.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    const size_t values = 10 + Number<uint16_t>(array, 8);
    EXPECT_EQ(values % 64, 0u);
    ASSERT_EQ(array.size(), values + 4 * tensor.size);
    EXPECT_EQ(std::memcmp(&array[values], &weights[tensor.offset], 4 * tensor.size), 0);
    entry += 46 + name.size();
  }
  EXPECT_EQ(ExportNpz(layout, weights).value(), bytes) << "the same weights give the same file";
}

TEST(ExportNpzTest, ShapesAreTuples) {
  const std::string bytes = ExportNpz(SomeLayout(), SomeWeights()).value();
  for (const char* shape : {"(3, 5), }", "(3,), }", "(), }"}) EXPECT_NE(bytes.find(shape), std::string::npos) << shape;
}

TEST(ExportNpzTest, RefusesForeignWeights) {
  EXPECT_CODE(ExportNpz(SomeLayout(), {1.0f}).status(), kInvalidArgument, "has 19 weights, got 1");
}

}  // namespace
}  // namespace terse
