"""Models, data, a plain loop that trains the same, and checks for the tests of terse.lightning and terse.huggingface.

usage: framework_cases.py COORDINATOR STATE CLIENT NAMES     (a client with that plain loop)

Data come in their order. An epoch of 30 examples has batches of 8, 8, 8 and 6, an optimizer step takes two of them, and a
round three steps, so that rounds and epochs end at different batches.
"""
import importlib.util
import json
import os
import sys

import numpy as np
import torch
from torch.nn import functional

import terse
from fleet import Fleet, end

CLIENTS, BATCH, ACCUMULATED, LOCAL_STEPS = 2, 8, 2, 3
SKIPPED = 77  # as ctest knows it


class Net(torch.nn.Module):
    """Classifies points in the plane."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))

    def forward(self, x, labels):
        logits = self.layers(x)
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


class Known(torch.nn.Module):
    """Whose gradient is the mean of its inputs, whatever its weights are, so that every step of a client is the same."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(6, dtype=torch.float32) / 64)

    def forward(self, x, labels):
        return {"loss": (self.w * x.mean(0)).sum(), "logits": x}


class Examples(torch.utils.data.Dataset):
    """A client's data: points of three classes, or for `Known` always the same numbers, in batches of the same size."""

    def __init__(self, case, client, count=None):
        count = count or (32 if case == "known" else 30)
        generator = torch.Generator().manual_seed(client)
        self.x = torch.randn(count, 2, generator=generator)
        self.labels = (self.x.sum(1) > 0.5).long() + (self.x[:, 0] > 0).long()
        if case == "known":
            self.x = torch.randint(-1024, 1024, (6,), generator=generator).div(1024).repeat(count, 1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "labels": self.labels[index]}


def make(case):
    """The model, its optimizer and its learning-rate schedule, by steps."""
    if case == "known":
        model = Known()
        optimizer = torch.optim.SGD(model.parameters(), lr=2.0**-5)
        return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 10))


def accuracy_of(output, labels):
    return (output["logits"].argmax(-1) == labels).float().mean()


def evaluation_data(case="net"):
    return Examples(case, client=99, count=20)


def train_plainly(fleet, client, names):
    """The training that both callbacks do, in a loop of one's own. names: of its metrics, and how its means are weighed."""
    model, optimizer, schedule = make("net")
    data = Examples("net", client)

    def batches():
        while True:
            for begin in range(0, len(data), BATCH):
                yield data.x[begin:begin + BATCH], data.labels[begin:begin + BATCH]

    stream = batches()
    for current in fleet.rounds(model, optimizer, samples=len(data)):
        if current.number > 1:
            with torch.no_grad():
                x, labels = evaluation_data()[:].values()
                output = model(x, labels)
            current.evaluate({names["loss"]: output["loss"], names["accuracy"]: accuracy_of(output, labels)}, samples=len(x))
        loss = accuracy = weights = samples = 0
        for _ in range(current.local_steps):
            optimizer.zero_grad()
            for x, labels in (next(stream) for _ in range(ACCUMULATED)):
                output = model(x, labels)
                (output["loss"] / ACCUMULATED).backward()
                weight = len(x) if names["weighed"] else 1
                loss += weight * output["loss"].item()
                accuracy += weight * accuracy_of(output, labels).item()
                weights, samples = weights + weight, samples + len(x)
            optimizer.step()
            schedule.step()
        current.commit(samples=samples, metrics={"loss": loss / weights, "accuracy": accuracy / weights})


