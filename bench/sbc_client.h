// A client's compression as a run does it, over any number of rounds.
#ifndef TERSE_BENCH_SBC_CLIENT_H_
#define TERSE_BENCH_SBC_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "bench/synthetic.h"
#include "compression/codec.h"
#include "compression/feedback.h"

namespace terse {

// SBC with error feedback. Not thread-safe.
class SbcClient {
 public:
  // `stream` outlives it.
  SbcClient(const Layout& layout, double density, const std::string& positions, UpdateStream* stream);

  // The next delta arrives, as from a trainer.
  void Train() { stream_->Next(&delta_); }
  // Makes the message: residual + delta, select, binarise, encode.
  void Compress();
  // The update was applied: subtracts it from the residual.
  void Settle();
  // Runs several rounds, after which the residual is that of a running client.
  void WarmUp();

  const Codec& codec() const { return *codec_; }
  const std::vector<float>& delta() const { return delta_; }
  // Returns the message of the last Compress, until Settle.
  const std::string& message() const { return feedback_->pending_message(); }

 private:
  UpdateStream* const stream_;
  std::vector<float> delta_;
  std::unique_ptr<const Codec> codec_;
  std::unique_ptr<Feedback> feedback_;
  uint64_t round_ = 0;
};

// The settings of SBC as in its paper, with these positions.
std::unique_ptr<const Codec> MakeSbc(const Layout& layout, double density, const std::string& positions);

}  // namespace terse

#endif  // TERSE_BENCH_SBC_CLIENT_H_
