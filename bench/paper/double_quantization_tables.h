// Yu et al. 2019, Double Quantization: bits until the training loss is low, of AsyLPG, its kin, and what it is compared
// with.
#ifndef TERSE_BENCH_PAPER_DOUBLE_QUANTIZATION_TABLES_H_
#define TERSE_BENCH_PAPER_DOUBLE_QUANTIZATION_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable DoubleQuantizationTable();

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_DOUBLE_QUANTIZATION_TABLES_H_
