#include "learning/models/lstm_language.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace terse {
namespace {

constexpr Start kZeros = {Start::Rule::kConstant, 0};

struct LanguageNet {
  const char* name;
  int64_t symbols;
  int64_t embedding;            // 0: symbols are one-hot
  std::vector<int64_t> hidden;  // of each layer
  bool two_biases;              // of each layer, as cuDNN has them; else one
  bool tied;                    // the output's weights are the embedding's
  double dropout;
  Start start;  // of all weights
  Start output_bias;
};

// TensorFlow's and PyTorch's layers differ in the number of biases alone: two add up to one.
void AddLayer(const LanguageNet& net, int64_t layer, int64_t in, int64_t hidden, ModelDefinition* model,
              std::string* body) {
  const std::string name = absl::StrCat("lstm", layer + 1);
  model->tensors.push_back({name + ".weight_ih", {4 * hidden, in}, net.start});
  model->tensors.push_back({name + ".weight_hh", {4 * hidden, hidden}, net.start});
  model->tensors.push_back({name + ".bias_ih", {4 * hidden}, net.two_biases ? net.start : kZeros});
  if (net.two_biases) model->tensors.push_back({name + ".bias_hh", {4 * hidden}, net.start});
  const std::string second = net.two_biases ? absl::StrFormat("self.%s.bias_hh", name)
                                            : absl::StrFormat("torch.zeros_like(self.%s.bias_ih)", name);
  absl::StrAppendFormat(body,
                        "    y, h%1$d, c%1$d = torch.lstm(y, [state[%2$d], state[%3$d]], [self.%4$s.weight_ih, "
                        "self.%4$s.weight_hh, self.%4$s.bias_ih, %5$s], True, 1, 0.0, self.training, False, True)\n",
                        layer, 2 * layer, 2 * layer + 1, name, second);
}

std::string InitialState(const std::vector<int64_t>& hidden) {
  std::vector<std::string> zeros;
  for (const int64_t width : hidden) {
    const std::string one = absl::StrFormat("self.lstm1.weight_hh.new_zeros([1, batch, %d])", width);
    zeros.insert(zeros.end(), {one, one});
  }
  return absl::StrCat("def initial_state(self, batch: int) -> List[Tensor]:\n    return [", absl::StrJoin(zeros, ", "),
                      "]\n");
}

ModelDefinition Build(const LanguageNet& net) {
  ModelDefinition model;
  model.name = net.name;
  model.input = Element::kInt32;
  model.classes = net.symbols;
  model.carries_state = true;
  model.draws = net.dropout > 0;
  const std::string drop =
      model.draws ? absl::StrFormat("    y = torch.dropout(y, %g, self.training)\n", net.dropout) : "";
  std::string body = "def forward(self, x, state: List[Tensor]) -> Tuple[Tensor, List[Tensor]]:\n";
  int64_t width = net.symbols;
  if (net.embedding > 0) {
    model.tensors.push_back({"embedding.weight", {net.symbols, net.embedding}, net.start});
    width = net.embedding;
    absl::StrAppend(&body, "    y = torch.embedding(self.embedding.weight, x)\n", drop);
  } else {
    absl::StrAppendFormat(&body, "    y = torch.one_hot(x, %d).to(self.output.weight.dtype)\n", net.symbols);
  }
  std::vector<std::string> next;
  for (size_t layer = 0; layer < net.hidden.size(); ++layer) {
    AddLayer(net, layer, width, net.hidden[layer], &model, &body);
    absl::StrAppend(&body, drop);
    width = net.hidden[layer];
    next.push_back(absl::StrFormat("h%1$d, c%1$d", layer));
  }
  if (!net.tied) model.tensors.push_back({"output.weight", {net.symbols, width}, net.start});
  model.tensors.push_back({"output.bias", {net.symbols}, net.output_bias});
  absl::StrAppendFormat(&body, "    return torch.linear(y, self.%s.weight, self.output.bias), [%s]\n",
                        net.tied ? "embedding" : "output", absl::StrJoin(next, ", "));
  model.source = absl::StrCat(body, InitialState(net.hidden));
  return model;
}

}  // namespace

ModelDefinition WordLstm(const ModelSpec& spec) {
  constexpr Start kUniform = {Start::Rule::kUniform, 0.05};
  return Build({"word_lstm",
                OrDefault(spec.classes, 10000),
                650,
                {650, 650},
                false,
                false,
                OrDefault(spec.dropout, 0.5),
                kUniform,
                kUniform});
}

ModelDefinition CharLstm(const ModelSpec& spec) {
  constexpr Start kUniform = {Start::Rule::kUniform, 0.05};
  return Build({"char_lstm",
                OrDefault(spec.classes, 98),
                200,
                {200, 200},
                false,
                false,
                OrDefault(spec.dropout, 0.5),
                kUniform,
                kUniform});
}

ModelDefinition PtbLstm1500(const ModelSpec& spec) {
  return Build({"ptb_lstm_1500",
                OrDefault(spec.classes, 10000),
                1430,
                {1500, 1430},
                true,
                true,
                OrDefault(spec.dropout, 0.4),
                {Start::Rule::kUniform, 0.1},
                kZeros});
}

ModelDefinition CharRnn512(const ModelSpec& spec) {
  return Build({"char_rnn_512",
                OrDefault(spec.classes, 65),
                0,
                {512, 512},
                true,
                false,
                OrDefault(spec.dropout, 0.0),
                {Start::Rule::kUniform, 0.08},
                kZeros});
}

}  // namespace terse
