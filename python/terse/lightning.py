"""Terse in a Trainer of `lightning` 2.1 or later (`pip install terse[lightning]`); docs/PYTHON.md has an example."""

from lightning.pytorch import Callback
from lightning.pytorch.utilities.data import extract_batch_size

from ._callback import Rounds


class Federated(Callback):
    """Trains in the rounds of a run until the run is over: `Trainer(callbacks=[Federated(fleet)])`.

    fleet: from terse.join or terse.attach, for one fit. samples: training examples that this client has; by default those
    of the data set. A round begins with the agreed weights in the module, and is committed after its number of optimizer
    steps, however many batches each takes. The Trainer's max_epochs is without effect; max_steps ends training before the
    run does. A new process goes on with optimizer and learning-rate schedulers as they were at the newest update.
    Reported are the mean loss of the training steps, the means of what they log, and what a validation logs that begins
    with a round, of the agreed weights, as with `Trainer(check_val_every_n_epoch=None, val_check_interval=N)`, where N
    batches make a round; if finite. Raises what Fleet.rounds and Round.commit do, and RunMismatch for several processes or
    optimizers. `rounds.current` is the terse.Round that is trained, or None.
    """

    def __init__(self, fleet, *, samples=None):
        self.rounds, self._known, self._steps, self._validated = Rounds(fleet, samples), {}, 0, 0

    def on_train_start(self, trainer, pl_module):
        trainer.fit_loop.max_epochs = -1
        schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
        is_on = self.rounds.begin(pl_module, trainer.optimizers, schedulers, trainer.train_dataloader, trainer.world_size)
        self._steps, trainer.should_stop = trainer.global_step, not is_on

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self._logged(trainer)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        size, logged = extract_batch_size(batch), self._logged(trainer)
        if outputs and "loss" in outputs:
            logged["loss"] = outputs["loss"] * trainer.accumulate_grad_batches  # by which Lightning has divided it
        self.rounds.add(logged, size)
        steps, self._steps = trainer.global_step - self._steps, trainer.global_step
        if self.rounds.count(steps, samples=size) and not self.rounds.commit():
            trainer.should_stop = True

    def on_validation_start(self, trainer, pl_module):
        self._validated, _ = 0, self._logged(trainer)

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        self._validated += extract_batch_size(batch)

    def on_validation_end(self, trainer, pl_module):
        self.rounds.evaluated(self._logged(trainer), self._validated)

    def on_train_end(self, trainer, pl_module):
        self.rounds.end(pl_module)

    def _logged(self, trainer):
        """What was logged since the last call: a metric that is logged again lies in other memory."""
        old, self._known = self._known, dict(trainer.callback_metrics)
        return {name: x for name, x in self._known.items() if name not in old or x.data_ptr() != old[name].data_ptr()}
