// Uploads a picture that is dropped, pasted or chosen. Without this file a picture is uploaded by
// the form of the library and chosen from a list.
(() => {
  "use strict";

  function send(box, file) {
    const progress = box.querySelector("[data-progress]"), refused = box.querySelector("[data-refused]");
    const address = document.getElementById(box.dataset.address), alt = document.getElementById(box.dataset.alt) ?? box.querySelector("[name=alt]");
    const form = new FormData();
    form.append("alt", alt?.value.trim() || file.name.replace(/\.[^.]*$/, ""));
    form.append("file", file);
    const call = new XMLHttpRequest(); // fetch does not report how much has been sent
    const shop = box.closest("form")?.elements.namedItem("shop")?.value; // of a form whose shop can change
    call.open("POST", shop ? `/shops/${shop}/pictures` : box.dataset.dropPicture);
    call.setRequestHeader("Accept", "application/json");
    call.responseType = "json";
    call.upload.onprogress = (e) => { if (e.lengthComputable) progress.value = 100 * e.loaded / e.total; };
    const fail = (text) => { progress.hidden = true; refused.hidden = false; refused.textContent = text; };
    call.onerror = () => fail(call.statusText || "…");
    call.onload = () => {
      if (call.status !== 201) return fail(call.response?.error ?? String(call.status));
      if (!address) return location.assign(box.dataset.dropPicture);
      progress.hidden = true;
      address.value = call.response.address;
      if (alt && !alt.value.trim()) {
        alt.value = call.response.alt;
        alt.focus();
        alt.select();
      }
      address.dispatchEvent(new Event("input", { bubbles: true }));
    };
    refused.hidden = true;
    progress.value = 0;
    progress.hidden = false;
    call.send(form);
  }

  const boxOf = (e) => e.target.closest?.("[data-drop-picture]");
  const fileOf = (data) => [...(data?.files ?? [])].find((f) => f.type.startsWith("image/"));
  const hint = () => { for (const el of document.querySelectorAll("[data-drop-here]")) el.hidden = false; };
  hint();
  document.addEventListener("htmx:after:swap", hint); // blocks come with parts of a page

  document.addEventListener("dragover", (e) => {
    const box = boxOf(e);
    if (!box || !e.dataTransfer.types.includes("Files")) return;
    e.preventDefault();
    box.classList.add("is-over");
  });
  document.addEventListener("dragleave", (e) => boxOf(e)?.classList.remove("is-over"));
  for (const kind of ["drop", "paste"]) document.addEventListener(kind, (e) => {
    const box = boxOf(e), file = fileOf(e.dataTransfer ?? e.clipboardData);
    if (!box || !file) return;
    e.preventDefault();
    box.classList.remove("is-over");
    send(box, file);
  });
  document.addEventListener("change", (e) => {
    if (e.target.type !== "file" || e.target.name) return; // a named file is sent with its form
    const box = boxOf(e);
    if (box && e.target.files[0]) send(box, e.target.files[0]);
    e.target.value = "";
  });
})();
