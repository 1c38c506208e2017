// Tests which models a run may train: modules of users that are taken, and those that are refused.
#include "learning/blueprint.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kForward[] = "def forward(self, x):\n  return x * self.scale\n";

// The file of a module with one parameter and these methods.
std::string FileOf(const std::string& methods, at::ScalarType type = at::kFloat) {
  torch::jit::Module module("mine");
  module.register_parameter("scale", at::full({2}, 3, type).requires_grad_(true), /*is_buffer=*/false);
  module.register_buffer("seen", at::full({1}, 7, at::kFloat));
  if (!methods.empty()) module.define(methods);
  std::ostringstream out;
  module.save(out);
  return out.str();
}

ModelSpec Spec(const std::string& buffers = "averaged") {
  ModelSpec spec;
  spec.name = "torchscript";
  spec.buffers = buffers;
  return spec;
}

std::string Refusal(const std::string& file) {
  const absl::Status status = MakeBlueprint(Spec(), file).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ModuleBlueprintTest, HasTheModulesTensorsAndStartsFromItsWeights) {
  const auto averaged = MakeBlueprint(Spec(), FileOf(kForward)).value();
  ASSERT_EQ(averaged->layout().tensors().size(), 2u);
  EXPECT_EQ(averaged->layout().tensors()[0].name, "scale");
  EXPECT_EQ(averaged->layout().tensors()[1].kind, TensorKind::kBuffer);
  EXPECT_THAT(averaged->StartWeights(1), ElementsAre(3, 3, 7));
  const auto local = MakeBlueprint(Spec("local"), FileOf(kForward)).value();
  EXPECT_THAT(local->StartWeights(2), ElementsAre(3, 3));
}

TEST(ModuleBlueprintTest, RefusesAFileThatIsNoTorchScript) {
  for (const std::string& file : {std::string(), std::string("PK\x03\x04 and nothing more"), std::string(1000, 'x')}) {
    EXPECT_THAT(Refusal(file), HasSubstr("torch.jit.save(torch.jit.script(model), FILE)"));
  }
  const std::string whole = FileOf(kForward);
  EXPECT_THAT(Refusal(whole.substr(0, whole.size() / 2)), HasSubstr("reading the model's file"));
}

TEST(ModuleBlueprintTest, RefusesAModuleWithoutAUsableForward) {
  EXPECT_THAT(Refusal(FileOf("")), HasSubstr("neither `forward(self, x)` nor"));
  EXPECT_THAT(Refusal(FileOf("def forward(self):\n  return self.scale\n")), HasSubstr("export one of the two"));
  EXPECT_THAT(Refusal(FileOf("def forward(self, x, state: List[Tensor]):\n  return x * self.scale, state\n")),
              HasSubstr("initial_state(self, batch: int)"));
}

TEST(ModuleBlueprintTest, RefusesOtherThanFloat32) {
  EXPECT_THAT(Refusal(FileOf(kForward, at::kDouble)), HasSubstr("train in float32"));
}

}  // namespace
}  // namespace terse
