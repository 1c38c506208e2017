"""A coordinator with runs of exact deltas and its clients, and `tersectl follow` beside them: for the tests of each place
that it hands runs to."""

from fleet import Fleet, wait_until

RUN = """
name = "{name}"
[train]
local_steps = 3
optimizer.learning_rate = 1.0
[codec]
name = "sbc"
density = 0.02
[rounds]
count = {rounds}
clients = 2
"""


class FollowedFleet(Fleet):
    """A fleet, and what follows it."""

    def __init__(self, binaries, coordinator="grid-coordinator"):
        """coordinator: the program, by default one without LibTorch and without evaluators."""
        super().__init__(binaries, coordinator=coordinator)

    def create(self, name, rounds=1000000):
        path = self.folder / f"{name}.toml"
        path.write_text(RUN.format(name=name, rounds=rounds))
        self.ctl("run", "create", "--run-file", path)

    def clients(self, run, count=2):
        return [self.start(f"{run}-{index}", self.binaries / "grid-client", "--coordinator", self.address, "--run", run,
                           "--name", f"{run}-{index}", "--state", self.folder / f"client-{run}-{index}",
                           "--reconnect-after", "0.1") for index in range(count)]

    def follow(self, *options, variables=None, name="follow"):
        return self.start(name, self.binaries / "tersectl", "--admin", self.admin, "follow", *options, variables=variables)

    def follow_traces(self, run, url):
        """Follows once its position is noted: every round that is settled from then on gets a trace."""
        follow = self.follow("--run", run, "--otlp", url, "--state", "follow-state", "--patience", "60")
        wait_until(lambda: list(self.folder.glob("follow-state/otlp-*.json")), "the position")
        return follow

    def rounds(self, run):
        """The committed ones."""
        return [one for one in self.list("rounds", run) if one["state"] == "committed"]
