// One run: what is known of it so far.
import {ask, runPath} from "./api.js";

// Regression has a loss and no accuracy.
export function isEvaluated(round) {
  return round.accuracy !== null || round.test_loss !== null;
}

export class Watched {
  constructor(name) {
    this.name = name;
    this.path = runPath(name);
    this.rounds = [];  // in order; the first `settled` of them do not change any more
    this.settled = 0;
    this.committed = [];
    this.nextLook = 0;
  }

  async refreshStatus() {
    this.status = await ask(this.path);
  }

  // Asks for every round that may have changed since.
  async refreshRounds() {
    const rounds = this.rounds.slice(0, this.settled);
    while (true) {
      const page = (await ask(`${this.path}/rounds?first=${rounds.length + 1}`)).rounds;
      rounds.push(...page);
      if (page.length === 0 || page.at(-1).state === "open") break;
    }
    this.rounds = rounds;
    this.committed = rounds.filter((round) => round.state === "committed");
    this.countSettled();
  }

  // For a run that is only compared: as often as `everyMs`, and of one that is over for as long as something is missing.
  async refreshIfDue(everyMs) {
    if (performance.now() < this.nextLook) return;
    await this.refreshStatus();
    await this.refreshRounds();
    const isOver = this.status.state === "finished" || this.status.state === "stopped";
    this.nextLook = performance.now() + (isOver ? 15 * everyMs : everyMs);
  }

  // A committed round may still get its evaluation, which come in the order of the rounds, some of them late; the newest
  // round may still get bytes.
  countSettled() {
    const every = Math.max(1, this.status.config.rounds.evaluate_every);
    const evaluated = this.rounds.findLastIndex(isEvaluated);
    const isSettled = (round, i) => {
      if (round.state === "aborted") return true;
      if (round.state !== "committed") return false;
      const version = round.base_version + 1;
      return i <= evaluated || (version % every !== 0 && version !== this.status.rounds_total);
    };
    while (this.settled < this.rounds.length - 1 && isSettled(this.rounds[this.settled], this.settled)) this.settled += 1;
  }
}
