#include "bench/sbc_client.h"

#include "bench/measure.h"
#include "compression/codec_table.h"
#include "compression/error_feedback.h"

namespace terse {
namespace {

constexpr int kWarmUpRounds = 8;

}  // namespace

std::unique_ptr<const Codec> MakeSbc(const Layout& layout, double density, const std::string& positions) {
  CodecSpec spec;
  spec.name = "sbc";
  spec.density = density;
  spec.positions = positions;
  return Must(MakeCodec(spec, layout));
}

SbcClient::SbcClient(const Layout& layout, double density, const std::string& positions, UpdateStream* stream)
    : stream_(stream),
      delta_(layout.size()),
      codec_(MakeSbc(layout, density, positions)),
      feedback_(std::make_unique<ErrorFeedback>(codec_.get())) {}

void SbcClient::Compress() { Must(feedback_->Compress(&delta_, CodecKey{1, ++round_, 0}).status()); }

void SbcClient::Settle() { Must(feedback_->Settle(true)); }

void SbcClient::WarmUp() {
  for (int i = 0; i < kWarmUpRounds; ++i) {
    Train();
    Compress();
    Settle();
  }
}

}  // namespace terse
