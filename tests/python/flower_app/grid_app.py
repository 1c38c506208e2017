"""A Flower app whose clients learn known changes, for flower_test.py; some of its rounds fail."""

import json
import os
import pathlib
import traceback

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from terse import codecs
from terse.flower import AgreedWeights, agreed_weights

STEP = 2.0**-10


def fail_behind_the_mod(message, context, call_next):
    """The update of partition 0 in round 2 is on the disk, and the server hears of an error."""
    number, partition = message.content["config"]["server-round"], context.node_config["partition-id"]
    reply = call_next(message, context)
    if (partition, number, message.metadata.message_type) == (0, 2, "train"):
        raise RuntimeError("this reply is lost on purpose")
    return reply


client = ClientApp(mods=[fail_behind_the_mod, agreed_weights()])


@client.train()
def train(message, context):
    number, partition = message.content["config"]["server-round"], context.node_config["partition-id"]
    if (partition, number) == (1, 2):
        raise RuntimeError("this training fails on purpose")
    change = np.random.default_rng([number, partition]).integers(-400, 400, 1000) * STEP
    folder = pathlib.Path(context.run_config["folder"])
    with open(folder / f"learned-{partition}.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps({"round": number, "pid": os.getppid()}) + "\n")
    arrays = message.content["arrays"]
    arrays["w"] = Array((arrays["w"].numpy() + change).astype(np.float32))
    return Message(
        RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 1, "partition": partition})}),
        reply_to=message,
    )


@client.evaluate()
def evaluate(message, context):
    total = float(message.content["arrays"]["w"].numpy().astype(np.float64).sum())
    return Message(RecordDict({"metrics": MetricRecord({"num-examples": 1, "total": total})}), reply_to=message)


class Recording(FedAvg):
    """FedAvg that keeps what it was given: by partition the sum of the applied changes, and their mean in every round."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.held, self.applied, self.change = None, {}, np.zeros(1000)

    def configure_train(self, server_round, arrays, config, grid):
        self.held = arrays["w"].numpy().astype(np.float64)
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(self, server_round, replies):
        changes = {
            reply.content["metrics"]["partition"]: reply.content["arrays"]["w"].numpy() - self.held
            for reply in replies
            if not reply.has_error()
        }
        for partition, change in changes.items():
            self.applied[partition] = self.applied.get(partition, 0) + change
        if changes:
            self.change += np.mean(list(changes.values()), axis=0)
        return super().aggregate_train(server_round, replies)


server = ServerApp()


@server.main()
def main(grid, context):
    folder = pathlib.Path(context.run_config["folder"])
    try:
        serve(grid, context, folder)
    except BaseException:
        (folder / "failure.log").write_text(traceback.format_exc())  # Flower keeps what a ServerApp prints to itself
        raise


def serve(grid, context, folder):
    recording = Recording(min_train_nodes=2, min_evaluate_nodes=2, min_available_nodes=2)
    strategy = AgreedWeights(recording, up=codecs.top_k(density=0.05), down=codecs.top_k(density=0.1))

    def note_round(number, arrays):
        (folder / "round").write_text(str(number))

    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord({"w": Array(np.zeros(1000, dtype=np.float32))}),
        num_rounds=context.run_config["rounds"],
        timeout=40,
        evaluate_fn=note_round,
    )
    totals = {str(number): record["total"] for number, record in result.evaluate_metrics_clientapp.items()}
    np.savez(
        folder / "result.new.npz",
        weights=result.arrays["w"].numpy(),
        change=recording.change,
        residual=strategy.residual()["w"],
        totals=json.dumps(totals),
        applied=np.stack([recording.applied[partition] for partition in (0, 1)]),
    )
    os.replace(folder / "result.new.npz", folder / "result.npz")
