// Sattler, Wiedemann, Mueller, Samek 2018, Sparse Binary Compression, with the hyperparameters of Table III.
#ifndef TERSE_BENCH_PAPER_SBC_TABLES_H_
#define TERSE_BENCH_PAPER_SBC_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

// Workloads of Table II.
PaperWorkload LeNet5OnMnist();
PaperWorkload CharLstmOnShakespeare();

PaperTable SbcTable2();
PaperTable SbcFigure3();  // every pair of a temporal and a gradient sparsity

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_SBC_TABLES_H_
