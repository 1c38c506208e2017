// Small helpers for the page's elements. Texts of clients are set as text, never as HTML.

export const byId = (id) => document.getElementById(id);

// Text that stays as it is is not touched, so that what is selected in it stays selected.
export function setText(id, text) {
  const target = byId(id);
  if (target.textContent !== text) target.textContent = text;
}

export function element(tag, text, classes) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

export function button(text, onClick, classes) {
  const made = element("button", text, classes);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

// Options are [value, label]; the choice stays where it is still offered.
export function setOptions(select, options) {
  const before = select.value;
  const now = JSON.stringify(options);
  if (select.dataset.options === now) return;
  select.dataset.options = now;
  select.replaceChildren(...options.map(([value, label]) => new Option(label, value)));
  if (options.some(([value]) => value === before)) select.value = before;
}

// A row of cells; a column has text(item, context), and may have kind and tone(item), its classes, and node(item).
export function rowOf(columns, item, context) {
  const row = element("tr");
  for (const column of columns) {
    const tone = column.tone ? column.tone(item) : "";
    const cell = element("td", undefined, [column.kind ?? "", tone].join(" ").trim());
    if (column.node) {
      cell.append(...column.node(item, context));
    } else {
      cell.textContent = column.text(item, context);
    }
    if (column.kind === "name") cell.title = cell.textContent;
    row.append(cell);
  }
  return row;
}

// A table's head. Columns with a `sort` get a button, which calls `onSort` with the column.
export function headOf(columns, onSort) {
  const row = element("tr");
  for (const column of columns) {
    const head = element("th", column.sort ? undefined : column.title, column.kind);
    head.scope = "col";
    if (column.sort) head.append(button(column.title, () => onSort(column)));
    column.head = head;
    row.append(head);
  }
  return row;
}

export function markSorted(columns, column, descending) {
  for (const one of columns) one.head.removeAttribute("aria-sort");
  column.head.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

// Says of every table that is wider than its place that it goes on to the side.
export function watchWideTables() {
  const look = (scroll) => {
    const left = scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft;
    scroll.dataset.more = `${scroll.scrollLeft > 1 ? "left" : ""} ${left > 1 ? "right" : ""}`.trim();
    scroll.nextElementSibling.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
  };
  const observer = new ResizeObserver((entries) => {
    for (const entry of entries) look(entry.target.closest(".scroll"));
  });
  for (const scroll of document.querySelectorAll(".scroll")) {
    const hint = element("p", "The table goes on to the side: scroll it there, or use the arrow keys.", "quiet wide");
    hint.hidden = true;
    scroll.after(hint);
    scroll.addEventListener("scroll", () => look(scroll), {passive: true});
    observer.observe(scroll);
    for (const child of scroll.children) observer.observe(child);
  }
}
