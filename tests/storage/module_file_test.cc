// The TorchScript file of a run on disk: it is what its hash says, or an error that names the file.
#include "storage/module_file.h"

#include <filesystem>

#include "tests/storage/storage_testing.h"

namespace terse {
namespace {

class ModuleFileTest : public ::testing::Test {
 protected:
  static ModelSpec SpecOf(absl::string_view bytes) {
    ModelSpec spec;
    spec.name = std::string(kTorchScriptModel);
    spec.hash = ModuleHash(bytes);
    return spec;
  }
  absl::Status Write(absl::string_view bytes) { return WriteModule(PosixFiles(), run_, kTorchScriptModel, bytes); }
  absl::StatusOr<std::string> Read(const ModelSpec& spec) { return ReadModule(PosixFiles(), run_, spec); }

  TempDirectory directory_;
  const std::string run_ = directory_.Path("run");
  const std::string path_ = run_ + "/module.pt";
};

TEST_F(ModuleFileTest, TheHashIsSha256) {
  // FIPS 180-4 and its examples.
  EXPECT_EQ(ModuleHash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ModuleHash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_TRUE(IsModuleHash(ModuleHash("abc")));
}

TEST_F(ModuleFileTest, IsReadAsItWasWrittenLast) {
  ASSERT_OK(Write("one"));
  ASSERT_OK(Write(std::string("t\0wo", 4)));
  EXPECT_EQ(*Read(SpecOf(std::string("t\0wo", 4))), std::string("t\0wo", 4));
  EXPECT_THAT(*PosixFiles().List(run_), ::testing::ElementsAre("module.pt"));
}

TEST_F(ModuleFileTest, OtherBytesAreRefusedWithFileAndRemedy) {
  EXPECT_CODE(Read(SpecOf("one")).status(), kNotFound, path_);
  EXPECT_CODE(Read(SpecOf("one")).status(), kNotFound, "tersectl run create");
  ASSERT_OK(Write("onf"));
  EXPECT_CODE(Read(SpecOf("one")).status(), kDataLoss, path_);
  EXPECT_CODE(Read(SpecOf("one")).status(), kDataLoss, ModuleHash("onf"));
  EXPECT_CODE(Read(SpecOf("one")).status(), kDataLoss, ModuleHash("one"));
}

TEST_F(ModuleFileTest, TheFileOfAnotherModelIsNotRead) {
  ASSERT_OK(Write("one"));
  EXPECT_EQ(*Read(ModelSpec{"lenet5_caffe"}), "");
}

TEST_F(ModuleFileTest, AFileThatIsTooLargeIsNotRead) {
  ASSERT_OK(Write("one"));
  std::filesystem::resize_file(path_, kMaxModuleBytes + 1);  // sparse
  EXPECT_CODE(Read(SpecOf("one")).status(), kResourceExhausted, path_);
}

TEST_F(ModuleFileTest, IsCopiedWhereThereIsOne) {
  const std::string copy = directory_.Path("copy");
  ASSERT_OK(PosixFiles().MakeDirectory(copy));
  ASSERT_OK(CopyModule(PosixFiles(), run_, copy));
  EXPECT_THAT(*PosixFiles().List(copy), ::testing::IsEmpty());
  ASSERT_OK(Write("one"));
  ASSERT_OK(CopyModule(PosixFiles(), run_, copy));
  EXPECT_EQ(*ReadModule(PosixFiles(), copy, SpecOf("one")), "one");
}

TEST_F(ModuleFileTest, OfAnExternalModelIsAnotherFile) {
  const std::string copy = directory_.Path("copy");
  ASSERT_OK(PosixFiles().MakeDirectory(copy));
  ASSERT_OK(WriteModule(PosixFiles(), run_, kExternalModel, "start"));
  EXPECT_THAT(*PosixFiles().List(run_), ::testing::ElementsAre("start.safetensors"));
  ASSERT_OK(CopyModule(PosixFiles(), run_, copy));
  ModelSpec spec = SpecOf("start");
  EXPECT_CODE(Read(spec).status(), kNotFound, path_);
  spec.name = std::string(kExternalModel);
  EXPECT_EQ(*ReadModule(PosixFiles(), copy, spec), "start");
  EXPECT_TRUE(IsModelFile("start.safetensors") && IsModelFile("module.pt") && !IsModelFile("run.sqlite"));
}

}  // namespace
}  // namespace terse
