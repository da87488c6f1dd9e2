// A form in steps: one step is visible at a time, and a bar links to each step. The
// steps are one form with one submit; without this file all steps are visible.
(() => {
  "use strict";
  const bar = document.querySelector("[data-steps]");
  const form = bar?.closest("form");
  if (!form) return;
  const parts = form.querySelector("[data-parts]");
  const steps = [...form.querySelectorAll("[data-step]")];
  const review = steps.at(-1);
  const [back, next, save, publish] = ["back", "next", "save", "publish"].map((name) => form.querySelector(`[data-${name}]`));
  const whole = "whole" in bar.dataset;
  const broken = (step) => step.querySelector(".has-error") !== null;
  const first = steps.find(broken) ?? steps[0];
  const passed = new Set(whole ? steps.slice(0, -1) : []); // been through
  const judged = new Set(steps.some(broken) ? steps : []); // whose errors are shown
  let at = null;
  let reached = whole ? steps.length - 1 : 0;
  let leaving = null; // waits for the server's word

  function draw() {
    for (const b of bar.querySelectorAll("button")) {
      const i = b.dataset.to - 1, step = steps[i];
      if (step === at) b.setAttribute("aria-current", "step"); else b.removeAttribute("aria-current");
      b.dataset.state = broken(step) ? "bad" : passed.has(step) && step !== at ? "done" : "";
      b.disabled = i > reached;
    }
  }

  // The server's last validation of the typed values, shown in visited
  // steps.
  const word = () => document.querySelector("[data-checked]");
  function apply() {
    const told = word();
    if (!told) return;
    for (const el of form.querySelectorAll("[data-fold]")) el.hidden = !told.querySelector(`[data-twice="${el.dataset.fold}"]`);
    for (const step of judged) for (const field of step.querySelectorAll(".field")) {
      const el = field.id ? field : field.querySelector("[id^=f-]:is(input, select, textarea)");
      if (!el) continue;
      const was = field.querySelector(":scope > .field-error"), help = field.querySelector(":scope > .help");
      const now = told.querySelector(`[data-for="${el.id}"]`)?.cloneNode(true);
      field.classList.toggle("has-error", !!now);
      if (was?.textContent === now?.textContent) continue;
      was?.remove();
      if (now) {
        now.removeAttribute("data-for");
        now.id = el.id + "-error";
        if (help) help.before(now); else field.append(now);
      }
      const notes = [now?.id, help?.id].filter(Boolean).join(" ");
      if (notes) el.setAttribute("aria-describedby", notes); else el.removeAttribute("aria-describedby");
      if (el !== field) el.setAttribute("aria-invalid", String(!!now));
    }
  }

  function look() { window.htmx?.trigger(parts, "dropbell:check"); }
  parts.addEventListener("htmx:finally:request", (e) => {
    if (e.target !== parts) return; // of a part of a step
    const { status, request } = e.detail.ctx;
    if (request.signal?.aborted && request.signal.reason !== "timeout") return; // a newer one is on its way
    apply();
    draw();
    if (!leaving) return;
    const stays = status === "swapped" && word() && broken(leaving);
    const to = leaving === at && !stays ? steps[steps.indexOf(at) + 1] : null;
    if (leaving === at && stays) reach(at.querySelector(".has-error"));
    leaving = null;
    if (to) go(to);
  });

  // reach focuses a field, also inside a closed fold or below another tab; of a group the first enabled field.
  function reach(el) {
    const fold = el.closest("details");
    if (fold) fold.open = true;
    const tab = document.getElementById(el.closest("[data-tab]")?.dataset.tab);
    if (tab) tab.checked = true;
    const inner = "input:not([type=hidden], :disabled), select, textarea";
    (el.matches(inner) ? el : el.querySelector("[aria-invalid=true]") ?? el.querySelector(inner))?.focus();
  }

  function open(step) {
    at = step;
    const i = steps.indexOf(step);
    reached = Math.max(reached, i);
    if (step === review) { for (const s of steps) judged.add(s); look(); }
    for (const s of steps) s.hidden = s !== step;
    for (const el of step.querySelectorAll("[data-shown]")) window.htmx?.trigger(el, "dropbell:shown");
    back.hidden = i === 0;
    next.hidden = step === review;
    if (publish) publish.hidden = step !== review;
    save.classList.toggle("is-primary", (whole || step === review) && !(publish && step === review));
    next.classList.toggle("is-primary", !whole);
    draw();
  }
  function go(step) { if (location.hash === "#" + step.dataset.step) open(step); else location.hash = step.dataset.step; }
  function arrive(e) {
    const name = location.hash.slice(1), el = document.getElementById(name);
    const step = steps.find((s) => s.dataset.step === name) ?? el?.closest("[data-step]");
    if (e && location.hash && !step) return; // another place of the page
    // A reloaded page has lost the typed values: go back to the first step with an empty field.
    const blank = !e && !whole && step && steps.slice(0, steps.indexOf(step)).find((s) => [...s.querySelectorAll("[aria-required=true]")].some((f) => !f.value && !f.closest("[hidden], [data-elective]")));
    if (blank) {
      history.replaceState(history.state, "", "#" + blank.dataset.step);
      open(blank);
      return;
    }
    open(step ?? first);
    if (el && step) {
      history.replaceState(history.state, "", "#" + step.dataset.step);
      reach(el);
    } else if (e) {
      at.querySelector("h2").focus({ preventScroll: true });
      if (bar.getBoundingClientRect().top < 0) bar.scrollIntoView();
    }
  }

  next.addEventListener("click", () => {
    leaving = at;
    judged.add(at);
    passed.add(at);
    look();
  });
  back.addEventListener("click", () => go(steps[steps.indexOf(at) - 1]));
  bar.addEventListener("click", (e) => {
    const to = steps[e.target.closest("button")?.dataset.to - 1];
    if (!to || to === at) return;
    if (steps.indexOf(to) > steps.indexOf(at)) { judged.add(at); passed.add(at); look(); }
    go(to);
  });
  for (const el of form.querySelectorAll("[data-unstepped]")) el.hidden = true;
  if (whole) save.before(next); // the primary button is the last one
  bar.hidden = false;
  form.classList.add("is-stepped");
  arrive();
  addEventListener("hashchange", arrive);
  addEventListener("load", () => { if (at === review) look(); }); // browsers may put back typed values
})();
