// The behaviour of the service worker ../v1-push.js, whose browser is this file.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import vm from "node:vm";

const script = await readFile(new URL("../v1-push.js", import.meta.url), "utf8");

// run starts the worker at a shop, which may have named its dropbell settings.
function run(dropbell) {
  const w = { shown: [], opened: [], focused: [], pages: [], listeners: {} };
  const self = { dropbell, location: { origin: "https://shop.example", hostname: "shop.example" },
    addEventListener: (name, listener) => { w.listeners[name] = listener; },
    registration: { showNotification: async (title, options) => { w.shown.push({ title, ...options }); } },
    clients: { matchAll: async () => w.pages.map((url) => ({ url, focus: () => w.focused.push(url) })), openWindow: async (url) => { w.opened.push(url); } } };
  vm.runInNewContext(script, { self, URL });
  const send = async (name, event) => { let done; w.listeners[name]({ ...event, waitUntil: (p) => { done = p; } }); await done; };
  w.push = (text) => send("push", { data: text === undefined ? null : { json: () => JSON.parse(text) } });
  w.click = (data) => send("notificationclick", { notification: { data, close: () => { w.closed = true; } } });
  return w;
}

test("a message is shown with its link, and whatever else arrives is shown too", async () => {
  const w = run({ icon: "/icon.png", title: "Leaf & Kettle", url: "/offers" });
  await w.push('{"title":"Soon","body":"Opens in 5 minutes","tag":"drop:1","url":"https://drops.example/d/abc"}');
  await w.push("nonsense");
  await w.push();
  assert.deepEqual(w.shown.map((n) => [n.title, n.body, n.tag, n.renotify, n.icon, n.data.dropbell]), [
    ["Soon", "Opens in 5 minutes", "drop:1", true, "/icon.png", "https://drops.example/d/abc"],
    ["Leaf & Kettle", "", undefined, undefined, "/icon.png", "/offers"],
    ["Leaf & Kettle", "", undefined, undefined, "/icon.png", "/offers"]]);
  const bare = run();
  await bare.push();
  assert.deepEqual([bare.shown[0].title, bare.shown[0].data.dropbell], ["shop.example", "/"]);
});

test("a click opens the link, or the page that shows it already", async () => {
  const w = run();
  await w.click({ dropbell: "https://drops.example/d/abc" });
  w.pages = ["https://shop.example/"];
  await w.click({ dropbell: "/" });
  assert.deepEqual([w.opened, w.focused], [["https://drops.example/d/abc"], ["https://shop.example/"]]);
});

test("a click opens no script, and leaves notifications of the shop alone", async () => {
  const w = run();
  await w.click({ dropbell: "javascript:alert(1)" });
  assert.deepEqual([w.opened, w.closed], [[], true]);
  w.closed = false;
  await w.click({ own: 1 });
  await w.click(undefined);
  assert.deepEqual([w.opened, w.closed], [[], false]);
});
