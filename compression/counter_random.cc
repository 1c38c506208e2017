#include "compression/counter_random.h"

namespace terse {
namespace {

constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15u;

// The output function of SplitMix64: a bijection of 64-bit words that spreads every bit.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint32_t Low(uint64_t word) { return static_cast<uint32_t>(word); }
uint32_t High(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53u} * counter[0];
    const uint64_t b = uint64_t{0xcd9e8d57u} * counter[2];
    counter = {High(b) ^ counter[1] ^ key[0], Low(b), High(a) ^ counter[3] ^ key[1], Low(a)};
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return counter;
}

CounterRandom::CounterRandom(const CodecKey& key, int64_t tensor) {
  const uint64_t run = Mix(key.run + kGoldenRatio);
  const uint64_t encoding = Mix(Mix(key.round + kGoldenRatio) + key.client);
  key_ = {Low(run), High(run)};
  counter_ = {0, static_cast<uint32_t>(tensor), Low(encoding), High(encoding)};
}

std::array<uint32_t, 4> CounterRandom::Block(int64_t block) const {
  std::array<uint32_t, 4> counter = counter_;
  counter[0] = static_cast<uint32_t>(block);
  return Philox4x32(counter, key_);
}

void CounterRandom::Fill(int64_t first, absl::Span<uint32_t> words) const {
  std::array<uint32_t, 4> block = Block(first / 4);
  for (size_t i = 0; i < words.size(); ++i) {
    const int64_t index = first + static_cast<int64_t>(i);
    if (i > 0 && index % 4 == 0) block = Block(index / 4);
    words[i] = block[index % 4];
  }
}

uint32_t CounterRandom::At(int64_t index) const { return Block(index / 4)[index % 4]; }

}  // namespace terse
