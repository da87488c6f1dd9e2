// Improvements of the console where scripts run. Every page works without
// this file; the server makes all decisions.
(() => {
  "use strict";
  const root = document.documentElement;
  const all = (selector, from = document) => from.querySelectorAll(selector);
  const texts = document.body.dataset;

  // The server's time, estimated in the browser: viewers' clocks may be wrong.
  const arrived = performance.timeOrigin + (performance.getEntriesByType("navigation")[0]?.responseStart ?? performance.now());
  const skew = Date.parse(root.dataset.now) - arrived;

  // Countdowns continue from the server's text; see ui.Countdown.
  const two = (n) => String(n).padStart(2, "0");
  function countdown(ms) {
    const s = Math.max(0, Math.floor(ms / 1000));
    const d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
    if (d > 0) return d + texts.dayUnit + " " + two(h) + ":" + two(m) + ":" + two(s % 60);
    return (h > 0 ? h + ":" + two(m) : m) + ":" + two(s % 60);
  }
  function tick() {
    const now = Date.now() + skew;
    for (const el of all("[data-countdown]")) {
      const left = Date.parse(el.dataset.countdown) - now;
      const text = countdown(left);
      if (el.textContent !== text) el.textContent = text;
      el.classList.toggle("is-near", left > 0 && left < 300000);
    }
    for (const el of all("[data-until]")) el.hidden = now >= Date.parse(el.dataset.until); // see atOpening
    for (const el of all("[data-from]")) el.hidden = now < Date.parse(el.dataset.from);
    document.dispatchEvent(new CustomEvent("dropbell:tick", { detail: now }));
  }
  setInterval(tick, 250);

  // The server shows instants that belong to no shop in the zone of the browser, from the next page on.
  document.cookie = `dropbell_zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax` + (location.protocol === "https:" ? "; secure" : "");

  // Every instant has a tooltip with the viewer's own time.
  const own = new Intl.DateTimeFormat(root.lang, { dateStyle: "full", timeStyle: "long" });
  function localTimes() {
    for (const el of all("time[data-local]")) {
      if (!el.title) el.title = texts.yourTime + ": " + own.format(new Date(el.dateTime));
    }
  }

  // Fields that belong to one option are shown while the option is chosen.
  function dependents() {
    for (const [attribute, name] of [["kinds", "kind"], ["targets", "target"], ["validity", "validity"], ["audiences", "audience"], ["modes", "opening_mode"], ["sources", "draw_source"], ["waits", "waitlist"], ["repeats", "every"], ["ends", "ends"]]) {
      const chosen = document.querySelector(`[name="${name}"]:checked, select[name="${name}"]`)?.value;
      if (chosen === undefined) continue; // there is no such choice
      for (const el of all(`[data-${attribute}]`)) el.hidden = !el.dataset[attribute].split(" ").includes(chosen);
    }
    const currency = document.getElementById("f-currency")?.value;
    if (currency) for (const el of all("#f-amount_off, #f-max_off, #f-threshold")) {
      const suffix = el.parentElement.querySelector(".suffix");
      if (suffix) suffix.textContent = currency.toUpperCase();
    }
  }

  // If the tabs do not fit, the current tab is scrolled into view.
  function currentTabs() {
    for (const tabs of all(".section-tabs")) {
      const tab = tabs.querySelector("[aria-current]");
      if (tab && tabs.scrollWidth > tabs.clientWidth) tabs.scrollLeft = tab.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
    }
  }

  // On a phone the list of a month begins with today.
  if (!location.hash && !scrollY && matchMedia("(max-width: 760px)").matches) document.querySelector(".month .is-today")?.scrollIntoView();

  function enhance() { localTimes(); dependents(); currentTabs(); tick(); }
  enhance();
  document.addEventListener("htmx:after:swap", enhance);
  document.addEventListener("change", dependents);

  // Dialogs.
  const dialog = document.getElementById("dialog");
  let asked = 0; // when a dialog was asked for that is not here yet
  document.addEventListener("htmx:before:request", (e) => { if (e.target.closest?.('[hx-target="#dialog-body"]')) asked = Date.now(); });
  document.addEventListener("htmx:after:swap", (e) => {
    if (!dialog || !dialog.querySelector("#confirm")) return;
    const title = dialog.querySelector(".dialog-title");
    if (title) dialog.setAttribute("aria-label", title.textContent);
    if (!dialog.open) dialog.showModal();
    asked = 0;
    const first = dialog.querySelector("[aria-invalid=true]") ?? dialog.querySelector("input:not([type=hidden]), textarea");
    if (!dialog.querySelector("#blast")?.contains(e.target) && !dialog.contains(document.activeElement)) first?.focus();
  });
  document.addEventListener("click", (e) => {
    const closer = e.target.closest("[data-close-dialog]");
    const open = closer?.closest("dialog");
    if (open) { e.preventDefault(); open.close(); return; }
    if (e.target instanceof HTMLDialogElement) e.target.close(); // the backdrop
  });
  dialog?.addEventListener("close", () => { document.getElementById("dialog-body").replaceChildren(); });

  // A field's error is removed when the field is typed in.
  document.addEventListener("input", (e) => {
    const field = e.target.closest("[data-forgets] .field.has-error");
    if (!field) return;
    field.classList.remove("has-error");
    field.querySelector(":scope > .field-error")?.remove();
    e.target.setAttribute("aria-invalid", "false");
  });

  // Menus close when the viewer clicks outside of them.
  document.addEventListener("click", (e) => {
    for (const el of all("details[data-menu][open], .tab-more[open]")) if (!el.contains(e.target)) el.open = false;
  });

  // One check box ticks all check boxes of a name.
  document.addEventListener("change", (e) => {
    const name = e.target.dataset?.checkAll;
    if (name) for (const box of all(`input[type=checkbox][name="${name}"]`)) box.checked = e.target.checked;
  });

  // Copy, dismiss.
  document.addEventListener("click", async (e) => {
    const copy = e.target.closest("[data-copy]");
    if (copy) {
      await navigator.clipboard.writeText(copy.dataset.copy);
      const before = copy.getAttribute("aria-label");
      copy.setAttribute("aria-label", texts.copied);
      copy.title = texts.copied;
      setTimeout(() => { copy.setAttribute("aria-label", before); copy.removeAttribute("title"); }, 1500);
    }
    e.target.closest("[data-dismiss]")?.closest(".flash")?.remove();
  });

  document.addEventListener("click", (e) => { if (e.target.closest("[data-print]")) print(); });

  // The theme changes at once, while the server stores it.
  document.addEventListener("submit", (e) => {
    if (!e.target.matches("[data-theme-form]") || !e.submitter) return;
    e.preventDefault();
    root.dataset.theme = e.submitter.value;
    for (const b of all("[data-theme-form] button")) b.setAttribute("aria-pressed", String(b.value === e.submitter.value));
    fetch(e.target.action, { method: "POST", body: new URLSearchParams([["theme", e.submitter.value]]), redirect: "manual" });
  });

  // A stray click loses no typed values.
  let guarded = null;
  document.addEventListener("input", (e) => { guarded = e.target.closest("form[data-guard]") ?? guarded; });
  document.addEventListener("submit", (e) => { if (e.target === guarded) guarded = null; });
  addEventListener("beforeunload", (e) => { if (guarded?.isConnected) e.preventDefault(); });
  document.querySelector("[data-focus]")?.focus();

  const place = document.createElement("div"); // of the live stream
  place.hidden = true;

  // Requests without an answer, or with an answer from another server: the
  // page stays, and a line names the problem. The line is inside the dialog
  // if a dialog is open, since nothing outside can be reached then.
  const trouble = document.getElementById("trouble");
  function tell(what) {
    const words = trouble && document.getElementById("trouble-" + what);
    if (!words) return;
    const home = dialog?.open ? dialog : document.body;
    if (trouble.parentElement !== home) home.prepend(trouble);
    trouble.dataset.what = what;
    trouble.replaceChildren(words.content.cloneNode(true));
    for (const a of all("a[data-return]", trouble)) a.href = "/signin?return=" + encodeURIComponent(location.pathname + location.search);
  }
  function told() { if (trouble?.dataset.what) { delete trouble.dataset.what; trouble.replaceChildren(); } }
  dialog?.addEventListener("close", () => { if (dialog.contains(trouble)) { told(); document.body.append(trouble); } });
  document.addEventListener("htmx:before:response", (e) => {
    const { sourceElement: from, sourceEvent: cause, response } = e.detail.ctx;
    if (place.contains(from)) return;
    if (!response.headers.has("Dropbell-Console")) {
      e.preventDefault(); // a proxy's page has no place in ours
      tell("unreachable");
    } else if (response.status === 401 && (guarded?.isConnected || !["submit", "click"].includes(cause?.type) && !from.matches("[role=search]"))) {
      e.preventDefault(); // the user does not leave, or typed values would be lost
      tell("signed-out");
    } else told();
  });
  document.addEventListener("htmx:error", (e) => {
    const ctx = e.detail.ctx;
    if (ctx?.request && !ctx.response && !place.contains(e.target)) tell("unreachable");
  });

  // Values that are sent one by one. Each has a name, and a page shows it as
  // the text, an attribute or the HTML of each element bound to the name.
  let bound = null;
  function bindings() {
    bound = new Map();
    const add = (key, put) => { if (!bound.has(key)) bound.set(key, []); bound.get(key).push(put); };
    for (const el of all("[data-cell]")) add(el.dataset.cell, (v) => { el.textContent = v; });
    for (const el of all("[data-html]")) add(el.dataset.html, (v) => { el.innerHTML = v; htmx.process(el); });
    for (const el of all("[data-bind]")) for (const pair of el.dataset.bind.split(" ")) {
      const [name, key] = pair.split("=");
      if (name === "hidden") add(key, (v) => { el.hidden = v !== ""; });
      else add(key, (v) => { el.setAttribute(name, v); if (name === "datetime") el.title = ""; });
    }
  }
  document.addEventListener("dropbell:cells", (e) => {
    if (!bound) bindings();
    for (const [key, value] of Object.entries(JSON.parse(e.detail.data))) for (const put of bound.get(key) ?? []) put(value);
    localTimes();
    tick();
  });

  // Live parts: one stream for the page's own state and for every part of the
  // page that names its address.
  document.body.append(place);
  const page = document.querySelector("[data-stream]")?.dataset;
  const note = document.getElementById("live-note");
  let held = false;
  let seen = page?.streamFrom ?? ""; // the last state this page was brought to
  let watched = ""; // the parts that the stream sends
  function parts() {
    return [...all("[data-live]")].filter((el) => !el.parentElement.closest("[data-live]")).map((el) => ["of", el.dataset.live]);
  }
  let again = 0; // the timer of a next attempt
  function connect() {
    clearTimeout(again);
    disconnect(); // there is never a second one
    if (held) return;
    const list = parts();
    const now = JSON.stringify(list);
    if (watched && watched !== now) seen = seen.split(".")[0]; // other parts than before
    watched = now;
    if (!page && !list.length) return;
    const query = new URLSearchParams([...list, ...(seen ? [["from", seen]] : [])]);
    const source = document.createElement("div");
    source.setAttribute("hx-sse:connect", (page?.stream ?? "/live") + "?" + query);
    source.setAttribute("hx-config", "sse.reconnectMaxDelay:5000");
    place.append(source);
    htmx.process(place);
  }
  let stream = null;
  function disconnect() {
    if (place.firstElementChild) htmx.trigger(place.firstElementChild, "htmx:abort"); // may still wait for an answer
    place.replaceChildren();
    stream?.reader?.cancel();
    stream?.abortController.abort();
    stream = null;
  }
  // A swap may have added or removed parts.
  document.addEventListener("htmx:after:swap", () => setTimeout(() => {
    if (held || !watched || JSON.stringify(parts()) === watched) return;
    connect();
  }));
  function lost(yes) { if (note) note.hidden = !yes || held; }
  // A viewer whose permissions have changed gets a new page. A viewer who was
  // signed out keeps the page with all typed values, and continues after
  // signing in in another tab.
  const shut = (status) => status === 401 || status === 403;
  function shown(status) { if (status === 401) ended(); else reload(); }
  function ended() { disconnect(); tell("signed-out"); }
  addEventListener("focus", () => { if (trouble?.dataset.what === "signed-out") connect(); });
  function retry() { lost(true); clearTimeout(again); again = setTimeout(connect, 5000); }
  function reload() { setTimeout(() => { keep(); location.reload(); }, Math.max(0, 3000 - performance.now())); } // never on and on
  // Typed values survive an automatic reload, in fields that still exist
  // with the same stored value.
  const typing = "main form[method=post] :is(textarea, input:not([type=hidden], [type=password], [type=checkbox], [type=radio], [type=file]))[id]";
  function keep() {
    const list = [...all(typing)].filter((el) => el.value !== el.defaultValue).map((el) => [el.id, el.defaultValue, el.value]);
    if (list.length) sessionStorage.setItem("typed", JSON.stringify([location.href, document.activeElement?.id, list]));
  }
  function restore() {
    const [href, focused, list] = JSON.parse(sessionStorage.getItem("typed") ?? "[]");
    sessionStorage.removeItem("typed");
    if (href !== location.href) return;
    for (const [id, before, now] of list) {
      const el = document.getElementById(id);
      if (!el?.matches(typing) || el.defaultValue !== before) continue;
      el.value = now;
      if (id === focused) el.focus();
    }
  }
  restore();
  document.addEventListener("htmx:sse:error", (e) => { if (shut(e.detail.status)) shown(e.detail.status); else lost(true); });
  document.addEventListener("htmx:error", (e) => { if (place.contains(e.target)) retry(); });
  document.addEventListener("htmx:before:swap", (e) => {
    if (!place.contains(e.target) || !(e.detail.ctx.response?.status >= 400)) return;
    e.preventDefault(); // an error page has no place in a stream
    const status = e.detail.ctx.response.status;
    if (shut(status)) shown(status); else retry();
  });
  // Opened details stay open, the present moment stays drawn, and so do charts with the part of them that was chosen.
  const kept = { open: "details", class: ".chart", hidden: ".chart-spans", "aria-pressed": "[data-span]" };
  htmx.registerExtension("dropbell", { htmx_before_morph_attr: (el, change) => !(el.matches(".wave-now") || kept[change.attrName] && el.matches(kept[change.attrName])) });
  document.addEventListener("htmx:sse:after:connection", (e) => { stream = e.detail.connection; lost(false); told(); });
  document.addEventListener("htmx:sse:after:message", (e) => { lost(false); seen = e.detail.message.id || seen; tick(); });
  document.addEventListener("dropbell:signed-out", ended);
  // Not while a dialog is open or loading: the reload would lose it.
  document.addEventListener("dropbell:reload", () => {
    if (dialog?.open || Date.now() - asked < 10000) return;
    reload();
  });
  // A swap may have replaced a switch and lost its state. Without live
  // parts the switch is hidden.
  function switches() {
    const over = !page && !parts().length;
    for (const b of all("[data-live-switch]")) { b.setAttribute("aria-pressed", String(held)); b.hidden = over; }
  }
  document.addEventListener("htmx:after:swap", switches);
  document.addEventListener("click", (e) => {
    const b = e.target.closest("[data-live-switch]");
    if (!b) return;
    held = !held;
    switches();
    const said = document.getElementById("live-said");
    if (said) said.textContent = held ? said.dataset.held : said.dataset.on;
    connect(); // or no more
    if (held) lost(false);
  });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", connect); else setTimeout(connect);
  // A page that takes longer than a moment shows that it is on its way. A file leaves the page where it is, so the sign ends by itself.
  let slow = 0;
  function leave(el) {
    clearTimeout(slow);
    slow = setTimeout(() => { document.documentElement.classList.add("is-leaving"); el?.classList.add("is-pressed"); slow = setTimeout(stay, 15000); }, 200);
  }
  function stay() {
    clearTimeout(slow);
    document.documentElement.classList.remove("is-leaving");
    for (const el of all(".is-pressed")) el.classList.remove("is-pressed");
  }
  document.addEventListener("click", (e) => {
    const a = e.target.closest("a[href]");
    if (!a || e.defaultPrevented || e.button || e.ctrlKey || e.metaKey || e.shiftKey || a.target || a.origin !== location.origin) return;
    if (a.pathname + a.search === location.pathname + location.search && a.hash || /\.\w+$/.test(a.pathname)) return;
    leave(a);
  });
  document.addEventListener("submit", (e) => { if (!e.defaultPrevented) leave(e.submitter); });
  addEventListener("pageshow", stay);
  // A page in the browser's back/forward cache needs no stream.
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (e) => { if (e.persisted) connect(); });

  // Keyboard.
  let prefix = "";
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, [contenteditable]") || document.querySelector("dialog[open]")) return;
    const key = prefix + e.key;
    prefix = "";
    const to = { "g o": "/", "g t": "/templates", "g c": "/campaigns", "g u": "/users" }[key];
    if (to) { location.href = to; }
    else if (e.key === "g") { prefix = "g "; setTimeout(() => { prefix = ""; }, 1200); }
    else if (e.key === "/") { const q = document.getElementById("q"); if (q) { e.preventDefault(); q.focus(); q.select(); } }
    else if (e.key === "n") { document.getElementById("new")?.click(); }
    else if (e.key === "?") { document.getElementById("shortcuts")?.showModal(); }
  });
})();
