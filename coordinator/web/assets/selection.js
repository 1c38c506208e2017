// Which run is shown, and which are compared with it. The address has both, so that it can be passed on and kept:
// "#NAME&with=OTHER&with=ANOTHER".
import {setToken} from "./api.js";
import {kMostCompared} from "./runs.js";

// "#token=..." is for this module alone, and is taken out of the address at once. Names have no "=" where they are
// encoded.
function readAddress() {
  const read = {opened: "", compared: []};
  for (const part of location.hash.slice(1).split("&")) {
    const [key, value] = part.includes("=") ? part.split("=", 2) : ["", part];
    let text = "";
    try {
      text = decodeURIComponent(value);
    } catch {
      continue;
    }
    if (key === "") read.opened = text;
    if (key === "with") read.compared.push(text);
    if (key === "token") setToken(text);
  }
  return read;
}

export class Selection {
  constructor(onChange) {
    this.onChange = onChange;
    this.wanted = readAddress();
    this.opened = "";
    this.places = [];  // names by the number of their colour and mark; "" where that is free
    addEventListener("hashchange", () => {
      this.wanted = readAddress();
      onChange();
    });
    this.writeAddress();
  }

  get names() {
    return this.places.filter((name) => name !== "");
  }

  // Shows those of the runs that the address names, or the first one.
  settle(names) {
    const {opened, compared} = this.wanted ?? {opened: this.opened, compared: this.names};
    this.wanted = null;
    const shown = names.includes(opened) ? opened : names[0] ?? "";
    const chosen = [...new Set([shown, ...compared])].filter((name) => names.includes(name)).slice(0, kMostCompared);
    this.opened = shown;
    this.places = this.places.map((name) => (chosen.includes(name) ? name : ""));
    for (const name of chosen) this.add(name);
    this.writeAddress();
  }

  add(name) {
    if (this.places.includes(name)) return;
    const free = this.places.indexOf("");
    this.places[free >= 0 ? free : this.places.length] = name;
  }

  // A run that is not compared is shown alone.
  open(name) {
    this.wanted = {opened: name, compared: this.places.includes(name) ? this.names : []};
    this.onChange();
  }

  choose(name, isChosen) {
    if (isChosen) this.add(name);
    else this.places = this.places.map((one) => (one === name ? "" : one));
    this.writeAddress();
    this.onChange();
  }

  writeAddress() {
    if (this.opened === "" && !location.hash.includes("token=")) return;
    const others = this.names.filter((name) => name !== this.opened).map((name) => `&with=${encodeURIComponent(name)}`);
    const hash = this.opened === "" ? "" : `#${encodeURIComponent(this.opened)}${others.join("")}`;
    if (location.hash !== hash) history.replaceState(null, "", hash || location.pathname);
  }
}
