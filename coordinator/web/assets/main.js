// Asks the API again and again and shows what it says.
import {Charts, isEvaluated} from "./charts.js";
import {bytes, decimal, ratio, seconds} from "./format.js";
import {ClientTable, EventTable, showCohort} from "./tables.js";

const kStatusMs = 1000;
const kClientsMs = 4000;
const kMostWaitMs = 15000;

const byId = (id) => document.getElementById(id);
const setText = (id, text) => { byId(id).textContent = text; };

class NotServed extends Error {}

// By how much the coordinator's clock is ahead of this browser's, in milliseconds.
let ahead = 0;

async function ask(path) {
  const reply = await fetch(`/api/v1/${path}`, {signal: AbortSignal.timeout(20000)});
  const date = Date.parse(reply.headers.get("Date"));
  if (Number.isFinite(date)) ahead = date - Date.now();
  const body = await reply.json().catch((error) => {
    if (!reply.ok) return null;
    throw error;
  });
  if (reply.ok) return body;
  throw new NotServed(body?.error ?? `${reply.status} ${reply.statusText}`);
}

// One run: what is known of it so far.
class Watched {
  constructor(name) {
    this.name = name;
    this.path = `runs/${encodeURIComponent(name)}`;
    this.rounds = [];  // in order; the first `settled` of them do not change any more
    this.settled = 0;
    this.clients = [];
    this.events = [];
    this.nextTables = 0;
  }

  async refreshStatus() {
    this.status = await ask(this.path);
  }

  async refreshLists() {
    await this.refreshRounds();
    if (performance.now() < this.nextTables) return;
    const {clients, version} = await ask(`${this.path}/clients`);
    for (const client of clients) client.lag = client.connected ? Math.max(0, version - client.version) : null;
    this.clients = clients;
    this.events = (await ask(`${this.path}/events?newest=100`)).events;
    this.nextTables = performance.now() + kClientsMs;
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
    this.countSettled();
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

function wantedName() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

class Page {
  constructor() {
    this.charts = new Charts();
    this.clients = new ClientTable();
    this.events = new EventTable();
    this.wait = kStatusMs;
    byId("run").addEventListener("change", () => this.choose(byId("run").value));
    for (const input of document.querySelectorAll("input[name=axis]")) {
      input.addEventListener("change", () => this.charts.setAxis(input.value));
    }
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.tick(); });
    addEventListener("hashchange", () => this.choose(wantedName()));
  }

  choose(name) {
    if (this.watched?.name === name) return;
    this.watched = new Watched(name);
    history.replaceState(null, "", `#${encodeURIComponent(name)}`);
    this.tick();
  }

  async refreshRuns() {
    const {runs} = await ask("runs");
    const names = runs.map((run) => run.name);
    const select = byId("run");
    if ([...select.options].map((option) => option.value).join("\n") !== names.join("\n")) {
      select.replaceChildren(...names.map((name) => new Option(name, name)));
    }
    const wanted = this.watched?.name ?? wantedName();
    const name = names.includes(wanted) ? wanted : names[0];
    if (name !== undefined && this.watched?.name !== name) this.watched = new Watched(name);
    select.value = name;
    return name !== undefined;
  }

  // One tick at a time; the next one is asked for at the end of each.
  async tick() {
    if (this.busy || document.hidden) return;
    this.busy = true;
    clearTimeout(this.timer);
    try {
      if (await this.refreshRuns()) {
        await this.refreshOne(this.watched);
        byId("trouble").hidden = true;
      } else {
        this.complain("No run yet: create one with `tersectl run create --run-file FILE`.");
      }
      this.wait = kStatusMs;
    } catch (error) {
      this.wait = Math.min(2 * this.wait, kMostWaitMs);
      this.complain(error instanceof NotServed
          ? error.message : `The coordinator does not answer (${error.message}); asking again in ${this.wait / 1000} s.`);
    }
    this.busy = false;
    this.timer = setTimeout(() => this.tick(), this.wait);
  }

  // A run whose disk is in trouble may answer with its state alone, so the state is shown first.
  async refreshOne(watched) {
    await watched.refreshStatus();
    if (watched === this.watched) this.showHead(watched.status, watched.rounds);
    await watched.refreshLists();
    if (watched === this.watched) this.show(watched);
  }

  complain(text) {
    byId("trouble").hidden = false;
    setText("trouble", text);
  }

  show({status, rounds, clients, events}) {
    const committed = rounds.filter((round) => round.state === "committed");
    this.showHead(status, rounds);
    this.showTiles(status, committed, clients);
    this.charts.show(status.run, committed);
    // Tables that stay as they are keep what is selected in them.
    if (clients !== this.shown) {
      this.clients.show(clients, Date.now() + ahead);
      this.events.show(events);
      this.shown = clients;
    }
    showCohort(clients, rounds.at(-1)?.local_steps ?? status.config.train.local_steps);
  }

  showHead(status, rounds) {
    const state = status.serving ? status.state : "trouble";
    byId("state").className = `badge ${state}`;
    setText("state", state);
    setText("phase", status.reason ? `${status.phase}: ${status.reason}` : status.phase);
    document.title = `${status.version}/${status.rounds_total} ${status.run} – Terse`;
    byId("done").max = Math.max(1, status.rounds_total);
    byId("done").value = status.version;
    setText("progress-text", `${status.version} of ${status.rounds_total} rounds${this.timeLeft(status, rounds)}`);
    setText("version", `terse ${status.program_version} · ${status.parameters.toLocaleString()} parameters · codec ` +
        `${status.config.codec.name} · model ${status.model_hash.slice(0, 12)}`);
    setText("updated", `· ${new Date().toLocaleTimeString()}`);
  }

  // By the median of the last rounds, which a pause or a restart among them does not change.
  timeLeft(status, rounds) {
    const times = rounds.slice(-21).filter((round) => round.state === "committed").map((round) => round.committed_us);
    if (status.state !== "active" || times.length < 2) return "";
    const each = median(times.slice(1).map((time, i) => time - times[i])) / 1e6;
    return `, about ${seconds(each * (status.rounds_total - status.version))} left`;
  }

  showTiles(status, committed, clients) {
    const sum = (key) => committed.reduce((total, round) => total + round[key], 0);
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
    setText("clients-now", `${status.clients_connected} of ${status.clients_known}`);
    const aside = clients.filter((client) => client.state === "set aside").length;
    setText("clients-note", `${status.clients_wanted} a round${aside > 0 ? `, ${aside} set aside` : ""}`);
  }
}

// Light, dark, or what the system says, which may change.
class Theme {
  constructor(onChange) {
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.choice = this.remembered() ?? "system";
    this.onChange = onChange;
    this.system.addEventListener("change", () => this.apply());
    byId("theme").addEventListener("click", () => {
      const order = ["system", "light", "dark"];
      this.choice = order[(order.indexOf(this.choice) + 1) % order.length];
      this.remember();
      this.apply();
    });
    this.apply();
  }

  // Where the browser keeps nothing of a site, the choice is the page's.
  remembered() {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  }

  remember() {
    try {
      localStorage.setItem("theme", this.choice);
    } catch {
      // As above.
    }
  }

  apply() {
    const dark = this.choice === "dark" || (this.choice === "system" && this.system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    setText("theme", `Theme: ${this.choice}`);
    this.onChange();
  }
}

let page = null;
new Theme(() => page?.charts.paint());
page = new Page();
page.tick();
