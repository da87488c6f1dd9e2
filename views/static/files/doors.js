// A door of a drop is dragged by its heading to the place of another door. The server moves it, as the
// buttons beside the heading do, so that what was typed is kept.
(() => {
  "use strict";
  const form = document.querySelector("form:has([data-door])");
  if (!form) return;
  let from;
  const over = (e) => e.target.closest("[data-door]");
  const mark = (el) => { for (const door of form.querySelectorAll("[data-door]")) door.classList.toggle("is-target", door === el); };
  for (const door of form.querySelectorAll("[data-door]")) {
    const head = door.querySelector(".card-head");
    head.draggable = true;
    head.addEventListener("dragstart", (e) => {
      from = door;
      e.dataTransfer.effectAllowed = "move";
      e.dataTransfer.setData("text/plain", door.dataset.door);
      e.dataTransfer.setDragImage(door, 20, 20);
    });
    head.addEventListener("dragend", () => { from = undefined; mark(); });
  }
  form.addEventListener("dragover", (e) => {
    const to = from && over(e);
    if (!to || to === from) return mark();
    e.preventDefault();
    mark(to);
  });
  form.addEventListener("drop", (e) => {
    const to = from && over(e);
    if (!to || to === from) return;
    e.preventDefault();
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "move", value: from.dataset.door + ":" + to.dataset.door }));
    form.requestSubmit();
  });
})();
