#include "learning/models/transformer_language.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace terse {
namespace {

constexpr Start kZeroBias = {Start::Rule::kConstant, 0};
constexpr Start kUnitGain = {Start::Rule::kConstant, 1};
constexpr double kDeviation = 0.02;

struct Decoder {
  const char* name;
  int64_t symbols;
  int64_t layers;
  int64_t width;
  int64_t heads;
  double dropout;
};

void AddLinear(const std::string& name, int64_t in, int64_t out, double deviation, ModelDefinition* model) {
  model->tensors.push_back({name + ".weight", {out, in}, {Start::Rule::kNormal, deviation}});
  model->tensors.push_back({name + ".bias", {out}, kZeroBias});
}

void AddNorm(const std::string& name, int64_t width, ModelDefinition* model) {
  model->tensors.push_back({name + ".weight", {width}, kUnitGain});
  model->tensors.push_back({name + ".bias", {width}, kZeroBias});
}

// Here and below, $N is the number of a layer, $W the width, $H the heads, $D the dropout. A position sees itself and
// those before it.
constexpr char kBegin[] = R"(def forward(self, x):
    at = torch.arange(x.size(1), device=x.device)
    distance = at.unsqueeze(0) - at.unsqueeze(1)
    slopes = torch.pow(2.0, torch.arange(1, $H + 1, device=x.device) * (-8.0 / $H)).view([$H, 1, 1])
    bias = (slopes * distance).masked_fill(distance > 0, float("-inf"))
    split = [x.size(0), x.size(1), 3, $H, $W // $H]
    y = torch.dropout(torch.embedding(self.embedding.weight, x), $D, self.training)
)";

constexpr char kLayer[] = R"(
    z = torch.layer_norm(y, [$W], self.attention_norm$N.weight, self.attention_norm$N.bias)
    qkv = torch.linear(z, self.attention$N.weight, self.attention$N.bias).view(split).permute([2, 0, 3, 1, 4])
    seen = torch.softmax(torch.matmul(qkv[0], qkv[1].transpose(2, 3)) / ($W // $H) ** 0.5 + bias, 3)
    z = torch.matmul(seen, qkv[2]).transpose(1, 2).reshape(y.size())
    y = y + torch.dropout(torch.linear(z, self.projection$N.weight, self.projection$N.bias), $D, self.training)
    z = torch.layer_norm(y, [$W], self.perceptron_norm$N.weight, self.perceptron_norm$N.bias)
    z = torch.gelu(torch.linear(z, self.up$N.weight, self.up$N.bias))
    y = y + torch.dropout(torch.linear(z, self.down$N.weight, self.down$N.bias), $D, self.training)
)";

constexpr char kEnd[] = R"(
    y = torch.layer_norm(y, [$W], self.norm.weight, self.norm.bias)
    return torch.linear(y, self.embedding.weight)
)";

void AddDecoderLayer(const Decoder& net, int64_t layer, ModelDefinition* model) {
  const double into_sum = kDeviation / std::sqrt(2.0 * static_cast<double>(net.layers));
  const std::string number = absl::StrCat(layer);
  AddNorm("attention_norm" + number, net.width, model);
  AddLinear("attention" + number, net.width, 3 * net.width, kDeviation, model);
  AddLinear("projection" + number, net.width, net.width, into_sum, model);
  AddNorm("perceptron_norm" + number, net.width, model);
  AddLinear("up" + number, net.width, 4 * net.width, kDeviation, model);
  AddLinear("down" + number, 4 * net.width, net.width, into_sum, model);
  absl::StrAppend(&model->source, absl::StrReplaceAll(kLayer, {{"$N", number}}));
}

ModelDefinition BuildDecoder(const Decoder& net) {
  ModelDefinition model;
  model.name = net.name;
  model.input = Element::kInt32;
  model.classes = net.symbols;
  model.draws = net.dropout > 0;
  model.tensors.push_back({"embedding.weight", {net.symbols, net.width}, {Start::Rule::kNormal, kDeviation}});
  model.source = kBegin;
  for (int64_t layer = 1; layer <= net.layers; ++layer) AddDecoderLayer(net, layer, &model);
  AddNorm("norm", net.width, &model);
  absl::StrAppend(&model.source, kEnd);
  model.source = absl::StrReplaceAll(
      model.source,
      {{"$W", absl::StrCat(net.width)}, {"$H", absl::StrCat(net.heads)}, {"$D", absl::StrFormat("%f", net.dropout)}});
  return model;
}

}  // namespace

ModelDefinition Transformer(const ModelSpec& spec) {
  return BuildDecoder({"transformer", OrDefault(spec.classes, 256), 8, 256, 8, OrDefault(spec.dropout, 0.0)});
}

ModelDefinition TransformerSmall(const ModelSpec& spec) {
  return BuildDecoder({"transformer_small", OrDefault(spec.classes, 256), 2, 64, 4, OrDefault(spec.dropout, 0.0)});
}

}  // namespace terse
