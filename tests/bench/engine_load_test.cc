// A run of scripted sessions through the engine is right in every message, and what is not is found.
#include "bench/engine/engine_load.h"

#include <gtest/gtest.h>

#include "bench/engine/scripted_fleet.h"
#include "bench/synthetic.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

TEST(EngineLoad, EverythingThatWasSentIsCounted) {
  const TempDirectory directory;
  EngineLoadOptions options;
  options.sessions = 2000;
  options.rounds = 3;
  options.directory = directory.Path();
  const auto figures = RunEngineLoad(options);
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->parameters, 28 * 100 + 1110);
  // Each connects, checks in and is ready.
  EXPECT_EQ(figures->joining.events, 3 * 2000);
  ASSERT_EQ(figures->rounds.size(), 3u);
  for (const EngineSpan& round : figures->rounds) {
    EXPECT_EQ(round.events, 2000);
    EXPECT_EQ(round.batches, 2);
    EXPECT_GT(round.processor_seconds, 0);
    EXPECT_LE(round.longest_seconds, round.seconds);
  }
  // Each says that it leaves, and is gone; the last model is evaluated and written.
  EXPECT_EQ(figures->leaving.events, 2 * 2000 + 2);
}

// A fleet of one client, which is welcomed and then hears what a test says.
class ScriptedFleetTest : public testing::Test {
 protected:
  ScriptedFleetTest() {
    run_.rounds.clients = 1;
    weights_ = Gaussian(layout_.size(), 1);
    fleet_ = *ScriptedFleet::Make(run_, layout_, weights_);
    link_ = std::get<Connected>(fleet_->NextEvents(8)->at(0)).link;
  }
  absl::StatusCode After(FromServer message) {
    link_->Send({{std::move(message)}});
    return fleet_->NextEvents(8).status().code();
  }
  absl::StatusCode Welcomed() {
    return After(Welcome{Id128{1, 2}, nullptr, 0, absl::nullopt, 0, HashWeights(weights_)});
  }

  RunConfig run_;
  const Layout layout_ = OneTensor(1000);
  std::vector<float> weights_;
  std::unique_ptr<ScriptedFleet> fleet_;
  std::shared_ptr<ClientLink> link_;
};

TEST_F(ScriptedFleetTest, FindsWhatAClientShouldNotHear) {
  ASSERT_EQ(Welcomed(), absl::StatusCode::kOk);
  EXPECT_EQ(After(Assignment{1, 0, 1}), absl::StatusCode::kOk);
  EXPECT_EQ(After(Assignment{2, 0, 1}), absl::StatusCode::kInternal);  // one is pending
  EXPECT_EQ(After(Verdict{Outcome::kApplied, Id128{3, 3}, Id128{3, 3}, ""}), absl::StatusCode::kInternal);
  EXPECT_EQ(After(Refusal{"go away", false}), absl::StatusCode::kInternal);
  EXPECT_EQ(After(Resync{0, ""}), absl::StatusCode::kInternal);
  EXPECT_EQ(After(Downstream{1, Id128{3, 3}, std::make_shared<const std::string>()}), absl::StatusCode::kInternal);
}

TEST_F(ScriptedFleetTest, FindsWhatAClientDidNotHear) {
  ASSERT_EQ(Welcomed(), absl::StatusCode::kOk);
  EXPECT_EQ(fleet_->Check(0, HashWeights(weights_)), absl::OkStatus());
  EXPECT_EQ(fleet_->Check(0, Id128{3, 3}).code(), absl::StatusCode::kInternal);            // another model
  EXPECT_EQ(fleet_->Check(1, HashWeights(weights_)).code(), absl::StatusCode::kInternal);  // no verdict of round 1
}

}  // namespace
}  // namespace terse
