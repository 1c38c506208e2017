// Asks the API again and again and shows what it says.
import {ask, askText, NotServed} from "./api.js";
import {Charts} from "./charts.js";
import {ClientTable, showCohort} from "./clients.js";
import {byId, setOptions, setText, watchWideTables} from "./dom.js";
import {EventTable} from "./events.js";
import {bytes, count, decimal, ratio, seconds} from "./format.js";
import {LogView} from "./log.js";
import {Operator, save} from "./operator.js";
import {RunTable} from "./runs.js";
import {Selection} from "./selection.js";
import {Settings} from "./settings.js";
import {Theme} from "./theme.js";
import {isEvaluated, Watched} from "./watched.js";

const kStatusMs = 1000;
const kTablesMs = 4000;
const kMostWaitMs = 15000;
const kRoundsOfReply = 1000;

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

class Page {
  constructor() {
    this.wasOperator = false;
    this.charts = new Charts();
    this.selection = new Selection(() => this.onSelection());
    this.runTable = new RunTable((name) => this.selection.open(name), (name, isChosen) => this.selection.choose(name, isChosen));
    this.operator = new Operator((me) => this.onOperator(me), () => this.refreshNow());
    this.clients = new ClientTable((client, isAside) => this.operator.setAside(client, isAside));
    this.events = new EventTable();
    this.log = new LogView();
    this.settings = new Settings();
    this.watched = new Map();  // by name: the run that is shown, and those that are compared with it
    this.runs = [];
    this.wait = kStatusMs;
    this.nextTables = 0;
    byId("run").addEventListener("change", () => this.selection.open(byId("run").value));
    byId("save-rounds").addEventListener("click", () => this.saveRounds());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.tick(); });
    watchWideTables();
  }

  get shown() {
    return this.watched.get(this.selection.opened);
  }

  onSelection() {
    this.selection.settle(this.runs.map((run) => run.name));
    this.showRuns();
    this.refreshNow();
  }

  onOperator({operator, hint}) {
    const isNew = operator && !this.wasOperator;
    this.wasOperator = operator;
    this.clients.setOperator(operator);
    this.log.setOperator(operator, hint);
    if (isNew) this.log.refresh().catch((error) => setText("log-empty", error.message));
  }

  refreshNow() {
    this.nextTables = 0;
    this.again = true;
    this.tick();
  }

  async refreshRuns() {
    this.runs = (await ask("runs")).runs;
    this.selection.settle(this.runs.map((run) => run.name));
    this.showRuns();
    return this.selection.opened !== "";
  }

  showRuns() {
    const {opened, places, names} = this.selection;
    setOptions(byId("run"), this.runs.map(({name}) => [name, name]));
    byId("run").value = opened;
    this.runTable.show(this.runs, opened, places);
    const kept = names.map((name) => [name, this.watched.get(name) ?? new Watched(name)]);
    this.watched = new Map(kept);
    if (!this.shown) return;
    this.clients.choose(this.shown.path);
    this.events.choose(this.shown.path);
    this.log.choose(opened);
    byId("compared").hidden = names.length < 2;
    setText("compared-text", `The charts show ${names.length} runs; the figures above and the lists below are of ${opened}.`);
  }

  // One tick at a time; the next one is asked for at the end of each.
  async tick() {
    if (this.busy || document.hidden) return;
    this.busy = true;
    this.again = false;
    clearTimeout(this.timer);
    try {
      if (await this.refreshRuns()) {
        await this.refreshShown(this.shown);
        byId("trouble").hidden = true;
      } else {
        await this.operator.refresh();
        this.complain("No run yet: create one with `tersectl run create --run-file FILE`.");
      }
      this.wait = kStatusMs;
    } catch (error) {
      this.wait = Math.min(2 * this.wait, kMostWaitMs);
      this.complain(error instanceof NotServed
          ? error.message : `The coordinator does not answer (${error.message}); asking again in ${this.wait / 1000} s.`);
    }
    this.busy = false;
    this.timer = setTimeout(() => this.tick(), this.again ? 0 : this.wait);
  }

  // A run whose disk is in trouble may answer with its state alone, so the state is shown first.
  async refreshShown(watched) {
    await watched.refreshStatus();
    if (watched === this.shown) this.showHead(watched);
    await watched.refreshRounds();
    for (const other of this.watched.values()) {
      if (other !== watched) await other.refreshIfDue(kTablesMs);
    }
    if (watched === this.shown) this.show(watched);
    if (performance.now() < this.nextTables) return;
    await this.refreshTables(watched);
    this.nextTables = performance.now() + kTablesMs;
  }

  async refreshTables(watched) {
    await this.operator.refresh();
    await this.clients.refresh();
    await showCohort(watched.path, watched.rounds.at(-1)?.local_steps ?? watched.status.config.train.local_steps);
    await this.events.refresh();
    await this.log.refresh();
    if (watched === this.shown) this.showClientTile(watched.status);
  }

  complain(text) {
    byId("trouble").hidden = false;
    setText("trouble", text);
  }

  show(watched) {
    this.showHead(watched);
    this.showTiles(watched.rounds, watched.committed);
    this.showClientTile(watched.status);
    // Compared runs come after the one that is shown, which is drawn on top.
    const {places} = this.selection;
    const all = [watched, ...[...this.watched.values()].filter((one) => one !== watched)].filter((one) => one.status);
    this.charts.show(all.map(({name, rounds}) => ({name, rounds, look: places.indexOf(name)})));
    this.settings.show(all.map(({name, status}) => ({name, config: status.config})));
  }

  showHead({status, rounds}) {
    const state = status.serving ? status.state : "trouble";
    byId("state").className = `badge ${state}`;
    setText("state", state);
    setText("phase", status.reason ? `${status.phase}: ${status.reason}` : status.phase);
    document.title = `${status.version}/${status.rounds_total} ${status.run} – Terse`;
    byId("done").max = Math.max(1, status.rounds_total);
    byId("done").value = status.version;
    setText("progress-text", `${count(status.version)} of ${count(status.rounds_total)} rounds${this.timeLeft(status, rounds)}`);
    setText("version", `terse ${status.program_version} · ${status.parameters.toLocaleString()} parameters · codec ` +
        `${status.config.codec.name} · model ${status.model_hash.slice(0, 12)}`);
    setText("updated", `· ${new Date().toLocaleTimeString()}`);
    this.operator.showRun(status, rounds);
  }

  // By the median of the last rounds, which a pause or a restart among them does not change.
  timeLeft(status, rounds) {
    const times = rounds.slice(-21).filter((round) => round.state === "committed").map((round) => round.committed_us);
    if (status.state !== "active" || times.length < 2) return "";
    const each = median(times.slice(1).map((time, i) => time - times[i])) / 1e6;
    return `, about ${seconds(each * (status.rounds_total - status.version))} left`;
  }

  showTiles(rounds, committed) {
    const sum = (key) => rounds.reduce((total, round) => total + round[key], 0);
    const evaluated = committed.filter(isEvaluated);
    const rated = evaluated.filter((round) => round.accuracy !== null);
    const best = rated.reduce((most, round) => Math.max(most, round.accuracy), 0);
    const last = committed.at(-1);
    for (const element of document.querySelectorAll("[data-of-accuracy]")) {
      element.hidden = evaluated.length > 0 && rated.length === 0;
    }
    setText("accuracy", decimal(rated.at(-1)?.accuracy, 4));
    setText("accuracy-note", rated.length > 0 ? `round ${rated.at(-1).id}, best ${decimal(best, 4)}` : "not evaluated yet");
    setText("loss", decimal(evaluated.at(-1)?.test_loss, 4));
    setText("loss-note", last ? `training ${decimal(last.train_loss, 4)}` : "");
    for (const way of ["up", "down"]) {
      setText(way, bytes(sum(`wire_bytes_${way}`)));
      setText(`${way}-note`, `${ratio(sum(`dense_bytes_${way}`), sum(`wire_bytes_${way}`))} less than dense`);
    }
    setText("duration", last ? seconds((last.committed_us - last.opened_us) / 1e6) : "–");
    setText("duration-note", last ? `training ${seconds(last.train_us_max / 1e6)} at most` : "");
  }

  showClientTile(status) {
    setText("clients-now", `${status.clients_connected} of ${status.clients_known}`);
    const aside = this.clients.reply?.states.find(({state}) => state === "set aside")?.clients ?? 0;
    setText("clients-note", `${status.clients_wanted} a round${aside > 0 ? `, ${aside} set aside` : ""}`);
  }

  // The same file as `tersectl rounds --csv` writes, page by page.
  async saveRounds() {
    const {path, name, rounds} = this.shown;
    try {
      const pages = [];
      for (let first = 1; first <= Math.max(1, rounds.length); first += kRoundsOfReply) {
        const page = await askText(`${path}/rounds.csv?first=${first}`);
        pages.push(first === 1 ? page : page.slice(page.indexOf("\n") + 1));
      }
      save(new Blob(pages, {type: "text/csv"}), `${name}-rounds.csv`);
      this.operator.say(`${name}-rounds.csv was saved.`);
    } catch (error) {
      this.operator.say(error.message, true);
    }
  }
}

let page = null;
new Theme(() => page?.charts.draw());
page = new Page();
page.tick();
