// Cui et al. 2018, MQGrad: fixed bits against bits that a policy chooses, in training loss against time.
#ifndef TERSE_BENCH_PAPER_MQGRAD_TABLES_H_
#define TERSE_BENCH_PAPER_MQGRAD_TABLES_H_

#include "bench/paper/paper_table.h"

namespace terse {

PaperTable MqgradFigure();

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_MQGRAD_TABLES_H_
