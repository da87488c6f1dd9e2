// Push to this browser: the button of the form with data-push asks the browser for a
// subscription and sends it. Without this file there is no button.
(() => {
  "use strict";
  const form = document.querySelector("form[data-push]");
  if (!form) return;
  const say = (name) => {
    for (const p of form.querySelectorAll("[data-push-say]")) p.hidden = p.dataset.pushSay !== name;
  };
  const button = form.querySelector("[data-push-ask]");
  const supported = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
  if (!supported) { say("unsupported"); return; }
  const scope = "/alerts/";

  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const digest = async (s) => text(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(s)));

  // A subscription that the browser has and the console does not know was turned off
  // on another page, or by its push service: the browser unsubscribes.
  async function begin() {
    const held = await (await navigator.serviceWorker.getRegistration(scope))?.pushManager.getSubscription();
    const mine = held && document.querySelector(`[data-browser="${await digest(held.endpoint)}"]`);
    if (mine) {
      mine.querySelector("[data-this-browser]").hidden = false;
      return;
    }
    if (held) await held.unsubscribe();
    if (Notification.permission === "denied") { say("denied"); return; }
    button.hidden = false;
  }

  async function subscribe() {
    if (await Notification.requestPermission() !== "granted") { say("denied"); return; }
    await navigator.serviceWorker.register(form.dataset.pushWorker, { scope });
    const registration = await ready(await navigator.serviceWorker.getRegistration(scope));
    const s = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(form.dataset.push) });
    form.elements.endpoint.value = s.endpoint;
    form.elements.p256dh.value = text(s.getKey("p256dh"));
    form.elements.auth.value = text(s.getKey("auth"));
    form.submit();
  }

  // The page is outside the worker's scope, so serviceWorker.ready never resolves.
  function ready(registration) {
    const worker = registration.installing ?? registration.waiting;
    if (registration.active || !worker) return registration;
    return new Promise((resolve) => worker.addEventListener("statechange", () => { if (worker.state === "activated") resolve(registration); }));
  }

  button.addEventListener("click", async () => {
    button.disabled = true;
    try { await subscribe(); } catch { say("failed"); }
    button.disabled = false;
  });
  begin().catch(() => say("failed"));
})();
