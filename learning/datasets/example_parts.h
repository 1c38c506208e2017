// The common part of the readers of labelled examples: it makes a data set of the examples that they found, or refuses
// them before a model sees them.
#ifndef TERSE_LEARNING_DATASETS_EXAMPLE_PARTS_H_
#define TERSE_LEARNING_DATASETS_EXAMPLE_PARTS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "learning/datasets/data_files.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Features and targets of the same examples; `name` stands for them in messages, and is the file that they come from.
// Targets of shape {1} become one number each. INVALID_ARGUMENT when the counts differ, there is no example or no
// feature, or whole-number targets are not one number each.
absl::StatusOr<Examples> PairExamples(Column features, Column targets, const std::string& name);

// The data set of the parts that are there, described as "`format` from ...": an empty path is left out, `load` reads
// the others, the training set first. The task follows from the targets: floats are values; whole numbers are classes,
// and dataset.classes is one more than the largest label of both parts. INVALID_ARGUMENT when the parts differ in shape
// or kind, or, with file and example, when a label is negative or above 2^20 or a number is NaN or infinite; also
// returns what `load` returns.
absl::StatusOr<Dataset> LoadExampleParts(const std::string& format, const DataParts& parts,
                                         const std::function<absl::StatusOr<Examples>(const std::string& path)>& load);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_EXAMPLE_PARTS_H_
