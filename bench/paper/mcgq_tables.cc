#include "bench/paper/mcgq_tables.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

// Returns the settings of MCGQ with accumulated gradients and the code of section 3.4. The paper prints no K; the
// `samples` used here should come near its compression.
std::string Mcgq(const char* samples) {
  return absl::StrCat("name = 'mcgq'\nsamples = ", samples, "\ncode = 'simple'\ndownstream = 'auto'\n");
}

PaperMethod Method(const std::string& name, const std::string& title, const std::string& codec,
                   const std::string& server) {
  PaperMethod method = {name, title, "", codec, 1, codec == kDenseRun ? 5 : 50};
  method.server = server;
  return method;
}

// "We did not perform multi-node training" (section 4): one client.
PaperWorkload OneWorker(std::string name, std::string title, int64_t iterations) {
  PaperWorkload workload;
  workload.name = std::move(name);
  workload.title = std::move(title);
  workload.metric = PaperMetric::kPerplexity;
  workload.iterations = iterations;
  workload.clients = 1;
  workload.averaging_steps = 1;
  workload.momentum = false;
  return workload;
}

}  // namespace

// The "recommended training configuration" of the implementation that the paper names: unroll 70, learning rate 30,
// clipped at 0.25, weight decay 1.2e-6. An epoch is 166 iterations; the rate, which there falls when the validation
// loss stops falling, is divided by 4 after epochs 25, 30, 35 and 40 of 50.
PaperTable McgqTable3() {
  PaperWorkload words = OneWorker("ptb", "2-layer LSTM of 1500 on the Penn Treebank", 8300);
  words.model = "name = 'ptb_lstm_1500'\n";
  words.data = "name = 'ptb'\npartition = 'all'\n";
  words.train = "batch_size = 80\nloss = 'sequence_cross_entropy'\nunroll = 70\n";
  words.optimizer = "name = 'sgd'\nmomentum = 0.0\nlearning_rate = 30.0\nclip_norm = 0.25\nweight_decay = 1.2e-6\n";
  words.schedule = "factor = 0.25\nat = [{4150}, {4980}, {5810}, {6640}]\n";
  // DGC against its own baseline of 72.30.
  words.figures = {{82.03, 1}, {81.82, 1218}, {77.73, 469}, {72.24, 462}};
  return {"mcgq-table3",
          "Mordido et al. 2020, Monte Carlo Gradient Quantization, Table 3",
          {Method("baseline", "Baseline", kDenseRun, ""), Method("mcgq_low", "MCGQ, K = 0.002", Mcgq("0.002"), ""),
           Method("mcgq_high", "MCGQ, K = 0.0055", Mcgq("0.0055"), ""),
           Method("dgc", "DGC", "name = 'dgc'\ndensity = 0.001\nmomentum = 0.0\ndownstream = 'auto'\n", "")},
          {words}};
}

// Char-RNN's settings: windows of 50, RMSProp with rate 0.002 and decay 0.95. RMSProp is the server's, which steps with
// what was decoded, as the paper's Algorithm 4 does; the client's step of rate 1 is the gradient itself. An epoch is
// 2,186 iterations.
PaperTable McgqTable4() {
  const std::string rms_prop = "optimizer = 'adam'\nlearning_rate = 0.002\nbeta1 = 0.0\nbeta2 = 0.95\ntau = 1e-8\n";
  PaperWorkload characters = OneWorker("char_rnn", "2-layer LSTM of 512 on Shakespeare", 98370);
  characters.model = "name = 'char_rnn_512'\n";
  characters.data = "name = 'shakespeare'\npartition = 'all'\n";
  characters.train = "batch_size = 10\nloss = 'sequence_cross_entropy'\nunroll = 50\n";
  characters.optimizer = "name = 'sgd'\nmomentum = 0.0\nlearning_rate = 1.0\nclip_norm = 5.0\n";
  // exp(1.578), exp(1.578 + 0.020), exp(1.578 - 0.016); AdaComp relative to its own baseline.
  characters.figures = {{4.845, 1}, {4.943, 520}, {4.768, 215}, {4.943, 200}};
  return {"mcgq-table4",
          "Mordido et al. 2020, Monte Carlo Gradient Quantization, Table 4",
          {Method("baseline", "Baseline", kDenseRun, rms_prop),
           Method("mcgq_low", "MCGQ, K = 0.004", Mcgq("0.004"), rms_prop),
           Method("mcgq_high", "MCGQ, K = 0.0108", Mcgq("0.0108"), rms_prop),
           Method("adacomp", "AdaComp", "name = 'adacomp'\ndownstream = 'auto'\n", rms_prop)},
          {characters}};
}

}  // namespace terse
