// The layers that models are written with, against LibTorch's own and against their formulas.
#include <ATen/ATen.h>

#include <cmath>
#include <map>

#include "core/random.h"
#include "gtest/gtest.h"
#include "learning/models/model_table.h"
#include "learning/models/script_net.h"
#include "learning/script_model.h"

namespace terse {
namespace {

constexpr Start kSpread = {Start::Rule::kUniform, 0.5};

at::Tensor Spread(const std::vector<int64_t>& shape, uint64_t seed) {
  at::Tensor numbers = at::empty(shape);
  Random random(seed);
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    numbers.data_ptr<float>()[i] = static_cast<float>(random.Uniform(-1, 1));
  }
  return numbers;
}

// The tensors of a model, by name, as copies.
std::map<std::string, at::Tensor> Tensors(const Layout& layout, const at::Tensor& flat) {
  std::map<std::string, at::Tensor> tensors;
  for (const TensorSpec& spec : layout.tensors()) {
    if (spec.offset + spec.size > flat.numel()) break;
    tensors[spec.name] = flat.narrow(0, spec.offset, spec.size).view(spec.shape).clone();
  }
  return tensors;
}

// A model whose every weight is far from zero, so that nothing is hidden.
struct SpreadNet {
  explicit SpreadNet(const ModelDefinition& definition, double bound = 1)
      : layout(LayoutOf(definition).value()), model(definition, layout, c10::kCPU) {
    at::Tensor values = Spread({layout.size()}, 5) * bound;
    if (layout.size() > layout.parameters()) values.slice(0, layout.parameters()).abs_();  // variances
    model.SetWeights({values.data_ptr<float>(), static_cast<size_t>(values.numel())});
    tensors = Tensors(layout, model.weights());
  }

  at::Tensor Forward(const at::Tensor& x, bool training) {
    const at::NoGradGuard no_grad;
    model.SetTraining(training);
    return model.Forward(x, &state);
  }

  Layout layout;
  ScriptModel model;
  ScriptModel::State state;
  std::map<std::string, at::Tensor> tensors;
};

float Difference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a - b).abs().max().item<float>();
}

ModelDefinition OneNormalisation() {
  ScriptNet net(kSpread, kSpread, {0.3, 1e-3});
  net.BatchNorm("bn", 3, "x", "x");
  return std::move(net).Finish("bn", Element::kFloat, {3, 4, 4}, 3);
}

TEST(BatchNormTest, TrainingNormalisesByTheBatchAndMovesTheStatistics) {
  SpreadNet net(OneNormalisation());
  auto& t = net.tensors;
  const at::Tensor x = Spread({5, 3, 4, 4}, 1) * 3 + 1;
  const at::Tensor y = net.Forward(x, true);
  const at::Tensor mean = x.mean({0, 2, 3}), variance = x.var({0, 2, 3}, /*unbiased=*/false);
  const auto each = [](const at::Tensor& channel) { return channel.view({1, 3, 1, 1}); };
  const at::Tensor expected =
      (x - each(mean)) / (each(variance) + 1e-3).sqrt() * each(t["bn.weight"]) + each(t["bn.bias"]);
  EXPECT_LT(Difference(y, expected), 1e-5);
  auto after = Tensors(net.layout, net.model.weights());
  const at::Tensor unbiased = variance * 80.0 / 79;
  EXPECT_LT(Difference(after["bn.running_mean"], 0.7 * t["bn.running_mean"] + 0.3 * mean), 1e-6);
  EXPECT_LT(Difference(after["bn.running_var"], 0.7 * t["bn.running_var"] + 0.3 * unbiased), 1e-5);
}

