"""A client that a Trainer of transformers trains: huggingface_member.py COORDINATOR STATE CLIENT CASE STEPS ACCUMULATED"""
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

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        output = model(**inputs)
        if model.training:
            self.log({"accuracy": cases.accuracy_of(output, inputs["labels"]).item()})
        return (output["loss"], output) if return_outputs else output["loss"]


def accuracy_of(prediction):
    return {"accuracy": (prediction.predictions.argmax(-1) == prediction.label_ids).mean()}


def main():
    torch.set_num_threads(1)
    coordinator, state, client, case, steps, accumulated = sys.argv[1:]
    client, steps, accumulated = int(client), int(steps), int(accumulated)
    model, optimizer, schedule = cases.make(case)
    is_new = hasattr(transformers.TrainingArguments, "eval_strategy")  # since 4.41
    evaluates = {"eval_strategy" if is_new else "evaluation_strategy": "steps" if case == "net" else "no", "eval_steps": 2}
    arguments = transformers.TrainingArguments(
        f"{state}-trainer", max_steps=steps, per_device_train_batch_size=cases.BATCH,
        gradient_accumulation_steps=accumulated, max_grad_norm=0, logging_steps=2, save_strategy="no", report_to=[],
        disable_tqdm=True, use_cpu=True, per_device_eval_batch_size=20, **evaluates)
    with terse.join(coordinator, state=state, log_level="warn") as fleet:
        trainer = InOrder(model, arguments, train_dataset=cases.Examples(case, client), compute_metrics=accuracy_of,
                          eval_dataset=cases.evaluation_data(), callbacks=[Federated(fleet)],
                          optimizers=(optimizer, schedule))
        trainer.train()
        cases.report_end(fleet, state, model)


if __name__ == "__main__":
    main()
