// Mordido, Van Keirsbilck, Keller 2020, Monte Carlo Gradient Quantization, section 4.3.
#ifndef TERSE_BENCH_PAPER_MCGQ_TABLES_H_
#define TERSE_BENCH_PAPER_MCGQ_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable McgqTable3();  // words
PaperTable McgqTable4();  // characters; the paper prints losses, here perplexities

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_MCGQ_TABLES_H_
