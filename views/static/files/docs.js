// The pages about the API: search, copying, and one language for all examples.
// Without this file each page is complete, with all languages.
(() => {
  "use strict";
  const all = (selector, from = document) => from.querySelectorAll(selector);

  // The button is once on the page instead of in each of its hundreds of examples.
  const button = document.getElementById("docs-copy").content;
  for (const source of all(".docs-source")) source.append(button.cloneNode(true));

  document.addEventListener("click", async (e) => {
    const copy = e.target.closest("[data-copy-source]");
    if (!copy) return;
    await navigator.clipboard.writeText(copy.parentElement.querySelector("code").textContent);
    copy.title = document.body.dataset.copied;
    copy.classList.add("is-done");
    setTimeout(() => copy.classList.remove("is-done"), 1500);
  });

  const languages = document.querySelector("[data-languages]");
  function choose(language) {
    for (const button of all("button", languages)) button.setAttribute("aria-pressed", String(button.dataset.language === language));
    for (const example of all(".docs-example[data-language]")) {
      example.open = example.dataset.language === language;
    }
  }
  if (languages) {
    languages.addEventListener("click", (e) => {
      const language = e.target.closest("[data-language]")?.dataset.language;
      if (!language) return;
      choose(language);
      try { localStorage.setItem("docs-language", language); } catch { /* storage may be off */ }
    });
    let kept = "curl";
    try { kept = localStorage.getItem("docs-language") ?? kept; } catch { /* storage may be off */ }
    choose(kept);
  }

  const box = document.getElementById("docs-search");
  const found = document.getElementById("docs-found");
  if (!box) return;
  const most = 12;
  let index; // made at the first letter
  function entries() {
    const list = [];
    for (const el of all("[data-find]")) {
      const operation = el.matches("article");
      const title = operation ? el.querySelector("h3").textContent.replace(/\s+/g, " ").trim() : el.dataset.find;
      list.push({ id: el.id, title, note: operation ? el.dataset.find : el.querySelector("dd").textContent.trim(), text: (title + " " + el.id + " " + el.dataset.find).toLowerCase(), rank: operation ? 0 : 1 });
      if (!operation) continue;
      const names = new Set();
      for (const field of all(".docs-fields dt > code", el)) names.add(field.textContent);
      for (const name of names) list.push({ id: el.id, title: name, note: title, text: name.toLowerCase(), rank: 2 });
    }
    return list;
  }
  function search() {
    const words = box.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = words.length === 0;
    if (found.hidden) return;
    index ??= entries();
    const hits = index.filter((e) => words.every((w) => e.text.includes(w)));
    hits.sort((x, y) => x.rank - y.rank || x.title.length - y.title.length);
    const list = document.createElement("ul");
    for (const hit of hits.slice(0, most)) {
      const link = document.createElement("a");
      link.href = "#" + hit.id;
      const name = document.createElement("code");
      name.textContent = hit.title;
      const note = document.createElement("small");
      note.textContent = hit.note;
      link.append(name, note);
      list.append(document.createElement("li"));
      list.lastChild.append(link);
    }
    found.replaceChildren(hits.length > 0 ? list : found.dataset.none);
  }
  box.addEventListener("input", search);
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) { box.value = asked; search(); }
  box.addEventListener("keydown", (e) => {
    if (e.key === "Escape") { box.value = ""; search(); }
    if (e.key === "Enter") found.querySelector("a")?.click();
  });
})();
