// The table of all runs with their results, in which the runs to compare are chosen.
import {now} from "./api.js";
import {byId, element, headOf, markSorted, rowOf, setText} from "./dom.js";
import {bytes, count, decimal, seconds} from "./format.js";

export const kMostCompared = 6;

// From the opening of the first round to the newest commit, or to now in a run that goes on.
function secondsOf(run) {
  if (!run.first_opened_us) return null;
  const end = run.state === "active" ? 1000 * now() : run.last_committed_us;
  return end > run.first_opened_us ? (end - run.first_opened_us) / 1e6 : null;
}

const known = (value) => value ?? null;

const kColumns = [
  {title: "Compare", node: (run, table) => [table.choiceOf(run)]},
  {title: "Run", sort: (run) => run.name, kind: "name", node: (run, table) => [table.linkOf(run)]},
  {title: "State", sort: (run) => run.state, text: (run) => (run.serving ? run.state : run.phase),
    tone: (run) => (run.serving || run.state === "finished" || run.state === "stopped" ? "" : "bad")},
  {title: "Rounds", sort: (run) => run.version, kind: "number", text: (run) => `${count(run.version)} of ${count(run.rounds_total)}`},
  {title: "Accuracy", sort: (run) => known(run.accuracy), kind: "number", text: (run) => decimal(run.accuracy, 4)},
  {title: "Test loss", sort: (run) => known(run.test_loss), kind: "number", text: (run) => decimal(run.test_loss, 4)},
  {title: "Up", sort: (run) => known(run.wire_bytes_up), kind: "number", text: (run) => amount(run.wire_bytes_up)},
  {title: "Down", sort: (run) => known(run.wire_bytes_down), kind: "number", text: (run) => amount(run.wire_bytes_down)},
  {title: "Time", sort: secondsOf, kind: "number", text: (run) => seconds(secondsOf(run) ?? NaN)},
  {title: "Clients now", sort: (run) => run.clients_connected, kind: "number", text: (run) => run.clients_connected},
];

function amount(value) {
  return Number.isFinite(value) ? bytes(value) : "–";
}

// Values that are not known come last in either order.
function compare(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (typeof a === "string" ? a.localeCompare(b, undefined, {numeric: true}) : a - b);
}

export class RunTable {
  // `onOpen` is called with the name of a run to show, `onChoose` with the names to compare with it.
  constructor(onOpen, onChoose) {
    this.table = byId("runs");
    this.onOpen = onOpen;
    this.onChoose = onChoose;
    this.column = kColumns[1];
    this.descending = false;
    this.runs = [];
    this.opened = "";
    this.chosen = [];
    this.table.tHead.replaceChildren(headOf(kColumns, (column) => {
      this.descending = this.column === column && !this.descending;
      this.column = column;
      this.shown = "";
      this.draw();
    }));
    byId("runs-filter").addEventListener("input", () => this.draw());
  }

  show(runs, opened, chosen) {
    this.runs = runs;
    this.opened = opened;
    this.chosen = chosen;
    this.draw();
  }

  // The number of a compared run's colour and mark, which it keeps while it is chosen.
  lookOf(name) {
    return this.chosen.indexOf(name);
  }

  choiceOf(run) {
    const label = element("label", undefined, "choice");
    const box = element("input");
    box.type = "checkbox";
    box.checked = run.name === this.opened || this.chosen.includes(run.name);
    const names = this.chosen.filter((name) => name !== "");
    box.disabled = run.name === this.opened || (!box.checked && names.length >= kMostCompared);
    box.setAttribute("aria-label", run.name === this.opened ? `${run.name}, which is shown below` : `Compare ${run.name}`);
    box.addEventListener("change", () => this.onChoose(run.name, box.checked));
    label.append(box);
    const look = this.lookOf(run.name);
    if (look >= 0 && names.length > 1) label.append(element("span", "", `swatch run-${look}`));
    return label;
  }

  linkOf(run) {
    const link = element("a", run.name);
    link.href = `#${encodeURIComponent(run.name)}`;
    link.setAttribute("aria-current", run.name === this.opened ? "true" : "false");
    link.addEventListener("click", (event) => {
      event.preventDefault();
      this.onOpen(run.name);
    });
    return link;
  }

  draw() {
    const wanted = byId("runs-filter").value.trim().toLowerCase();
    const found = this.runs.filter((run) => `${run.name} ${run.state}`.toLowerCase().includes(wanted));
    const sign = this.descending ? -1 : 1;
    found.sort((a, b) => compare(this.column.sort(a), this.column.sort(b), sign) || compare(a.name, b.name, 1));
    // Rows that stay as they are keep what has the focus in them.
    const shown = JSON.stringify([found, this.opened, this.chosen, Math.floor(now() / 10000)]);
    if (shown !== this.shown) {
      this.shown = shown;
      const focus = document.activeElement?.closest?.("#runs tbody tr")?.rowIndex;
      const kind = document.activeElement?.tagName;
      this.table.tBodies[0].replaceChildren(...found.map((run) => rowOf(kColumns, run, this)));
      if (focus !== undefined) this.table.rows[focus]?.querySelector(kind)?.focus();
    }
    markSorted(kColumns, this.column, this.descending);
    setText("runs-count", wanted ? `${found.length} of ${this.runs.length}` : `${this.runs.length}`);
    setText("runs-empty", found.length === 0 && wanted ? `No run's name or state contains “${wanted}”.` : "");
  }
}
