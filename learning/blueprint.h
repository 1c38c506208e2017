// The model that a run trains: a row of the model table, or a TorchScript module that a user made. Includes only the
// name of LibTorch's devices.
#ifndef TERSE_LEARNING_BLUEPRINT_H_
#define TERSE_LEARNING_BLUEPRINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "c10/core/Device.h"
#include "core/layout.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

class ScriptModel;

// Immutable; thread-safe.
class Blueprint {
 public:
  virtual ~Blueprint() = default;

  // The layout of the flat weight vector: parameters, and the buffers unless spec.buffers is "local".
  const Layout& layout() const { return layout_; }
  // The weights that a run starts from, layout().size() of them: drawn with the seed for a row of the table, the
  // module's own for a user's.
  virtual std::vector<float> StartWeights(uint64_t seed) const = 0;
  // Width of the output: classes, symbols or values. 0: not known.
  virtual int64_t outputs() const = 0;
  // Whether training draws from LibTorch's random numbers.
  virtual bool draws() const = 0;
  // INVALID_ARGUMENT, with file, example and reason, when the model surely does not take these examples (data_fit.h).
  // A user's module is refused here only when it carries a state and the data is no text; first_batch.h tries the rest.
  virtual absl::Status CheckFit(const Dataset& dataset) const = 0;
  // A model with LibTorch's tensors. May throw c10::Error.
  virtual std::unique_ptr<ScriptModel> Make(c10::Device device) const = 0;

 protected:
  explicit Blueprint(Layout layout) : layout_(std::move(layout)) {}

 private:
  const Layout layout_;
};

// NOT_FOUND for a name that is not in the table; INVALID_ARGUMENT for module bytes that are no TorchScript, have no
// usable forward, or no parameter. `module` is for spec.name "torchscript": the bytes of the file that torch.jit.save
// wrote.
absl::StatusOr<std::shared_ptr<const Blueprint>> MakeBlueprint(const ModelSpec& spec, absl::string_view module = "");

}  // namespace terse

#endif  // TERSE_LEARNING_BLUEPRINT_H_
