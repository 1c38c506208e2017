// The charts of one run, or of several laid over each other. Chart.js, which is loaded before, draws them; colours are
// those of style.css.
import {scaleOptions} from "./axis.js";
import {byId, element, setOptions, setText} from "./dom.js";
import {curveOf, kAxes, kCharts, kChosen, metricKey, pointsOf, smooth} from "./series.js";
import {isEvaluated} from "./watched.js";
import {Zoom} from "./zoom.js";

// Curves are told apart by more than their colour: by dashes and by a mark here and there.
const kDashes = [[], [7, 4], [2, 3]];
const kDashNames = ["solid", "dashed", "dotted"];
const kMarks = ["circle", "triangle", "rect", "rectRot", "crossRot", "star"];
const kMarksOfCurve = 7;

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The elements of a line, which are in the order of their x: the one nearest to the pixel.
function nearest(elements, x) {
  let low = 0, high = elements.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (elements[middle].x < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - elements[low - 1].x < elements[low].x - x ? low - 1 : low;
}

// Finds the point of every line that is nearest to the pointer, wherever each line has its points.
Chart.Interaction.modes.everyLine = (chart, event, options, useFinalPosition) => {
  const {x} = Chart.helpers.getRelativePosition(event, chart);
  const items = [];
  if (x < chart.chartArea.left || x > chart.chartArea.right) return items;
  for (const meta of chart.getSortedVisibleDatasetMetas()) {
    if (chart.data.datasets[meta.index].isRaw || meta.data.length === 0) continue;
    const index = nearest(meta.data, x);
    const point = meta.data[index].getProps(["x"], useFinalPosition);
    if (point.x < chart.chartArea.left - 1 || point.x > chart.chartArea.right + 1) continue;
    items.push({element: meta.data[index], datasetIndex: meta.index, index});
  }
  return items;
};

// The range that is being dragged, a line at the tooltip, and words where there is nothing to see.
const kOverlay = {
  id: "overlay",
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: {left, right, top, bottom}} = chart;
    const at = chart.tooltip?.getActiveElements()?.[0]?.element.x;
    ctx.save();
    if (at !== undefined && chart.tooltip.opacity > 0) {
      ctx.strokeStyle = color("--quiet");
      ctx.setLineDash([2, 2]);
      ctx.beginPath();
      ctx.moveTo(at, top);
      ctx.lineTo(at, bottom);
      ctx.stroke();
    }
    if (chart.dragged) {
      ctx.globalAlpha = 0.2;
      ctx.fillStyle = color("--accent");
      ctx.fillRect(Math.min(chart.dragged.from, chart.dragged.to), top, Math.abs(chart.dragged.to - chart.dragged.from), bottom - top);
    }
    if (chart.data.datasets.every((dataset) => dataset.data.length === 0)) {
      ctx.fillStyle = color("--quiet");
      ctx.font = "14px system-ui, sans-serif";
      ctx.textAlign = "center";
      ctx.fillText(chart.options.emptyText, (left + right) / 2, (top + bottom) / 2);
    }
    ctx.restore();
  },
};

function optionsOf(chart) {
  return {
    animation: false,
    maintainAspectRatio: false,
    parsing: false,
    normalized: true,
    layout: {padding: {right: 6, top: 6}},  // marks at the edge are whole
    emptyText: chart.empty ?? "No round yet",
    interaction: {mode: "everyLine", intersect: false},
    plugins: {
      // A screen has fewer pixels than a long run has rounds.
      decimation: {enabled: true, algorithm: "lttb", samples: 600, threshold: 1200},
      legend: {labels: {usePointStyle: true, boxHeight: 7, filter: (item, data) => !data.datasets[item.datasetIndex].isRaw}},
      tooltip: {usePointStyle: true, caretSize: 0},
    },
    scales: {
      x: {title: {display: true}},
      y: scaleOptions({way: "y", kind: chart.kind ?? "number", fits: true, fromZero: chart.fromZero, most: chart.most}),
    },
  };
}

export class Charts {
  constructor() {
    this.zoom = new Zoom(() => this.draw());
    this.charts = kCharts.map((chart) => ({
      ...chart,
      view: new Chart(byId(`chart-${chart.id}`), {type: "line", data: {datasets: []}, options: optionsOf(chart), plugins: [kOverlay]}),
    }));
    for (const {view} of this.charts) this.zoom.attach(view);
    this.axis = "rounds";
    this.keep = 0;
    this.runs = [];
    byId("metric").addEventListener("change", (event) => {
      kChosen.metric = event.target.value;
      this.draw();
    });
    byId("smoothing").addEventListener("input", () => {
      this.keep = Number(byId("smoothing").value);
      setText("smoothing-text", this.keep > 0 ? this.keep.toFixed(2) : "off");
      this.draw();
    });
    for (const input of document.querySelectorAll("input[name=axis]")) {
      input.addEventListener("change", () => this.setAxis(input.value));
    }
    this.draw();
  }

  setAxis(axis) {
    this.axis = axis;
    this.zoom.range = null;
    this.draw();
  }

  // `runs` are {name, rounds, look}: all rounds in order, and the number of the run's colour and mark. Draws when
  // there is something new.
  show(runs) {
    const told = runs.map(({name, rounds, look}) => [name, look, rounds.length, rounds.at(-1)?.state, rounds.filter(isEvaluated).length, rounds.at(-1)?.wire_bytes_down]);
    const shown = JSON.stringify(told);
    if (shown === this.shown) return;
    this.shown = shown;
    this.runs = runs.map(({name, rounds, look}) => ({name, look, points: pointsOf(rounds)}));
    this.offerMetrics(runs.flatMap((run) => run.rounds));
    this.draw();
  }

