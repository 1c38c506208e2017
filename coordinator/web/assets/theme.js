// Light, dark, or what the system says, which may change.
import {byId, setText} from "./dom.js";

export class Theme {
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
