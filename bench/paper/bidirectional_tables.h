// The table of the cost of a whole run for a client, both directions together. It is no paper's table: it sets side by
// side federated averaging, updates compressed upwards alone, and both directions compressed.
#ifndef TERSE_BENCH_PAPER_BIDIRECTIONAL_TABLES_H_
#define TERSE_BENCH_PAPER_BIDIRECTIONAL_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable BidirectionalTable();

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_BIDIRECTIONAL_TABLES_H_
