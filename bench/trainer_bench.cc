// terse-trainer-bench: what it costs to bring a model's weights to a trainer in another process and the result back.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "CLI/CLI.hpp"
#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/median.h"
#include "core/status.h"
#include "trainer/external_trainer.h"

namespace terse {
namespace {

double Milliseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> values) { return MedianOf(absl::MakeSpan(values)); }

absl::Status Measure(const std::string& command, int64_t rounds) {
  ExternalTrainerOptions options;
  options.source = TrainerCommand(command);
  RunConfig config;
  config.name = "bench";
  config.model.name = std::string(kExternalModel);
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<LocalTrainer> trainer,
                         ExternalTrainerFactory(std::move(options))(config, {}, ""));
  std::vector<float> weights(trainer->layout().size(), 0.5f), delta(weights.size()), copy(weights.size());
  std::vector<double> train, copied;
  absl::Status status;
  for (int64_t round = 1; round <= rounds && status.ok(); ++round) {
    // In turns, so that both see the same machine.
    copied.push_back(Milliseconds([&] { std::memcpy(copy.data(), weights.data(), weights.size() * sizeof(float)); }));
    weights[0] += copy[0] * 1e-3f;
    train.push_back(Milliseconds([&] {
      status = trainer
                   ->Train(
                       weights, {1, round, round, round - 1}, [] { return true; }, absl::MakeSpan(delta))
                   .status();
    }));
    if (status.ok()) trainer->SaveState().status().IgnoreError();
    trainer->OnSealed(round);
  }
  TERSE_RETURN_IF_ERROR(status);
  std::printf("elements %lld  rounds %lld  in and out %.2f ms  memcpy of the model %.2f ms  ratio %.2f  (medians)\n",
              static_cast<long long>(trainer->layout().size()), static_cast<long long>(rounds), Median(train),
              Median(copied), Median(train) / Median(copied));
  return absl::OkStatus();
}

}  // namespace
}  // namespace terse

int main(int argc, char** argv) {
  CLI::App app(
      "Has a trainer take weights and hand back a result, without a coordinator, and compares the time with memcpy.");
  app.name("terse-trainer-bench");
  std::string command;
  int64_t rounds = 21;
  app.add_option("command", command, "command that starts the trainer, for /bin/sh")->required();
  app.add_option("--rounds", rounds, "times that it trains")
      ->check(terse::WholeNumber(1, 100000))
      ->capture_default_str();
  if (const auto code = terse::ReadCommandLine(app, argc, argv); code.has_value()) return *code;
  std::signal(SIGPIPE, SIG_IGN);
  const absl::Status status = terse::Measure(command, rounds);
  if (!status.ok()) std::fprintf(stderr, "terse-trainer-bench: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