TEST(BatchNormTest, EvaluationUsesTheRunningStatistics) {
  SpreadNet net(OneNormalisation());
  auto& t = net.tensors;
  const at::Tensor x = Spread({5, 3, 4, 4}, 1);
  const at::Tensor expected = at::batch_norm(x, t["bn.weight"], t["bn.bias"], t["bn.running_mean"], t["bn.running_var"],
                                             /*training=*/false, 0.3, 1e-3, false);
  EXPECT_LT(Difference(net.Forward(x, false), expected), 1e-6);
  EXPECT_LT(Difference(net.model.weights().slice(0, 6, 9), t["bn.running_mean"]), 1e-9) << "evaluation moves nothing";
}

// h, c of one layer over a text, from the formulas of Hochreiter and Schmidhuber with forget gates; gates in the order
// input, forget, cell, output.
at::Tensor PlainLstm(const at::Tensor& x, const at::Tensor& ih, const at::Tensor& hh, const at::Tensor& bias,
                     at::Tensor* h, at::Tensor* c) {
  std::vector<at::Tensor> outputs;
  for (int64_t time = 0; time < x.size(1); ++time) {
    const std::vector<at::Tensor> gates = (x.select(1, time).matmul(ih.t()) + h->matmul(hh.t()) + bias).chunk(4, 1);
    *c = gates[1].sigmoid() * *c + gates[0].sigmoid() * gates[2].tanh();
    *h = gates[3].sigmoid() * c->tanh();
    outputs.push_back(*h);
  }
  return at::stack(outputs, 1);
}

void ExpectPlainLanguageModel(const std::string& name, int64_t classes, const std::vector<int64_t>& widths) {
  ModelSpec spec = {name};
  spec.classes = classes;
  spec.dropout = 0;
  SpreadNet net(FindModel(spec).value(), /*bound=*/0.1);
  auto& t = net.tensors;
  const int64_t rows = 2;
  net.state = net.model.InitialState(rows);
  ASSERT_EQ(net.state.size(), 4u);
  std::vector<at::Tensor> h, c;
  for (const int64_t width : widths) {
    h.push_back(at::zeros({rows, width}));
    c.push_back(at::zeros({rows, width}));
  }
  // The second piece goes on where the first ended.
  for (const uint64_t seed : {1, 2}) {
    const at::Tensor symbols = ((Spread({rows, 4}, seed) + 1) * 0.4999 * classes).to(at::kLong);
    at::Tensor y = t.count("embedding.weight") > 0 ? t["embedding.weight"].index({symbols})
                                                   : at::one_hot(symbols, classes).to(at::kFloat);
    for (size_t layer = 0; layer < widths.size(); ++layer) {
      const std::string lstm = "lstm" + std::to_string(layer + 1);
      at::Tensor bias = t[lstm + ".bias_ih"];
      if (t.count(lstm + ".bias_hh") > 0) bias = bias + t[lstm + ".bias_hh"];
      y = PlainLstm(y, t[lstm + ".weight_ih"], t[lstm + ".weight_hh"], bias, &h[layer], &c[layer]);
    }
    const at::Tensor matrix = t.count("output.weight") > 0 ? t["output.weight"] : t["embedding.weight"];
    const at::Tensor logits = y.matmul(matrix.t()) + t["output.bias"];
    EXPECT_LT(Difference(net.Forward(symbols, true), logits), 2e-4) << name;
    EXPECT_LT(Difference(net.state[0].squeeze(0), h[0]), 1e-4) << name;
    EXPECT_LT(Difference(net.state[3].squeeze(0), c[1]), 1e-4) << name;
  }
}

TEST(LstmTest, OneBiasALayer) { ExpectPlainLanguageModel("char_lstm", 11, {200, 200}); }
TEST(LstmTest, OneHotSymbolsAndTwoBiases) { ExpectPlainLanguageModel("char_rnn_512", 9, {512, 512}); }
TEST(LstmTest, TheOutputMayShareTheEmbedding) { ExpectPlainLanguageModel("ptb_lstm_1500", 5, {1500, 1430}); }

at::Tensor PlainNorm(std::map<std::string, at::Tensor>& t, const std::string& name, const at::Tensor& x) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * t[name + ".weight"] + t[name + ".bias"];
}

