#include "learning/datasets/numpy.h"

#include <zlib.h>

#include <cstdlib>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "learning/datasets/npy.h"
#include "learning/datasets/zip.h"
#include "tests/learning/contents.h"
#include "tests/learning/dataset_fixture.h"
#include "tests/learning/gzip.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename T>
std::string Raw(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

std::string Npy(const std::string& type, const std::string& shape, const std::string& values) {
  const std::string header = absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", shape, ", }\n");
  return absl::StrCat(std::string("\x93NUMPY\1\0", 8), Raw<uint16_t>({static_cast<uint16_t>(header.size())}), header,
                      values);
}

absl::StatusOr<Column> Read(const std::string& bytes) { return ReadNpy(FileBytes("a.npy", bytes, nullptr)); }

std::string Refused(const std::string& bytes) {
  const absl::Status status = Read(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(NpyTest, ReadsTheTypesAndShapes) {
  EXPECT_EQ(Contents(Read(Npy("|u1", "(3,)", "abc")).value()), "abc");
  const Column doubles = Read(Npy("<f8", "(1, 2)", Raw<double>({0.5, -3}))).value();
  EXPECT_EQ(doubles.element(), Element::kFloat);
  EXPECT_THAT(Floats(doubles), ElementsAre(0.5f, -3));
  EXPECT_EQ(doubles.shape(), std::vector<int64_t>{2});
  EXPECT_THAT(Numbers(Read(Npy("<i8", "(2,)", Raw<int64_t>({-1, 7}))).value()), ElementsAre(-1, 7));
  EXPECT_THAT(Numbers(Read(Npy("<i4", "(2,1)", Raw<int32_t>({-1, 7}))).value()), ElementsAre(-1, 7));
  const Column bools = Read(Npy("|b1", "(2,)", std::string("\1\0", 2))).value();
  EXPECT_EQ(bools.element(), Element::kInt32);
  EXPECT_THAT(Numbers(bools), ElementsAre(1, 0));
}

TEST(NpyTest, UnalignedValuesAreCopied) {
  const std::string bytes = Npy("<f4", "(2,)", Raw<float>({1, 2}));
  for (size_t shift = 0; shift < 4; ++shift) {
    const std::string moved = std::string(shift, 'x') + bytes;
    const Column column = ReadNpy(FileBytes("a", absl::string_view(moved).substr(shift), nullptr)).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(column.data()) % 4, 0u);
    EXPECT_THAT(Floats(column), ElementsAre(1, 2));
  }
}

TEST(NpyTest, RefusesEveryTruncation) {
  const std::string whole = Npy("<f4", "(2,)", Raw<float>({1, 2}));
  for (size_t length = 0; length < whole.size(); ++length) Refused(whole.substr(0, length));
  EXPECT_THAT(Refused(whole + "x"), HasSubstr("the shape promises 2 values and 9 bytes are left"));
}

TEST(NpyTest, NamesOffsetAndReason) {
  EXPECT_THAT(Refused("PK"), HasSubstr("a.npy, offset 0: the file ends"));
  EXPECT_THAT(Refused("not an array"), HasSubstr("offset 0: the file does not begin"));
  std::string version = Npy("<f4", "(1,)", "abcd");
  version[6] = 4;
  EXPECT_THAT(Refused(version), HasSubstr("offset 6: version 4.0"));
  EXPECT_THAT(Refused(Npy("", "(1,)", "abcd")), HasSubstr("offset 10: the header names no type"));
  EXPECT_THAT(Refused(Npy("<f4", "(-1,)", "abcd")), HasSubstr("the shape has '-1'"));
  EXPECT_THAT(Refused(Npy("<f4", "(1,,)", "abcd")), HasSubstr("the shape has ''"));
  EXPECT_THAT(Refused(Npy("<f4", "3", "abcd")), HasSubstr("the shape is no tuple"));
  EXPECT_THAT(Refused(Npy("<f4", "(3037000500, 3037000500)", "abcd")), HasSubstr("promises more than the 1 values"));
  EXPECT_THAT(Refused(Npy("<f4", "(9223372036854775807, 2)", "abcd")), HasSubstr("promises more than the 1 values"));
  std::string header = std::string("\x93NUMPY\2\0", 8) + Raw<uint32_t>({0xffffffff});
  EXPECT_THAT(Refused(header), HasSubstr("a header of 4294967295 bytes is too long"));
}

// A whole file of an array that is not read: nobody should fetch it again.
TEST(NpyTest, NamesTheCallThatBringsAnArrayIntoOneThatIsRead) {
  const std::pair<std::string, const char*> cases[] = {
      {Npy("<i2", "(2,)", "abcd"),
       "the array's dtype is int16; uint8, float32, float64, int32, int64 and bool are read; "
       "save array.astype(numpy.int32)"},
      {Npy("|i1", "(4,)", "abcd"), "dtype is int8; "},
      {Npy("<u2", "(2,)", "abcd"), "dtype is uint16; "},
      {Npy("<u4", "(1,)", "abcd"), "save array.astype(numpy.int64)"},
      {Npy("<f2", "(2,)", "abcd"), "dtype is float16; "},
      {Npy("<c8", "(1,)", "abcdefgh"), "dtype is c8; "},
      {Npy("<U12", "(1,)", "abcdefgh"), "dtype is str; "},
      {Npy("|O", "(1,)", "abcd"), "numpy.array(rows, dtype=numpy.float32)"},
      {Npy(">f4", "(1,)", "abcd"), "the values are big-endian; save array.astype('<f4')"},
      {Npy("<f4", "()", "abcd"), "the array has 0 dimensions; save one with 1 to 32"},
  };
  for (const auto& [bytes, message] : cases) {
    EXPECT_THAT(Refused(bytes), AllOf(HasSubstr("a.npy: "), HasSubstr(message), Not(HasSubstr("damaged"))));
  }
}

// A zip archive of one member.
std::string Zip(const std::string& name, const std::string& contents, bool deflate) {
  const std::string packed = deflate ? Gzip(contents, -15) : contents;
  const uint32_t crc = crc32(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size());
  const auto size = [](const std::string& bytes) { return static_cast<uint32_t>(bytes.size()); };
  const std::string common =
      absl::StrCat(Raw<uint16_t>({20, 0, static_cast<uint16_t>(deflate ? 8 : 0), 0, 0}),
                   Raw<uint32_t>({crc, size(packed), size(contents)}), Raw<uint16_t>({uint16_t(name.size()), 0}));
  const std::string local = absl::StrCat("PK\3\4", common, name, packed);
  const std::string entry =
      absl::StrCat("PK\1\2", Raw<uint16_t>({20}), common, Raw<uint16_t>({0, 0, 0}), Raw<uint32_t>({0, 0}), name);
  return absl::StrCat(local, entry, "PK\5\6", Raw<uint16_t>({0, 0, 1, 1}), Raw<uint32_t>({size(entry), size(local)}),
                      Raw<uint16_t>({0}));
}

absl::StatusOr<std::string> Unzip(const std::string& bytes) {
  TERSE_ASSIGN_OR_RETURN(const ZipArchive archive, ZipArchive::Open(FileBytes("a.zip", bytes, nullptr)));
  if (archive.Names().empty()) return absl::InvalidArgumentError("empty");
  TERSE_ASSIGN_OR_RETURN(const FileBytes file, archive.Read(archive.Names()[0]));
  return std::string(file.bytes());
}

TEST(ZipTest, ReadsStoredAndDeflatedMembers) {
  for (const bool deflate : {false, true}) {
    EXPECT_EQ(Unzip(Zip("a.txt", "some text, some text", deflate)).value(), "some text, some text");
  }
}

TEST(ZipTest, RefusesEveryTruncation) {
  for (const bool deflate : {false, true}) {
    const std::string whole = Zip("a.txt", "some text, some text", deflate);
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_EQ(Unzip(whole.substr(0, length)).status().code(), absl::StatusCode::kInvalidArgument) << length;
    }
  }
}

