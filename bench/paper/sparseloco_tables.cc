#include "bench/paper/sparseloco_tables.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

// Covenant-72B's rounds: 30 steps of AdamW.
constexpr int64_t kSteps = 30;
constexpr int64_t kCheckpoints = 50;
// Douillard et al. 2023: the outer optimizer of DiLoCo.
constexpr char kNesterov[] = "optimizer = 'sgd'\nlearning_rate = 0.7\nmomentum = 0.9\nnesterov = true\n";

// With the default rule of aggregation.
PaperMethod Imputed(PaperMethod method) {
  absl::StrAppend(&method.name, "_imputed");
  absl::StrAppend(&method.title, ", imputed mean");
  method.aggregation = "rule = 'imputed_mean'\n";
  return method;
}

PaperMethod Row(const std::string& name, const std::string& title, const std::string& codec,
                const std::string& downstream = "", const std::string& server = "") {
  PaperMethod method = {name, title, "", codec, kSteps, kCheckpoints};
  method.downstream = downstream;
  method.server = server;
  return method;
}

// As in Covenant-72B: 64 of each chunk of 4096, 2 bits, a residual that keeps 0.95.
std::string SparseLoCo(const std::string& positions, const std::string& downstream) {
  return absl::StrCat("name = 'sparseloco'\ndensity = 0.015625\nbits = 2\nbucket = 4096\ndecay = 0.95\npositions = '",
                      positions, "'\ndownstream = '", downstream, "'\n");
}

// All elements in 2 bits: the quantizer of SparseLoCo without its selection. Where all elements are sent, "auto" finds
// a code of their positions that takes a few bytes a tensor.
constexpr char kTwoBits[] = "density = 1.0\nbits = 2\npositions = 'auto'\n";

std::vector<PaperMethod> SparseLoCoMethods() {
  const PaperMethod coded = Row("auto", "SparseLoCo, positions auto", SparseLoCo("auto", "auto"));
  const PaperMethod sbc = Row("sbc", "SBC of the same density",
                              "name = 'sbc'\ndensity = 0.015625\npositions = 'auto'\ndownstream = 'auto'\n");
  return {
      Row("diloco", "DiLoCo, dense", kDenseRun, "", kNesterov),
      // The publication's peers fetch each other's updates as they are.
      Row("sparseloco", "SparseLoCo as published", SparseLoCo("chunk12", "forward")),
      coded,
      Row("shared", "SparseLoCo, positions shared", SparseLoCo("shared", "auto")),
      Imputed(coded),
      sbc,
      Imputed(sbc),
      Row("two_bits", "2 bits, error feedback",
          absl::StrCat("name = 'sparseloco'\n", kTwoBits, "downstream = 'sparseloco'\n"), kTwoBits, kNesterov),
  };
}

PaperWorkload OnShakespeare(const std::string& name, const std::string& title, const std::string& model,
                            int64_t iterations) {
  return {name,
          title,
          PaperMetric::kPerplexity,
          iterations,
          4,
          kSteps,
          false,
          absl::StrCat("name = '", model, "'\nclasses = 65\n"),
          "name = 'shakespeare'\npartition = 'iid'\n",
          "batch_size = 16\nunroll = 128\n",
          "name = 'adamw'\nlearning_rate = 0.001\nbeta2 = 0.95\nweight_decay = 0.1\nclip_norm = 1.0\n",
          absl::StrCat("factor = 0.5\nat = [{", iterations / 2, "}, {", iterations * 3 / 4, "}, {", iterations * 7 / 8,
                       "}]\n"),
          {}};
}

}  // namespace

PaperWorkload SmallTransformerOnShakespeare() {
  return OnShakespeare("small", "Small transformer on Shakespeare", "transformer_small", 6000);
}

PaperTable SparseLoCoTable() {
  return {"sparseloco",
          "Language models in few rounds: loss against bytes, up and down",
          SparseLoCoMethods(),
          {OnShakespeare("transformer", "Transformer of 6 million parameters on Shakespeare", "transformer", 6000),
           SmallTransformerOnShakespeare()},
          PaperColumns::kLossAndBytes};
}

}  // namespace terse
