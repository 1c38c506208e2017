"""A run whose clients and evaluator report metrics by name, for the tests of each place that `tersectl follow` hands them
to."""

import sys

import metric_member
import numpy as np
import terse
from fleet import HERE
from followed_fleet import FollowedFleet

SEEDS, ROUNDS = (1, 3), 4
RUN = "named"


class NamedMetricsFleet(FollowedFleet):
    def __init__(self, binaries):
        super().__init__(binaries, coordinator="terse-coordinator")

    def start_run(self):
        """Two clients, once they are started, have a run of four rounds, each of which is evaluated."""
        self.start_coordinator("--evaluator", f"{sys.executable} {HERE / 'metric_evaluator.py'}")
        model = {name: np.zeros(shape, dtype=np.float32) for name, shape in metric_member.SHAPES.items()}
        terse.Run(RUN, model=model, codec=terse.codecs.dense(), rounds=ROUNDS, clients=len(SEEDS),
                  settings={"rounds": {"evaluate_every": 1}}).create(str(self.folder / "run"), admin=self.admin)

    def members(self):
        return [self.python(f"m{seed}", "metric_member.py", self.address, self.folder / f"m{seed}", seed, "--also",
                            "recall@10") for seed in SEEDS]


def expected(number):
    """The scalars of that round. A client weighs by its samples: its seed's tenfold in training, its seed in evaluation."""
    mean = lambda values: sum(seed * value for seed, value in zip(SEEDS, values)) / sum(SEEDS)
    return {"train/loss": 1.0, "train/grad_norm": mean([seed * number for seed in SEEDS]), "train/recall@10": mean(SEEDS),
            "evaluation/accuracy": mean([seed / 10 for seed in SEEDS]), "evaluation/worst class": number / 100,
            "test/accuracy": number / 4, "test/loss": float(number), "test/f1": 0.25}


def check(test, scalars_by_round, name_of=lambda name: name):
    """Whether each round's scalars hold these under the names that the place has for them."""
    test.assertEqual(sorted(scalars_by_round), list(range(1, ROUNDS + 1)))
    for number, scalars in scalars_by_round.items():
        for name, value in expected(number).items():
            test.assertAlmostEqual(scalars[name_of(name)], value, places=6, msg=f"round {number}: {name_of(name)}")
