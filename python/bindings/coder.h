// A codec and the layout that it is for, on a model whose tensors lie anywhere in memory, as arrays of Python do.
#ifndef TERSE_PYTHON_BINDINGS_CODER_H_
#define TERSE_PYTHON_BINDINGS_CODER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The first elements of a layout's tensors, in its order; each lies in one piece.
using TensorPointers = std::vector<const float*>;
using MutableTensorPointers = std::vector<float*>;

// Immutable: any number of threads may use one. The memory that is passed in must not change during a call.
class Coder {
 public:
  // INVALID_ARGUMENT as Layout::Create, MakeCodec and MakeFeedback.
  static absl::StatusOr<std::unique_ptr<const Coder>> Create(const CodecSpec& spec,
                                                             absl::Span<const Layout::Entry> entries);

  const CodecSpec& spec() const { return spec_; }
  const Layout& layout() const { return layout_; }
  const Codec& codec() const { return *codec_; }
  // The row of the feedback table that MakeFeedback takes for these settings.
  const std::string& feedback() const { return feedback_; }

  // Codec::Encode. Copies nothing where the tensors lie one behind the other, as one tensor always does.
  absl::StatusOr<std::string> Encode(const TensorPointers& update, const CodecKey& key) const;

  // Codec::CostBits.
  absl::StatusOr<int64_t> CostBits(const TensorPointers& update, const CodecKey& key) const;

  // Does as ErrorFeedback in a round whose update is applied: encodes decay * residual + update and leaves in the
  // residual what was not sent, which for buffers is nothing. FAILED_PRECONDITION for settings with another feedback.
  // After an error the residual is as it was. Takes memory of the model's size.
  absl::StatusOr<std::string> EncodeWithResidual(const TensorPointers& update, const MutableTensorPointers& residual,
                                                 const CodecKey& key) const;

  // Writes what the message decodes to over `out`, which is all zero. Errors as Codec::Validate; `out` is unspecified
  // then.
  absl::Status Decode(absl::string_view message, const MutableTensorPointers& out) const;

  // out += sign * decoded, as Codec::AddDecoded. After an error `out` is as it was.
  absl::Status AddDecoded(absl::string_view message, float sign, const MutableTensorPointers& out) const;

  // Copies the tensors one behind the other: layout().size() elements.
  void Gather(const TensorPointers& tensors, absl::Span<float> flat) const;

 private:
  Coder(CodecSpec spec, Layout layout, std::unique_ptr<const Codec> codec, std::string feedback);

  // The tensors as one vector, for which `copy` is memory where they do not lie one behind the other.
  absl::Span<const float> Flat(const TensorPointers& tensors, std::vector<float>* copy) const;
  // Calls visit(run, tensor) for all elements of the message; a run lies in one tensor.
  template <typename Visit>
  absl::Status ForEachRun(absl::string_view message, Visit visit) const;

  const CodecSpec spec_;
  const Layout layout_;
  const std::unique_ptr<const Codec> codec_;
  const std::string feedback_;
};

}  // namespace terse

#endif  // TERSE_PYTHON_BINDINGS_CODER_H_
