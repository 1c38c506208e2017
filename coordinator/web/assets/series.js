// The curves of the charts: which figures of a round they show, against what, and how they are smoothed.
import {bytes, compression, decimal, seconds} from "./format.js";

function between(begin, end) {
  return end > begin ? (end - begin) / 1e6 : null;
}

const four = (value) => decimal(value, 4);
const times = (value) => `×${value >= 100 ? Math.round(value) : value.toPrecision(3)}`;
const plain = (value) => String(Number(value.toPrecision(6)));

// Lines that are `alone` are left out where several runs are compared.
export const kCharts = [
  {id: "accuracy", most: 1, format: four, empty: "No evaluation yet",
    lines: [{label: "test accuracy", color: "--test", of: (round) => round.accuracy}]},
  {
    id: "loss",
    format: four,
    lines: [
      {label: "training", color: "--train", of: (round) => round.train_loss},
      {label: "test", color: "--test", of: (round) => round.test_loss},
    ],
  },
  {
    id: "bytes",
    kind: "bytes",
    fromZero: true,
    format: bytes,
    lines: [
      {label: "up", color: "--up", of: (round) => round.wire_bytes_up},
      {label: "down", color: "--down", of: (round) => round.wire_bytes_down},
    ],
  },
  {
    id: "compression",
    format: times,
    fromZero: true,
    lines: [
      {label: "up", color: "--up", alone: true, of: (round) => round.compression_up_wire},
      {label: "down", color: "--down", alone: true, of: (round) => compression(round.dense_bytes_down, round.wire_bytes_down)},
      {label: "both ways", color: "--both", of: (round) => round.compression_both_wire},
    ],
  },
  {
    id: "duration",
    fromZero: true,
    format: seconds,
    lines: [
      {label: "round", color: "--accent", of: (round) => between(round.opened_us, round.committed_us)},
      {label: "slowest training", color: "--train", alone: true, of: (round) => round.train_us_max / 1e6},
    ],
  },
  {id: "metric", format: plain, lines: [{label: "mean over clients", color: "--both", of: (round) => meanOf(round, kChosen.metric)}]},
  {id: "updates", kind: "whole", fromZero: true, format: plain,
    lines: [{label: "updates", color: "--accent", of: (round) => round.updates}]},
];

// The metric by name that is shown, as "kind name".
export const kChosen = {metric: ""};

export function metricKey(metric) {
  return `${metric.kind} ${metric.name}`;
}

function meanOf(round, key) {
  return round.metrics.find((metric) => metricKey(metric) === key)?.mean;
}

// The values of a round on the horizontal axis; bytes are those up to the round's end.
export const kAxes = {
  rounds: {title: "rounds", kind: "whole", of: (point) => point.round.id, format: (value) => `round ${value}`},
  up: {title: "bytes up, all clients", kind: "bytes", of: (point) => point.up, format: bytes},
  both: {title: "bytes up and down, all clients", kind: "bytes", of: (point) => point.up + point.down, format: bytes},
};

// The committed rounds, each with the bytes up to its end; those of aborted rounds were sent too.
export function pointsOf(rounds) {
  let up = 0, down = 0;
  const points = rounds.map((round) => {
    up += round.wire_bytes_up;
    down += round.wire_bytes_down;
    return {round, up, down};
  });
  return points.filter(({round}) => round.state === "committed");
}

export function curveOf(points, axis, line) {
  const all = points.map((point) => ({x: axis.of(point), y: line.of(point.round)}));
  return all.filter((point) => Number.isFinite(point.y));
}

// Exponential moving average with the weight `keep` for the past, corrected for its beginning.
export function smooth(curve, keep) {
  let mean = 0, weight = 0;
  return curve.map(({x, y}) => {
    mean = keep * mean + (1 - keep) * y;
    weight = keep * weight + (1 - keep);
    return {x, y: mean / weight};
  });
}
