// The table of language models that are trained with few rounds and few bytes: SparseLoCo as it is published and with
// Terse's coders, beside DiLoCo, SBC and 2-bit quantization. It is no paper's table: models and texts are small ones.
#ifndef TERSE_BENCH_PAPER_SPARSELOCO_TABLES_H_
#define TERSE_BENCH_PAPER_SPARSELOCO_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable SparseLoCoTable();

// The small transformer of that table.
PaperWorkload SmallTransformerOnShakespeare();

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_SPARSELOCO_TABLES_H_
