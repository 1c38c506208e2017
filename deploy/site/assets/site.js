// Draws the pictures that are written in Mermaid, with the copy of Mermaid that lies beside this file.
(() => {
  "use strict";
  const mermaidScript = new URL("mermaid.min.js", document.currentScript.src);
  const elements = [...document.querySelectorAll("pre.terse-diagram")];
  if (elements.length === 0) return;

  const pictures = elements.map((pre) => {
    const element = document.createElement("div");
    element.className = "terse-diagram";
    pre.replaceWith(element);
    return { element, text: pre.textContent };
  });

  // Draws all of them in the colours of the page.
  const draw = async () => {
    const dark = document.body.getAttribute("data-md-color-scheme") === "slate";
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "default" });
    for (const [number, picture] of pictures.entries()) {
      const { svg } = await mermaid.render(`terse-diagram-${number}`, picture.text);
      picture.element.innerHTML = svg;
    }
  };

  const script = document.createElement("script");
  script.src = mermaidScript;
  script.onload = async () => {
    await draw();
    new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  };
  document.head.append(script);
})();
