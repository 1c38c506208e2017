// The settings of a codec by name, as Python has them.
#ifndef TERSE_PYTHON_BINDINGS_SETTINGS_H_
#define TERSE_PYTHON_BINDINGS_SETTINGS_H_

#include "core/run_config.h"

namespace terse {

// Calls visit(name, member) for every setting but the codec's own name, in the order of CodecSpec. `Spec` is CodecSpec
// or const CodecSpec. A member that is new in CodecSpec does not compile before it has a line here.
template <typename Spec, typename Visit>
void ForEachSetting(Spec& spec, Visit visit) {
  auto& [name, density, mean_precision, positions, grouping, merge_below, bits, code, bucket, threshold, samples,
         sampling_step, feedback, decay, momentum, clip, warmup_rounds, counts] = spec;
  static_cast<void>(name);
  visit("density", density);
  visit("mean_precision", mean_precision);
  visit("positions", positions);
  visit("grouping", grouping);
  visit("merge_below", merge_below);
  visit("bits", bits);
  visit("code", code);
  visit("bucket", bucket);
  visit("threshold", threshold);
  visit("samples", samples);
  visit("sampling_step", sampling_step);
  visit("feedback", feedback);
  visit("decay", decay);
  visit("momentum", momentum);
  visit("clip", clip);
  visit("warmup_rounds", warmup_rounds);
  visit("counts", counts);
}

}  // namespace terse

#endif  // TERSE_PYTHON_BINDINGS_SETTINGS_H_
