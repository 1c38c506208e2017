// The lists: clients at work, all clients, events. Texts of clients are set as text, never as HTML.
import {ago, bytes, clock, decimal} from "./format.js";

const kPageRows = 50;

const kClientColumns = [
  {title: "Name", key: (c) => c.name, text: (c) => c.name, kind: "name"},
  {title: "State", key: (c) => c.state, text: (c) => c.state, tone: (c) => (c.state === "set aside" ? "bad" : "")},
  // Behind the head; of a client that is away, nobody knows.
  {title: "Lag", key: (c) => c.lag ?? Infinity, text: (c) => c.lag ?? "–", kind: "number"},
  {title: "Last seen", key: (c) => -c.last_seen_us, text: (c, now) => (c.connected ? "now" : ago(c.last_seen_us, now))},
  {title: "Samples", key: (c) => c.samples, text: (c) => (c.samples > 0 ? c.samples : "–"), kind: "number"},
  {title: "Applied", key: (c) => c.updates_applied, text: (c) => c.updates_applied, kind: "number"},
  {title: "Not applied", key: (c) => c.updates_not_applied, text: (c) => c.updates_not_applied, kind: "number"},
  {title: "Resets", key: (c) => c.resets, text: (c) => c.resets, kind: "number", tone: (c) => (c.resets > 0 ? "bad" : "")},
  {title: "Reliability", key: (c) => c.reliability, text: (c) => decimal(c.reliability, 2), kind: "number"},
  {title: "Device", key: (c) => c.device ?? "", text: (c) => c.device ?? "–", kind: "name"},
  {title: "Residual", key: (c) => c.residual_norm ?? -1, text: (c) => norm(c.residual_norm), kind: "number"},
  {title: "Up", key: (c) => c.wire_bytes_up, text: (c) => bytes(c.wire_bytes_up), kind: "number"},
  {title: "Down", key: (c) => c.wire_bytes_down, text: (c) => bytes(c.wire_bytes_down), kind: "number"},
];

const kEventColumns = [
  {title: "Time", text: (e) => clock(e.time_us)},
  {title: "Round", text: (e) => (e.round > 0 ? e.round : ""), kind: "number"},
  {title: "Client", text: (e) => (e.client >= 0 ? e.client_name || `#${e.client}` : ""), kind: "name"},
  {title: "Kind", text: (e) => e.kind.replaceAll("_", " ")},
  {title: "What", text: (e) => e.detail, kind: "detail"},
];

// Known within 9.1%, so two digits.
function norm(value) {
  return value === null ? "–" : String(Number(value.toPrecision(2)));
}

function element(tag, text, classes) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

function rowOf(columns, item, context) {
  const row = element("tr");
  for (const column of columns) {
    const tone = column.tone ? column.tone(item) : "";
    const cell = element("td", column.text(item, context), [column.kind ?? "", tone].join(" ").trim());
    if (column.kind === "name") cell.title = cell.textContent;
    row.append(cell);
  }
  return row;
}

function compare(a, b) {
  return typeof a === "string" ? a.localeCompare(b, undefined, {numeric: true}) : a - b;
}

export class ClientTable {
  constructor() {
    this.table = document.getElementById("clients");
    this.clients = [];
    this.column = kClientColumns[0];
    this.descending = false;
    this.page = 0;
    this.makeHead();
    document.getElementById("filter").addEventListener("input", () => this.turnTo(0));
    document.getElementById("previous").addEventListener("click", () => this.turnTo(this.page - 1));
    document.getElementById("next").addEventListener("click", () => this.turnTo(this.page + 1));
  }

  makeHead() {
    const row = element("tr");
    for (const column of kClientColumns) {
      const head = element("th", undefined, column.kind);
      const button = element("button", column.title);
      button.type = "button";
      button.addEventListener("click", () => {
        this.descending = this.column === column && !this.descending;
        this.column = column;
        this.turnTo(0);
      });
      head.append(button);
      column.head = head;
      row.append(head);
    }
    this.table.tHead.replaceChildren(row);
  }

  turnTo(page) {
    this.page = page;
    this.draw();
  }

  // `now` is the coordinator's time, in milliseconds.
  show(clients, now) {
    this.clients = clients;
    this.now = now;
    this.draw();
  }

  draw() {
    const wanted = document.getElementById("filter").value.trim().toLowerCase();
    const chosen = this.clients.filter((c) => `${c.name} ${c.state}`.toLowerCase().includes(wanted));
    const sign = this.descending ? -1 : 1;
    chosen.sort((a, b) => sign * compare(this.column.key(a), this.column.key(b)) || a.index - b.index);
    const pages = Math.max(1, Math.ceil(chosen.length / kPageRows));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const shown = chosen.slice(this.page * kPageRows, (this.page + 1) * kPageRows);
    this.table.tBodies[0].replaceChildren(...shown.map((client) => rowOf(kClientColumns, client, this.now)));
    for (const column of kClientColumns) column.head.removeAttribute("aria-sort");
    this.column.head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
    document.getElementById("clients-count").textContent =
        wanted ? `${chosen.length} of ${this.clients.length}` : `${this.clients.length}`;
    document.getElementById("page").textContent = `${this.page + 1} / ${pages}`;
    document.getElementById("previous").disabled = this.page === 0;
    document.getElementById("next").disabled = this.page === pages - 1;
  }
}

export class EventTable {
  constructor() {
    this.table = document.getElementById("events");
    const row = element("tr");
    row.append(...kEventColumns.map((column) => element("th", column.title, column.kind)));
    this.table.tHead.replaceChildren(row);
  }

  // Newest last, as served; shown newest first.
  show(events) {
    this.table.tBodies[0].replaceChildren(...[...events].reverse().map((event) => rowOf(kEventColumns, event)));
  }
}

// Shows the clients that work for the open round, the slowest first.
export function showCohort(clients, localSteps) {
  const kMost = 60;
  const working = clients.filter((client) => client.state === "training");
  working.sort((a, b) => a.steps_done - b.steps_done || a.index - b.index);
  const items = working.slice(0, kMost).map((client) => {
    const item = element("li");
    const bar = element("progress");
    bar.max = Math.max(1, localSteps);
    bar.value = Math.min(client.steps_done, bar.max);
    bar.setAttribute("aria-label", `${client.name}: ${client.steps_done} of ${localSteps} steps`);
    const name = element("span", client.name, "name");
    name.title = client.name;
    item.append(name, bar, element("span", `${client.steps_done}/${localSteps}`, "quiet"));
    return item;
  });
  document.getElementById("cohort").replaceChildren(...items);
  const more = working.length > kMost ? `, the ${kMost} slowest of them here` : "";
  document.getElementById("cohort-note").textContent =
      working.length > 0 ? `${working.length} train, the slowest first${more}` : "nobody trains now";
}
