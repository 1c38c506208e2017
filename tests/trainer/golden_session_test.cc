// The bytes of a whole session, as docs/TRAINER.md describes them and tests/golden/make_trainer_golden.py writes them.
#include <sys/socket.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "tests/testing/paths.h"
#include "tests/trainer/scripted_trainer.h"
#include "trainer/external_trainer.h"

namespace terse {
namespace {

std::string Golden(const std::string& name) {
  std::ifstream file(InSource("tests/golden/" + name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(GoldenSession, TheClientSaysTheseBytesAndTakesThoseAnswers) {
  const std::string answers = Golden("trainer_answers.bin");
  ASSERT_FALSE(answers.empty());
  std::string requests;
  auto [ours, theirs] = SocketPair();
  ASSERT_EQ(send(theirs.fd(), answers.data(), answers.size(), 0), static_cast<ssize_t>(answers.size()));
  RunConfig config;
  config.name = "demo";
  config.model.name = "external";
  config.seed = 5;
  config.rounds.count = 100;
  config.train.local_steps = 20;
  config.train.batch_size = 128;
  config.train.optimizer.momentum_masking = true;
  {
    ExternalTrainerOptions options;
    options.source = [socket = std::make_shared<OwnedFile>(std::move(ours))]() -> absl::StatusOr<TrainerConnection> {
      return TrainerConnection{std::move(*socket), nullptr};
    };
    auto trainer = ExternalTrainerFactory(std::move(options))(config, {1, 4}, "");
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    ASSERT_EQ((*trainer)->layout().size(), 8);
    EXPECT_EQ((*trainer)->layout().parameters(), 6);
    EXPECT_EQ((*trainer)->samples(), 500);
    EXPECT_TRUE((*trainer)->RestoreState("state of round 6").ok());
    EXPECT_EQ((*trainer)->StartWeights().size(), 8);
    const std::vector<float> weights(8, 1.0f);
    std::vector<float> delta(8);
    const auto result = (*trainer)->Train(
        weights, {20, 140, 8, 7}, [] { return true; }, absl::MakeSpan(delta));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->mean_loss, 0.75f);
    EXPECT_EQ(result->samples, 2560);
    ASSERT_EQ(result->metrics.size(), 1);
    EXPECT_EQ(result->metrics[0], (NamedMetric{MetricKind::kEvaluation, "accuracy", 0.5, 500}));
    EXPECT_EQ(delta[0], -1.0f);  // nobody wrote into the memory
    (*trainer)->MaskMomentum({0, 5});
    EXPECT_EQ(*(*trainer)->SaveState(), "state of round 8");
    (*trainer)->OnSealed(8);
    (*trainer)->OnFinished("all rounds are done", weights);
  }
  char buffer[4096];
  for (ssize_t got = 0; (got = recv(theirs.fd(), buffer, sizeof buffer, 0)) > 0;) {
    requests.append(buffer, static_cast<size_t>(got));
  }
  EXPECT_EQ(absl::CHexEscape(requests), absl::CHexEscape(Golden("trainer_requests.bin")));
}

}  // namespace
}  // namespace terse
