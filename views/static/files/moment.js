// At the instants of an element's data-moments, and for a minute, the element, the title and the icon
// of the page show the moment. Every tick of app.js decides anew: timers of tabs in the background are
// late, so the events of the live stream tick too.
// Numbers change at once: the numbers of one picture belong together.
(() => {
  "use strict";
  const icon = document.querySelector('link[rel="icon"]');
  const ringing = document.currentScript.dataset.icon;
  const calm = { title: document.title, icon: icon.href };
  document.addEventListener("dropbell:tick", (e) => {
    const now = e.detail;
    let text = "";
    for (const el of document.querySelectorAll("[data-moments]")) {
      const on = JSON.parse(el.dataset.moments).findLast((m) => now >= Date.parse(m.at) && now < Date.parse(m.at) + 60000);
      const line = el.matches("[data-moment]") ? el : el.querySelector("[data-moment]");
      el.classList.toggle("is-now", !!on);
      const past = now - Date.parse(el.closest("[data-opens]")?.dataset.opens ?? ""); // NaN on pages without an opening
      const shown = on?.text ?? (past >= -30000 && past < 0 ? line.dataset.ahead ?? "" : "");
      if (line.textContent !== shown) line.textContent = shown;
      if (on && !text) text = on.text + " · " + el.dataset.momentOf;
    }
    const title = text || calm.title;
    if (document.title !== title) {
      document.title = title;
      icon.href = text ? ringing : calm.icon;
    }
    for (const el of document.querySelectorAll("[data-opens]")) { // from 30 seconds before the opening it has the layout of an open drop
      const past = now - Date.parse(el.dataset.opens);
      el.classList.toggle("is-open", past >= -30000);
      el.classList.toggle("is-opening", past >= -30000 && past < 60000);
    }
    for (const el of document.querySelectorAll("[data-minute]")) {
      const at = (now - Date.parse(el.dataset.minute)) / 1000;
      for (const line of el.querySelectorAll(".wave-now")) {
        line.style.visibility = at >= 0 && at < 60 ? "visible" : "hidden";
        line.setAttribute("x1", at);
        line.setAttribute("x2", at);
      }
    }
  });
})();
