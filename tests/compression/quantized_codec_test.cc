#include "compression/quantized_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "compression/ef_signsgd.h"
#include "compression/low_precision.h"
#include "compression/qsgd.h"
#include "compression/symbol_coder.h"
#include "tests/compression/quantized_testing.h"

namespace terse {
namespace {

CodecSpec SpecWith(int64_t bucket, const std::string& code = "simple") {
  CodecSpec spec;
  spec.name = "qsgd";
  spec.bucket = bucket;
  spec.code = code;
  return spec;
}

const std::vector<int64_t>& Sizes() {
  static const auto* const sizes = new std::vector<int64_t>{1, 479, 480, 481, 3, 1700};
  return *sizes;
}

// Decoding in pieces that end at `limits`, from a clone after every run, gives what decoding in one piece does.
TEST(QuantizedCodec, DecodesInAnyPieces) {
  Random random(1);
  const Layout layout = MakeLayout(Sizes());
  const std::vector<float> update = RandomUpdate(layout.size(), &random);
  for (const char* code : {"simple", "elias"}) {
    for (int64_t bucket : {0, 1, 7, 480, 1000}) {
      const auto codec = *QsgdCodec::Create(SpecWith(bucket, code), layout);
      const std::string message = *codec->Encode(update);
      const std::vector<float> whole = Decode(*codec, message);
      std::vector<float> pieces(layout.size());
      auto cursor = *codec->Open(message);
      int64_t next = 0;
      for (int64_t limit = 0; next < layout.size();) {
        DecodedRun run;
        ASSERT_TRUE(cursor->Next(limit, &run).ok());
        ASSERT_LE(run.count, kDecodedRun);
        ASSERT_EQ(run.positions, nullptr);
        if (run.count == 0) {
          ASSERT_EQ(next, limit);
          limit = std::min<int64_t>(layout.size(), limit + random.Below(700));
          continue;
        }
        ASSERT_EQ(run.begin, next);
        ASSERT_LE(run.begin + run.count, limit);
        std::copy(run.values, run.values + run.count, pieces.begin() + next);
        next += run.count;
        cursor = cursor->Clone();
      }
      for (size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(pieces[i], whole[i]) << code << " " << bucket << " " << i;
    }
  }
}

TEST(QuantizedCodec, CostsHeadersAndSymbols) {
  for (int64_t bucket : {0, 1, 7, 480, 5000}) {
    const auto codec = *EfSignSgdCodec::Create(SpecWith(bucket), MakeLayout(Sizes()));
    int64_t bits = 0;
    for (int64_t size : Sizes()) bits += 32 * (bucket == 0 ? 1 : (size + bucket - 1) / bucket) + size;
    const std::vector<float> update(codec->layout().size(), 1.0f);
    EXPECT_EQ(*codec->CostBits(update), bits);
    EXPECT_EQ(codec->Encode(update)->size(), 1 + (bits + 7) / 8);
    EXPECT_EQ(codec->MaxMessageBytes(), 1 + (bits + 7) / 8);
  }
}

// A draw belongs to an element of a tensor, wherever buckets begin.
TEST(QuantizedCodec, DrawsDoNotDependOnBuckets) {
  const Layout layout = MakeLayout({1000});
  std::vector<float> update(1000);
  for (size_t i = 0; i < update.size(); ++i) update[i] = i % 10 == 0 ? 1.0f : 0.3f;  // delta is that of the whole
  CodecSpec spec = SpecWith(0);
  spec.bits = 2;
  const std::vector<float> whole = RoundTrip(**LowPrecisionCodec::Create(spec, layout), update);
  spec.bucket = 30;
  EXPECT_EQ(RoundTrip(**LowPrecisionCodec::Create(spec, layout), update), whole);
}

TEST(QuantizedCodec, RefusesEveryTruncationAndEveryTail) {
  Random random(2);
  const std::vector<int64_t> sizes = {5, 40};
  const std::vector<float> update = RandomUpdate(45, &random);
  for (const char* code : {"simple", "elias"}) {
    const auto codec = *QsgdCodec::Create(SpecWith(16, code), MakeLayout(sizes));
    const std::string message = *codec->Encode(update);
    for (size_t size = 0; size < message.size(); ++size) {
      EXPECT_EQ(codec->Validate(message.substr(0, size)).code(), absl::StatusCode::kInvalidArgument) << size;
    }
    ExpectRefused(*codec, message + std::string(1, '\0'), "qsgd message");
  }
}

TEST(QuantizedCodec, NamesWhatIsNotFinite) {
  for (const char* code : {"simple", "elias"}) {
    const auto codec = *QsgdCodec::Create(SpecWith(2, code), MakeLayout({2, 5}));
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> update(7, 1.0f);
      update[5] = bad;
      for (const absl::Status& status : {codec->Encode(update).status(), codec->CostBits(update).status()}) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_NE(status.message().find("tensor 't1', index 3"), std::string::npos) << status;
      }
    }
  }
}

TEST(QuantizedCodec, RefusesNegativeBuckets) {
  EXPECT_EQ(EfSignSgdCodec::Create(SpecWith(-1), MakeLayout({3})).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FixedWidthCoder, WritesLittleEndianFieldsOfEveryWidth) {
  Random random(3);
  for (int width = 1; width <= 32; ++width) {
    const auto coder = NewFixedWidthCoder(width);
    for (size_t count : {1, 31, 32, 33, 480}) {
      std::vector<uint32_t> symbols(count);
      for (uint32_t& symbol : symbols) symbol = static_cast<uint32_t>(random.Below(uint64_t{1} << width));
      std::string bytes;
      BitWriter writer(&bytes);
      writer.Put(1, 3);  // nothing is aligned
      coder->Put(symbols, &writer);
      writer.Finish();
      EXPECT_EQ(coder->Bits(symbols), static_cast<int64_t>(count) * width);
      ASSERT_EQ(bytes.size(), (3 + count * width + 7) / 8);
      for (size_t i = 0; i < count; ++i) {
        BitReader field{absl::string_view(bytes)};
        field.Skip(3 + i * width);
        uint32_t symbol = 0;
        ASSERT_TRUE(field.Get(width, &symbol));
        ASSERT_EQ(symbol, symbols[i]) << width << " " << i;
      }
      BitReader stream{absl::string_view(bytes)};
      stream.Skip(3);
      std::vector<uint32_t> decoded(count);
      ASSERT_TRUE(coder->NewReader()->Next(absl::MakeSpan(decoded), &stream).ok());
      EXPECT_EQ(decoded, symbols) << width;
      EXPECT_EQ(stream.position(), 3 + count * width);
    }
  }
}

}  // namespace
}  // namespace terse
