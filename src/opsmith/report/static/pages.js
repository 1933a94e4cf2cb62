/* Tables that are sorted and searched, in the report's file and on the live pages. Without it every page can be read. */
"use strict";
(() => {
  const FEW_ROWS = 12; // a table with more rows gets a search box
  const views = new Map(); // name of a table -> what the reader set: a live page replaces its tables while it is read
  let focused = null; // [name of a table, what of it], so that the focus outlives the replacing
  const order = new Intl.Collator(undefined, { numeric: true });

  const nameTable = (table) => {
    const box = table.closest("[aria-label]");
    return box ? box.getAttribute("aria-label") : "";
  };
  const listRows = (table) => [...table.tBodies[0].rows].filter((row) => !row.classList.contains("all"));

  /* The value that a cell is sorted by: a number, a text, or null for one that says nothing. */
  function readCell(row, column) {
    const cell = row.cells[column];
    const text = cell ? (cell.dataset.value ?? cell.textContent).trim() : "";
    if (text === "" || text === "-" || text === "–" || text === "·" || text === "unknown") return null;
    const clock = /^(?:(\d+):)?(\d+):(\d\d)$/.exec(text);
    if (clock) return Number(clock[1] || 0) * 3600 + Number(clock[2]) * 60 + Number(clock[3]);
    const share = /^(\d+)\s*(?:\/|of)\s*(\d+)/.exec(text.replaceAll(",", ""));
    if (share) return Number(share[1]);
    const number = /^[$+]?(-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)(?![\w-])/i.exec(text);
    return number ? Number(number[1].replaceAll(",", "")) : text;
  }

  function compareValues(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return order.compare(String(one), String(other));
  }

  function showTable(table, view) {
    const rows = view.rows.map((row, place) => ({ row, place, value: view.column < 0 ? null : readCell(row, view.column) }));
    if (view.column >= 0) {
      rows.sort((a, b) =>
        a.value === null || b.value === null
          ? (a.value === null) - (b.value === null) || a.place - b.place
          : view.direction * compareValues(a.value, b.value) || a.place - b.place
      );
    }
    const last = [...table.tBodies[0].rows].find((row) => row.classList.contains("all")) || null;
    rows.forEach(({ row }) => table.tBodies[0].insertBefore(row, last));
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      if (column === view.column) cell.setAttribute("aria-sort", view.direction > 0 ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    });
    const words = view.query.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    view.rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    });
    if (view.count) view.count.textContent = words.length ? `${shown} of ${view.rows.length} rows` : "";
  }

  function addHeader(table, view, name, column, cell) {
    if (!cell.textContent.trim() || cell.querySelector(".hidden")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.title = "Sort by this column; again: the other way; a third time: as it was";
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("focus", () => (focused = [name, column]));
    button.addEventListener("click", () => {
      const first = cell.classList.contains("n") ? -1 : 1; // of numbers the largest come first
      if (view.column !== column) Object.assign(view, { column, direction: first });
      else if (view.direction === first) view.direction = -first;
      else view.column = -1;
      showTable(table, view);
    });
    if (focused && focused[0] === name && focused[1] === column && document.activeElement === document.body) button.focus();
  }

  function makeSearch(label, query, onInput) {
    const box = document.createElement("p");
    box.className = "search";
    const caption = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "search", value: query, autocomplete: "off", spellcheck: false });
    const count = document.createElement("output");
    caption.append(label, " ", input);
    box.append(caption, " ", count);
    input.addEventListener("input", () => onInput(input.value));
    return { box, input, count };
  }

  function addSearch(table, view, name) {
    const search = makeSearch("Search these rows", view.query, (query) => {
      view.query = query;
      showTable(table, view);
    });
    view.count = search.count;
    (table.closest(".scroll") || table).before(search.box);
    search.input.addEventListener("focus", () => (focused = [name, "search"]));
    if (focused && focused[0] === name && focused[1] === "search" && document.activeElement === document.body) {
      search.input.focus();
      search.input.setSelectionRange(view.query.length, view.query.length);
    }
  }

  function enhanceTable(table) {
    if (table.dataset.ready || !table.tHead || !table.tBodies.length || table.dataset.fixed !== undefined) return;
    table.dataset.ready = "yes";
    const rows = listRows(table);
    if (rows.length < 2 || rows.some((row) => row.querySelector("[colspan], [rowspan]"))) return;
    const name = nameTable(table);
    const view = { column: -1, direction: 1, query: "", ...(name && views.get(name)), rows, count: null };
    if (name) views.set(name, view);
    [...table.tHead.rows[0].cells].forEach((cell, column) => addHeader(table, view, name, column, cell));
    if (rows.length > FEW_ROWS) addSearch(table, view, name);
    if (view.column >= 0 || view.query) showTable(table, view);
  }

  /* Programs, messages and replies of the attempts below, by their words. */
  function addTextSearch(section) {
    section.dataset.ready = "yes";
    const tasks = [...section.querySelectorAll("details.task")];
    const texts = new Map(); // part -> its text, read once and only when somebody searches
    const readText = (part) => {
      if (!texts.has(part)) texts.set(part, part.textContent.toLowerCase());
      return texts.get(part);
    };
    const search = makeSearch(section.dataset.search, "", (query) => {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean);
      let attempts = 0;
      let shown = 0;
      for (const task of tasks) {
        const parts = [...task.querySelectorAll("details.attempt")];
        const hits = parts.filter((part) => words.every((word) => readText(part).includes(word)));
        const named = words.every((word) => readText(task.querySelector("summary")).includes(word));
        parts.forEach((part) => (part.hidden = !named && !hits.includes(part)));
        task.hidden = !named && !hits.length;
        attempts += named ? parts.length : hits.length;
        shown += task.hidden ? 0 : 1;
      }
      search.count.textContent = words.length ? `${attempts} attempts at ${shown} of ${tasks.length} tasks` : "";
    });
    section.prepend(search.box);
  }

  function enhance() {
    document.querySelectorAll("main table").forEach(enhanceTable);
    document.querySelectorAll("[data-search]:not([data-ready])").forEach(addTextSearch);
  }

  document.addEventListener("DOMContentLoaded", () => {
    enhance();
    new MutationObserver(enhance).observe(document.querySelector("main"), { childList: true, subtree: true });
  });
  document.addEventListener("focusin", (event) => {
    if (!event.target.closest(".sort, .search")) focused = null;
  });
  document.addEventListener("pointerdown", () => (focused = null));
})();
