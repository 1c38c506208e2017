#include "learning/models/lenet5_caffe.h"

namespace terse {

// memory_format=2 is channels-last. Max-pooling in the default layout is seven times slower than in channels-last, and
// a convolution of one input channel never chooses channels-last by itself; what follows keeps the layout it is given.
ModelDefinition Lenet5Caffe() {
  ModelDefinition model;
  model.name = "lenet5_caffe";
  model.parameters = {
      {"conv1.weight", {20, 1, 5, 5}}, {"conv1.bias", {20}}, {"conv2.weight", {50, 20, 5, 5}}, {"conv2.bias", {50}},
      {"ip1.weight", {500, 800}},      {"ip1.bias", {500}},  {"ip2.weight", {10, 500}},        {"ip2.bias", {10}}};
  model.start = StartRule::kXavierFanIn;
  model.forward = R"(
def forward(self, x):
    x = torch.conv2d(x, self.conv1.weight, self.conv1.bias).contiguous(memory_format=2)
    x = torch.max_pool2d(x, [2, 2], [2, 2])
    x = torch.conv2d(x, self.conv2.weight, self.conv2.bias)
    x = torch.max_pool2d(x, [2, 2], [2, 2])
    x = torch.relu(torch.linear(torch.flatten(x, 1), self.ip1.weight, self.ip1.bias))
    return torch.linear(x, self.ip2.weight, self.ip2.bias)
)";
  model.input_shape = {1, 28, 28};
  model.classes = 10;
  return model;
}

}  // namespace terse
