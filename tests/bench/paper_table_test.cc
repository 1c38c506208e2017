#include "bench/paper/paper_table.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/run_config_loader.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

const PaperWorkload& Workload(const PaperTable& table, const std::string& name) {
  for (const PaperWorkload& workload : table.workloads) {
    if (workload.name == name) return workload;
  }
  ADD_FAILURE() << "no workload " << name;
  return table.workloads.front();
}

const PaperTable& Table(const std::string& name) {
  for (const PaperTable& table : PaperTables()) {
    if (table.name == name) return table;
  }
  ADD_FAILURE() << "no table " << name;
  return PaperTables().front();
}

v1::RunConfig ConfigOf(const PaperRow& row) {
  const absl::StatusOr<v1::RunConfig> config = ParseRunConfig(row.run, row.key);
  EXPECT_TRUE(config.ok()) << config.status() << "\n" << row.run;
  return config.value_or(v1::RunConfig());
}

TEST(PaperTable, EveryRowOfEveryScaleIsARunOfItsOwn) {
  for (const PaperTable& table : PaperTables()) {
    std::set<std::string> keys;
    for (const PaperWorkload& workload : table.workloads) {
      EXPECT_TRUE(workload.figures.empty() || workload.figures.size() == table.methods.size()) << workload.name;
      for (size_t i = 0; i < table.methods.size(); ++i) {
        for (const double scale : {1.0, 0.1, 1e-6}) {
          const PaperRow row = MakePaperRow(table, workload, i, {scale, 7});
          const v1::RunConfig config = ConfigOf(row);
          EXPECT_EQ(config.name(), row.key);
          EXPECT_EQ(config.seed(), 7u);
          EXPECT_EQ(config.rounds().count() * config.train().local_steps(), row.iterations) << row.key;
          EXPECT_GT(config.rounds().deadline_seconds(), 1e6) << "a slow machine must not change what is trained";
          EXPECT_GE(row.iterations, 1);
          EXPECT_LE(row.iterations, workload.iterations);
        }
        EXPECT_TRUE(keys.insert(MakePaperRow(table, workload, i, {}).key).second) << "two rows of one name";
      }
    }
  }
}

TEST(PaperTable, AnotherRateOfTheServerIsForTablesThatHaveOne) {
  const PaperTable& table = Table("double-quantization");
  const PaperWorkload& mnist = Workload(table, "mnist");
  EXPECT_EQ(ConfigOf(MakePaperRow(table, mnist, 0, {})).server().learning_rate(), 0.1);
  PaperScale scale;
  scale.server_rate = 0.25;
  EXPECT_EQ(ConfigOf(MakePaperRow(table, mnist, 0, scale)).server().learning_rate(), 0.25);
  const PaperTable& other = Table("sparseloco");
  const PaperWorkload& small = Workload(other, "small");
  EXPECT_EQ(MakePaperRow(other, small, 0, scale).run, MakePaperRow(other, small, 0, {}).run);
}

TEST(PaperTable, EvaluationsAreSpacedEvenly) {
  const PaperTable& table = Table("qsgd");
  const PaperWorkload& resnet = Workload(table, "resnet110");
  PaperScale scale;
  scale.scale = 0.001;
  EXPECT_EQ(ConfigOf(MakePaperRow(table, resnet, 0, scale)).rounds().evaluate_every(), 6);
  scale.evaluations = 1;
  EXPECT_EQ(ConfigOf(MakePaperRow(table, resnet, 0, scale)).rounds().evaluate_every(), 60);
  scale.evaluations = 1000;
  EXPECT_EQ(ConfigOf(MakePaperRow(table, resnet, 0, scale)).rounds().evaluate_every(), 1);
}

TEST(PaperTable, TheHyperparametersOfSparseBinaryCompression) {
  const PaperTable& table = Table("sbc-table2");
  const v1::RunConfig lenet = ConfigOf(MakePaperRow(table, Workload(table, "lenet5"), 3, {}));
  EXPECT_EQ(lenet.rounds().count(), 2000);
  EXPECT_EQ(lenet.train().optimizer().name(), "adam");
  EXPECT_EQ(lenet.codec().density(), 0.001);
  const v1::RunConfig residual = ConfigOf(MakePaperRow(table, Workload(table, "resnet32"), 4, {}));
  EXPECT_EQ(residual.train().local_steps(), 10);
  EXPECT_EQ(residual.rounds().count(), 6000);
  EXPECT_EQ(residual.train().optimizer().momentum(), 0.9);
  EXPECT_EQ(residual.train().schedule().at(1), 50000);
  const v1::RunConfig words = ConfigOf(MakePaperRow(table, Workload(table, "wordlstm"), 2, {}));
  EXPECT_EQ(words.train().local_steps(), 1000);
  EXPECT_EQ(words.train().optimizer().momentum(), 0) << "Gradient Descent";
  EXPECT_EQ(words.train().schedule().from(), 24000);
  EXPECT_EQ(words.train().schedule().every(), 1200);
}

