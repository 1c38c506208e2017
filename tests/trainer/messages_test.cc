// The protocol's bodies: what is written, and what is refused.
#include "trainer/messages.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trainer/failure_codes.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

TEST(TrainerMessages, AreJsonWithTheMembersNames) {
  EXPECT_EQ(ToJson(LocalPlan{20, 140, 8, 7}), R"({"first_iteration":140,"round":8,"steps":20,"version":7})");
  EXPECT_EQ(ToJson(GoOn{true}), R"({"go_on":true})");
  EXPECT_EQ(ToJson(WireFailure{"INTERNAL", "\xff", ""}),
            "{\"code\":\"INTERNAL\",\"details\":\"\",\"message\":\"\xEF\xBF\xBD\"}");
}

TEST(TrainerMessages, ComeBackAsTheyWere) {
  Hello hello;
  hello.protocol = 1;
  hello.trainer = "mine \"2\"";
  hello.layout = {{"a", {2, 3}, "parameter"}, {"b", {4}, "buffer"}};
  hello.samples = INT64_MAX;
  hello.has_state = true;
  const absl::StatusOr<Hello> back = FromJson<Hello>(ToJson(hello));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->trainer, hello.trainer);
  EXPECT_EQ(back->samples, INT64_MAX);
  EXPECT_EQ(back->layout[1].name, "b");
  EXPECT_EQ(back->layout[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(back->has_state);
  EXPECT_FALSE(back->has_start);
}

TEST(TrainerMessages, AllSettingsOfARunComeBack) {
  RunConfig config;
  config.name = "a run";
  config.seed = UINT64_MAX;
  config.data.columns = {"x:number", "", "y:label"};
  config.train.optimizer.momentum_masking = true;
  config.train.schedule.at = {3, 1'000'000'007};
  config.train.optimizer.learning_rate = 0.1;
  config.policy.cosine = 0.25;
  config.durability = Durability::kRelaxed;
  config.downstream = DownstreamMode::kCoded;
  const absl::StatusOr<RunConfig> back = FromJson<RunConfig>(ToJson(config));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->seed, UINT64_MAX);
  EXPECT_EQ(back->data.columns, config.data.columns);
  EXPECT_TRUE(back->train.optimizer.momentum_masking);
  EXPECT_EQ(back->train.schedule.at, config.train.schedule.at);
  EXPECT_EQ(back->train.optimizer.learning_rate, 0.1);
  EXPECT_EQ(back->policy.cosine, 0.25);
  EXPECT_EQ(back->durability, Durability::kRelaxed);
  EXPECT_EQ(back->downstream, DownstreamMode::kCoded);
  EXPECT_EQ(ToJson(*back), ToJson(config));
}

TEST(TrainerMessages, SymbolsAreAnyBytesAndReadWholeOrNotAtAll) {
  const std::vector<std::string> symbols = {"e", "", std::string("\0\xff", 2), "\n"};
  const std::string bytes = PackSymbols(symbols);
  EXPECT_EQ(UnpackSymbols(bytes, 4).value(), symbols);
  EXPECT_FALSE(UnpackSymbols(bytes, 3).ok());
  for (const size_t whole : {size_t{0}, size_t{5}, size_t{9}, size_t{15}}) {
    EXPECT_TRUE(UnpackSymbols(bytes.substr(0, whole), 4).ok()) << whole;
  }
  for (const size_t cut : {1, 4, 6, 8, 14, 16, 19}) EXPECT_FALSE(UnpackSymbols(bytes.substr(0, cut), 4).ok()) << cut;
  EXPECT_FALSE(UnpackSymbols(std::string(8, '\xff'), 4).ok()) << "more than there is";
}

TEST(TrainerMessages, UnknownKeysAreIgnoredAndMissingOnesNamed) {
  EXPECT_TRUE(FromJson<GoOn>(R"({"go_on":false,"later":[1,{}]})").ok());
  EXPECT_THAT(std::string(FromJson<LocalPlan>(R"({"steps":1})").status().message()),
              HasSubstr("'first_iteration' is missing"));
}

TEST(TrainerMessages, OptionalOnesMayBeAbsent) {
  EXPECT_EQ(ToJson(WireResult{0.5, 20}), R"({"loss":0.5,"samples":20})");
  EXPECT_FALSE(FromJson<WireResult>(R"({"loss":0.5,"samples":20})")->metrics.has_value());
  const std::string with =
      R"({"loss":0.5,"metrics":[{"kind":"training","name":"n","samples":4,"value":2.0}],"samples":20})";
  EXPECT_EQ(FromJson<WireResult>(with)->metrics->at(0).name, "n");
  EXPECT_EQ(ToJson(*FromJson<WireResult>(with)), with);
  EXPECT_EQ(FromJson<WireResult>(R"({"loss":0.5,"samples":20,"metrics":null})").status().message(),
            "'metrics' is no array");
  EXPECT_FALSE(FromJson<OpenRequest>(ToJson(OpenRequest()))->role.has_value());
}

TEST(TrainerMessages, OfTheWrongKindAreRefused) {
  const auto why = [](absl::string_view body) { return std::string(FromJson<WireResult>(body).status().message()); };
  EXPECT_EQ(why(""), "it is no JSON object");
  EXPECT_EQ(why("[]"), "it is no JSON object");
  EXPECT_EQ(why(R"({"loss":NaN,"samples":1})"), "it is no JSON object");
  EXPECT_EQ(why(R"({"loss":true,"samples":1})"), "'loss' is no number");
  EXPECT_EQ(why(R"({"loss":1,"samples":1.5})"), "'samples' is no whole number of 64 bits");
  EXPECT_EQ(why(R"({"loss":1,"samples":18446744073709551615})"), "'samples' is no whole number of 64 bits");
  EXPECT_TRUE(std::isnan(FromJson<WireResult>(R"({"loss":null,"samples":1})")->loss));
  const auto layout = [](absl::string_view value) {
    Hello hello;
    std::string body = ToJson(hello);
    body.replace(body.find("[]"), 2, std::string(value));
    return std::string(FromJson<Hello>(body).status().message());
  };
  EXPECT_EQ(layout("[{}]"), "'name' is missing");
  EXPECT_EQ(layout("[1]"), "'layout[0]' is no object");
  EXPECT_EQ(layout("{}"), "'layout' is no array");
  EXPECT_EQ(layout(R"([{"name":"a","shape":["x"],"kind":"parameter"}])"), "'shape[0]' is no whole number of 64 bits");
}

TEST(TrainerMessages, FailureCodesAreThoseOfGrpc) {
  EXPECT_EQ(StatusCodeNamed("UNAVAILABLE"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(StatusCodeNamed("FAILED_PRECONDITION"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(StatusCodeNamed("OK"), absl::StatusCode::kUnknown);
  EXPECT_EQ(StatusCodeNamed(""), absl::StatusCode::kUnknown);
}

}  // namespace
}  // namespace terse
