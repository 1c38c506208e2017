#include "learning/models/lenet5_caffe.h"

#include <utility>

#include "learning/models/script_net.h"

namespace terse {

// memory_format=2 is channels-last. Max-pooling in the default layout is seven times slower than in channels-last, and
// a convolution of one input channel never chooses channels-last by itself; what follows keeps the layout it is given.
ModelDefinition Lenet5Caffe(const ModelSpec& spec) {
  constexpr Start kXavier = {Start::Rule::kUniformFanIn, 3};
  const int64_t classes = OrDefault(spec.classes, 10);
  ScriptNet net(kXavier, kXavier);
  net.Conv("conv1", 1, 20, {5}, "x", "x", /*bias=*/true);
  net.Line("x = torch.max_pool2d(x.contiguous(memory_format=2), [2, 2], [2, 2])");
  net.Conv("conv2", 20, 50, {5}, "x", "x", /*bias=*/true);
  net.Line("x = torch.flatten(torch.max_pool2d(x, [2, 2], [2, 2]), 1)");
  net.Linear("ip1", 800, 500, "x", "x", /*relu=*/true);
  net.Linear("ip2", 500, classes, "x", "x");
  return std::move(net).Finish("lenet5_caffe", Element::kByte, {1, 28, 28}, classes);
}

}  // namespace terse
