// At the instants of an element's data-moments, and for a minute, the element, the title and the icon
// of the page show the moment. Every tick of app.js decides anew: timers of tabs in the background are
// late, so the events of the live stream tick too.
// Whole numbers that change are counted from the old to the new value, unless the viewer wants no motion.
(() => {
  "use strict";
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const whole = (text) => /^\d[\d,]*$/.test(text) ? Number(text.replaceAll(",", "")) : NaN;
  const counts = new WeakMap(); // the last text of an element, and the number that it shows
  function count() {
    for (const el of document.querySelectorAll("[data-figure], [data-cell], .drop-when strong")) {
      const end = el.textContent.trim(), last = counts.get(el);
      if (last?.text === el.textContent || el.childElementCount) continue;
      const now = { text: el.textContent, n: whole(end) }, from = last?.n;
      counts.set(el, now);
      if (still.matches || document.hidden || !(Math.abs(now.n - from) > 0)) continue;
      const to = now.n, began = performance.now();
      (function step() {
        if (counts.get(el) !== now || el.textContent !== now.text) return; // a newer value
        const part = Math.min(1, (performance.now() - began) / 500);
        now.n = Math.round(from + (to - from) * (1 - (1 - part) ** 3));
        el.textContent = now.text = part < 1 ? now.n.toLocaleString("en") : end;
        if (part < 1) requestAnimationFrame(step);
      })();
    }
  }
  count();
  for (const changed of ["htmx:after:swap", "dropbell:cells"]) document.addEventListener(changed, count);
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
      if (line.textContent !== (on?.text ?? "")) line.textContent = on?.text ?? "";
      if (on && !text) text = on.text + " · " + el.dataset.momentOf;
    }
    const title = text || calm.title;
    if (document.title !== title) {
      document.title = title;
      icon.href = text ? ringing : calm.icon;
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
