// RunLearning for the grid trainer's layouts. No GoogleTest in here: processes of end-to-end tests use it too.
#ifndef TERSE_TESTS_TESTING_GRID_LEARNING_H_
#define TERSE_TESTS_TESTING_GRID_LEARNING_H_

#include <memory>
#include <string>
#include <vector>

#include "coordinator/rpc/run_learning.h"
#include "tests/testing/grid_trainer.h"

namespace terse {

class GridLearning : public RunLearning {
 public:
  // `layout` must outlive the object.
  explicit GridLearning(const Layout& layout) : layout_(layout) {}

  const Layout& layout() const override { return layout_; }
  absl::StatusOr<std::vector<float>> InitialWeights() const override { return GridInitialWeights(layout_); }
  Evaluator* evaluator() override { return &evaluator_; }

 private:
  const Layout& layout_;
  GridEvaluator evaluator_;
};

// Takes any configuration, module and data. `layout` must outlive what it makes.
inline RunLearningFactory GridLearningFactory(const Layout& layout = GridLayout()) {
  return [&layout](const RunConfig&, const std::string&,
                   const std::string&) -> absl::StatusOr<std::unique_ptr<RunLearning>> {
    return std::make_unique<GridLearning>(layout);
  };
}

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_GRID_LEARNING_H_
