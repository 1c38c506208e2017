"""A Flower app: FedAvg of LeNet5 on MNIST, as Flower's own examples are written."""
import json
import time

import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from lenet import LeNet5, shard
from training import BATCH_SIZE, accuracy, start_model, train_round


def train(message, context):
    torch.set_num_threads(1)
    node, settings = context.node_config, context.run_config
    model = LeNet5()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = shard(settings["data"], node["partition-id"], node["num-partitions"])
    loss = train_round(model, x, y, number=message.content["config"]["server-round"], index=node["partition-id"],
                       steps=settings["steps"])
    metrics = MetricRecord({"loss": loss, "num-examples": BATCH_SIZE * settings["steps"]})
    return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=message)


def make_strategy(clients):
    return FedAvg(fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients)


def serve(grid, context, strategy):
    """Trains, and writes when each round ended and how good the last model is."""
    settings, ends = context.run_config, []
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(start_model(settings["seed"]).state_dict()),
                            num_rounds=settings["rounds"], evaluate_fn=lambda number, arrays: ends.append(time.time()))
    model = LeNet5()
    model.load_state_dict(result.arrays.to_torch_state_dict())
    with open(settings["out"], "w", encoding="utf-8") as file:
        json.dump({"ends": ends[1:], "accuracy": accuracy(model, settings["data"])}, file)


client = ClientApp()
client.train()(train)
server = ServerApp()


@server.main()
def main(grid, context):
    serve(grid, context, make_strategy(context.run_config["clients"]))