// Whatever is flipped, reading stays inside the archive (the sanitizers see to that) and never gives other contents.
TEST(ZipTest, AFlippedByteChangesNoContents) {
  for (const bool deflate : {false, true}) {
    const std::string whole = Zip("a.txt", "some text, some text", deflate);
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const char mask : {1, 2, 16, 127, -128, -1}) {
        std::string flipped = whole;
        flipped[i] ^= mask;
        const auto contents = Unzip(flipped);
        EXPECT_TRUE(!contents.ok() || *contents == "some text, some text") << i;
      }
    }
  }
}

TEST(ZipTest, NamesArchiveOffsetAndReason) {
  std::string whole = Zip("a.txt", "some text", false);
  whole[40] ^= 1;
  EXPECT_THAT(std::string(Unzip(whole).status().message()),
              HasSubstr("a.zip, offset 0: member a.txt cannot be read (its checksum does not match)"));
  const ZipArchive archive = ZipArchive::Open(FileBytes("a.zip", Zip("a", "b", false), nullptr)).value();
  EXPECT_EQ(archive.Read("other").status().code(), absl::StatusCode::kNotFound);
}

class NumpyTest : public DatasetFixture {
 protected:
  NumpyTest() : DatasetFixture("numpy") { spec_.train = "train"; }
};

