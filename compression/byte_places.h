// The places of the ones in every byte, lowest first: how the kernels get from bits to places without a loop.
#ifndef TERSE_COMPRESSION_BYTE_PLACES_H_
#define TERSE_COMPRESSION_BYTE_PLACES_H_

#include <cstdint>

namespace terse {

// `byte` has count[byte] ones, the j-th of them at place[byte][j].
struct BytePlaces {
  uint8_t place[256][8];
  uint8_t count[256];
};

constexpr BytePlaces MakeBytePlaces() {
  BytePlaces table = {};
  for (int byte = 0; byte < 256; ++byte) {
    int ones = 0;
    for (int bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1) != 0) table.place[byte][ones++] = static_cast<uint8_t>(bit);
    }
    table.count[byte] = static_cast<uint8_t>(ones);
  }
  return table;
}

alignas(64) inline constexpr BytePlaces kBytePlaces = MakeBytePlaces();

}  // namespace terse

#endif  // TERSE_COMPRESSION_BYTE_PLACES_H_
