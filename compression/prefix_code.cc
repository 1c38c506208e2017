#include "compression/prefix_code.h"

#include <algorithm>
#include <numeric>

namespace terse {
namespace {

// Huffman's tree by two queues: leaves by count, then index, and the nodes in the order in which they are made. Of
// equal counts a leaf is taken before a node. Returns the depth of every leaf.
std::vector<int> LeafDepths(absl::Span<const uint64_t> counts) {
  const size_t leaves = counts.size();
  std::vector<uint32_t> order(leaves);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return counts[a] < counts[b]; });
  std::vector<uint64_t> node_counts;
  std::vector<size_t> parents(2 * leaves - 1);  // of the leaves in order, then of the nodes
  size_t leaf = 0, node = 0;
  const auto take = [&](size_t parent) {
    const bool is_leaf = leaf < leaves && (node == node_counts.size() || counts[order[leaf]] <= node_counts[node]);
    const uint64_t count = is_leaf ? counts[order[leaf]] : node_counts[node];
    parents[is_leaf ? leaf++ : leaves + node++] = parent;
    return count;
  };
  while (node_counts.size() + 1 < leaves) {
    const size_t parent = leaves + node_counts.size();
    const uint64_t first = take(parent);
    node_counts.push_back(first + take(parent));
  }
  std::vector<int> depths(parents.size());
  for (size_t i = parents.size() - 1; i-- > 0;) depths[i] = depths[parents[i]] + 1;
  std::vector<int> of_symbols(leaves);
  for (size_t i = 0; i < leaves; ++i) of_symbols[order[i]] = depths[i];
  return of_symbols;
}

uint16_t Reversed(uint32_t word, int length) {
  uint32_t reversed = 0;
  for (int bit = 0; bit < length; ++bit) reversed |= (word >> bit & 1) << (length - 1 - bit);
  return static_cast<uint16_t>(reversed);
}

absl::Status NoCode() { return absl::InvalidArgumentError("lengths of code words that are no complete code"); }

}  // namespace

std::vector<uint8_t> PrefixLengths(absl::Span<const uint64_t> counts) {
  std::vector<uint64_t> scaled(counts.begin(), counts.end());
  std::vector<int> depths = LeafDepths(scaled);
  while (*std::max_element(depths.begin(), depths.end()) > kMostPrefixBits) {
    for (uint64_t& count : scaled) count = (count + 1) / 2;
    depths = LeafDepths(scaled);
  }
  return {depths.begin(), depths.end()};
}

absl::StatusOr<std::vector<PrefixWord>> PrefixWords(absl::Span<const uint8_t> lengths) {
  if (lengths.empty() || static_cast<int64_t>(lengths.size()) > kMostPrefixSymbols) return NoCode();
  std::vector<PrefixWord> words(lengths.size());
  if (lengths.size() == 1) {
    if (lengths[0] != 0) return NoCode();
    return words;
  }
  uint32_t number[kMostPrefixBits + 1] = {};
  for (uint8_t length : lengths) {
    if (length < 1 || length > kMostPrefixBits) return NoCode();
    ++number[length];
  }
  uint32_t next[kMostPrefixBits + 1] = {};
  uint32_t word = 0;
  for (int length = 1; length <= kMostPrefixBits; ++length) {
    word = (word + number[length - 1]) << 1;
    next[length] = word;
  }
  // Kraft's sum in units of the longest word; it cannot overflow.
  if (word + number[kMostPrefixBits] != uint32_t{1} << kMostPrefixBits) return NoCode();
  for (size_t i = 0; i < lengths.size(); ++i) words[i] = {Reversed(next[lengths[i]]++, lengths[i]), lengths[i]};
  return words;
}

PrefixTable::PrefixTable(absl::Span<const PrefixWord> words) {
  uint8_t most = 0;
  for (const PrefixWord& word : words) most = std::max(most, word.length);
  mask_ = (uint64_t{1} << most) - 1;
  entries_.resize(mask_ + 1);
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint64_t at = words[i].bits; at <= mask_; at += uint64_t{1} << words[i].length) {
      entries_[at] = {static_cast<uint16_t>(i), words[i].length};
    }
  }
}

}  // namespace terse
