// Buttons that insert a variable at the cursor of the text field that had it last. Without this file
// the variables are a list to type from.
(() => {
  "use strict";
  const fields = "[data-texts] :is(textarea, input:not([type]), input[type=text]):not([name*=url], [name*=link], [name*=picture], [readonly])";
  let last;
  document.addEventListener("focusin", (e) => { if (e.target.matches(fields)) last = e.target; });
  document.addEventListener("mousedown", (e) => { if (e.target.closest("[data-insert]")) e.preventDefault(); }); // the field keeps its cursor
  document.addEventListener("click", (e) => {
    const chip = e.target.closest("[data-insert]");
    if (!chip) return;
    const place = chip.closest("[data-texts]");
    const shown = [...place.querySelectorAll("textarea")].filter((t) => t.matches(fields) && t.offsetParent);
    const field = last?.isConnected && place.contains(last) && last.offsetParent ? last : shown[0];
    if (!field) return;
    field.focus();
    field.setRangeText(chip.dataset.insert, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
})();
