#include "core/named_metrics.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using Metrics = std::vector<NamedMetric>;

std::string Objection(const Metrics& metrics) { return std::string(CheckMetrics(metrics).message()); }

TEST(NamedMetrics, KindsHaveNames) {
  for (const MetricKind kind : {MetricKind::kTraining, MetricKind::kEvaluation, MetricKind::kTest}) {
    EXPECT_EQ(MetricKindNamed(MetricKindName(kind)), kind);
  }
  EXPECT_EQ(MetricKindNamed("validation"), absl::nullopt);
  EXPECT_EQ(MetricKindName(static_cast<MetricKind>(0)), "");
}

TEST(NamedMetrics, NamesThatPeopleUseAreNames) {
  for (const char* name : {"accuracy", "f1/macro", "recall@5", "worst class", "a-b_c.d", "0"}) {
    EXPECT_TRUE(IsMetricName(name)) << name;
  }
  for (const char* name : {"", " a", "a ", "a\n", "a\x1b[1m", "a\"b", "na\xc3\xafve", "a,b"}) {
    EXPECT_FALSE(IsMetricName(name)) << name;
  }
  EXPECT_TRUE(IsMetricName(std::string(64, 'a')));
  EXPECT_FALSE(IsMetricName(std::string(65, 'a')));
}

TEST(NamedMetrics, WhatIsWrongIsSaid) {
  const NamedMetric good = {MetricKind::kEvaluation, "accuracy", 0.5, 10};
  EXPECT_TRUE(CheckMetrics(Metrics()).ok());
  EXPECT_TRUE(CheckMetrics(Metrics{good, {MetricKind::kTraining, "accuracy", 0.5, 10}}).ok());
  const auto objection = [good](void (*change)(NamedMetric&)) {
    NamedMetric metric = good;
    change(metric);
    return Objection({metric});
  };
  EXPECT_EQ(objection([](NamedMetric& m) { m.value = std::nan(""); }),
            "the evaluation metric 'accuracy' is not finite");
  EXPECT_EQ(objection([](NamedMetric& m) { m.value = std::numeric_limits<double>::infinity(); }),
            "the evaluation metric 'accuracy' is not finite");
  EXPECT_EQ(objection([](NamedMetric& m) { m.value = -1e301; }), "the evaluation metric 'accuracy' is beyond 1e300");
  EXPECT_EQ(objection([](NamedMetric& m) { m.samples = 0; }),
            "the evaluation metric 'accuracy' is a mean over 0 samples, which is impossible");
  EXPECT_EQ(objection([](NamedMetric& m) { m.samples = (int64_t{1} << 40) + 1; }),
            "the evaluation metric 'accuracy' is a mean over 1099511627777 samples, which is impossible");
  EXPECT_EQ(objection([](NamedMetric& m) { m.name = "\n"; }),
            "a metric's name has 1 to 64 of the characters A-Z a-z 0-9 _ - . / @ and inner spaces");
  EXPECT_EQ(objection([](NamedMetric& m) { m.kind = static_cast<MetricKind>(9); }),
            "a metric is of the unknown kind 9");
  EXPECT_EQ(Objection({good, good}), "the evaluation metric 'accuracy' is there twice");
  EXPECT_EQ(Objection(Metrics(65, good)), "65 metrics are more than the 64 that may come together");
}

TEST(NamedMetrics, MeansWeighBySamples) {
  const Metrics first = {{MetricKind::kTraining, "norm", 2, 10}, {MetricKind::kEvaluation, "accuracy", 0.5, 1}};
  const Metrics second = {{MetricKind::kEvaluation, "accuracy", 1, 3}};
  const std::vector<MetricMean> means = MeanMetrics({first, {}, second});
  ASSERT_EQ(means.size(), 2);
  EXPECT_EQ(means[0].kind, MetricKind::kTraining);
  EXPECT_EQ(means[0].mean, 2);
  EXPECT_EQ(means[0].clients, 1);
  EXPECT_EQ(means[0].samples, 10);
  EXPECT_EQ(means[1].name, "accuracy");
  EXPECT_EQ(means[1].mean, 0.875);
  EXPECT_EQ(means[1].clients, 2);
  EXPECT_EQ(means[1].samples, 4);
}

TEST(NamedMetrics, MeansOfLargeNumbersAreFinite) {
  const Metrics high = {{MetricKind::kTraining, "x", 1e300, 1}},
                low = {{MetricKind::kTraining, "x", -1e300, int64_t{1} << 40}};
  EXPECT_TRUE(std::isfinite(MeanMetrics({high, low, high})[0].mean));
}

// A client that makes names up takes no room from those that many report.
TEST(NamedMetrics, ARoundHasABoundedNumberOfMeans) {
  std::vector<Metrics> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back({{MetricKind::kEvaluation, "zz", 1, 1}});
    for (int k = 0; k < 63; ++k) {
      clients.back().push_back({MetricKind::kTraining, absl::StrCat("made up ", i, " ", k), 0, 1});
    }
  }
  std::vector<absl::Span<const NamedMetric>> spans(clients.begin(), clients.end());
  const std::vector<MetricMean> means = MeanMetrics(spans);
  ASSERT_EQ(means.size(), kMostMetricMeans);
  EXPECT_EQ(means.back().name, "zz");
  EXPECT_EQ(means.back().clients, 6);
  EXPECT_LT(means[0].name, means[1].name);
}

}  // namespace
}  // namespace terse