TEST(PaperTable, TheBitsOfMqgrad) {
  const PaperTable& table = Table("mqgrad");
  const PaperWorkload& cifar = Workload(table, "cifar");
  EXPECT_EQ(cifar.link_bytes_per_second, 10e6);
  for (size_t i = 0; i < 3; ++i) {
    const v1::RunConfig fixed = ConfigOf(MakePaperRow(table, cifar, i, {}));
    EXPECT_EQ(fixed.codec().bits(), 2 << i);
    EXPECT_EQ(fixed.downstream().bits(), 2 << i);
    EXPECT_EQ(fixed.control().name(), "fixed");
    EXPECT_EQ(fixed.codec().name(), "low_precision");
    EXPECT_EQ(fixed.codec().downstream(), "low_precision");
    EXPECT_EQ(fixed.train().optimizer().momentum(), 0);
  }
  const v1::RunConfig chosen = ConfigOf(MakePaperRow(table, cifar, 3, {}));
  EXPECT_EQ(chosen.control().name(), "mqgrad");
  EXPECT_EQ(chosen.codec().downstream(), "low_precision");
  EXPECT_EQ(chosen.train().batch_size(), 32);
  EXPECT_EQ(chosen.train().optimizer().weight_decay(), 0.004);
  EXPECT_EQ(chosen.train().optimizer().learning_rate(), 0.2);
}

TEST(PaperTable, JointGetsABudgetAndAllIterations) {
  const PaperTable& table = Table("joint");
  ASSERT_EQ(table.methods.size(), 18u);
  EXPECT_EQ(table.methods[16].budget_share, 0.69);
  EXPECT_EQ(table.methods[17].budget_share, 0.5);
  for (const PaperWorkload& workload : table.workloads) {
    EXPECT_EQ(ConfigOf(MakePaperRow(table, workload, 16, {})).aggregation().rule(), "mean");
    EXPECT_EQ(ConfigOf(MakePaperRow(table, workload, 17, {})).aggregation().rule(), "imputed_mean");
    for (size_t i = 0; i < 16; ++i) EXPECT_EQ(ConfigOf(MakePaperRow(table, workload, i, {})).control().name(), "fixed");
    const PaperRow row = MakePaperRow(table, workload, 16, {0.5, 1, 1234.4});
    const v1::RunConfig joint = ConfigOf(row);
    EXPECT_EQ(joint.control().name(), "joint");
    EXPECT_EQ(joint.control().budget(), 1234);
    EXPECT_EQ(joint.limits().iterations(), workload.iterations / 2);
    EXPECT_EQ(row.iterations, workload.iterations / 2);
    const v1::RunConfig fixed = ConfigOf(MakePaperRow(table, workload, 3, {}));
    EXPECT_EQ(fixed.codec().positions(), joint.codec().positions());
    EXPECT_EQ(fixed.codec().density(), 0.1);
  }
  // The controller chooses nothing that a fixed pair of the grid does not have too.
  const std::set<int64_t> grid = {1, 10, 30, 100};
  for (const PaperWorkload& workload : table.workloads) {
    const v1::RunConfig joint = ConfigOf(MakePaperRow(table, workload, 16, {0.5, 1, 1}));
    for (const int64_t steps : joint.control().local_steps()) EXPECT_EQ(grid.count(steps), 1u) << steps;
  }
}

TEST(PaperTable, TheMethodsOfDoubleQuantization) {
  const PaperTable& table = Table("double-quantization");
  ASSERT_EQ(table.methods.size(), 9u);
  const PaperWorkload& mnist = Workload(table, "mnist");
  const v1::RunConfig full = ConfigOf(MakePaperRow(table, mnist, 0, {}));
  EXPECT_EQ(full.codec().name(), "dense");
  EXPECT_EQ(full.codec().downstream(), "dense");
  EXPECT_EQ(full.server().epoch_length(), 500);
  EXPECT_EQ(full.data().examples(), 10000);
  EXPECT_EQ(full.rounds().count() % 501, 0) << "whole epochs: the last model is a snapshot";
  const v1::RunConfig low = ConfigOf(MakePaperRow(table, mnist, 4, {}));
  EXPECT_EQ(low.codec().bits(), 4);
  EXPECT_EQ(low.downstream().bits(), 8);
  const v1::RunConfig logistic = ConfigOf(MakePaperRow(table, Workload(table, "a9a"), 6, {}));
  EXPECT_EQ(logistic.server().optimizer(), "acc_svrg");
  EXPECT_EQ(logistic.codec().bits(), 8);
  EXPECT_EQ(logistic.train().optimizer().l1(), 1e-5);
  EXPECT_EQ(logistic.server().epoch_length(), (32561 + 199) / 200);
}

