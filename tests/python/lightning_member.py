"""A client that a Lightning Trainer trains: lightning_member.py COORDINATOR STATE CLIENT CASE STEPS ACCUMULATED"""
import sys

import torch

if torch.__version__ == "1.13.0a0":  # as Debian's torch 1.13.1 calls itself, which Lightning takes for an older one
    torch.__version__ = type(torch.__version__)("1.13.1")

import lightning
from torch.utils.data import DataLoader

import framework_cases as cases
import terse
from terse.lightning import Federated


class Lit(lightning.LightningModule):
    def __init__(self, case):
        super().__init__()
        self.net, self._optimizer, self._schedule = cases.make(case)

    def _register_sharded_tensor_state_dict_hooks_if_available(self):
        """Python 3.11 cannot import the modules for this that torch 1.13 has; later ones need no such hooks."""

    def training_step(self, batch, batch_idx):
        output = self.net(**batch)
        accuracy = cases.accuracy_of(output, batch["labels"])
        self.log("accuracy", accuracy)
        self.log("accuracy of the epoch", accuracy, on_step=False, on_epoch=True)
        return output["loss"]

    def validation_step(self, batch, batch_idx):
        output = self.net(**batch)
        self.log_dict({"val/loss": output["loss"], "val/accuracy": cases.accuracy_of(output, batch["labels"])})

    def configure_optimizers(self):
        return {"optimizer": self._optimizer, "lr_scheduler": {"scheduler": self._schedule, "interval": "step"}}


def main():
    torch.set_num_threads(1)
    coordinator, state, client, case, steps, accumulated = sys.argv[1:]
    client, steps, accumulated = int(client), int(steps), int(accumulated)
    module = Lit(case)
    loader = DataLoader(cases.Examples(case, client), batch_size=cases.BATCH)
    validation = DataLoader(cases.evaluation_data(case), batch_size=20)
    # Rounds have three steps: after each of them, or in the middle of every second round.
    steps_between = cases.LOCAL_STEPS if case == "net" else cases.LOCAL_STEPS - 1
    with terse.join(coordinator, state=state, log_level="warn") as fleet:
        trainer = lightning.Trainer(callbacks=[Federated(fleet)], max_steps=steps, accumulate_grad_batches=accumulated,
                                    check_val_every_n_epoch=None, val_check_interval=steps_between * accumulated,
                                    accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
        trainer.fit(module, loader, validation)
        cases.report_end(fleet, state, module)


if __name__ == "__main__":
    main()
