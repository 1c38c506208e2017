// Says on stderr how far a long command is and how long it will still take.
#ifndef TERSE_CORE_CLI_PROGRESS_LINE_H_
#define TERSE_CORE_CLI_PROGRESS_LINE_H_

#include <string>

namespace terse {

// Silent for the first two seconds. On a terminal one line is rewritten twice a second at most; a log gets a line every
// ten seconds. Not thread-safe.
class ProgressLine {
 public:
  // `total` is the work to come, in any unit.
  explicit ProgressLine(double total);
  // Clears the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Says that `what` begins.
  void Begin(const std::string& what);
  // Says that so much of the work is done.
  void Advance(double work);
  // Says both: that so much of the work is done, and what that was.
  void Advance(double work, const std::string& what);
  // Says that so much was done before this process began, which tells nothing about the time left.
  void Skip(double work);

 private:
  void Show();

  const double total_;
  const double start_;
  const bool terminal_;
  double done_ = 0;
  double skipped_ = 0;
  double shown_ = 0;  // when
  std::string what_;
};

}  // namespace terse

#endif  // TERSE_CORE_CLI_PROGRESS_LINE_H_
