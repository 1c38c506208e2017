// Numbers and times as people read them.

const kUnits = ["B", "kB", "MB", "GB", "TB", "PB"];

export function bytes(value) {
  let unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.length) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toPrecision(3)} ${kUnits[unit]}`;
}

// Without zeros at the end, for axes.
export function bytesShort(value) {
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit + 1 < kUnits.length) {
    value /= 1000;
    unit += 1;
  }
  return `${Number(value.toPrecision(4))} ${kUnits[unit]}`;
}

// With a narrow space between thousands.
export function count(value) {
  return value.toLocaleString("en").replaceAll(",", "\u202f");
}

// null where nothing was sent.
export function compression(dense, sent) {
  return sent > 0 ? dense / sent : null;
}

export function ratio(dense, sent) {
  const times = compression(dense, sent);
  if (times === null) return "–";
  return `×${times >= 100 ? Math.round(times) : times.toPrecision(3)}`;
}

export function seconds(value) {
  if (!(value >= 0)) return "–";
  if (value < 1) return `${Math.round(1000 * value)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

// `now` is the coordinator's, in milliseconds.
export function ago(microseconds, now) {
  return microseconds > 0 ? `${seconds(Math.max(0, now / 1000 - microseconds / 1e6))} ago` : "never";
}

// The place and the time zone of who looks.
export function clock(microseconds) {
  return new Date(microseconds / 1000).toLocaleString();
}

// null and NaN: there is none.
export function decimal(value, digits) {
  return Number.isFinite(value) ? value.toFixed(digits) : "–";
}
