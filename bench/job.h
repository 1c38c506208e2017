// The parts of `terse-bench codec`: jobs, each of which measures a few figures. One file a kind of job.
#ifndef TERSE_BENCH_JOB_H_
#define TERSE_BENCH_JOB_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/synthetic.h"

namespace terse {

struct JobSetting {
  int64_t large = kLargeTensor;  // elements of the large tensor
  double effort = 1;             // repetitions are multiplied by it
  int threads = 2;               // where several are used
  std::string simd;              // the target in use

  // At least three.
  int Repetitions(int usual) const;
};

struct Job {
  std::vector<std::string> figures;  // names of the metrics
  std::string what;                  // for the progress line
  double seconds = 1;                // about how long it takes
  std::function<std::vector<Metric>(const JobSetting&)> run;
};

// A client's whole step with SBC: residual + delta, selection, mean, positions, subtraction.
std::vector<Job> PipelineJobs();
// The same step against one with at::topk; none in a build without LibTorch.
std::vector<Job> TopkJobs();
// Position coders: speed, size.
std::vector<Job> PositionJobs();
// Decoding and adding up.
std::vector<Job> AggregateJobs();
// Every row of the codec table.
std::vector<Job> CodecTableJobs();

}  // namespace terse

#endif  // TERSE_BENCH_JOB_H_
