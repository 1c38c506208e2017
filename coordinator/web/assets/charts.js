// The charts. Chart.js, which is loaded before, draws them; colours are those of style.css.
import {bytes, compression} from "./format.js";

const kCharts = [
  {id: "accuracy", lines: [{label: "test accuracy", color: "--test", of: (round) => round.accuracy}]},
  {
    id: "loss",
    lines: [
      {label: "training", color: "--train", of: (round) => round.train_loss},
      {label: "test", color: "--test", of: (round) => round.test_loss},
    ],
  },
  {
    id: "bytes",
    fromZero: true,
    format: bytes,
    lines: [
      {label: "up", color: "--up", of: (round) => round.wire_bytes_up},
      {label: "down", color: "--down", of: (round) => round.wire_bytes_down},
    ],
  },
  {
    id: "compression",
    lines: [
      {label: "up", color: "--up", of: (round) => round.compression_up_wire},
      {label: "down", color: "--down", of: (round) => compression(round.dense_bytes_down, round.wire_bytes_down)},
      {label: "both ways", color: "--both", of: (round) => round.compression_both_wire},
    ],
  },
  {
    id: "duration",
    fromZero: true,
    lines: [
      {label: "round", color: "--accent", of: (round) => between(round.opened_us, round.committed_us)},
      {label: "slowest training", color: "--train", of: (round) => round.train_us_max / 1e6},
    ],
  },
  {id: "metric", lines: [{label: "mean over clients", color: "--both", of: (round) => meanOf(round, kChosen.metric)}]},
  {id: "updates", fromZero: true, lines: [{label: "updates", color: "--accent", of: (round) => round.updates}]},
];

// The metric by name that is shown, as "kind name".
const kChosen = {metric: ""};

function metricKey(metric) {
  return `${metric.kind} ${metric.name}`;
}

function meanOf(round, key) {
  return round.metrics.find((metric) => metricKey(metric) === key)?.mean;
}

// Offers the metrics that any of the rounds has, and keeps what was chosen.
function offerMetrics(rounds) {
  const keys = [...new Set(rounds.flatMap((round) => round.metrics.map(metricKey)))].sort();
  document.getElementById("metrics").hidden = keys.length === 0;
  const select = document.getElementById("metric");
  if (keys.join() !== [...select.options].map((option) => option.value).join()) {
    select.replaceChildren(...keys.map((key) => new Option(key, key)));
  }
  if (!keys.includes(kChosen.metric)) kChosen.metric = keys[0] ?? "";
  select.value = kChosen.metric;
}

// Regression has a loss and no accuracy.
export function isEvaluated(round) {
  return round.accuracy !== null || round.test_loss !== null;
}

function between(begin, end) {
  return end > begin ? (end - begin) / 1e6 : null;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The values of a round on the horizontal axis; bytes are those up to the round's end.
const kAxes = {
  rounds: {title: "rounds", of: (point) => point.round.id},
  up: {title: "bytes up, all clients", of: (point) => point.up, format: bytes},
  both: {title: "bytes up and down, all clients", of: (point) => point.up + point.down, format: bytes},
};

function optionsOf(chart) {
  const format = chart.format ? {callback: (value) => chart.format(value)} : {};
  return {
    animation: false,
    maintainAspectRatio: false,
    parsing: false,
    normalized: true,
    interaction: {mode: "nearest", axis: "x", intersect: false},
    plugins: {
      // A screen has fewer pixels than a long run has rounds.
      decimation: {enabled: true, algorithm: "lttb", samples: 600, threshold: 1200},
      legend: {display: chart.lines.length > 1, labels: {boxWidth: 12, boxHeight: 2}},
      tooltip: {callbacks: chart.format ? {label: (item) => `${item.dataset.label}: ${chart.format(item.parsed.y)}`} : {}},
    },
    scales: {
      x: {type: "linear", bounds: "data", title: {display: true}, ticks: {maxTicksLimit: 7}},
      y: {ticks: {maxTicksLimit: 6, ...format}, beginAtZero: chart.fromZero ?? false},
    },
  };
}

export class Charts {
  constructor() {
    this.charts = kCharts.map((chart) => ({
      ...chart,
      view: new Chart(document.getElementById(`chart-${chart.id}`), {
        type: "line",
        data: {datasets: chart.lines.map((line) => ({label: line.label, data: []}))},
        options: optionsOf(chart),
      }),
    }));
    this.axis = "rounds";
    this.points = [];
    document.getElementById("metric").addEventListener("change", (event) => {
      kChosen.metric = event.target.value;
      this.draw();
    });
    this.paint();
  }

  // Takes the colours of the theme that holds now.
  paint() {
    for (const {view, lines} of this.charts) {
      lines.forEach((line, i) => {
        Object.assign(view.data.datasets[i], {
          borderColor: color(line.color),
          backgroundColor: color(line.color),
          borderWidth: 1.75,
          pointRadius: 0,
          pointHitRadius: 8,
          spanGaps: true,
        });
      });
      view.options.color = color("--text");
      for (const scale of Object.values(view.options.scales)) {
        scale.grid = {color: color("--line")};
        scale.ticks.color = color("--quiet");
        if (scale.title) scale.title.color = color("--quiet");
      }
    }
    this.draw();
  }

  setAxis(axis) {
    this.axis = axis;
    this.draw();
  }

  // Committed rounds in order. Draws when there is something new.
  show(run, rounds) {
    const shown = `${run} ${rounds.length} ${rounds.filter(isEvaluated).length}`;
    if (shown === this.shown) return;
    this.shown = shown;
    offerMetrics(rounds);
    let up = 0, down = 0;
    this.points = rounds.map((round) => {
      up += round.wire_bytes_up;
      down += round.wire_bytes_down;
      return {round, up, down};
    });
    this.draw();
  }

  draw() {
    const axis = kAxes[this.axis];
    for (const {view, lines} of this.charts) {
      lines.forEach((line, i) => {
        const all = this.points.map((point) => ({x: axis.of(point), y: line.of(point.round)}));
        view.data.datasets[i].data = all.filter((point) => Number.isFinite(point.y));
        // A single round has no line yet.
        view.data.datasets[i].pointRadius = view.data.datasets[i].data.length === 1 ? 3 : 0;
      });
      view.options.scales.x.title.text = axis.title;
      view.options.scales.x.ticks.callback = axis.format ?? ((value) => value);
      view.update();
    }
  }
}
