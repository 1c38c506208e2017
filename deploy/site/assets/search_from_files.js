// Lets the search work where the site is read from files: there a browser starts no worker and fetches nothing. The index
// comes as a script (deploy/site/build.py writes it), and the worker's script runs in a frame.
(() => {
  "use strict";
  if (location.protocol !== "file:") return;
  const index = new URL("../search/search_index.js", document.currentScript.src);

  const run = (page, url) =>
    new Promise((resolve, reject) => {
      const script = page.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${url} could not be loaded`));
      page.head.append(script);
    });

  // A worker's interface, as far as the theme uses it.
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.started = run(this.inner.document, url);
    }

    postMessage(data) {
      this.started.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
  window.__search = { index: run(document, index).then(() => window.terseSearchIndex) };
})();
