// An evaluator in a program of the user's own, in any language, over the trainer protocol (docs/TRAINER.md): it says
// how good the weights are that a round ended with.
#ifndef TERSE_TRAINER_EXTERNAL_EVALUATOR_H_
#define TERSE_TRAINER_EXTERNAL_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/layout.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "trainer/messages.h"
#include "trainer/trainer_peer.h"
#include "trainer/trainer_source.h"

namespace terse {

// Connects when it is first asked, and again after the program was lost. The program's layout must be `layout`.
// Evaluate returns, beside what the program answers:
//   UNAVAILABLE          the program ended, took too long or is not there; the next call tries again
//   INTERNAL             it answered what no evaluator answers
//   FAILED_PRECONDITION  it has another layout or version, or reports what is no metric or no loss
// Memory: three vectors of the model, shared with the program, from the first call on.
std::unique_ptr<Evaluator> MakeExternalEvaluator(TrainerSource source, PeerOptions options, const RunConfig& config,
                                                 const Layout& layout);

// Asks the evaluator at the other end for the metrics of these weights. Statuses of Evaluate above. A figure that a
// confined evaluator leaves away is one that is not finite: the loss is then NaN.
absl::StatusOr<Evaluation> AskForEvaluation(int64_t round, absl::Span<const float> weights,
                                            const std::function<bool()>& keep_going, TrainerPeer* peer);

// The answer to it: the figures that are finite, each the mean over `samples` examples.
WireEvaluation ToWire(const Evaluation& evaluation, int64_t samples);

}  // namespace terse

#endif  // TERSE_TRAINER_EXTERNAL_EVALUATOR_H_
