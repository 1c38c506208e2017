#include "learning/models/alexnet.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "learning/models/script_net.h"

namespace terse {

ModelDefinition AlexNet(const ModelSpec& spec) {
  const int64_t classes = OrDefault(spec.classes, 10);
  const double dropout = OrDefault(spec.dropout, 0.5);
  const std::string drop = absl::StrFormat("x = torch.dropout(x, %g, self.training)", dropout);
  const std::string pool = "x = torch.max_pool2d(torch.relu_(x), [3, 3], [2, 2])";
  ScriptNet net({Start::Rule::kNormalFanIn, 2}, {Start::Rule::kNormalFanIn, 2});
  net.Line("x = torch.upsample_bilinear2d(x, [227, 227], False)");
  net.Conv("conv1", 3, 96, {11, 4}, "x", "x", /*bias=*/true);
  net.Line(pool);
  net.Conv("conv2", 96, 256, {5, 1, 2}, "x", "x", /*bias=*/true);
  net.Line(pool);
  net.Conv("conv3", 256, 384, {3, 1, 1}, "x", "x", /*bias=*/true);
  net.Conv("conv4", 384, 384, {3, 1, 1}, "torch.relu_(x)", "x", /*bias=*/true);
  net.Conv("conv5", 384, 256, {3, 1, 1}, "torch.relu_(x)", "x", /*bias=*/true);
  net.Line(pool);
  net.Linear("fc6", 9216, 4096, "torch.flatten(x, 1)", "x", /*relu=*/true);
  net.Line(drop);
  net.Linear("fc7", 4096, 4096, "x", "x", /*relu=*/true);
  net.Line(drop);
  net.Linear("fc8", 4096, classes, "x", "x");
  ModelDefinition model = std::move(net).Finish("alexnet", Element::kByte, {3, 32, 32}, classes);
  model.draws = dropout > 0;
  return model;
}

}  // namespace terse
