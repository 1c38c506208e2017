#include "learning/models/mqgrad_cnn.h"

#include <utility>

#include "learning/models/script_net.h"

namespace terse {

// The tutorial's normalisation: each value over (1 + 0.001 * the mean square of the 9 maps around it)^0.75.
ModelDefinition MqgradCnn(const ModelSpec& spec) {
  const int64_t classes = OrDefault(spec.classes, 10);
  const std::string squares = "s = torch.constant_pad_nd((x * x).unsqueeze(1), [0, 0, 0, 0, 4, 4], 0.0)";
  const std::string normalise =
      "x = x / torch.pow(1.0 + 0.001 * torch.avg_pool3d(s, [9, 1, 1], [1, 1, 1]).squeeze(1), 0.75)";
  const std::string pool = "x = torch.max_pool2d(x, [2, 2], [2, 2])";
  ScriptNet net({Start::Rule::kNormal, 0.05}, {Start::Rule::kUniformFanIn, 1});
  net.Line("x = x[:, :, 2:30, 2:30]");
  net.Conv("conv1", 3, 64, {5, 1, 2}, "x", "x", /*bias=*/true);
  for (const std::string& line : {std::string("x = torch.relu_(x)"), pool, squares, normalise}) net.Line(line);
  net.Conv("conv2", 64, 64, {5, 1, 2}, "x", "x", /*bias=*/true);
  for (const std::string& line : {std::string("x = torch.relu_(x)"), squares, normalise, pool}) net.Line(line);
  net.Linear("fc3", 3136, 2304, "torch.flatten(x, 1)", "x", /*relu=*/true);
  net.Linear("fc4", 2304, 3840, "x", "x", /*relu=*/true);
  net.Linear("fc5", 3840, classes, "x", "x");
  return std::move(net).Finish("mqgrad_cnn", Element::kByte, {3, 32, 32}, classes);
}

}  // namespace terse
