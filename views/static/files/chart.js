// Charts with axes, values under the pointer and zoom, drawn by uPlot over the
// server's drawing. The data is an attribute of each chart; see ui.TimeChart.
(() => {
  "use strict";
  const root = document.documentElement;
  const drawn = new Map(); // by id: the chart whose page part may be replaced around it
  const all = (selector, from = document) => from.querySelectorAll(selector);

  // Seconds before or after the opening, in words of the page's language.
  function span(x, t) {
    if (x === 0) return t.opening;
    const s = Math.abs(x), d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
    const parts = [[d, t.days], [h, t.hours], [m, t.minutes], [s % 60, t.seconds]].filter(([n]) => n > 0).slice(0, 2);
    return (x < 0 ? "−" : "+") + parts.map(([n, unit]) => n + unit).join(" ");
  }

  // The style sheet says how tall charts are in a small place.
  const tall = (figure) => parseInt(getComputedStyle(figure).getPropertyValue("--chart-height"), 10) || 240;

  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000];

  function draw(figure) {
    const source = figure.dataset.chart;
    const place = figure.querySelector(".chart-canvas");
    const known = drawn.get(figure.id);
    if (known?.place === place && known.source === source) return;
    let data = JSON.parse(source);
    const t = data.texts;
    const ink = (name) => getComputedStyle(figure.querySelector(".chart-ink.is-" + name) ?? figure).color;
    const rows = uPlot.join(data.lines.map((l) => [l.points.map((p) => p[0]), l.points.map((p) => p[1])]));
    if (known?.place === place && known.source && known.lines === data.lines.length) { // the chart grows in its place
      known.source = source;
      known.grow(data, rows);
      return;
    }
    const number = new Intl.NumberFormat(root.lang);
    const short = new Intl.NumberFormat(root.lang, { notation: "compact" });
    const clock = new Intl.DateTimeFormat(root.lang, { timeZone: data.zone, dateStyle: "medium", timeStyle: "medium" });
    const unit = data.unit ?? "";
    const names = ["own", "first", "second", "third"];
    const ground = getComputedStyle(figure.closest(".card") ?? document.body).backgroundColor;

    // Marks are lines over the plot. The text of a mark is at the top, in the first
    // row with room; a text without room is only in the list below the chart.
    function marks(u) {
      const c = u.ctx, top = u.bbox.top, px = devicePixelRatio, line = 15 * px, end = u.bbox.left + u.bbox.width;
      const shown = [...data.marks, { at: 0, text: "" }].map((m) => ({ text: m.text, x: u.valToPos(m.at, "x", true) }))
        .filter((m) => m.x >= u.bbox.left && m.x <= end).sort((a, b) => a.x - b.x);
      c.save();
      c.font = 11 * px + "px " + getComputedStyle(document.body).fontFamily;
      c.strokeStyle = ink("mark");
      c.setLineDash([4 * px, 3 * px]);
      c.beginPath();
      for (const { x } of shown) {
        c.moveTo(x, top);
        c.lineTo(x, top + u.bbox.height);
      }
      c.stroke();
      c.textBaseline = "top";
      c.textAlign = "left";
      const placed = [];
      for (const { text, x } of shown.filter((m) => m.text)) { // the axis names the opening
        const width = c.measureText(text).width + 8 * px, left = x + width < end ? x : x - width;
        let row = 0;
        while (placed.some((p) => p.row === row && p.left < left + width && left < p.left + p.width)) row++;
        if ((row + 1) * line > u.bbox.height / 2) continue;
        placed.push({ row, left, width });
        c.fillStyle = ground; // the lines of other marks do not cross the text
        c.fillRect(left + (left === x ? px : 0), top + row * line, width - px, line);
        c.fillStyle = ink("mark");
        c.fillText(text, left + 4 * px, top + row * line + 2 * px);
      }
      c.restore();
    }

    const axis = { stroke: () => ink("axis"), grid: { stroke: () => ink("grid"), width: 1 }, ticks: { stroke: () => ink("grid"), width: 1 }, font: "12px " + getComputedStyle(document.body).fontFamily };
    const options = {
      width: place.clientWidth || figure.clientWidth, height: tall(figure),
      scales: { x: { time: false }, y: { range: (u, low, high) => [0, Math.max(1, high * 1.08)] } },
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      legend: { live: true },
      axes: [
        { ...axis, incrs: steps, space: 84, values: (u, list) => list.map((x) => span(x, t)) },
        { ...axis, size: 52, values: (u, list) => list.map((n) => Number.isInteger(n) ? short.format(n) + unit : "") },
      ],
      series: [
        { label: t.time, value: (u, x) => x == null ? "" : span(x, t) + " · " + clock.format(new Date(data.origin + x * 1000)) },
        ...data.lines.map((l, i) => ({
          label: l.name, spanGaps: true, width: i === 0 ? 3 : 1.25, dash: i === 0 ? undefined : [5, 3], fill: i === 0 ? () => ink("area") : undefined,
          stroke: () => ink(names[i] ?? "third"), points: { show: false }, value: (u, n) => n == null ? "" : number.format(n) + unit,
        })),
      ],
      hooks: { // marks lie beneath the lines of the data
        drawAxes: [marks], setScale: [(u, key) => { if (key === "x") pressed(figure, u); }] },
    };
    const zoom = known && !known.whole ? { min: known.plot.scales.x.min, max: known.plot.scales.x.max } : null;
    known?.plot.destroy();
    known?.watch.disconnect();
    place.replaceChildren();
    figure.classList.add("is-drawn");
    const plot = new uPlot(options, rows, place);
    const watch = new ResizeObserver(() => { if (place.clientWidth) plot.setSize({ width: place.clientWidth, height: tall(figure) }); });
    watch.observe(place);
    const chart = { plot, place, source, watch, whole: !zoom, lines: data.lines.length, grow(fresh, rows) {
      data = fresh;
      plot.setData(rows, chart.whole);
      if (!chart.whole) plot.redraw();
    } };
    drawn.set(figure.id, chart);
    figure.querySelector("[data-chart-spans]").hidden = false;
    if (zoom) plot.setScale("x", zoom);
  }

  // The button of the shown part is pressed; a part chosen with the pointer has no button.
  function pressed(figure, u) {
    const first = u.data[0][0], last = u.data[0].at(-1), { min, max } = u.scales.x;
    const known = drawn.get(figure.id);
    if (known) known.whole = min <= first && max >= last;
    for (const b of all("[data-span]", figure)) {
      const [from, to] = b.dataset.span ? b.dataset.span.split(" ").map(Number) : [first, last];
      b.setAttribute("aria-pressed", String(min === Math.max(first, from) && max === Math.min(last, to)));
    }
  }
  document.addEventListener("click", (e) => {
    const b = e.target.closest("[data-span]"), figure = b?.closest("[data-chart]"), u = drawn.get(figure?.id)?.plot;
    if (!u) return;
    const first = u.data[0][0], last = u.data[0].at(-1);
    const [from, to] = b.dataset.span ? b.dataset.span.split(" ").map(Number) : [first, last];
    const min = Math.max(first, from), max = Math.min(last, to);
    if (min < max) u.setScale("x", { min, max });
  });

  function every() { for (const figure of all("[data-chart]")) draw(figure); }
  every();
  document.addEventListener("htmx:after:swap", every);
  // Colours follow the theme.
  const again = () => { for (const known of drawn.values()) known.source = ""; every(); };
  new MutationObserver(again).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
})();
