// The range of the horizontal axis that all charts show: chosen by dragging across one, by the wheel with Ctrl or Shift,
// or with the buttons.
import {byId} from "./dom.js";

const kLeastPixels = 8;

export class Zoom {
  // `onChange` is called after every change of `range`, which is null where everything is shown.
  constructor(onChange) {
    this.range = null;
    this.whole = {min: 0, max: 1};
    this.onChange = onChange;
    const buttons = {"zoom-in": () => this.scale(0.5), "zoom-out": () => this.scale(2), "zoom-left": () => this.move(-0.25),
      "zoom-right": () => this.move(0.25), "zoom-all": () => this.set(null)};
    for (const [id, act] of Object.entries(buttons)) byId(id).addEventListener("click", act);
    this.showButtons();
  }

  // The range of all that there is; a new axis has a new one, where no old choice makes sense.
  setWhole(whole) {
    this.whole = whole;
    if (this.range && (this.range.min >= whole.max || this.range.max <= whole.min)) this.range = null;
    this.showButtons();
  }

  shown() {
    return this.range ?? this.whole;
  }

  set(range) {
    const {min, max} = this.whole;
    const width = range ? Math.min(range.max - range.min, max - min) : 0;
    const isAll = range === null || width >= (max - min) * (1 - 1e-9) || width < (max - min) * 1e-6;
    const begin = isAll ? min : Math.min(Math.max(range.min, min), max - width);
    this.range = isAll ? null : {min: begin, max: begin + width};
    this.showButtons();
    this.onChange();
  }

  scale(factor, around) {
    const {min, max} = this.shown();
    const fixed = around ?? (min + max) / 2;
    this.set({min: fixed - factor * (fixed - min), max: fixed + factor * (max - fixed)});
  }

  move(part) {
    const {min, max} = this.shown();
    const by = part * (max - min);
    this.set({min: min + by, max: max + by});
  }

  showButtons() {
    for (const id of ["zoom-out", "zoom-left", "zoom-right", "zoom-all"]) byId(id).disabled = this.range === null;
  }

  // Listens to the mouse over a chart. A finger scrolls the page, and has the buttons.
  attach(chart) {
    const canvas = chart.canvas;
    const positionOf = (event) => {
      const {left, right} = chart.chartArea;
      return Math.min(Math.max(event.clientX - canvas.getBoundingClientRect().left, left), right);
    };
    const valueAt = (pixel) => chart.scales.x.getValueForPixel(pixel);
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      chart.dragged = {from: positionOf(event), to: positionOf(event)};
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!chart.dragged) return;
      chart.dragged.to = positionOf(event);
      chart.draw();
    });
    const end = (event) => {
      const dragged = chart.dragged;
      chart.dragged = null;
      if (!dragged) return;
      const [from, to] = [dragged.from, dragged.to].sort((a, b) => a - b);
      if (event.type === "pointerup" && to - from >= kLeastPixels) {
        this.set({min: valueAt(from), max: valueAt(to)});
      } else {
        chart.draw();
      }
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("dblclick", () => this.set(null));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      this.scale(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, valueAt(positionOf(event)));
    }, {passive: false});
  }
}
