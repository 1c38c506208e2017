// What an operator may do: buttons, each with a question before it, and the proof that this is an operator.
import {ask, command, runPath, setToken} from "./api.js";
import {byId, element, setText} from "./dom.js";

const kReason = {name: "reason", label: "Reason, for the events and the audit log", type: "text", maxLength: 400};
const kSeconds = {name: "seconds", label: "For how many seconds", type: "number", min: 1, max: 1e9, value: 3600};

// Asks whether to do something. Resolves with the values of the fields, or with null.
function confirmIn(dialog, {title, text, verb, fields}) {
  const form = dialog.querySelector("form");
  setText("confirm-title", title);
  setText("confirm-text", text);
  setText("confirm-yes", verb);
  const inputs = fields.map(({name, label, ...attributes}) => {
    const line = element("label", label);
    const input = Object.assign(element("input"), attributes, {name, required: attributes.type === "number"});
    line.append(input);
    return line;
  });
  byId("confirm-fields").replaceChildren(...inputs);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const values = Object.fromEntries(new FormData(form).entries());
      resolve(dialog.returnValue === "yes" ? values : null);
    }, {once: true});
  });
}

export class Operator {
  // `onChange` is called with {operator, hint} when it is known who looks; `onDone` after each command.
  constructor(onChange, onDone) {
    this.me = {operator: false, hint: ""};
    this.onChange = onChange;
    this.onDone = onDone;
    byId("pause").addEventListener("click", () => this.pause());
    byId("resume").addEventListener("click", () => this.resume());
    byId("abort-round").addEventListener("click", () => this.abortRound());
    byId("save-model").addEventListener("click", () => this.saveModel());
    byId("token-form").addEventListener("submit", (event) => {
      event.preventDefault();
      setToken(byId("token").value);
      byId("token").value = "";
      this.refresh().catch((error) => this.say(error.message, true));
    });
    byId("confirm-no").addEventListener("click", () => byId("confirm").close("no"));
  }

  async refresh() {
    this.me = await ask("me");
    byId("commands").hidden = !this.me.operator;
    byId("token-form").hidden = this.me.operator || !this.me.hint.includes("token");
    setText("who", this.me.operator ? `You are an operator (${this.me.who}).` : `You may look: ${this.me.hint}.`);
    this.onChange(this.me);
  }

  // The buttons that make sense in the run's state.
  showRun(status, rounds) {
    this.run = status.run;
    byId("pause").disabled = !(status.serving && status.state === "active");
    byId("resume").disabled = !(status.serving && status.state === "paused");
    byId("abort-round").disabled = !(status.serving && rounds.at(-1)?.state === "open");
    this.round = rounds.at(-1)?.id;
  }

  say(text, isTrouble = false) {
    setText("command-result", text);
    byId("command-result").className = isTrouble ? "bad" : "good";
  }

  // Asks, does it, and says what came of it.
  async act(question, path, bodyOf, saidOf) {
    const values = await confirmIn(byId("confirm"), question);
    if (values === null) return this.say("Nothing was done.");
    try {
      const reply = await (await command(path, bodyOf(values))).json();
      this.say(`${saidOf(reply)} It is in the audit log.`);
    } catch (error) {
      this.say(`Refused: ${error.message}`, true);
      // The token, or the certificate, may not count any more.
      if (error.code === 401 || error.code === 403) await this.refresh().catch(() => {});
    }
    this.onDone();
  }

  pause() {
    const run = this.run;
    return this.act({title: `Pause ${run}?`, text: "The open round goes on to its end, and no new one opens until somebody resumes the run.",
      verb: "Pause", fields: [kReason]}, `${runPath(run)}/pause`, ({reason}) => ({reason}), ({state}) => `The run is ${state}.`);
  }

  resume() {
    const run = this.run;
    return this.act({title: `Resume ${run}?`, text: "Rounds open again.", verb: "Resume", fields: []},
      `${runPath(run)}/resume`, () => ({}), ({state}) => `The run is ${state}.`);
  }

  abortRound() {
    const run = this.run;
    return this.act({title: `Abort round ${this.round} of ${run}?`,
      text: "The open round is given up. Its updates stay in the clients' residuals, and the run goes on with the next round.",
      verb: "Abort the round", fields: [kReason]}, `${runPath(run)}/abort-round`, ({reason}) => ({reason}), ({round}) => `Round ${round} was aborted.`);
  }

  setAside(client, isAside) {
    const path = `${runPath(this.run)}/set-aside`, {name} = client;
    if (isAside) {
      return this.act({title: `Readmit ${name}?`, text: `It was set aside: ${client.set_aside_reason}.`, verb: "Readmit", fields: []},
        path, () => ({client: name, seconds: 0}), () => `${name} may take part again.`);
    }
    return this.act({title: `Set ${name} aside?`, text: "It gets no work for that time, and comes back by itself.", verb: "Set aside", fields: [kSeconds, kReason]},
      path, ({seconds, reason}) => ({client: name, seconds: Number(seconds), reason}),
      ({until_us}) => `${name} is set aside until ${new Date(until_us / 1000).toLocaleString()}.`);
  }

  async saveModel() {
    const format = byId("model-format").value;
    this.say(`The coordinator makes the model's file (${format})…`);
    try {
      const reply = await command(`${runPath(this.run)}/export`, {format}, 600);
      const name = /filename="([^"]+)"/.exec(reply.headers.get("Content-Disposition") ?? "")?.[1] ?? `model.${format}`;
      save(await reply.blob(), name);
      this.say(`${name} was made. It is in the audit log.`);
    } catch (error) {
      this.say(`Refused: ${error.message}`, true);
    }
  }
}

// Has the browser keep a file.
export function save(blob, name) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
