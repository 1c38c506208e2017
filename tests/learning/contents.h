// The values of a column, for comparisons.
#ifndef TERSE_TESTS_LEARNING_CONTENTS_H_
#define TERSE_TESTS_LEARNING_CONTENTS_H_

#include <string>
#include <vector>

#include "learning/datasets/dataset.h"

namespace terse {

inline std::string Contents(const Column& column) {
  return std::string(column.data(), column.count() * column.bytes_each());
}

// All values of a column of floats.
inline std::vector<float> Floats(const Column& column) {
  const auto* values = reinterpret_cast<const float*>(column.data());
  return std::vector<float>(values, values + column.count() * column.elements_each());
}

// The first number of every example.
inline std::vector<double> Numbers(const Column& column) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < column.count(); ++i) numbers.push_back(column.Number(i));
  return numbers;
}

}  // namespace terse

#endif  // TERSE_TESTS_LEARNING_CONTENTS_H_
