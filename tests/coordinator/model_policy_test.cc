#include "coordinator/rpc/model_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace terse {
namespace {

using ::testing::HasSubstr;

TEST(ModelPolicy, TakesModelsOfThoseWhomItNames) {
  const struct {
    const char* text;
    std::vector<const char*> taken;
  } cases[] = {
      {"socket", {"socket"}},
      {"none", {}},
      {"any", {"socket", "cleartext", "operator ada", "operator grace"}},
      {"ada", {"socket", "operator ada"}},
      {"ada,grace", {"socket", "operator ada", "operator grace"}},
  };
  for (const auto& c : cases) {
    const ModelPolicy policy = ModelPolicy::Parse(c.text).value();
    for (const char* caller : {"socket", "cleartext", "operator ada", "operator grace"}) {
      bool taken = false;
      for (const char* one : c.taken) taken = taken || one == std::string(caller);
      EXPECT_EQ(policy.Check(caller).ok(), taken) << c.text << ", " << caller;
    }
  }
  EXPECT_TRUE(ModelPolicy().Check("socket").ok());
  const absl::Status refused = ModelPolicy().Check("operator ada");
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'operator ada'"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--allow-models ada"));
  EXPECT_THAT(std::string(ModelPolicy().Check("cleartext").message()), HasSubstr("--allow-models any"));
  EXPECT_TRUE(absl::IsPermissionDenied(ModelPolicy::Parse("ada").value().Check("client ada")));
}

TEST(ModelPolicy, RefusesWhatNamesNobody) {
  for (const char* text : {"", "ada,", ",ada", "ada grace", "any,ada", "none,ada", "socket,ada", "a\nb"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ModelPolicy::Parse(text).status())) << text;
  }
}

}  // namespace
}  // namespace terse
