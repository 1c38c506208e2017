#include "learning/datasets/text.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/learning/dataset_fixture.h"
#include "tests/learning/gzip.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextTest : public DatasetFixture {
 protected:
  TextTest() : DatasetFixture("text") {
    spec_.train = "train.txt";
    spec_.test = "test.txt";
  }
};

TEST_F(TextTest, CharactersAreNumberedByFrequencyThenBytes) {
  folder_.Write("train.txt", "banana\nb");
  folder_.Write("test.txt", "nab");
  const Dataset dataset = Load().value();
  EXPECT_EQ(dataset.task, Task::kText);
  EXPECT_THAT(dataset.vocabulary, ElementsAre("a", "b", "n", "\n"));
  EXPECT_EQ(dataset.classes, 4);
  EXPECT_THAT(dataset.train_text.symbols, ElementsAre(1, 0, 2, 0, 2, 0, 3, 1));
  EXPECT_THAT(dataset.test_text.symbols, ElementsAre(2, 0, 1));
  EXPECT_EQ(dataset.train_count(), 8);
  EXPECT_EQ(dataset.test_count(), 3);
}

TEST_F(TextTest, CharactersAreCodePoints) {
  folder_.Write("train.txt", "\xc3\xa9\xe2\x82\xac\xc3\xa9\xf0\x9f\x99\x82");  // é € é and a face
  const Dataset dataset = Load().value();
  EXPECT_THAT(dataset.vocabulary, ElementsAre("\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x99\x82"));
  EXPECT_THAT(dataset.train_text.symbols, ElementsAre(0, 1, 0, 2));
}

TEST_F(TextTest, AByteOrderMarkIsNoSymbol) {
  const std::string mark = "\xef\xbb\xbf";
  folder_.Write("train.txt", mark + "ab" + mark);  // only the first says how the file is coded
  folder_.Write("test.txt", mark + "ba");
  EXPECT_THAT(Load().value().vocabulary, ElementsAre("a", "b", mark));
  EXPECT_THAT(Load().value().test_text.symbols, ElementsAre(1, 0));
  folder_.Write("test.txt", mark + "bz");
  EXPECT_THAT(Refusal(), HasSubstr("/test.txt, offset 4: 'z' is not in the training text"));
  spec_.level = "word";
  folder_.Write("train.txt", mark + "the cat\n");
  folder_.Write("test.txt", "the\n");
  EXPECT_THAT(Load().value().vocabulary, ElementsAre("<eos>", "cat", "the"));
}

TEST_F(TextTest, WordsEndLinesWithASymbol) {
  spec_.level = "word";
  folder_.Write("train.txt.gz", Gzip(" the cat \n\n\tsaw the\r\ndog"));
  folder_.Write("test.txt", "dog saw\n");
  const Dataset dataset = Load().value();
  EXPECT_THAT(dataset.vocabulary, ElementsAre("<eos>", "the", "cat", "dog", "saw"));
  EXPECT_THAT(dataset.train_text.symbols, ElementsAre(1, 2, 0, 0, 4, 1, 0, 3, 0));
  EXPECT_THAT(dataset.test_text.symbols, ElementsAre(3, 4, 0));
}

