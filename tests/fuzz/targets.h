// The fuzzing targets. Each runs one input and ends the process when something does not hold. `row` names a row of the
// target's table and is not used by those that have none. An input is a head of a few bytes, described at each target,
// and the bytes under test; a head that is cut short reads as zeros.
#ifndef TERSE_TESTS_FUZZ_TARGETS_H_
#define TERSE_TESTS_FUZZ_TARGETS_H_

#include <cstddef>
#include <cstdint>

namespace terse {

// Decoding a message of one codec. Head: case of the row, layout, how the message is cut into pieces; a byte each.
void FuzzCodec(const char* row, const uint8_t* data, size_t size);

// Decoding positions, or coding and decoding them. Head: mode (odd: code), lead bits, pieces, shift of the size; a byte
// each; count (2 bytes), size (4 bytes).
void FuzzPositions(const char* row, const uint8_t* data, size_t size);

// Applying a downstream message. Head: codec, a byte.
void FuzzDownstream(const char* row, const uint8_t* data, size_t size);

// Encoding any update with any codec. Head: case of all codecs (2 bytes), layout, key, flags (1: only finite numbers,
// 2: rates), pieces; a byte each. Then a number pattern (input.h).
void FuzzRoundTrip(const char* row, const uint8_t* data, size_t size);

// Restoring a client's state. Head: codec, feedback, flags (1: another size, 2: the message was settled, 4: it is
// pending, 8: only finite numbers), a byte each; length of the number pattern (2 bytes). Then the pattern of the state,
// then the message.
void FuzzFeedback(const char* row, const uint8_t* data, size_t size);

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_TARGETS_H_
