// The table of short runs: what users see who look at a run after a tenth of its length, where sparse updates are far
// behind dense ones. It is no paper's table.
#ifndef TERSE_BENCH_PAPER_EARLY_TABLES_H_
#define TERSE_BENCH_PAPER_EARLY_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable EarlyTable();

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_EARLY_TABLES_H_
