// Two tables that are no paper's: short runs, which is what users see who look at a run after a tenth of its length,
// where sparse updates are far behind dense ones, and many local steps, where the residual becomes an overshoot.
#ifndef TERSE_BENCH_PAPER_EARLY_TABLES_H_
#define TERSE_BENCH_PAPER_EARLY_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable EarlyTable();
PaperTable DelayTable();

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_EARLY_TABLES_H_
