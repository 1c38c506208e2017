// The sandboxed process's side: makes the learning of a run and serves it.
#include <memory>
#include <utility>

#include "coordinator/rpc/sandboxed_learning.h"
#include "core/status.h"
#include "trainer/external_evaluator.h"
#include "trainer/serve_peer.h"

namespace terse {
namespace {

// Figures of such a model are of its whole test set, whose size nobody asks for here.
constexpr int64_t kSamples = 1;

class LearningService : public PeerService {
 public:
  LearningService(const RunLearningFactory& make_learning, const std::string& data_directory)
      : make_learning_(make_learning), data_directory_(data_directory) {}

  absl::StatusOr<Hello> Open(const RunOpening& opening) override {
    if (!opening.settings.has_value()) return absl::FailedPreconditionError("no settings of the run were given");
    TERSE_ASSIGN_OR_RETURN(learning_, make_learning_(*opening.settings, opening.module, data_directory_));
    Hello hello;
    hello.protocol = kTrainerProtocol;
    hello.trainer = "terse";
    hello.layout = ToWire(learning_->layout());
    hello.dtype = "float32";
    hello.samples = kSamples;
    hello.device = "cpu";
    hello.result = "weights";
    hello.has_start = true;
    return hello;
  }

  absl::StatusOr<std::string> Answer(const Channel::Frame& request, const SharedVectors& vectors,
                                     const Progress& /*may_go_on*/) override {
    switch (request.kind) {
      case FrameKind::kStart: {
        TERSE_ASSIGN_OR_RETURN(const std::vector<float> weights, learning_->InitialWeights());
        return AnswerStart(weights, vectors);
      }
      case FrameKind::kEvaluate: {
        TERSE_ASSIGN_OR_RETURN(const Evaluation evaluation, learning_->evaluator()->Evaluate(vectors.weights()));
        return ToJson(ToWire(evaluation, kSamples));
      }
      case FrameKind::kExport:
        return learning_->ExportTorchScript(vectors.weights());
      case FrameKind::kVocabulary: {
        TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> symbols, learning_->Vocabulary());
        return PackSymbols(symbols);
      }
      default:
        return UnknownRequest(request);
    }
  }

 private:
  const RunLearningFactory& make_learning_;
  const std::string& data_directory_;
  std::unique_ptr<RunLearning> learning_;
};

}  // namespace

int ServeLearning(const RunLearningFactory& make_learning, const std::string& data_directory) {
  LearningService service(make_learning, data_directory);
  ServeSandboxed(&service);
  return 0;
}

}  // namespace terse
