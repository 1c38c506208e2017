// Two clients compress what they have trained, with error feedback; a server averages the two messages.
#include <cstdio>
#include <string>
#include <vector>

#include "compression/aggregate.h"
#include "compression/codec_table.h"
#include "compression/feedback_table.h"

int main() {
  const terse::CodecSpec spec;  // sbc, one weight in a hundred
  const auto layout = terse::Layout::Create({{"weight", {100, 50}}, {"bias", {50}}});
  const auto codec = terse::MakeCodec(spec, *layout);
  std::vector<std::string> messages;
  for (uint64_t client = 0; client < 2; ++client) {
    const auto feedback = terse::MakeFeedback(spec, codec->get());  // one a client, kept from round to round
    std::vector<float> delta(layout->size());
    for (size_t i = 0; i < delta.size(); ++i) delta[i] = static_cast<float>((7919 * i + client) % 101) - 50;
    messages.push_back((*feedback)->Compress(&delta, {/*run=*/1, /*round=*/1, client}).value());
    if (!(*feedback)->Settle(/*applied=*/true).ok()) return 1;  // what was not sent stays in the residual
    std::printf("client %d: residual %.1f\n", static_cast<int>(client), (*feedback)->Norm());
  }
  std::vector<float> average(layout->size());
  const auto status = terse::AverageUpdates(**codec, {messages[0], messages[1]}, {}, 1, absl::MakeSpan(average));
  std::printf("%zu and %zu bytes in place of %zu\n", messages[0].size(), messages[1].size(), 4 * average.size());
  return status.ok() ? 0 : 1;
}