class Checks:
    """Tests that a framework's own class of tests takes over.

    member: the script of a client that trains with the callback. names: of what it reports. prefix: of the tensors' names.
    """

    binaries = member = names = None
    prefix = ""

    def start_run(self, fleet, model, rounds):
        fleet.start_coordinator()
        run = terse.Run("frameworks", model=model, codec=terse.codecs.dense(), rounds=rounds, clients=CLIENTS,
                        local_steps=LOCAL_STEPS,
                        settings={"rounds": {"quorum": CLIENTS}, "codec": {"downstream": "dense"}})
        run.create(str(fleet.folder / "run"), admin=fleet.admin)

    def start(self, fleet, client, case, rounds, accumulated=ACCUMULATED):
        return fleet.python(f"m{client}", self.member, fleet.address, fleet.folder / f"m{client}", client, case,
                            rounds * LOCAL_STEPS, accumulated)

    def finish(self, fleet, members):
        for member in members:
            self.assertEqual(end(member, 120), 0, fleet.log("m0") + fleet.log("m1"))
        status = json.loads(fleet.ctl("status", "--json"))
        self.assertEqual(status["state"], "finished")
        return status["version"]

    def weights(self, fleet):
        return {name[len(self.prefix):]: values for name, values in fleet.weights().items()}

    def wrapped(self, model):
        """The module whose tensors have the run's names."""
        return model

    def expect_of_killed(self, fleet, metrics):
        """What else a framework's run is to be like in which client 0 was killed."""

    def trained(self, rounds, stop_after=None):
        """Weights, clients' metrics and losses of a run. stop_after: rounds after which client 0 is another process."""
        with Fleet(self.binaries) as fleet:
            self.start_run(fleet, self.wrapped(make("net")[0]), rounds)
            other = self.start(fleet, 1, "net", rounds)
            if stop_after is not None:
                self.assertEqual(end(self.start(fleet, 0, "net", stop_after), 120), 0, fleet.log("m0"))
                self.assertIn(f"training ended before the run did, after 0 of the {LOCAL_STEPS} steps of round "
                              f"{stop_after + 1}", fleet.log("m0"))
            self.assertEqual(self.finish(fleet, [other, self.start(fleet, 0, "net", rounds)]), rounds)
            self.assertIn("finished: all rounds are done", fleet.log("m0"))
            self.assertNotIn("in the middle of round", fleet.log("m0") + fleet.log("m1"))
            run = terse.open(fleet.run_folder())
            return self.weights(fleet), run.client_metrics(), run.rounds()["train_loss"]

    def trained_plainly(self, rounds):
        with Fleet(self.binaries) as fleet:
            self.start_run(fleet, make("net")[0], rounds)
            members = [fleet.python(f"m{client}", "framework_cases.py", fleet.address, fleet.folder / f"m{client}", client,
                                    json.dumps(self.names)) for client in range(CLIENTS)]
            self.finish(fleet, members)
            run = terse.open(fleet.run_folder())
            return fleet.weights(), run.client_metrics(), run.rounds()["train_loss"]

    def expect_same_weights(self, got, want):
        self.assertEqual(sorted(got), sorted(want))
        for name, values in want.items():
            np.testing.assert_array_equal(got[name], values, name)

    def test_trains_as_a_loop_of_ones_own(self):
        rounds = 8
        weights, metrics, losses = self.trained(rounds)
        want_weights, want_metrics, want_losses = self.trained_plainly(rounds)
        self.expect_same_weights(weights, want_weights)
        np.testing.assert_allclose(losses, want_losses, atol=1e-4)
        self.expect_own_metrics(metrics)
        metrics = metrics[np.isin(metrics["name"], list(set(want_metrics["name"])))]
        self.assertEqual(len(metrics), len(want_metrics))
        order = ["round", "client_name", "kind", "name"]
        for got, want in zip(np.sort(metrics, order=order), np.sort(want_metrics, order=order)):
            for column in order + ["samples"]:
                self.assertEqual(got[column], want[column], (got, want))
            self.assertAlmostEqual(got["value"], want["value"], 5, (got, want))
        samples = metrics[(metrics["client_name"] == "m0") & (metrics["kind"] == "training")]["samples"].tolist()
        self.assertEqual(samples, [46, 44] * (rounds // 2))

    def test_a_new_process_goes_on_with_optimizer_and_schedule(self):
        # After four rounds of six batches six epochs of four are over, so the new process begins where the old one stopped.
        self.expect_same_weights(self.trained(8, stop_after=4)[0], self.trained_plainly(8)[0])

    def test_steps_are_counted_once_when_a_process_is_killed(self):
        rounds = 40
        with Fleet(self.binaries) as fleet:
            self.start_run(fleet, self.wrapped(make("known")[0]), rounds)
            members = [self.start(fleet, client, "known", rounds) for client in range(CLIENTS)]
            fleet.wait_for_version(rounds // 4)
            members[0].kill()
            members[0].wait()
            members[0] = self.start(fleet, 0, "known", rounds)
            self.assertEqual(self.finish(fleet, members), rounds)
            # Once more when the run is over, and where every batch is a step, of which none may be taken.
            self.assertEqual(self.finish(fleet, [self.start(fleet, 0, "known", rounds, accumulated=1)]), rounds)
            self.expect_of_killed(fleet, terse.open(fleet.run_folder()).client_metrics())
            moved = sum(Examples("known", client).x[0] for client in range(CLIENTS)) / CLIENTS
            want = make("known")[0].w.detach() - 2.0**-5 * rounds * LOCAL_STEPS * moved
            np.testing.assert_array_equal(self.weights(fleet)["w"], want.numpy())
            for client in range(CLIENTS):
                with np.load(fleet.folder / f"m{client}" / "final.npz") as final:
                    np.testing.assert_array_equal(final[f"{self.prefix}w"], want.numpy())


def report_end(fleet, state, module):
    """What a member does last."""
    np.savez(os.path.join(state, "final.npz"), **{name: tensor.numpy() for name, tensor in module.state_dict().items()})
    print("finished:", fleet.finished, flush=True)


def skip_without(*packages):
    """Ends the test unless the packages are installed."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} is not installed for {sys.executable}; tests/frameworks.sh installs it into "
              "an environment of its own", file=sys.stderr)
        sys.exit(SKIPPED)


def main():
    torch.set_num_threads(1)
    coordinator, state, client, names = sys.argv[1:]
    with terse.join(coordinator, state=state, log_level="warn") as fleet:
        train_plainly(fleet, int(client), json.loads(names))


if __name__ == "__main__":
    main()
