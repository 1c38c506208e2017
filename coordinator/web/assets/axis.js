// Axes: ticks in round steps, whole numbers where only those make sense, and a range around a single value.
import {bytesShort} from "./format.js";

// The smallest of 1, 2 and 5 times a power of ten that divides `span` into at most `most` steps.
export function stepOf(span, most, isWhole) {
  const least = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find((one) => one * power >= least * (1 - 1e-9));
  return isWhole ? Math.max(1, factor * power) : factor * power;
}

function ticksWithin(min, max, step) {
  const ticks = [];
  const slack = 1e-6 * step;
  // Adding 0 makes 0 of -0.
  for (let i = Math.ceil((min - slack) / step) + 0; i * step <= max + slack; i += 1) ticks.push({value: i * step + 0});
  return ticks;
}

// As many digits as the step needs.
function plain(value, step) {
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return digits > 6 ? value.toExponential(1) : value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

const kPixelsOfLabel = {x: 76, y: 34};

// The hooks and ticks of one of Chart.js' linear scales. `kind`: "whole" (rounds, updates), "bytes" or "number". With
// `fits`, the range is the data's, out to the next ticks; `least` and `most` bound it.
export function scaleOptions({way, kind, fits, fromZero, most}) {
  let step = 1;
  const measure = (scale) => {
    const pixels = way === "x" ? scale.chart.width : scale.chart.height;
    step = stepOf(scale.max - scale.min, Math.max(2, Math.floor(pixels / kPixelsOfLabel[way])), kind === "whole");
  };
  return {
    type: "linear",
    bounds: "data",
    afterDataLimits(scale) {
      if (!fits) return;
      const values = scale.getMinMax(true);
      if (!Number.isFinite(values.min)) return measure(scale);
      Object.assign(scale, {min: fromZero ? Math.min(0, values.min) : values.min, max: values.max});
      if (scale.max - scale.min < 1e-9 * Math.max(1e-3, Math.abs(scale.max))) widen(scale, kind);
      measure(scale);
      scale.min = step * Math.floor(scale.min / step + 1e-6);
      scale.max = step * Math.ceil(scale.max / step - 1e-6);
      if (most !== undefined && scale.max > most) scale.max = most;
    },
    afterBuildTicks(scale) {
      if (!fits) measure(scale);
      scale.ticks = ticksWithin(scale.min, scale.max, step);
    },
    ticks: {autoSkip: false, maxRotation: 0, callback: (value) => (kind === "bytes" ? bytesShort(value) : plain(value, step))},
  };
}

// A single value stands in the middle.
function widen(range, kind) {
  const by = kind === "whole" ? 1 : Math.max(0.1 * Math.abs(range.max), 1e-3);
  range.min -= by;
  range.max += by;
}
