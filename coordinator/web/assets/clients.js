// The clients: a page of them at a time, as the coordinator sorted and filtered it, and those at work.
import {ask, now, queryOf} from "./api.js";
import {button, byId, element, headOf, markSorted, rowOf, setOptions, setText} from "./dom.js";
import {ago, bytes, decimal} from "./format.js";

const kPageRows = 50;
const kTypingMs = 250;

const kColumns = [
  {title: "Name", sort: "name", text: (c) => c.name, kind: "name"},
  {title: "State", sort: "state", text: (c) => c.state, tone: (c) => (c.state === "set aside" ? "bad" : "")},
  // Behind the head; of a client that is away, nobody knows.
  {title: "Lag", sort: "lag", text: (c, of) => (c.connected ? Math.max(0, of.version - c.version) : "–"), kind: "number"},
  {title: "Last seen", sort: "last_seen", text: (c) => (c.connected ? "now" : ago(c.last_seen_us, now()))},
  {title: "Samples", sort: "samples", text: (c) => (c.samples > 0 ? c.samples : "–"), kind: "number"},
  {title: "Applied", sort: "applied", text: (c) => c.updates_applied, kind: "number"},
  {title: "Not applied", sort: "not_applied", text: (c) => c.updates_not_applied, kind: "number"},
  {title: "Resets", sort: "resets", text: (c) => c.resets, kind: "number", tone: (c) => (c.resets > 0 ? "bad" : "")},
  {title: "Reliability", sort: "reliability", text: (c) => decimal(c.reliability, 2), kind: "number"},
  {title: "Device", sort: "device", text: (c) => c.device ?? "–", kind: "name"},
  {title: "Residual", sort: "residual", text: (c) => norm(c.residual_norm), kind: "number"},
  {title: "Up", sort: "up", text: (c) => bytes(c.wire_bytes_up), kind: "number"},
  {title: "Down", sort: "down", text: (c) => bytes(c.wire_bytes_down), kind: "number"},
];

// Known within 9.1%, so two digits.
function norm(value) {
  return value === null ? "–" : String(Number(value.toPrecision(2)));
}

export class ClientTable {
  // `onAside` is called with a client that an operator wants to set aside or to readmit.
  constructor(onAside) {
    this.table = byId("clients");
    this.column = kColumns[0];
    this.descending = false;
    this.first = 1;
    this.path = null;
    const action = {title: "Command", kind: "command", node: (client) => [this.buttonOf(client, onAside)]};
    this.columns = {look: kColumns, act: [...kColumns, action]};
    byId("filter").addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.turnTo(1), kTypingMs);
    });
    byId("client-state").addEventListener("change", () => this.turnTo(1));
    byId("previous").addEventListener("click", () => this.turnTo(this.first - kPageRows));
    byId("next").addEventListener("click", () => this.turnTo(this.first + kPageRows));
    this.setOperator(false);
  }

  buttonOf(client, onAside) {
    // One that is away may be set aside too.
    const isAside = client.set_aside_until_us > 1000 * now();
    const made = button(isAside ? "Readmit…" : "Set aside…", () => onAside(client, isAside));
    made.setAttribute("aria-label", `${isAside ? "Readmit" : "Set aside"} ${client.name}`);
    return made;
  }

  setOperator(isOperator) {
    const shown = isOperator ? this.columns.act : this.columns.look;
    if (shown === this.shownColumns) return;
    this.shownColumns = shown;
    this.table.tHead.replaceChildren(headOf(shown, (column) => {
      // Times begin with the newest, as everything that counts up does when it is asked for twice.
      this.descending = this.column === column ? !this.descending : column.sort === "last_seen";
      this.column = column;
      this.turnTo(1);
    }));
    this.shown = null;
    if (this.reply) this.draw(this.reply);
  }

  // Another run has other clients.
  choose(path) {
    if (this.path === path) return;
    this.path = path;
    this.first = 1;
    this.reply = null;
  }

  turnTo(first) {
    this.first = Math.max(1, first);
    return this.refresh().catch((error) => setText("clients-empty", error.message));
  }

  async refresh() {
    const path = this.path;
    const state = byId("client-state").value, name = byId("filter").value.trim();
    const query = queryOf({first: this.first, count: kPageRows, sort: this.column.sort,
      order: this.descending ? "descending" : "ascending", state, name});
    const reply = await ask(`${path}/clients${query}`);
    if (path !== this.path) return;
    // The last page may have gone meanwhile.
    if (reply.clients.length === 0 && reply.found > 0 && this.first > 1) {
      this.first = 1 + kPageRows * Math.floor((reply.found - 1) / kPageRows);
      return this.refresh();
    }
    this.reply = reply;
    this.asked = {state, name};
    this.draw(reply);
  }

  draw(reply) {
    // Rows that stay as they are keep what is selected, or has the focus, in them.
    const shown = JSON.stringify([reply, this.column.sort, this.descending, this.first]);
    if (shown !== this.shown) {
      this.shown = shown;
      const focused = document.activeElement?.closest?.("#clients tbody") ? document.activeElement.getAttribute("aria-label") : null;
      this.table.tBodies[0].replaceChildren(...reply.clients.map((client) => rowOf(this.shownColumns, client, reply)));
      if (focused) [...this.table.tBodies[0].querySelectorAll("button")].find((one) => one.getAttribute("aria-label") === focused)?.focus();
    }
    markSorted(this.shownColumns, this.column, this.descending);
    setOptions(byId("client-state"), [["", `all states (${reply.known})`],
      ...reply.states.map(({state, clients}) => [state, `${state} (${clients})`])]);
    const {state, name} = this.asked;
    const isFiltered = state !== "" || name !== "";
    setText("clients-count", isFiltered ? `${reply.found} of ${reply.known}` : `${reply.known}`);
    const pages = Math.max(1, Math.ceil(reply.found / kPageRows));
    const page = Math.ceil(this.first / kPageRows);
    setText("page", `page ${page} of ${pages}`);
    byId("previous").disabled = page === 1;
    byId("next").disabled = page >= pages;
    setText("clients-empty", reply.found > 0 ? "" : this.emptyText(reply, state, name));
  }

  emptyText(reply, state, name) {
    if (reply.known === 0) return "No client has checked in yet.";
    const parts = [name && `whose name contains “${name}”`, state && `in the state “${state}”`].filter(Boolean);
    return `None of the ${reply.known} clients is one ${parts.join(" and ")}.`;
  }
}

// The clients that work for the open round, the slowest first.
const kMostAtWork = 60;

export async function showCohort(path, localSteps) {
  const {clients, found} = await ask(`${path}/clients${queryOf({count: kMostAtWork, state: "training", sort: "steps"})}`);
  const items = clients.map((client) => {
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
  byId("cohort").replaceChildren(...items);
  const more = found > clients.length ? `, the ${clients.length} slowest of them here` : "";
  setText("cohort-note", found > 0 ? `${found} train, the slowest first${more}` : "nobody trains now");
}
