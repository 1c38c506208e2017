// The controller `joint` (coordinator/control/joint.h) against a grid of fixed local steps and densities.
#ifndef TERSE_BENCH_PAPER_JOINT_TABLES_H_
#define TERSE_BENCH_PAPER_JOINT_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable JointTable();

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_JOINT_TABLES_H_
