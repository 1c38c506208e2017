#include "core/id128.h"

#include <sys/random.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace terse {
namespace {

void PutBigEndian(uint64_t value, char* out) {
  for (int i = 7; i >= 0; --i, value >>= 8) out[i] = static_cast<char>(value & 0xff);
}

uint64_t GetBigEndian(const char* in) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | static_cast<unsigned char>(in[i]);
  return value;
}

Id128 NotZero(const XXH128_hash_t& hash) {
  if (hash.high64 == 0 && hash.low64 == 0) return Id128{0, 1};
  return Id128{hash.high64, hash.low64};
}

}  // namespace

std::string Id128::ToBytes() const {
  std::string bytes(16, '\0');
  PutBigEndian(high, &bytes[0]);
  PutBigEndian(low, &bytes[8]);
  return bytes;
}

std::string Id128::ToHex() const { return absl::BytesToHexString(ToBytes()); }

absl::StatusOr<Id128> Id128::FromBytes(absl::string_view bytes) {
  if (bytes.empty()) return Id128{};
  if (bytes.size() != 16) {
    return absl::InvalidArgumentError(absl::StrCat("an id has 16 bytes, got ", bytes.size()));
  }
  return Id128{GetBigEndian(bytes.data()), GetBigEndian(bytes.data() + 8)};
}

Id128 Id128::Random() {
  Id128 id;
  while (id.IsZero()) {
    char raw[16];
    if (getrandom(raw, sizeof raw, 0) != sizeof raw) continue;
    id = Id128{GetBigEndian(raw), GetBigEndian(raw + 8)};
  }
  return id;
}

Id128 HashBytes(absl::string_view bytes) { return NotZero(XXH3_128bits(bytes.data(), bytes.size())); }

Id128 HashBytes(absl::Span<const absl::string_view> parts) {
  const std::unique_ptr<XXH3_state_t, void (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                     [](XXH3_state_t* made) { XXH3_freeState(made); });
  XXH3_128bits_reset(state.get());
  for (absl::string_view part : parts) XXH3_128bits_update(state.get(), part.data(), part.size());
  return NotZero(XXH3_128bits_digest(state.get()));
}

Id128 HashWeights(absl::Span<const float> weights) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "weights are hashed as they lie in memory");
  return HashBytes(absl::string_view(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float)));
}

}  // namespace terse