at::Tensor PlainLinear(std::map<std::string, at::Tensor>& t, const std::string& name, const at::Tensor& x) {
  return x.matmul(t[name + ".weight"].t()) + t[name + ".bias"];
}

// One text, head by head and position by position.
at::Tensor PlainAttention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values, int64_t heads) {
  const int64_t time = queries.size(0), width = queries.size(1), each = width / heads;
  at::Tensor out = at::zeros({time, width});
  for (int64_t head = 0; head < heads; ++head) {
    const double slope = std::pow(2.0, -8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
    for (int64_t i = 0; i < time; ++i) {
      const at::Tensor own = queries[i].narrow(0, head * each, each);
      std::vector<at::Tensor> scores;
      for (int64_t j = 0; j <= i; ++j) {
        const at::Tensor product = own.dot(keys[j].narrow(0, head * each, each));
        scores.push_back(product / std::sqrt(static_cast<double>(each)) - slope * static_cast<double>(i - j));
      }
      const at::Tensor weights = at::stack(scores).softmax(0);
      for (int64_t j = 0; j <= i; ++j) {
        out[i].narrow(0, head * each, each).add_(weights[j] * values[j].narrow(0, head * each, each));
      }
    }
  }
  return out;
}

TEST(TransformerTest, FollowsItsFormulaPositionByPosition) {
  ModelSpec spec = {"transformer_small"};
  spec.classes = 11;
  SpreadNet net(FindModel(spec).value(), /*bound=*/0.3);
  auto& t = net.tensors;
  const at::Tensor symbols = ((Spread({1, 6}, 1) + 1) * 0.4999 * 11).to(at::kLong);
  at::Tensor y = t["embedding.weight"].index({symbols[0]});
  for (const std::string layer : {"1", "2"}) {
    const std::vector<at::Tensor> qkv =
        PlainLinear(t, "attention" + layer, PlainNorm(t, "attention_norm" + layer, y)).chunk(3, 1);
    y = y + PlainLinear(t, "projection" + layer, PlainAttention(qkv[0], qkv[1], qkv[2], 4));
    const at::Tensor wide = PlainLinear(t, "up" + layer, PlainNorm(t, "perceptron_norm" + layer, y));
    y = y + PlainLinear(t, "down" + layer, wide * 0.5 * (1 + (wide / std::sqrt(2.0)).erf()));
  }
  const at::Tensor logits = PlainNorm(t, "norm", y).matmul(t["embedding.weight"].t());
  EXPECT_LT(Difference(net.Forward(symbols, true)[0], logits), 2e-4);
}

at::Tensor Normalised(std::map<std::string, at::Tensor>& t, const std::string& name, const at::Tensor& x,
                      double epsilon) {
  return at::batch_norm(x, t[name + ".weight"], t[name + ".bias"], t[name + ".running_mean"], t[name + ".running_var"],
                        /*training=*/true, 0.1, epsilon, false);
}

at::Tensor Convolved(std::map<std::string, at::Tensor>& t, const std::string& name, const at::Tensor& x,
                     int64_t stride) {
  const at::Tensor& weight = t[name + ".weight"];
  return at::conv2d(x, weight, {}, stride, weight.size(2) / 2);
}

constexpr int64_t kMaps = 16;  // of the first of three stages

// Version 2 (He et al. 2016, figure 4e) of depth 6n + 2, the first block of each stage with a projection.
TEST(ResnetTest, Resnet32IsTheNetworkOfVersionTwo) {
  SpreadNet net(FindModel({"resnet32"}).value());
  auto& t = net.tensors;
  const at::Tensor images = Spread({2, 3, 32, 32}, 3);
  at::Tensor x = Convolved(t, "conv", images, 1);
  for (int stage = 1; stage <= 3; ++stage) {
    for (int block = 1; block <= 5; ++block) {
      const std::string name = "stage" + std::to_string(stage) + "_block" + std::to_string(block) + "_";
      const int64_t stride = block == 1 && stage > 1 ? 2 : 1;
      at::Tensor y = Normalised(t, name + "bn1", x, 1e-5).relu();
      const at::Tensor shortcut = block == 1 ? Convolved(t, name + "project", y, stride) : x;
      y = Convolved(t, name + "conv1", y, stride);
      y = Convolved(t, name + "conv2", Normalised(t, name + "bn2", y, 1e-5).relu(), 1);
      x = shortcut + y;
      ASSERT_EQ(x.size(1), kMaps << (stage - 1));
    }
  }
  x = Normalised(t, "bn", x, 1e-5).relu().mean({2, 3});
  const at::Tensor logits = at::linear(x, t["fc.weight"], t["fc.bias"]);
  EXPECT_LT(Difference(net.Forward(images, true), logits), 1e-3 * logits.abs().max().item<float>());
}

// Version 1 (He et al. 2015, figure 2), projections where the shape changes.
TEST(ResnetTest, Resnet110IsTheNetworkOfVersionOne) {
  SpreadNet net(FindModel({"resnet110"}).value());
  auto& t = net.tensors;
  const at::Tensor images = Spread({1, 3, 32, 32}, 3);
  at::Tensor x = Normalised(t, "bn", Convolved(t, "conv", images, 1), 1e-5).relu();
  for (int stage = 1; stage <= 3; ++stage) {
    for (int block = 1; block <= 18; ++block) {
      const std::string name = "stage" + std::to_string(stage) + "_block" + std::to_string(block) + "_";
      const int64_t stride = block == 1 && stage > 1 ? 2 : 1;
      at::Tensor y = Normalised(t, name + "bn1", Convolved(t, name + "conv1", x, stride), 1e-5).relu();
      y = Normalised(t, name + "bn2", Convolved(t, name + "conv2", y, 1), 1e-5);
      if (stride == 2) x = Normalised(t, name + "bn3", Convolved(t, name + "project", x, stride), 1e-5);
      x = (x + y).relu();
    }
  }
  const at::Tensor logits = at::linear(x.mean({2, 3}), t["fc.weight"], t["fc.bias"]);
  EXPECT_LT(Difference(net.Forward(images, true), logits), 1e-3 * logits.abs().max().item<float>());
}

// tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75), as the tutorial calls it.
at::Tensor LocallyNormalised(const at::Tensor& x) {
  at::Tensor sums = at::zeros_like(x);
  for (int64_t map = 0; map < x.size(1); ++map) {
    const int64_t begin = std::max<int64_t>(0, map - 4), end = std::min(x.size(1), map + 5);
    sums.select(1, map).copy_((x * x).slice(1, begin, end).sum(1));
  }
  return x / (1 + sums * (0.001 / 9)).pow(0.75);
}

TEST(MqgradCnnTest, IsTheTutorialsNetwork) {
  SpreadNet net(FindModel({"mqgrad_cnn"}).value());
  auto& t = net.tensors;
  const at::Tensor images = Spread({2, 3, 32, 32}, 3) * 20;
  const auto convolved = [&](const at::Tensor& x, const std::string& name) {
    return at::conv2d(x, t[name + ".weight"], t[name + ".bias"], 1, 2).relu();
  };
  at::Tensor x = convolved(images.slice(2, 2, 30).slice(3, 2, 30), "conv1");
  x = LocallyNormalised(at::max_pool2d(x, 2, 2));
  x = at::max_pool2d(LocallyNormalised(convolved(x, "conv2")), 2, 2).flatten(1);
  x = at::linear(x, t["fc3.weight"], t["fc3.bias"]).relu();
  x = at::linear(x, t["fc4.weight"], t["fc4.bias"]).relu();
  const at::Tensor logits = at::linear(x, t["fc5.weight"], t["fc5.bias"]);
  EXPECT_LT(Difference(net.Forward(images, false), logits), 1e-4 * logits.abs().max().item<float>());
}

}  // namespace
}  // namespace terse
