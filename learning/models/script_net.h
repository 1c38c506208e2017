// Writes the TorchScript of a network layer by layer, together with its tensors.
#ifndef TERSE_LEARNING_MODELS_SCRIPT_NET_H_
#define TERSE_LEARNING_MODELS_SCRIPT_NET_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "learning/models/model.h"

namespace terse {

// Layers read and write variables of the script's text; `x` is the input of forward. What a layer wrote may be changed
// in place, as ReLU does, because no layer's gradient needs what that layer wrote: this saves the memory of one more
// tensor for each, and the time to write it. Not thread-safe.
class ScriptNet {
 public:
  struct Window {
    int64_t size = 3;
    int64_t stride = 1;
    int64_t padding = 0;
  };

  // Statistics of batch normalisation: how much of the newest batch goes into the running ones, and what is added to
  // the variance.
  struct Normalisation {
    double momentum = 0.1;
    double epsilon = 1e-5;
  };

  // `kernels` and `matrices` say how weights of convolutions and of linear layers start.
  ScriptNet(Start kernels, Start matrices, Normalisation normalisation)
      : kernels_(kernels), matrices_(matrices), normalisation_(normalisation) {}
  ScriptNet(Start kernels, Start matrices) : ScriptNet(kernels, matrices, Normalisation()) {}

  // Adds one line to forward's body.
  void Line(absl::string_view text);
  // `to` = convolution of `from`: [N, in, R, C] -> [N, out, R', C'].
  void Conv(absl::string_view name, int64_t in, int64_t out, Window window, absl::string_view from,
            absl::string_view to, bool bias = false);
  // `to` = batch normalisation of `from` (Ioffe and Szegedy 2015), with running mean and variance as buffers.
  void BatchNorm(absl::string_view name, int64_t channels, absl::string_view from, absl::string_view to,
                 bool relu = false);
  // `to` = linear map of `from`: [N, in] -> [N, out].
  void Linear(absl::string_view name, int64_t in, int64_t out, absl::string_view from, absl::string_view to,
              bool relu = false);
  // A tensor that lines of the caller's read as self.NAME.
  void Parameter(absl::string_view name, std::vector<int64_t> shape, Start start);

  // Finishes the model: its forward(self, x) has the lines so far and returns `result`.
  ModelDefinition Finish(absl::string_view name, Element input, std::vector<int64_t> input_shape, int64_t classes,
                         absl::string_view result = "x") &&;

 private:
  const Start kernels_;
  const Start matrices_;
  const Normalisation normalisation_;
  std::vector<ModelTensor> parameters_;
  std::vector<ModelTensor> buffers_;
  std::string lines_;
};

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_SCRIPT_NET_H_