  // Offers the metrics that any of the rounds has, and keeps what was chosen.
  offerMetrics(rounds) {
    const keys = [...new Set(rounds.flatMap((round) => round.metrics.map(metricKey)))].sort();
    byId("metrics").hidden = keys.length === 0;
    if (!keys.includes(kChosen.metric)) kChosen.metric = keys[0] ?? "";
    setOptions(byId("metric"), keys.map((key) => [key, key]));
    byId("metric").value = kChosen.metric;
  }

  // All that there is on the horizontal axis, the same for every chart.
  wholeRange() {
    const axis = kAxes[this.axis];
    const values = this.runs.flatMap(({points}) => (points.length > 0 ? [axis.of(points[0]), axis.of(points.at(-1))] : []));
    if (values.length === 0) return {min: 0, max: 1};
    const min = axis.kind === "bytes" ? 0 : Math.min(...values), max = Math.max(...values);
    // A single round stands in the middle.
    return max > min ? {min, max} : {min: Math.max(0, min - 1), max: max + 1};
  }

  // Datasets of a chart; each run's, first those that are drawn on top.
  datasetsOf(lines) {
    const several = this.runs.length > 1;
    const shown = lines.map((line, number) => ({...line, number})).filter((line) => !several || !line.alone);
    const count = this.runs.length * shown.length;
    const datasets = this.runs.flatMap((run, i) => shown.map((line, j) => {
      const curve = curveOf(run.points, kAxes[this.axis], line);
      const place = i * shown.length + j;
      const name = shown.length > 1 ? `${run.name}, ${line.label}` : run.name;
      const ink = color(several ? `--run-${run.look}` : line.color);
      const mark = kMarks[(several ? run.look : line.number) % kMarks.length];
      return this.datasetOf({label: several ? name : line.label, curve, ink, mark, dash: kDashes[several ? j : line.number % kDashes.length], row: i, place, count});
    }));
    if (this.keep === 0) return datasets;
    // Behind the smoothed curves.
    return [...datasets.map((dataset) => ({...dataset, data: smooth(dataset.data, this.keep)})),
      ...datasets.map((dataset) => ({...dataset, isRaw: true, borderColor: `${dataset.borderColor}55`, borderWidth: 1, pointRadius: 0, pointHoverRadius: 0}))];
  }

  datasetOf({label, curve, ink, mark, dash, row, place, count}) {
    // Marks of curves that lie on each other stand at different places, and what is drawn below is a little wider.
    const marks = (context) => {
      const points = context.dataset.data.length;
      const step = Math.max(1, Math.floor(points / kMarksOfCurve));
      const offset = Math.floor((place * step) / Math.max(1, count));
      return points <= 2 * kMarksOfCurve || context.dataIndex % step === offset ? 3.5 : 0;
    };
    return {label, data: curve, borderColor: ink, backgroundColor: ink, borderDash: dash, pointStyle: mark, pointRadius: marks,
      pointHoverRadius: 5, clip: 6, borderWidth: 1.75 + (this.runs.length > 1 ? 0.75 * row : 0), pointHitRadius: 0, spanGaps: true};
  }

  draw() {
    const axis = kAxes[this.axis];
    this.zoom.setWhole(this.wholeRange());
    const {min, max} = this.zoom.shown();
    this.showLegend();
    for (const {view, lines, format} of this.charts) {
      view.data.datasets = this.datasetsOf(lines);
      const x = {...scaleOptions({way: "x", kind: axis.kind}), min, max, title: {display: true, text: axis.title}};
      view.options.scales.x = x;
      // Several runs have one legend for all charts.
      view.options.plugins.legend.display = this.runs.length < 2 && lines.length > 1;
      view.options.plugins.tooltip.callbacks = this.tooltipOf(axis, format);
      view.options.color = color("--text");
      for (const scale of Object.values(view.options.scales)) {
        scale.grid = {color: color("--line")};
        scale.ticks = {...scale.ticks, color: color("--quiet")};
        if (scale.title) scale.title = {...scale.title, color: color("--quiet")};
      }
      view.update();
    }
  }

  // The runs by colour and mark, and of each chart with several lines which has which dashes.
  showLegend() {
    byId("legend").replaceChildren(...this.runs.map(({name, look}) => {
      const item = element("li");
      item.append(element("span", "", `swatch run-${look}`), name);
      return item;
    }));
    for (const {id, lines} of this.charts) {
      const shown = lines.filter((line) => !line.alone).map((line, i) => `${kDashNames[i]}: ${line.label}`);
      const caption = byId(`chart-${id}`).closest("figure").querySelector("figcaption");
      const note = caption.querySelector(".dashes") ?? caption.appendChild(element("span", "", "quiet dashes"));
      note.textContent = this.runs.length > 1 && shown.length > 1 ? ` ${shown.join(", ")}` : "";
    }
  }

  // The title is the place of the point that is nearest; a line whose point is elsewhere says where.
  tooltipOf(axis, format) {
    const placeOf = (items) => items[0]?.parsed.x;
    return {
      title: (items) => (items.length > 0 ? axis.format(placeOf(items)) : ""),
      label: (item) => {
        const first = item.chart.tooltip.dataPoints?.[0]?.parsed.x ?? item.parsed.x;
        const where = item.parsed.x === first ? "" : ` (${axis.format(item.parsed.x)})`;
        return `${item.dataset.label}: ${format(item.parsed.y)}${where}`;
      },
    };
  }
}
