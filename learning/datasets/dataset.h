// The data that training and evaluation read: labelled examples kept as the numbers they came in, or text as a row of
// symbols. A batch becomes floats only when it is used. No LibTorch in here.
#ifndef TERSE_LEARNING_DATASETS_DATASET_H_
#define TERSE_LEARNING_DATASETS_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/id128.h"

namespace terse {

enum class Element { kByte, kFloat, kInt32, kInt64 };

// Returns the bytes of an element, in the order of the enum: 1, 4, 4, 8.
int64_t BytesOf(Element element);
// Returns "byte", "float", "int32" or "int64".
const char* NameOf(Element element);

// The same number of values, of one type, for each of many examples: features or targets. The values of example i
// begin at data() + i * bytes_each(), in the machine's byte order. They lie in memory of the column's own or in a
// mapped file. Immutable; copies share the values. Thread-safe.
class Column {
 public:
  Column() = default;
  // `shape` is that of one example; empty for one number each. The values' size must be a multiple of one example's.
  static Column FromBytes(std::vector<int64_t> shape, std::vector<uint8_t> values);
  static Column FromFloats(std::vector<int64_t> shape, std::vector<float> values);
  static Column FromInt64s(std::vector<int64_t> shape, std::vector<int64_t> values);
  // `count` examples at `data`, which must be aligned for the element and lives as long as `owner`.
  static Column Shared(Element element, std::vector<int64_t> shape, int64_t count, const void* data,
                       std::shared_ptr<const void> owner);

  Element element() const { return element_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t count() const { return count_; }
  int64_t elements_each() const;
  int64_t bytes_each() const { return elements_each() * BytesOf(element_); }
  const char* data() const { return data_; }

  // Copies the values of `indices`, all below count(), one after the other.
  void Gather(absl::Span<const uint32_t> indices, char* out) const;
  // The first number of an example, whatever its type.
  double Number(int64_t example) const;
  // Returns the same values in another shape with as many elements.
  Column Reshaped(std::vector<int64_t> shape) const;
  // Examples [first, first + count).
  Column Slice(int64_t first, int64_t count) const;
  // XXH3-128 of type, shape, count and the values' own XXH3-128.
  Id128 Hash() const;

 private:
  Element element_ = Element::kByte;
  std::vector<int64_t> shape_;
  int64_t count_ = 0;
  const char* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// The kind of prediction that a model can learn from a data set; it decides the losses that fit.
enum class Task {
  kClasses,  // targets are whole numbers in 0..classes-1, one an example
  kValues,   // targets are floats of any shape
  kText,     // the next symbol of a text
};

// A file of several examples, and the number of the first of them.
struct DataFile {
  std::string name;
  int64_t first = 0;
};

struct Examples {
  Column features;
  Column targets;
  std::vector<DataFile> files = {};  // where they come from, in order; empty for examples that no file holds
  int64_t count() const { return features.count(); }
  // The place of an example for messages, counted from 0 in its file: "/data/b.csv, example 17".
  std::string Place(int64_t example) const;
};

// Symbols of a text, numbers below the data set's `classes`.
struct Text {
  std::vector<int32_t> symbols;
  int64_t count() const { return static_cast<int64_t>(symbols.size()); }
};

// Examples for kClasses and kValues, texts for kText; the other pair is empty. A client may have no test set, and a
// coordinator no training set.
struct Dataset {
  std::string description;  // for logs: "MNIST from /data" or "12000 rendered digits"
  Task task = Task::kClasses;
  int64_t classes = 0;                  // kClasses: labels are below it; kText: symbols are; kValues: 0
  std::vector<std::string> vocabulary;  // kText: the symbols in the order of their numbers
  Examples train;
  Examples test;
  Text train_text;
  Text test_text;
  // The places where the source itself divides the training set, one entry per file, each the first example or symbol
  // of it: for the partition "by_file". Empty when there is one file.
  std::vector<int64_t> file_starts;
  // Why there is no training set or no test set, for messages: the key, the path and what is there in its place. Empty
  // where there is one, or nobody looked for it.
  std::string no_train;
  std::string no_test;

  int64_t train_count() const { return task == Task::kText ? train_text.count() : train.count(); }
  int64_t test_count() const { return task == Task::kText ? test_text.count() : test.count(); }
};

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_DATASET_H_
