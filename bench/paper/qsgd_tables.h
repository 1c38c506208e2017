// The QSGD report: its models, bits and error correction. It prints no figures and no hyperparameters.
#ifndef TERSE_BENCH_PAPER_QSGD_TABLES_H_
#define TERSE_BENCH_PAPER_QSGD_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable QsgdTables();

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_QSGD_TABLES_H_
