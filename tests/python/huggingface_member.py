"""A client that a Trainer of transformers trains: huggingface_member.py COORDINATOR STATE CLIENT CASE STEPS"""
import sys

import torch
import transformers
from torch.utils.data import SequentialSampler

import framework_cases as cases
import terse
from terse.huggingface import Federated


class InOrder(transformers.Trainer):
    """Takes the data in their order, and logs the accuracy of each batch."""

    def _get_train_sampler(self, *_):
        return SequentialSampler(self.train_dataset)

    def compute_loss(self, model, inputs, return_outputs=False):
        output = model(**inputs)
        if model.training:
            self.log({"accuracy": cases.accuracy_of(output, inputs["labels"]).item()})
        return (output["loss"], output) if return_outputs else output["loss"]


def accuracy_of(prediction):
    return {"accuracy": (prediction.predictions.argmax(-1) == prediction.label_ids).mean()}


def main():
    torch.set_num_threads(1)
    coordinator, state, client, case, steps = *sys.argv[1:3], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    model, optimizer, schedule = cases.make(case)
    evaluates = {"evaluation_strategy": "steps", "eval_steps": 2, "per_device_eval_batch_size": 20} if case == "net" else {}
    arguments = transformers.TrainingArguments(
        f"{state}-trainer", max_steps=steps, per_device_train_batch_size=cases.BATCH,
        gradient_accumulation_steps=cases.ACCUMULATED, max_grad_norm=0, logging_steps=2, save_strategy="no", report_to=[],
        disable_tqdm=True, use_cpu=True, **evaluates)
    with terse.join(coordinator, state=state, log_level="warn") as fleet:
        trainer = InOrder(model, arguments, train_dataset=cases.Examples(case, client), compute_metrics=accuracy_of,
                          eval_dataset=cases.Examples("net", 99, 20), callbacks=[Federated(fleet)],
                          optimizers=(optimizer, schedule))
        trainer.train()
        cases.report_end(fleet, state, model)


if __name__ == "__main__":
    main()
