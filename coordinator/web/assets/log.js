// The coordinator's newest log lines, and its audit log. Both name callers, so they are an operator's to see.
import {ask, queryOf} from "./api.js";
import {byId, headOf, rowOf, setText} from "./dom.js";
import {clock} from "./format.js";

const kLogColumns = [
  {title: "Time", text: (line) => clock(line.time_us)},
  {title: "Level", text: (line) => line.level, tone: (line) => (line.level === "warn" || line.level === "error" ? "bad" : "")},
  {title: "Component", text: (line) => line.component},
  {title: "Run", text: (line) => line.run, kind: "name"},
  {title: "Client", text: (line) => line.client, kind: "name"},
  {title: "Message", text: (line) => line.message, kind: "detail"},
];

const kAuditColumns = [
  {title: "Time", text: (record) => clock(record.time_us)},
  {title: "Who", text: (record) => record.who, kind: "name"},
  {title: "From", text: (record) => record.address, kind: "name"},
  {title: "Action", text: (record) => (record.times > 1 ? `${record.action}, ${record.times} times` : record.action)},
  {title: "Run", text: (record) => record.run, kind: "name"},
  {title: "Detail", text: (record) => record.detail, kind: "detail"},
  {title: "Result", text: (record) => record.result || "under way", kind: "detail", tone: (record) => (record.result === "ok" ? "" : "bad")},
];

export class LogView {
  constructor() {
    this.isOperator = false;
    for (const input of document.querySelectorAll("input[name=log]")) {
      input.addEventListener("change", () => this.refresh().catch((error) => setText("log-empty", error.message)));
    }
    byId("log-filter").addEventListener("input", () => this.draw());
  }

  choose(name) {
    this.run = name;
  }

  setOperator(isOperator, hint) {
    this.isOperator = isOperator;
    byId("log-tools").hidden = !isOperator;
    byId("log").hidden = !isOperator;
    if (!isOperator) setText("log-empty", `Only an operator sees these logs, because they name other callers: ${hint}.`);
  }

  async refresh() {
    if (!this.isOperator) return;
    const isAudit = document.querySelector("input[name=log]:checked").value === "audit";
    this.columns = isAudit ? kAuditColumns : kLogColumns;
    this.lines = isAudit ? (await ask(`audit${queryOf({newest: 200})}`)).records : (await ask(`log${queryOf({newest: 200, run: this.run})}`)).lines;
    this.draw();
  }

  draw() {
    if (!this.lines) return;
    const wanted = byId("log-filter").value.trim().toLowerCase();
    const found = this.lines.filter((line) => Object.values(line).join(" ").toLowerCase().includes(wanted));
    const shown = JSON.stringify([found.map((line) => [line.id, line.times, line.result]), this.columns === kAuditColumns]);
    if (shown !== this.shown) {
      this.shown = shown;
      byId("log").tHead.replaceChildren(headOf(this.columns));
      byId("log").tBodies[0].replaceChildren(...[...found].reverse().map((line) => rowOf(this.columns, line)));
    }
    setText("log-empty", found.length > 0 ? "" : wanted ? `None of the ${this.lines.length} newest lines contains “${wanted}”.` : "Nothing yet.");
  }
}
