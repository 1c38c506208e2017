// Sattler, Wiedemann, Mueller, Samek 2018, Sparse Binary Compression, with the hyperparameters of Table III.
#ifndef TERSE_BENCH_PAPER_SBC_TABLES_H_
#define TERSE_BENCH_PAPER_SBC_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/paper/paper_table.h"

namespace terse {

// Workloads of Table II, two of them also alone.
std::vector<PaperWorkload> SbcWorkloads();
PaperWorkload LeNet5OnMnist();
PaperWorkload CharLstmOnShakespeare();

// SBC after `steps` local steps, sending a part `density` (a number of TOML) of each tensor with Rice positions.
PaperMethod SbcMethod(const std::string& name, const std::string& title, int64_t steps, const std::string& density);

PaperTable SbcTable2();
PaperTable SbcFigure3();  // every pair of a temporal and a gradient sparsity

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_SBC_TABLES_H_
