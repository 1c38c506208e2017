// What a whole run costs a client, both directions together: no paper's table, but what federated averaging, updates
// compressed upwards alone, and both directions compressed cost side by side.
#ifndef TERSE_BENCH_PAPER_BIDIRECTIONAL_TABLES_H_
#define TERSE_BENCH_PAPER_BIDIRECTIONAL_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable BidirectionalTable();

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_BIDIRECTIONAL_TABLES_H_