TEST(PaperTable, TheHyperparametersOfMonteCarloGradientQuantization) {
  const PaperTable& words = Table("mcgq-table3");
  const v1::RunConfig ptb = ConfigOf(MakePaperRow(words, Workload(words, "ptb"), 1, {}));
  EXPECT_EQ(ptb.rounds().clients(), 1);
  EXPECT_EQ(ptb.train().batch_size(), 80);
  EXPECT_EQ(ptb.train().local_steps(), 1);
  EXPECT_EQ(ptb.train().optimizer().momentum(), 0) << "vanilla SGD";
  EXPECT_EQ(ptb.codec().name(), "mcgq");
  EXPECT_EQ(ptb.codec().feedback(), "own");
  const PaperTable& characters = Table("mcgq-table4");
  const v1::RunConfig rnn = ConfigOf(MakePaperRow(characters, Workload(characters, "char_rnn"), 3, {0.5, 1}));
  EXPECT_EQ(rnn.model().name(), "char_rnn_512");
  EXPECT_EQ(rnn.train().batch_size(), 10);
  EXPECT_EQ(rnn.codec().name(), "adacomp");
  EXPECT_EQ(rnn.train().optimizer().name(), "sgd");
  EXPECT_EQ(rnn.train().optimizer().learning_rate(), 1) << "the update is the gradient";
  EXPECT_EQ(rnn.server().optimizer(), "adam") << "which steps with what was decoded";
  EXPECT_EQ(rnn.server().beta1(), 0) << "RMSProp";
}

TEST(PaperTable, QsgdHasEveryModelAtEveryNumberOfBits) {
  const PaperTable& table = Table("qsgd");
  ASSERT_EQ(table.workloads.size(), 3u);
  ASSERT_EQ(table.methods.size(), 7u);
  const v1::RunConfig plain = ConfigOf(MakePaperRow(table, Workload(table, "resnet18"), 3, {}));
  EXPECT_EQ(plain.codec().bits(), 4);
  EXPECT_EQ(plain.codec().feedback(), "none");
  const v1::RunConfig corrected = ConfigOf(MakePaperRow(table, Workload(table, "resnet18"), 6, {}));
  EXPECT_EQ(corrected.codec().bits(), 2);
  EXPECT_EQ(corrected.codec().feedback(), "error_feedback");
  for (const PaperWorkload& workload : table.workloads) {
    EXPECT_EQ(ConfigOf(MakePaperRow(table, workload, 0, {})).model().classes(), 10)
        << workload.name << ": CIFAR-10 has ten, and resnet18 tells a hundred apart unless it is told";
  }
}

TEST(PaperTable, TheMethodsOfSparseLoCo) {
  const PaperTable& table = Table("sparseloco");
  ASSERT_EQ(table.methods.size(), 8u);
  const PaperWorkload& workload = Workload(table, "transformer");
  const v1::RunConfig dense = ConfigOf(MakePaperRow(table, workload, 0, {}));
  EXPECT_EQ(dense.codec().name(), "dense");
  EXPECT_EQ(dense.server().optimizer(), "sgd");
  EXPECT_TRUE(dense.server().nesterov());
  EXPECT_EQ(dense.train().optimizer().name(), "adamw");
  const v1::RunConfig published = ConfigOf(MakePaperRow(table, workload, 1, {}));
  EXPECT_EQ(published.codec().density() * static_cast<double>(published.codec().bucket()), 64);
  EXPECT_EQ(published.codec().bits(), 2);
  EXPECT_EQ(published.codec().decay(), 0.95);
  EXPECT_EQ(published.codec().positions(), "chunk12");
  EXPECT_EQ(published.codec().downstream(), "forward");
  EXPECT_EQ(published.server().optimizer(), "average");
  for (const size_t own : {2, 3}) {
    const v1::RunConfig coded = ConfigOf(MakePaperRow(table, workload, own, {}));
    EXPECT_EQ(coded.codec().name(), "sparseloco");
    EXPECT_EQ(coded.codec().decay(), 0.95);
    EXPECT_EQ(coded.codec().positions(), own == 2 ? "auto" : "shared");
    EXPECT_EQ(coded.train().local_steps(), published.train().local_steps());
  }
  for (const size_t imputed : {4, 6}) {
    const v1::RunConfig mean = ConfigOf(MakePaperRow(table, workload, imputed == 4 ? 2 : 5, {}));
    const v1::RunConfig own = ConfigOf(MakePaperRow(table, workload, imputed, {}));
    EXPECT_EQ(mean.aggregation().rule(), "mean");
    EXPECT_EQ(own.aggregation().rule(), "imputed_mean");
    EXPECT_EQ(own.codec().SerializeAsString(), mean.codec().SerializeAsString());
  }
  const v1::RunConfig two_bits = ConfigOf(MakePaperRow(table, workload, 7, {}));
  EXPECT_EQ(two_bits.codec().density(), 1);
  EXPECT_EQ(two_bits.downstream().bits(), 2);
}

