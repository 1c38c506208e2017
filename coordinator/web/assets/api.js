// The coordinator's HTTP API: questions, and an operator's commands.

// The coordinator's own words about what it refused.
export class NotServed extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

const kTokenKey = "terse-token";

// By how much the coordinator's clock is ahead of this browser's, in milliseconds.
let ahead = 0;
let token = remembered();

// Where the browser keeps nothing of a site, the token is the page's.
function remembered() {
  try {
    return sessionStorage.getItem(kTokenKey) ?? "";
  } catch {
    return "";
  }
}

export function setToken(text) {
  token = text.trim();
  try {
    sessionStorage.setItem(kTokenKey, token);
  } catch {
    // As above.
  }
}

// The coordinator's time, in milliseconds.
export function now() {
  return Date.now() + ahead;
}

async function send(path, options) {
  // A header holds no more than this, and a token is hexadecimal digits.
  const shown = /^[\x21-\x7e]+$/.test(token) ? {"X-Terse-Token": token} : {};
  const reply = await fetch(`/api/v1/${path}`, {...options, headers: {...shown, ...options.headers}});
  const date = Date.parse(reply.headers.get("Date"));
  if (Number.isFinite(date)) ahead = date - Date.now();
  if (reply.ok) return reply;
  const body = await reply.json().catch(() => null);
  throw new NotServed(body?.error ?? `${reply.status} ${reply.statusText}`, reply.status);
}

export async function ask(path) {
  return (await send(path, {signal: AbortSignal.timeout(20000)})).json();
}

export async function askText(path) {
  return (await send(path, {signal: AbortSignal.timeout(20000)})).text();
}

// Asks the coordinator to do something. Returns the response, whose body has not been read.
export function command(path, body, seconds = 60) {
  return send(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: {"Content-Type": "application/json", "X-Terse-Request": "1"},
    signal: AbortSignal.timeout(1000 * seconds),
  });
}

export function runPath(name) {
  return `runs/${encodeURIComponent(name)}`;
}

// "?a=1&b=2" of those that are not empty.
export function queryOf(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined);
  return given.length > 0 ? `?${new URLSearchParams(given)}` : "";
}
