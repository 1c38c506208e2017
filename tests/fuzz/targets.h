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
// pending, 8: only finite numbers, 16: a model with buffers), a byte each; length of the number pattern (2 bytes). Then
// the pattern of the state, then the message.
void FuzzFeedback(const char* row, const uint8_t* data, size_t size);

// Unpacking a packed message, and packing what it was. Head: case (packed_cases.h), layout, flags (1: the bytes under
// test are changes of a packed message (Edit), 2: a history with one message more unpacks too, 4: every second message
// is negated), pieces, messages in the history, elements by which the pattern moves on, length of the number pattern; a
// byte each. Then the pattern, then the bytes under test.
void FuzzPacked(const char* row, const uint8_t* data, size_t size);

// Parsing the stored history of a client's updates, and going on from it. Head: case, layout, flags (1: every second
// message is negated, 2: the changes begin with no bytes), messages in the history, elements by which the pattern moves
// on, length of the number pattern; a byte each. Then the pattern, then changes of the history's bytes (Edit).
void FuzzHistory(const char* row, const uint8_t* data, size_t size);

// Parsing a client's manifest. Head: flags (1: the checksum is made right), a byte.
void FuzzManifest(const char* row, const uint8_t* data, size_t size);

// Parsing what a client keeps for lineages that it left. No head.
void FuzzParted(const char* row, const uint8_t* data, size_t size);

// Parsing a checkpoint file. Head: flags (1: the checksum is made right, 2: the model's hash too), a byte.
void FuzzCheckpoint(const char* row, const uint8_t* data, size_t size);

// Parsing a client's cached model. Head: flags (1: the checksum is made right), a byte.
void FuzzCachedModel(const char* row, const uint8_t* data, size_t size);

// Reading a certificate, a request, a revocation list, or the certificate of a list's authority, and the same bytes as
// an identity. Head: a byte; 1: the bytes are DER, which the target puts into PEM; its half, modulo 4: which of the
// four.
void FuzzCertificates(const char* row, const uint8_t* data, size_t size);

// Reading what a client, or the coordinator, sends in one session: the largest payload that is allowed (2 bytes), then
// wire messages, each behind its length (2 bytes).
void FuzzClientMessage(const char* row, const uint8_t* data, size_t size);
void FuzzServerMessage(const char* row, const uint8_t* data, size_t size);

// Reading a run file, without a head: TOML.
void FuzzRunConfig(const char* row, const uint8_t* data, size_t size);

// Reading the configuration that is stored with a run, without a head: a terse.v1.RunConfig.
void FuzzStoredRunConfig(const char* row, const uint8_t* data, size_t size);

// Validating an update as the coordinator does, and adding it up. Head: case of all codecs (2 bytes), layout, samples,
// a byte each; round, train_us (8 bytes each), loss (4 bytes), flags (1: no id), a byte.
void FuzzUpdate(const char* row, const uint8_t* data, size_t size);

// The coordinator's side of sessions: a run, a fleet and what they do, a program of bytes (session_fuzz.cc).
void FuzzSession(const char* row, const uint8_t* data, size_t size);

// The client's side: what a coordinator says to one client, a program of bytes (client_session_fuzz.cc).
void FuzzClientSession(const char* row, const uint8_t* data, size_t size);

// Reading a message of a trainer. Head: which one, a byte.
void FuzzTrainerMessage(const char* row, const uint8_t* data, size_t size);

// Reading the file of an external model. Head: flags (1: the header's length is put in front), the length (2 bytes).
void FuzzModelFile(const char* row, const uint8_t* data, size_t size);

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_TARGETS_H_