TEST(PaperTable, PapersAverage) {
  for (const char* name :
       {"sbc-table2", "sbc-fig3", "mcgq-table3", "mcgq-table4", "qsgd", "mqgrad", "double-quantization"}) {
    const PaperTable& table = Table(name);
    for (const PaperWorkload& workload : table.workloads) {
      for (size_t i = 0; i < table.methods.size(); ++i) {
        const PaperRow row = MakePaperRow(table, workload, i, {});
        EXPECT_EQ(ConfigOf(row).aggregation().rule(), "mean") << name << " " << row.key;
      }
    }
  }
}

TEST(PaperTable, TheMethodsOfShortRuns) {
  const PaperTable& table = Table("early");
  ASSERT_EQ(table.methods.size(), 10u);
  for (const PaperWorkload& workload : table.workloads) {
    EXPECT_TRUE(workload.figures.empty()) << workload.name;
    const double densities[] = {1, 0.01, 0.01, 0.02, 0.04, 0.04, 0.038, 0.01, 0.02, 0.01};
    for (size_t i = 0; i < 10; ++i) {
      const v1::RunConfig config = ConfigOf(MakePaperRow(table, workload, i, {0.1, 1}));
      EXPECT_EQ(config.train().local_steps(), 10);
      EXPECT_EQ(config.aggregation().rule(), i < 2 || i == 4 ? "mean" : "imputed_mean");
      EXPECT_EQ(config.codec().name(), i == 0 ? "dense" : "sbc");
      if (i > 0) {
        EXPECT_EQ(config.codec().density(), densities[i]);
        EXPECT_EQ(config.codec().feedback(), i == 7 || i == 8 ? "adaptive_decay" : "error_feedback");
      }
      EXPECT_EQ(config.control().name(), i == 9 ? "schedule" : "fixed");
    }
  }
  const v1::Control first = ConfigOf(MakePaperRow(table, Workload(table, "lenet5"), 9, {0.1, 1})).control();
  EXPECT_EQ(first.by(), "round");
  EXPECT_THAT(first.at(), ElementsAre(1));
  EXPECT_THAT(first.density(), ElementsAre(0.25, 0.01));
  EXPECT_EQ(ConfigOf(MakePaperRow(table, Workload(table, "two"), 1, {})).data().labels_each(), 2);
  EXPECT_EQ(ConfigOf(MakePaperRow(table, Workload(table, "dirichlet"), 1, {})).data().alpha(), 0.5);
}

TEST(PaperTable, TheMethodsOfManyLocalSteps) {
  const PaperTable& table = Table("delay");
  ASSERT_EQ(table.methods.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const v1::RunConfig config = ConfigOf(MakePaperRow(table, Workload(table, "charlstm"), i, {0.1, 1}));
    EXPECT_EQ(config.train().local_steps(), 100);
    EXPECT_EQ(config.rounds().count(), 16);
    EXPECT_EQ(config.aggregation().rule(), i < 4 ? "mean" : "imputed_mean");
    EXPECT_EQ(config.codec().decay(), i == 2 ? 0.5 : 1);
    EXPECT_EQ(config.codec().feedback(), i == 0 ? "own" : i < 3 ? "error_feedback" : "adaptive_decay");
  }
}

TEST(PaperTable, TheScheduleShrinksWithTheIterations) {
  const PaperTable& table = Table("sbc-table2");
  const v1::RunConfig config = ConfigOf(MakePaperRow(table, Workload(table, "charlstm"), 0, {0.01, 1}));
  EXPECT_EQ(config.rounds().count(), 160);
  EXPECT_EQ(config.train().optimizer().momentum(), 0) << "Gradient Descent";
  ASSERT_EQ(config.train().schedule().at_size(), 5);
  EXPECT_EQ(config.train().schedule().at(0), 50);
  EXPECT_EQ(config.train().schedule().at(4), 140);
  EXPECT_EQ(config.train().schedule().factor(), 0.8);
}

}  // namespace
}  // namespace terse
