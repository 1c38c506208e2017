"""Terse in a Trainer of `transformers` 4.36 or later (`pip install terse[huggingface]`); docs/PYTHON.md has an example."""

from transformers import TrainerCallback

from ._callback import Rounds, examples_by, examples_of
from .errors import RunMismatch


class Federated(TrainerCallback):
    """Trains in the rounds of a run until the run is over: `Trainer(callbacks=[Federated(fleet)])`.

    fleet: from terse.join or terse.attach, for one train(). samples: training examples that this client has; by default
    those of the data set. A round begins with the agreed weights, and is committed after its number of optimizer steps,
    however many batches each takes. TrainingArguments need max_steps, over which the learning-rate schedule goes: the run's
    rounds times their local steps. A new process goes on with optimizer and schedule as at the newest update. Reported are
    the means of what the Trainer logs, and what it evaluates, if finite. Evaluations and checkpoints that are due within a
    round wait for its end, and are of the agreed weights of the next. Raises what Fleet.rounds and Round.commit do, and
    RunMismatch for several processes. `rounds.current` is the terse.Round that is trained, or None.
    """

    def __init__(self, fleet, *, samples=None):
        self.rounds, self._seen, self._logged, self._waits = Rounds(fleet, samples), 0, 0, (False, False)

    def on_train_begin(self, args, state, control, model, optimizer, lr_scheduler, train_dataloader, **kwargs):
        if args.max_steps <= 0:
            raise RunMismatch("TrainingArguments need max_steps in a run: its rounds times their local steps, or more")
        is_on = self.rounds.begin(model, [optimizer], [lr_scheduler], train_dataloader, args.world_size)
        self._seen, self._logged = self._examples(args, state, train_dataloader), state.global_step
        control.should_training_stop = not is_on

    def on_step_end(self, args, state, control, train_dataloader, **kwargs):
        before, self._seen = self._seen, self._examples(args, state, train_dataloader)
        control.should_log |= self.rounds.count(1, samples=self._seen - before)  # on_log has the loss, and commits
        self._hold(control)

    def on_epoch_end(self, args, state, control, **kwargs):
        if self.rounds.steps > 0:
            self._hold(control)

    def on_log(self, args, state, control, logs, **kwargs):
        steps, self._logged = (state.global_step - self._logged, state.global_step) if "loss" in logs else (1, self._logged)
        self.rounds.add({name: x for name, x in logs.items() if name != "epoch" and name[:5] != "eval_"}, steps)
        if "loss" in logs and self.rounds.is_complete:
            control.should_training_stop |= not self.rounds.commit()
            (control.should_evaluate, control.should_save), self._waits = self._waits, (False, False)

    def on_evaluate(self, args, state, control, metrics, eval_dataloader, **kwargs):
        figures = {name: x for name, x in metrics.items() if not name.endswith(("epoch", "_runtime", "_per_second"))}
        self.rounds.evaluated(figures, examples_of(eval_dataloader))

    def on_train_end(self, args, state, control, model, **kwargs):
        self.rounds.end(model)

    def _hold(self, control):
        self._waits = self._waits[0] or control.should_evaluate, self._waits[1] or control.should_save
        control.should_evaluate = control.should_save = False

    def _examples(self, args, state, loader):
        return examples_by(state.epoch, loader, args.train_batch_size, state.global_step * args.gradient_accumulation_steps)
