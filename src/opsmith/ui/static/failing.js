/* A part of a page that does not come says so, where it was to stand; a live page says that its server is silent. What
   the reader ticked stays ticked when its part is replaced. */
"use strict";
(() => {
  function addNote(place, text, { instead = false, retry = true } = {}) {
    const old = place.querySelector(":scope > .failed");
    if (old) old.remove();
    const note = Object.assign(document.createElement("p"), { className: "note failed", role: "alert", textContent: text });
    if (retry) note.append(" ", Object.assign(document.createElement("a"), { href: "", textContent: "Load the page again" }));
    if (instead) place.replaceChildren(note);
    else place.prepend(note);
  }

  const readMessage = (page) => {
    const message = new DOMParser().parseFromString(page, "text/html").querySelector(".message, main p");
    return message ? message.textContent.replace(/[.\s]*$/, ".") : "";
  };

  function showFailure(event) {
    const { elt, target, xhr } = event.detail;
    const place = target || elt;
    const why = xhr.status
      ? `The server could not answer (${xhr.status}). ${readMessage(xhr.responseText)}`
      : "No answer from the server: does opsmith ui still run?";
    addNote(place, why, { instead: place === elt });
  }

  let ticked = []; // ids
  const noteTicks = () => (ticked = [...document.querySelectorAll("input:checked")].map((box) => box.id));
  document.addEventListener("htmx:sseBeforeMessage", noteTicks);
  document.addEventListener("htmx:beforeSwap", noteTicks);
  document.addEventListener("htmx:afterSwap", () => {
    document.querySelectorAll("input[type=checkbox]").forEach((box) => (box.checked ||= ticked.includes(box.id)));
  });

  const main = () => document.querySelector("main");
  document.addEventListener("htmx:responseError", showFailure);
  document.addEventListener("htmx:sendError", showFailure);
  document.addEventListener("htmx:timeout", showFailure);
  document.addEventListener("htmx:sseError", () => {
    if (main().querySelector(":scope > .failed")) return;
    const at = new Date().toLocaleTimeString();
    addNote(main(), `No answer from the server since ${at}: what stands here is from before. It goes on by itself once opsmith ui answers.`, { retry: false });
  });
  document.addEventListener("htmx:sseOpen", () => main().querySelector(":scope > .failed")?.remove());
})();