TEST_F(NumpyTest, FoldersOfNpyFilesAreMapped) {
  folder_.Write("train/x.npy", Npy("<f4", "(3, 2)", Raw<float>({1, 2, 3, 4, 5, 6})));
  folder_.Write("train/targets.npy", Npy("<i8", "(3,1)", Raw<int64_t>({2, 0, 1})));
  const Dataset dataset = Load().value();
  EXPECT_EQ(dataset.task, Task::kClasses);
  EXPECT_EQ(dataset.classes, 3);
  EXPECT_THAT(Floats(dataset.train.features), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Numbers(dataset.train.targets), ElementsAre(2, 0, 1));
  EXPECT_TRUE(dataset.train.targets.shape().empty());
}

TEST_F(NumpyTest, FloatTargetsAreValues) {
  folder_.Write("train/x.npy", Npy("|u1", "(2,)", "ab"));
  folder_.Write("train/y.npy", Npy("<f8", "(2, 2)", Raw<double>({1, 2, 3, 4.5})));
  const Dataset dataset = Load().value();
  EXPECT_EQ(dataset.task, Task::kValues);
  EXPECT_EQ(dataset.classes, 0);
  EXPECT_THAT(Floats(dataset.train.targets), ElementsAre(1, 2, 3, 4.5));
}

TEST_F(NumpyTest, RefusesArraysThatDoNotBelongTogether) {
  const std::string x = Npy("<f4", "(2, 1)", Raw<float>({1, 2}));
  folder_.Write("train/x.npy", x);
  EXPECT_EQ(Load().status().code(), absl::StatusCode::kNotFound);
  folder_.Write("train/y.npy", Npy("<i8", "(3,)", Raw<int64_t>({2, 0, 1})));
  EXPECT_THAT(Refusal(), HasSubstr("2 examples of 1 features and 3 targets"));
  folder_.Write("train/y.npy", Npy("<i8", "(2, 2)", Raw<int64_t>({2, 0, 1, 1})));
  EXPECT_THAT(Refusal(), HasSubstr("targets of type int64 {2} are neither classes nor values"));
  folder_.Write("train/y.npy", Npy("<i8", "(2,)", Raw<int64_t>({2, -1})));
  EXPECT_THAT(Refusal(), HasSubstr("/train, example 1: label -1 is not in 0.."));
  folder_.Write("train/y.npy", Npy("<i8", "(2,)", Raw<int64_t>({2, int64_t{1} << 50})));
  EXPECT_THAT(Refusal(), HasSubstr("/train, example 1: label 1"));
  folder_.Write("train/y.npy", Npy("<i8", "(2,)", Raw<int64_t>({2, 3})));
  EXPECT_TRUE(Load().ok());
  spec_.test = "test";
  folder_.Write("test/x.npy", Npy("<f4", "(1, 2)", Raw<float>({1, 2})));
  folder_.Write("test/y.npy", Npy("<i8", "(1,)", Raw<int64_t>({5})));
  EXPECT_THAT(Refusal(), HasSubstr("the features of the training set are float {1}, those of the test set float {2}"));
  folder_.Write("test/x.npy", Npy("<f4", "(1, 1)", Raw<float>({1})));
  EXPECT_EQ(Load().value().classes, 6);
  folder_.Write("test/x.npy", Npy("|u1", "(1, 1)", "a"));
  EXPECT_THAT(Refusal(), HasSubstr("are float {1}, those of the test set byte {1}"));
  folder_.Write("test/x.npy", Npy("<f4", "(1, 1)", Raw<float>({1})));
  folder_.Write("test/y.npy", Npy("<f4", "(1,)", Raw<float>({5})));
  EXPECT_THAT(Refusal(), HasSubstr("the targets of the training set are int64"));
  spec_.train = "train/x.npy";
  EXPECT_THAT(Refusal(), HasSubstr("holds one array"));
}

