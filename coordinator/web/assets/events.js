// The run's events, newest first: a page of them at a time, as the coordinator filtered it.
import {ask, queryOf} from "./api.js";
import {byId, element, headOf, rowOf, setText} from "./dom.js";
import {clock} from "./format.js";

const kPageRows = 50;
const kTypingMs = 250;

const kColumns = [
  {title: "Time", text: (e) => clock(e.time_us)},
  {title: "Round", text: (e) => (e.round > 0 ? e.round : ""), kind: "number"},
  {title: "Client", text: (e) => (e.client >= 0 ? e.client_name || `#${e.client}` : ""), kind: "name"},
  {title: "Kind", text: (e) => e.kind.replaceAll("_", " ")},
  {title: "Detail", text: (e) => e.detail, kind: "detail"},
];

export class EventTable {
  constructor() {
    this.table = byId("events");
    this.table.tHead.replaceChildren(headOf(kColumns));
    this.kinds = new Set();
    this.pages = [0];  // the `before` of each page up to the one that is shown
    const begin = () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.turn([0]), kTypingMs);
    };
    byId("event-kind").addEventListener("input", begin);
    byId("event-client").addEventListener("input", begin);
    byId("events-newer").addEventListener("click", () => this.turn(this.pages.slice(0, -1)));
    byId("events-older").addEventListener("click", () => this.turn([...this.pages, this.oldest]));
  }

  choose(path) {
    if (this.path === path) return;
    this.path = path;
    this.pages = [0];
    this.kinds.clear();
  }

  turn(pages) {
    this.pages = pages;
    return this.refresh().catch((error) => setText("events-empty", error.message));
  }

  async refresh() {
    const path = this.path;
    // People write the kinds as the table shows them.
    const kind = byId("event-kind").value.trim().replaceAll(" ", "_"), client = byId("event-client").value.trim();
    const before = this.pages.at(-1);
    const {events} = await ask(`${path}/events${queryOf({newest: kPageRows + 1, before: before || "", kind, client})}`);
    if (path !== this.path || before !== this.pages.at(-1)) return;
    const hasOlder = events.length > kPageRows;
    this.draw(hasOlder ? events.slice(1) : events, hasOlder, {kind, client});
  }

  // Newest last, as served.
  draw(events, hasOlder, asked) {
    this.oldest = events[0]?.id;
    const shown = JSON.stringify(events);
    if (shown !== this.shown) {
      this.shown = shown;
      this.table.tBodies[0].replaceChildren(...[...events].reverse().map((event) => rowOf(kColumns, event)));
    }
    for (const event of events) this.kinds.add(event.kind.replaceAll("_", " "));
    const kinds = [...this.kinds].sort();
    if (byId("event-kinds").childElementCount !== kinds.length) {
      byId("event-kinds").replaceChildren(...kinds.map((kind) => {
        const option = element("option");
        option.value = kind;
        return option;
      }));
    }
    byId("events-newer").disabled = this.pages.length === 1;
    byId("events-older").disabled = !hasOlder;
    setText("events-page", `page ${this.pages.length}`);
    setText("events-empty", events.length > 0 ? "" : this.emptyText(asked));
  }

  emptyText({kind, client}) {
    if (kind === "" && client === "") return "No event yet.";
    const parts = [kind && `is of the kind “${kind.replaceAll("_", " ")}”`, client && `is about a client whose name contains “${client}”`];
    return `None of the events that are kept ${parts.filter(Boolean).join(" and ")}.`;
  }
}
