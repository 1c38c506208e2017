// The configuration of the runs that are shown, beside each other; what differs is marked.
import {byId, element, setText} from "./dom.js";

// Keys as a run file has them, "codec.density", with their values as text. What is not set is left out.
export function flatten(config, prefix = "") {
  return Object.entries(config).flatMap(([key, value]) => {
    const name = prefix + key;
    if (value === null || value === "") return [];
    if (Array.isArray(value)) {
      if (value.length === 0) return [];
      const isPlain = value.every((one) => typeof one !== "object");
      return isPlain ? [[name, value.join(", ")]] : value.flatMap((one, i) => flatten(one, `${name}[${i}].`));
    }
    return typeof value === "object" ? flatten(value, `${name}.`) : [[name, String(value)]];
  });
}

export class Settings {
  constructor() {
    byId("settings-differ").addEventListener("change", () => this.draw());
    byId("settings-filter").addEventListener("input", () => this.draw());
    this.runs = [];
  }

  // `runs` are {name, config}.
  show(runs) {
    const told = JSON.stringify(runs);
    if (told === this.told) return;
    this.told = told;
    this.runs = runs.map(({name, config}) => ({name, values: new Map(flatten(config))}));
    this.draw();
  }

  draw() {
    const several = this.runs.length > 1;
    byId("settings-differ").closest("label").hidden = !several;
    const keys = [...new Set(this.runs.flatMap(({values}) => [...values.keys()]))];
    const valuesOf = (key) => this.runs.map(({values}) => values.get(key) ?? "–");
    const differs = (key) => new Set(valuesOf(key)).size > 1;
    const wanted = byId("settings-filter").value.trim().toLowerCase();
    const isShown = (key) => [key, ...valuesOf(key)].join(" ").toLowerCase().includes(wanted) &&
        (!several || !byId("settings-differ").checked || differs(key));
    const shown = keys.filter(isShown);
    const head = element("tr");
    head.append(element("th", "Key"), ...this.runs.map(({name}) => element("th", name)));
    for (const cell of head.cells) cell.scope = "col";
    byId("settings").tHead.replaceChildren(head);
    byId("settings").tBodies[0].replaceChildren(...shown.map((key) => {
      const row = element("tr", undefined, differs(key) ? "differs" : "");
      const name = element("th", differs(key) ? `≠ ${key}` : key);
      name.scope = "row";
      row.append(name, ...valuesOf(key).map((value) => element("td", value, "value")));
      return row;
    }));
    const count = keys.filter(differs).length;
    setText("settings-note", several ? `${count} of ${keys.length} differ, marked with ≠` : `${keys.length} keys`);
    setText("settings-empty", shown.length > 0 ? "" : wanted ? `No key or value contains “${wanted}”.` : "These runs have the same configuration.");
  }
}