TEST_F(TextTest, ALimitMakesTheOthersOneSymbol) {
  spec_.vocabulary = 2;
  folder_.Write("train.txt", "aaabbbccd");
  folder_.Write("test.txt", "abcdz");
  const Dataset dataset = Load().value();
  EXPECT_THAT(dataset.vocabulary, ElementsAre("a", "b", "<unk>"));
  EXPECT_EQ(dataset.classes, 3);
  EXPECT_THAT(dataset.train_text.symbols, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(dataset.test_text.symbols, ElementsAre(0, 1, 2, 2, 2));
}

TEST_F(TextTest, ALimitAboveTheSymbolsStillHasTheOthers) {
  spec_.vocabulary = 1000;
  folder_.Write("train.txt", "aab");
  folder_.Write("test.txt", "z");
  EXPECT_THAT(Load().value().vocabulary, ElementsAre("a", "b", "<unk>"));
  EXPECT_THAT(Load().value().test_text.symbols, ElementsAre(2));
}

TEST_F(TextTest, ATextsOwnUnknownIsUsed) {
  spec_.level = "word";
  folder_.Write("train.txt", "<unk> a a\n<unk> b\n<unk>\n");
  folder_.Write("test.txt", "c");
  EXPECT_THAT(Load().value().vocabulary, ElementsAre("<eos>", "<unk>", "a", "b"));
  EXPECT_THAT(Load().value().test_text.symbols, ElementsAre(1, 0));
  spec_.vocabulary = 3;
  EXPECT_THAT(Load().value().vocabulary, ElementsAre("<eos>", "<unk>", "a"));
  EXPECT_THAT(Load().value().train_text.symbols, ElementsAre(1, 2, 2, 0, 1, 1, 0, 1, 0));
}

TEST_F(TextTest, ASymbolOfTheTestTextAloneIsRefused) {
  folder_.Write("train.txt", "aab");
  folder_.Write("test.txt", "ab\xc3\xa9");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("/test.txt, offset 2: '\xc3\xa9' is not in the training text"),
                               HasSubstr("set data.vocabulary")));
}

TEST_F(TextTest, AFolderIsItsFilesInOrder) {
  spec_.train = "plays";
  folder_.Write("plays/hamlet.txt", "ba");
  folder_.Write("plays/coriolanus.txt.gz", Gzip("aac"));
  folder_.Write("plays/.hidden.txt", "zzzzzz");
  const Dataset dataset = Load().value();
  EXPECT_THAT(dataset.train_text.symbols, ElementsAre(0, 0, 2, 1, 0));
  EXPECT_THAT(dataset.file_starts, ElementsAre(0, 3));
}

TEST_F(TextTest, EveryMemberNeedsTheTrainingText) {
  folder_.Write("test.txt", "ab");
  const absl::Status status = Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the vocabulary comes from this text"));
}

TEST_F(TextTest, RefusesWhatIsNoText) {
  folder_.Write("train.txt", "ab\xff");
  EXPECT_THAT(Refusal(), HasSubstr("/train.txt, offset 2: the text is not UTF-8"));
  folder_.Write("train.txt", "abc\xe2\x82");
  EXPECT_THAT(Refusal(), HasSubstr("offset 3: the text is not UTF-8"));
  for (const std::string text : {"", "a"}) {
    folder_.Write("train.txt", text);
    EXPECT_THAT(Refusal(), HasSubstr(absl::StrCat("the text has ", text.size(), " symbols")));
  }
  spec_.level = "sentence";
  EXPECT_THAT(Refusal(), HasSubstr("data.level is 'sentence'; use char or word"));
  spec_.level = "char";
  spec_.vocabulary = -1;
  EXPECT_THAT(Refusal(), HasSubstr("data.vocabulary is -1"));
}

TEST(PtbTest, ReadsWordsOfTrainAndTest) {
  const TempFolder folder;
  DataSpec spec;
  spec.name = "ptb";
  folder.Write("ptb/ptb.train.txt", " no it was n't <unk> monday \n no N no \n");
  EXPECT_EQ(LoadDataset(spec, folder.path()).status().code(), absl::StatusCode::kNotFound);
  folder.Write("ptb/ptb.test.txt", " no \n");
  const Dataset dataset = LoadDataset(spec, folder.path()).value();
  EXPECT_THAT(dataset.vocabulary, ElementsAre("no", "<eos>", "<unk>", "N", "it", "monday", "n't", "was"));
  EXPECT_THAT(dataset.test_text.symbols, ElementsAre(0, 1));
}

TEST(ShakespeareTest, TheLastFiftiethIsTheTest) {
  const TempFolder folder;
  DataSpec spec;
  spec.name = "shakespeare";
  folder.Write("tinyshakespeare.txt", std::string(100, 'a') + std::string(47, 'b') + "cde");
  const Dataset dataset = LoadDataset(spec, folder.path()).value();
  EXPECT_EQ(dataset.train_count(), 147);
  EXPECT_THAT(dataset.test_text.symbols, ElementsAre(2, 3, 4));
  EXPECT_EQ(dataset.train_text.symbols.back(), 1);
}

}  // namespace
}  // namespace terse
