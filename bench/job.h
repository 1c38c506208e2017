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

  // Returns the number of repetitions in this setting where `usual` is usual; at least three.
  int Repetitions(int usual) const;
};

struct Job {
  std::vector<std::string> figures;  // names of the metrics
  std::string what;                  // for the progress line
  double seconds = 1;                // about how long it takes
  std::function<std::vector<Metric>(const JobSetting&)> run;
};

// Returns the jobs that measure a client's whole step with SBC: residual + delta, selection, mean, positions,
// subtraction.
std::vector<Job> PipelineJobs();
// Returns the jobs that compare the same step with one that uses at::topk; a build without LibTorch has none.
std::vector<Job> TopkJobs();
// Returns the jobs that measure the position coders: speed, size.
std::vector<Job> PositionJobs();
// Returns the jobs that measure decoding and adding up.
std::vector<Job> AggregateJobs();
// Returns the jobs that compare the exact forms of a downstream message: size, and speed of the sparse step.
std::vector<Job> DownstreamJobs();
// Returns the jobs that measure every row of the codec table.
std::vector<Job> CodecTableJobs();

}  // namespace terse

#endif  // TERSE_BENCH_JOB_H_
