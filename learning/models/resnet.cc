#include "learning/models/resnet.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "learning/models/script_net.h"

namespace terse {
namespace {

// TensorFlow's official network: the share of the newest batch is 1 - 0.997.
constexpr ScriptNet::Normalisation kOfficial = {0.003, 1e-5};
constexpr ScriptNet::Window kPoint = {1, 1, 0};
constexpr ScriptNet::Window kThree = {3, 1, 1};

ScriptNet::Window Strided(ScriptNet::Window window, int64_t stride) {
  window.stride = stride;
  return window;
}

std::string BlockName(int64_t stage, int64_t block) {
  return absl::StrCat("stage", stage + 1, "_block", block + 1, "_");
}

// Version 2: `x` is the sum so far. Normalise, ReLU, convolve, twice or three times, and add. Returns the block's
// width.
struct PreActivated {
  int64_t expansion;  // 1: two 3x3 convolutions; 4: 1x1, 3x3 and 1x1 to four times the maps
};

int64_t AddBlock(ScriptNet* net, PreActivated kind, const std::string& name, int64_t in, int64_t maps, int64_t stride,
                 bool projects) {
  const int64_t out = maps * kind.expansion;
  net->BatchNorm(name + "bn1", in, "x", "y", /*relu=*/true);
  if (projects) net->Conv(name + "project", in, out, Strided(kPoint, stride), "y", "x");
  if (kind.expansion == 1) {
    net->Conv(name + "conv1", in, maps, Strided(kThree, stride), "y", "y");
    net->BatchNorm(name + "bn2", maps, "y", "y", /*relu=*/true);
    net->Conv(name + "conv2", maps, out, kThree, "y", "y");
  } else {
    net->Conv(name + "conv1", in, maps, kPoint, "y", "y");
    net->BatchNorm(name + "bn2", maps, "y", "y", /*relu=*/true);
    net->Conv(name + "conv2", maps, maps, Strided(kThree, stride), "y", "y");
    net->BatchNorm(name + "bn3", maps, "y", "y", /*relu=*/true);
    net->Conv(name + "conv3", maps, out, kPoint, "y", "y");
  }
  net->Line("x = y.add_(x)");
  return out;
}

// Version 1: convolve, normalise, ReLU, convolve, normalise, add, ReLU.
struct PostActivated {};

int64_t AddBlock(ScriptNet* net, PostActivated, const std::string& name, int64_t in, int64_t maps, int64_t stride,
                 bool projects) {
  net->Conv(name + "conv1", in, maps, Strided(kThree, stride), "x", "y");
  net->BatchNorm(name + "bn1", maps, "y", "y", /*relu=*/true);
  net->Conv(name + "conv2", maps, maps, kThree, "y", "y");
  net->BatchNorm(name + "bn2", maps, "y", "y");
  if (projects) {
    net->Conv(name + "project", in, maps, Strided(kPoint, stride), "x", "x");
    net->BatchNorm(name + "bn3", maps, "x", "x");
  }
  net->Line("x = torch.relu_(y.add_(x))");
  return maps;
}

// Stages of blocks whose maps double; all but the first halve the image in their first block. Returns the width.
template <typename Kind>
int64_t AddStages(ScriptNet* net, Kind kind, const std::vector<int64_t>& blocks, int64_t in, int64_t maps,
                  bool projects_first) {
  for (size_t stage = 0; stage < blocks.size(); ++stage, maps *= 2) {
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const bool first = block == 0;
      const int64_t stride = first && stage > 0 ? 2 : 1;
      const bool projects = first && (stage > 0 || projects_first);
      in = AddBlock(net, kind, BlockName(stage, block), in, maps, stride, projects);
    }
  }
  return in;
}

void AddMean(ScriptNet* net) { net->Line("x = torch.mean(x, [2, 3])"); }

void UseChannelsLast(ScriptNet* net) { net->Line("x = x.contiguous(memory_format=2)"); }

ModelDefinition CifarPostActivated(const std::string& name, const std::vector<int64_t>& blocks, int64_t maps,
                                   int64_t classes) {
  ScriptNet net({Start::Rule::kNormalFanOut, 2}, {Start::Rule::kUniformFanIn, 1});
  UseChannelsLast(&net);
  net.Conv("conv", 3, maps, kThree, "x", "x");
  net.BatchNorm("bn", maps, "x", "x", /*relu=*/true);
  const int64_t width = AddStages(&net, PostActivated(), blocks, maps, maps, /*projects_first=*/false);
  AddMean(&net);
  net.Linear("fc", width, classes, "x", "x");
  return std::move(net).Finish(name, Element::kByte, {3, 32, 32}, classes);
}

// TensorFlow's variance scaling: a normal distribution with variance 1 / fan_in, cut at two deviations; its dense
// layers start by Glorot's rule.
ScriptNet OfficialNet() { return ScriptNet({Start::Rule::kNormalFanIn, 1}, {Start::Rule::kGlorotUniform}, kOfficial); }

}  // namespace

ModelDefinition Resnet32(const ModelSpec& spec) {
  const int64_t classes = OrDefault(spec.classes, 10);
  ScriptNet net = OfficialNet();
  UseChannelsLast(&net);
  net.Conv("conv", 3, 16, kThree, "x", "x");
  const int64_t width = AddStages(&net, PreActivated{1}, {5, 5, 5}, 16, 16, /*projects_first=*/true);
  net.BatchNorm("bn", width, "x", "x", /*relu=*/true);
  AddMean(&net);
  net.Linear("fc", width, classes, "x", "x");
  return std::move(net).Finish("resnet32", Element::kByte, {3, 32, 32}, classes);
}

ModelDefinition Resnet50(const ModelSpec& spec) {
  const int64_t classes = OrDefault(spec.classes, 1000);
  ScriptNet net = OfficialNet();
  UseChannelsLast(&net);
  net.Conv("conv", 3, 64, {7, 2, 3}, "x", "x");
  // TensorFlow pads where the window ends, and padding never is a maximum.
  net.Line("x = torch.constant_pad_nd(x, [0, 1, 0, 1], -3.0e38)");
  net.Line("x = torch.max_pool2d(x, [3, 3], [2, 2])");
  const int64_t width = AddStages(&net, PreActivated{4}, {3, 4, 6, 3}, 64, 64, /*projects_first=*/true);
  net.BatchNorm("bn", width, "x", "x", /*relu=*/true);
  AddMean(&net);
  net.Linear("fc", width, classes, "x", "x");
  return std::move(net).Finish("resnet50", Element::kByte, {3, 224, 224}, classes);
}

ModelDefinition Resnet110(const ModelSpec& spec) {
  return CifarPostActivated("resnet110", {18, 18, 18}, 16, OrDefault(spec.classes, 10));
}

ModelDefinition Resnet18(const ModelSpec& spec) {
  return CifarPostActivated("resnet18", {2, 2, 2, 2}, 64, OrDefault(spec.classes, 100));
}

}  // namespace terse
