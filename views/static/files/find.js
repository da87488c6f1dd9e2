// The search over everything, as a dialog: Ctrl+K or Command+K, or its button. The
// dialog is a combobox with a listbox. The server searches; this file moves the choice.
// Elements are looked up each time, since a page that htmx restores has new elements.
(() => {
  "use strict";
  const get = (id) => document.getElementById(id);
  const options = () => [...document.querySelectorAll("#find-results [role=option]")];
  const chosen = () => document.querySelector("#find-results [aria-selected=true]");
  const mac = /Mac|iPhone|iPad/.test(navigator.platform);
  if (mac) for (const k of document.querySelectorAll("[data-find-key]")) k.textContent = "⌘ K";

  // The last opened pages, as kind and number; names are not stored in the browser.
  const key = "recent";
  const recent = () => { try { return JSON.parse(localStorage.getItem(key) ?? "[]"); } catch { return []; } };
  const here = /^\/(templates|campaigns|coupons|users)\/(\d{1,19})$/.exec(location.pathname);
  if (here) {
    const place = here[1] + "/" + here[2];
    try { localStorage.setItem(key, JSON.stringify([place, ...recent().filter((p) => p !== place)].slice(0, 6))); } catch { /* no storage */ }
  }

  function choose(option) {
    for (const o of options()) o.setAttribute("aria-selected", String(o === option));
    const field = get("find-q");
    if (option) {
      field.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else field.removeAttribute("aria-activedescendant");
  }

  function open() {
    const dialog = get("find"), field = get("find-q");
    if (!dialog || document.querySelector("dialog[open]")) return;
    get("find-results").replaceChildren();
    choose(null);
    waiting = false;
    field.form.elements.recent.value = recent().join(" ");
    dialog.showModal();
    field.select();
    htmx.process(field.form); // which htmx itself does a moment after the page is there
    htmx.trigger(field.form, "find");
  }

  document.addEventListener("click", (e) => {
    if (!e.target.closest("[data-find]") || !get("find") || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    open();
  });
  document.addEventListener("submit", (e) => {
    if (e.target.closest("#find")) e.preventDefault(); // Enter opens the chosen entry
    if (e.target.getAttribute("action") === "/signout") try { localStorage.removeItem(key); } catch { /* no storage */ }
  });

  let waiting = false; // for the results of the typed text, to open the first
  document.addEventListener("input", (e) => {
    if (e.target.id !== "find-q") return;
    choose(null);
    get("find-results").setAttribute("aria-busy", "true");
  });
  document.addEventListener("htmx:after:swap", () => {
    const dialog = get("find"), list = get("find-results"), field = get("find-q");
    if (!dialog?.open) return;
    list.removeAttribute("aria-busy");
    const all = options();
    field.setAttribute("aria-expanded", String(all.length > 0));
    choose(all[0] ?? null);
    get("find-said").textContent = field.value.trim() ? dialog.dataset.count.replace("{0}", String(all.length)) : "";
    if (waiting) { waiting = false; all[0]?.click(); }
  });
  document.addEventListener("keydown", (e) => {
    if (e.key.toLowerCase() === "k" && (mac ? e.metaKey : e.ctrlKey) && !e.altKey && !e.shiftKey && get("find")) {
      e.preventDefault(); // browsers search the web with it
      if (get("find").open) get("find").close(); else open();
      return;
    }
    if (e.target.id !== "find-q" || e.isComposing) return;
    const all = options(), at = all.indexOf(chosen());
    if (e.key === "ArrowDown") choose(all[(at + 1) % all.length] ?? null);
    else if (e.key === "ArrowUp") choose(all[(at < 1 ? all.length : at) - 1] ?? null);
    else if (e.key === "Enter") { if (get("find-results").hasAttribute("aria-busy")) waiting = true; else chosen()?.click(); }
    else return;
    e.preventDefault();
  });
  document.addEventListener("pointermove", (e) => {
    const o = e.target.closest?.("#find-results [role=option]");
    if (o && o !== chosen()) choose(o);
  });
})();
