// Measures the cost of the positions of a whole run: with Rice, with the coder "auto", with no more than what log2
// C(n,k) asks for, and with the shared coder, which knows what the client sent before (compression/shared_coder.h).
#ifndef TERSE_BENCH_POSITION_METER_H_
#define TERSE_BENCH_POSITION_METER_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/position_tally.h"
#include "bench/report.h"
#include "compression/codec.h"
#include "compression/update_history.h"

namespace terse {

// Every message is measured with the history of its client alone, and joins that history then. All bits count, and they
// are compared with those of the message as it is sent (Codec::Pack), which must also unpack. Memory: a history for
// each client, and sums. Not thread-safe.
class PositionMeter {
 public:
  // `codec` outlives it. It is sbc with Rice positions and tensors that are coded one by one. The first tenth of
  // `rounds` (at least one round) is also reported alone.
  PositionMeter(const Codec* codec, int64_t clients, int64_t rounds);

  // The next message of a client, which was applied, from round `round`, counted from 1. INVALID_ARGUMENT for a message
  // that is not the codec's; INTERNAL when the figures are not those of the message that is sent, with both.
  absl::Status Add(int64_t round, int64_t client, absl::string_view message);

  // Two tables: first tenth, rest and all rounds, with the mean bytes of a message; and every tensor over all rounds.
  void Report(std::vector<Metric>* metrics) const;

 private:
  // The sums of the first tenth of the rounds, or of the rest.
  struct Part {
    PositionTally tally;
    int64_t messages = 0;
    int64_t plain_bytes = 0;
    int64_t sent_bytes = 0;  // of the packed message where that is shorter
  };

  struct Measured {
    int64_t rice_bits = 0;
    int64_t shared_bits = 0;
  };

  absl::StatusOr<Measured> AddTensors(absl::string_view message, const UpdateHistory& history, PositionTally* part);
  absl::StatusOr<std::string> PackAndCheck(absl::string_view message, const UpdateHistory& history) const;
  static void ReportPart(const std::string& row, const Part& part, std::vector<Metric>* metrics);

  const Codec* const codec_;
  const int64_t first_rounds_;
  std::vector<UpdateHistory> histories_;  // one a client
  std::array<Part, 2> parts_;
  std::vector<PositionTally> tensors_;
};

}  // namespace terse

#endif  // TERSE_BENCH_POSITION_METER_H_
