// The sandboxed process's side: makes the learning of a run and serves it.
#include <algorithm>
#include <memory>
#include <utility>

#include "coordinator/rpc/sandboxed_learning.h"
#include "core/status.h"
#include "sandbox/child_process.h"
#include "sandbox/messages.h"
#include "sandbox/service.h"
#include "trainer/channel.h"
#include "trainer/shared_vectors.h"

namespace terse {
namespace {

std::vector<double> NoneOrOne(const absl::optional<double>& value) {
  return value.has_value() ? std::vector<double>{*value} : std::vector<double>();
}

class LearningServer {
 public:
  LearningServer(const RunLearningFactory& make_learning, const std::string& data_directory)
      : make_learning_(make_learning), data_directory_(data_directory) {}

  absl::StatusOr<std::string> Answer(const Channel::Frame& request) {
    if (request.kind == FrameKind::kOpen) return Make(request.body);
    if (learning_ == nullptr) return UnknownRequest();
    // The file has its size once the coordinator knows the layout.
    if (!vectors_.mapped()) TERSE_RETURN_IF_ERROR(vectors_.Map(kSandboxMemory, learning_->layout().size()));
    switch (request.kind) {
      case FrameKind::kStart:
        return Start();
      case FrameKind::kEvaluate:
        return Evaluate();
      case FrameKind::kExport:
        return learning_->ExportTorchScript(vectors_.weights());
      case FrameKind::kVocabulary:
        return Vocabulary();
      default:
        return UnknownRequest();
    }
  }

 private:
  absl::StatusOr<std::string> Make(const std::string& body) {
    LearningRequest request;
    if (!DecodeMessage(body, &request)) return UnknownRequest();
    TERSE_ASSIGN_OR_RETURN(learning_, make_learning_(request.config, request.module, data_directory_));
    Made made;
    for (const TensorSpec& tensor : learning_->layout().tensors()) {
      made.layout.push_back({tensor.name, tensor.shape, tensor.kind});
    }
    return EncodeMessage(std::move(made));
  }

  absl::StatusOr<std::string> Start() {
    TERSE_ASSIGN_OR_RETURN(const std::vector<float> weights, learning_->InitialWeights());
    const bool has_weights = weights.size() == vectors_.result().size();
    if (has_weights) std::copy(weights.begin(), weights.end(), vectors_.result().begin());
    return EncodeMessage(StartAnswer{has_weights});
  }

  absl::StatusOr<std::string> Evaluate() {
    TERSE_ASSIGN_OR_RETURN(const Evaluation scores, learning_->evaluator()->Evaluate(vectors_.weights()));
    return EncodeMessage(
        EvaluateAnswer{NoneOrOne(scores.accuracy), NoneOrOne(scores.top5), NoneOrOne(scores.perplexity), scores.loss});
  }

  absl::StatusOr<std::string> Vocabulary() {
    TERSE_ASSIGN_OR_RETURN(std::vector<std::string> symbols, learning_->Vocabulary());
    return EncodeMessage(VocabularyAnswer{std::move(symbols)});
  }

  const RunLearningFactory& make_learning_;
  const std::string& data_directory_;
  std::unique_ptr<RunLearning> learning_;
  SharedVectors vectors_;
};

}  // namespace

int ServeLearning(const RunLearningFactory& make_learning, const std::string& data_directory) {
  LearningServer server(make_learning, data_directory);
  Channel channel{OwnedFile(kSandboxSocket)};
  ServeFrames(&channel, [&](const Channel::Frame& request) { return server.Answer(request); });
  return 0;
}

}  // namespace terse