// Training and test data alike: one such number makes the whole loss NaN.
TEST_F(NumpyTest, NumbersThatAreNotFiniteAreNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string x = Npy("<f4", "(2, 1, 2)", Raw<float>({1, 2, 3, 4})), y = Npy("<f4", "(2,)", Raw<float>({1, 2}));
  folder_.Write("train/x.npy", x);
  folder_.Write("train/y.npy", y);
  spec_.test = "test";
  folder_.Write("test/x.npy", Npy("<f4", "(2, 1, 2)", Raw<float>({1, 2, 3, nan})));
  folder_.Write("test/y.npy", y);
  EXPECT_THAT(Refusal(), HasSubstr("/test, example 1: feature [0, 1] is nan, which is not a finite number"));
  folder_.Write("test/x.npy", x);
  EXPECT_TRUE(Load().ok());
  folder_.Write("train/x.npy", Npy("<f8", "(2, 1, 2)", Raw<double>({1, 1e300, 3, 4})));
  EXPECT_THAT(Refusal(), HasSubstr("/train, example 0: feature [0, 1] is inf"));
  folder_.Write("train/x.npy", x);
  folder_.Write("train/y.npy", Npy("<f4", "(2, 2)", Raw<float>({1, 2, 3, -nan})));
  EXPECT_THAT(Refusal(), HasSubstr("/train, example 1: target 1 is "));
  folder_.Write("train/y.npy", Npy("<f4", "(2,)", Raw<float>({nan, 2})));
  EXPECT_THAT(Refusal(), HasSubstr("/train, example 0: target is nan"));
}

TEST_F(NumpyTest, NumbersOfAllTypesButBytesMayStandSideBySide) {
  folder_.Write("train/x.npy", Npy("<i4", "(1, 1)", Raw<int32_t>({7})));
  folder_.Write("train/y.npy", Npy("<i8", "(1,)", Raw<int64_t>({1})));
  folder_.Write("test/y.npy", Npy("|u1", "(1,)", "\1"));
  spec_.test = "test";
  folder_.Write("test/x.npy", Npy("<i8", "(1, 1)", Raw<int64_t>({7})));
  EXPECT_TRUE(Load().ok());
  folder_.Write("test/x.npy", Npy("<f4", "(1, 1)", Raw<float>({7})));
  EXPECT_TRUE(Load().ok());
  folder_.Write("test/x.npy", Npy("|u1", "(1, 1)", "a"));
  EXPECT_THAT(Refusal(), HasSubstr("are int32 {1}, those of the test set byte {1}"));
}

TEST_F(NumpyTest, ReadsWhatNumpyWrites) {
  const std::string command =
      absl::StrCat("/usr/bin/python3 ", InSource("tests/learning/save_arrays.py"), " numpy ", folder_.path());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::vector<double> firsts = {0, 6, 12, 18};
  for (const std::string type : {"u1", "f4", "f8", "i4", "i8", "b1"}) {
    for (const std::string ending : {"", "_compressed"}) {
      spec_.train = absl::StrCat(type, ending, ".npz");
      const Dataset dataset = Load().value();
      EXPECT_EQ(dataset.train.features.shape(), (std::vector<int64_t>{2, 3})) << spec_.train;
      EXPECT_EQ(Numbers(dataset.train.features), type == "b1" ? std::vector<double>({0, 1, 1, 1}) : firsts);
      EXPECT_EQ(Numbers(dataset.train.features.Reshaped({1}).Slice(5, 1))[0], type == "b1" ? 1 : 5);
      EXPECT_THAT(Numbers(dataset.train.targets), ElementsAre(0, 3, 1, 2));
    }
  }
  std::vector<float> all(24);
  std::iota(all.begin(), all.end(), 0.0f);
  for (const std::string version : {"1", "2", "3"}) {
    const auto file = FileBytes::Open(absl::StrCat(folder_.path(), "/version_", version, ".npy"));
    EXPECT_EQ(Floats(ReadNpy(*file).value()), all);
  }
  const std::pair<const char*, const char*> refused[] = {
      {"fortran", "the array is in Fortran order; save numpy.ascontiguousarray(array)"},
      {"big", "save array.astype('<f4')"},
      {"scalar", "the array has 0 dimensions"},
      {"complex", "dtype is c8"},
      {"short", "dtype is int16"},
      {"text", "dtype is str; "},
      {"object", "dtype is object"},
      {"record", "dtype has fields"}};
  for (const auto& [name, message] : refused) {
    const auto file = FileBytes::Open(absl::StrCat(folder_.path(), "/", name, ".npy"));
    EXPECT_THAT(std::string(ReadNpy(*file).status().message()),
                AllOf(HasSubstr(name), HasSubstr(message), Not(HasSubstr("damaged"))));
  }
}

}  // namespace
}  // namespace terse
