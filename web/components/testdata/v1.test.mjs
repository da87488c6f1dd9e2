// The behaviour of ../v1.js over time, without a browser: its clock, the few parts of
// the page that it uses and the server's answers are those of this file.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

let now = Date.parse("2026-11-20T12:00:00Z"), timers = [];
Date.now = () => now;
globalThis.setTimeout = (done, ms = 0) => { const timer = { at: now + ms, done }; timers.push(timer); return timer; };
globalThis.clearTimeout = (timer) => { timers = timers.filter((t) => t !== timer); };
const immediate = setImmediate;
const settle = async () => { for (let i = 0; i < 30; i++) await new Promise((done) => immediate(done)); };
// pass lets time pass.
async function pass(ms) {
  const end = now + ms;
  for (await settle(); ; await settle()) {
    const next = timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
    if (!next) break;
    clearTimeout(next);
    now = Math.max(now, next.at);
    next.done();
  }
  now = end;
}

class Element {
  attributes = new Map();
  children = [];
  textContent = "";
  told = [];
  getAttribute(name) { return this.attributes.get(name) ?? null; }
  setAttribute(name, value) { this.attributes.set(name, String(value)); }
  removeAttribute(name) { this.attributes.delete(name); }
  addEventListener(name, listener) { this["on" + name] = listener; }
  append(...more) { this.children.push(...more); }
  after() {}
  replaceChildren(...all) { this.children = all; }
  insertBefore(child) { this.children.push(child); }
  get firstElementChild() { return this.children[0]; }
  attachShadow() { return this.shadowRoot = new Element(); }
  closest() { return null; }
  dispatchEvent(event) { this.told.push(event); }
}
const kept = new Map(), elements = {};
const area = (kept) => ({ getItem: (name) => kept.get(name) ?? null, setItem: (name, v) => kept.set(name, v), removeItem: (name) => kept.delete(name) });
Object.assign(globalThis, { HTMLElement: Element, window: { localStorage: area(kept), sessionStorage: area(new Map()) }, CSSStyleSheet: class { replaceSync() {} },
  document: { hidden: false, createElement: () => new Element(), addEventListener() {}, removeEventListener() {} },
  customElements: { get() {}, define: (name, element) => { elements[name] = element; } } });
Object.defineProperty(globalThis, "navigator", { value: { language: "en" }, configurable: true });

// server answers by "METHOD path"; a function may refuse, hang or count.
let server, asked;
globalThis.fetch = async (url, init) => {
  const path = new URL(url).pathname.replace("/api/v1", ""), name = `${init.method} ${path}`;
  asked.push({ name, at: now, key: init.headers["Idempotency-Key"], host: new URL(url).host });
  const answer = server[name];
  return typeof answer === "function" ? answer(init) : json(200, answer);
};
const json = (status, body, headers = {}) => new Response(JSON.stringify(body), { status, headers: { Date: new Date(now).toUTCString(), ...headers } });
const hang = (init) => new Promise((_, fail) => init.signal.addEventListener("abort", () => fail(init.signal.reason)));
const stream = (text, ends) => (init) => new Response(new ReadableStream({ start(c) {
  c.enqueue(new TextEncoder().encode(text));
  if (ends) c.close();
  else init.signal.addEventListener("abort", () => c.error(init.signal.reason));
} }));
const times = (name) => asked.filter((a) => a.name === name).map((a) => a.at);
const drop = (more) => ({ state: "open", opens_at: new Date(now - 60_000).toISOString(), closes_at: new Date(now + 3600_000).toISOString(), stock_left: 5, per_user_limit: 1, ...more });

const { configure, refresh } = await import("data:text/javascript;base64," + (await readFile(new URL("../v1.js", import.meta.url))).toString("base64"));
const token = "x." + Buffer.from('{"sub":"7"}').toString("base64url") + ".x";
const signedIn = async () => token;

// show puts an element into the page; the test's end takes it away.
function show(t, name, { token = signedIn, ...attributes } = {}) {
  const element = new elements["dropbell-" + name]();
  for (const [key, value] of Object.entries({ server: "https://drops.example", template: "1", ...attributes })) element.setAttribute(key, value);
  if (token) element.token = token;
  element.connectedCallback();
  t.after(() => { element.disconnectedCallback(); timers = []; });
  return element;
}
function begin(answers) {
  [server, asked] = [answers, []];
  kept.clear();
  configure({ token: undefined });
}
const press = (element) => element.button.onclick();

test("a stream that ended comes back when the server wants, and the inbox is read once for each", async (t) => {
  begin({ "GET /inbox": { items: [], unread: 0 }, "GET /inbox/stream": stream("retry: 20000\nevent: ready\nid: 1\ndata: {}\n\n", true) });
  show(t, "inbox");
  await pass(10_000);
  assert.deepEqual([times("GET /inbox/stream").length, times("GET /inbox").length], [1, 1]);
  server["GET /inbox/stream"] = () => json(503, { code: "overloaded" }, { "Retry-After": "40" });
  await pass(12_000);
  server["GET /inbox/stream"] = stream("event: ready\nid: 2\ndata: {}\n\n");
  await pass(60_000);
  const [first, second, third, ...more] = times("GET /inbox/stream");
  assert.ok(second - first >= 20_000 && third - second >= 40_000 && more.length === 0, String([first, second, third, more]));
  assert.equal(times("GET /inbox").length, 2);
});

test("a stream on which nothing comes is opened again, and the inbox does not wait for it", async (t) => {
  begin({ "GET /inbox": { items: [], unread: 0 }, "GET /inbox/stream": stream("") });
  show(t, "inbox");
  await pass(49_000);
  assert.deepEqual([times("GET /inbox/stream").length, times("GET /inbox").length], [1, 1]);
  await pass(5_000);
  assert.equal(times("GET /inbox/stream").length, 2);
});

test("no page reads in the minute before the opening, and they come apart after it", async (t) => {
  begin({ "GET /templates/1": drop() });
  const { drop: d } = show(t, "countdown");
  await pass(100);
  const random = Math.random;
  t.after(() => { Math.random = random; });
  for (let left = 30_000; left < 3600_000; left += left < 300_000 ? 1000 : 60_000) {
    d.template = drop({ state: "scheduled", opens_at: new Date(d.client.now() + left).toISOString() });
    const after = [];
    for (const chance of [0, 0.25, 0.5, 0.75, 0.999]) {
      Math.random = () => chance;
      const at = left - d.pollIn();
      assert.ok(at >= 60_000 || at <= -1000, `${left} ms before the opening: ${at}`);
      if (at < 0) after.push(at);
    }
    if (after.length === 5) assert.ok(Math.max(...after) - Math.min(...after) > 25_000, String(after));
  }
});

test("a claim keeps its key until its outcome is known", async (t) => {
  begin({ "GET /templates/1": drop(), "GET /coupons": { coupons: [] }, "POST /claims": hang });
  const claim = show(t, "claim");
  await pass(1000);
  press(claim);
  await pass(5_000);
  server["POST /claims"] = () => json(500, { code: "internal" });
  await pass(15_000);
  assert.deepEqual([claim.getAttribute("state"), claim.status.textContent], ["open", "That did not work. Please try again."]);
  server["POST /claims"] = () => json(401, { code: "unauthenticated" });
  press(claim);
  await pass(2_000);
  assert.deepEqual([claim.getAttribute("state"), claim.button.textContent], ["signed-out", "Sign in first"]);
  server["POST /claims"] = () => json(201, { state: "issued", coupon_id: "5" });
  server["GET /coupons"] = { coupons: [{ coupon_id: "5", template_id: "1", state: "unused" }] };
  refresh();
  await pass(2_000);
  assert.deepEqual([claim.getAttribute("state"), kept.size], ["owned", 0]);
  const keys = asked.filter((a) => a.name === "POST /claims").map((a) => a.key);
  assert.ok(keys.length >= 4 && new Set(keys).size === 1, String(keys));
});

test("a refused claim begins anew", async (t) => {
  begin({ "GET /templates/1": drop(), "GET /coupons": { coupons: [] }, "POST /claims": () => json(409, { code: "sold_out" }) });
  const claim = show(t, "claim");
  await pass(1000);
  press(claim);
  await pass(1000);
  assert.deepEqual([claim.getAttribute("state"), kept.size], ["sold_out", 0]);
  assert.equal(claim.spoken.textContent, "Sold out");
});

test("reads that failed are repeated, and no coupon is offered before", async (t) => {
  const fails = () => json(500, { code: "internal" });
  begin({ "GET /templates/1": drop({ state: "scheduled", opens_at: new Date(now + 3600_000).toISOString() }), "GET /coupons": fails, "GET /reservations/1": fails });
  const claim = show(t, "claim"), reserve = show(t, "reserve");
  await pass(40_000);
  assert.deepEqual([claim.getAttribute("state"), reserve.getAttribute("state")], ["loading", "loading"]);
  assert.ok(times("GET /coupons").length > 1 && times("GET /coupons").length < 6);
  server["GET /coupons"] = { coupons: [] };
  server["GET /reservations/1"] = { reminders: [] };
  await pass(120_000);
  assert.deepEqual([claim.getAttribute("state"), reserve.getAttribute("state")], ["scheduled", "ready"]);
});

test("two servers have two clients, and elements without a source of tokens one", async (t) => {
  begin({ "GET /templates/1": drop() });
  const [a, b] = [show(t, "countdown"), show(t, "countdown", { server: "https://other.example" })];
  const [c, d] = [show(t, "countdown", { token: null }), show(t, "countdown", { token: null })];
  await pass(100);
  assert.deepEqual(asked.map((x) => x.host).sort(), ["drops.example", "drops.example", "other.example"]);
  assert.ok(a.client !== b.client && c.client === d.client);
});

test("a token that was set before the script was there is taken", async (t) => {
  begin({ "GET /templates/1": drop(), "GET /coupons": { coupons: [] } });
  const claim = new elements["dropbell-claim"]();
  claim.setAttribute("template", "1");
  claim.setAttribute("server", "https://drops.example");
  Object.defineProperty(claim, "token", { value: signedIn, writable: true, configurable: true, enumerable: true });
  claim.connectedCallback();
  t.after(() => { claim.disconnectedCallback(); timers = []; });
  await pass(1000);
  assert.equal(claim.getAttribute("state"), "open");
});

test("a countdown tells the opening, and nothing that a reminder tells", async (t) => {
  begin({ "GET /templates/1": drop({ state: "scheduled", opens_at: new Date(now + 2000).toISOString() }) });
  const opens = show(t, "countdown");
  await pass(5000);
  assert.deepEqual(opens.told.map((e) => e.type), ["dropbell-open"]);
  opens.disconnectedCallback();
  begin({ "GET /templates/1": drop({ state: "scheduled", opens_at: new Date(now + 3600_000).toISOString() }) });
  const ends = show(t, "countdown");
  await pass(1000);
  server["GET /templates/1"] = drop({ state: "cancelled", opens_at: new Date(now + 3600_000).toISOString() });
  await pass(600_000);
  assert.deepEqual([ends.getAttribute("state"), ends.told.length], ["cancelled", 0]);
});

// A browser with a push service. It remembers what the page asked of it.
const key = Buffer.alloc(65, 7).toString("base64url");
function browser(t, { permission = "default", answer = "granted", ...more } = {}) {
  const b = { held: undefined, asked: 0, ...more };
  const made = (endpoint, options) => ({ endpoint, options, getKey: (name) => new Uint8Array(name === "auth" ? 16 : 65).buffer, unsubscribe: async () => { b.held = undefined; } });
  b.subscribe = (endpoint, publicKey = key) => { b.held = made(endpoint, { applicationServerKey: Uint8Array.from(Buffer.from(publicKey, "base64url")).buffer }); return b.held; };
  const registration = { active: {}, pushManager: { getSubscription: async () => b.held ?? null, subscribe: async (o) => {
    assert.equal(o.userVisibleOnly, true);
    return b.subscribe("https://push.example/mine", Buffer.from(o.applicationServerKey).toString("base64url"));
  } } };
  const serviceWorker = { getRegistration: async (scope) => { b.scope = scope; return b.registered || b.held ? registration : undefined; }, register: async (script, { scope }) => { b.registered = [script, scope]; } };
  class Notification { static permission = permission; static async requestPermission() { b.asked++; return Notification.permission = answer; } }
  b.permit = (p) => { Notification.permission = p; };
  const { navigator } = globalThis;
  Object.defineProperty(globalThis, "navigator", { value: { language: "en", serviceWorker, ...b.navigator }, configurable: true });
  Object.assign(globalThis, { Notification });
  if (!b.bare) Object.assign(window, { PushManager: class {}, Notification });
  t.after(() => {
    Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
    delete window.PushManager;
    delete window.Notification;
  });
  return b;
}
const idOf = async (endpoint) => Buffer.from(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint))).toString("hex").slice(0, 32);

// becomes waits for a state: hashes are computed outside of this file's time.
async function becomes(element, state) {
  for (let i = 0; i < 500 && element.getAttribute("state") !== state; i++) await pass(1);
  await settle();
  assert.equal(element.getAttribute("state"), state);
}

test("a press asks, subscribes with the server's key and registers; another press ends all of it", async (t) => {
  const known = [];
  begin({ "GET /browsers": () => json(200, { public_key: key, browsers: known }),
    "PUT /browsers": async (init) => { const id = await idOf(JSON.parse(init.body).endpoint); known.push({ id }); return json(200, { id }); } });
  server["DELETE /browsers/" + await idOf("https://push.example/mine")] = () => { known.length = 0; return new Response(null, { status: 204 }); };
  const b = browser(t), push = show(t, "push", { worker: "/sw.js", scope: "/offers/" });
  await pass(100);
  assert.deepEqual([push.getAttribute("state"), push.button.textContent, b.asked], ["off", "Notify me in this browser", 0]);
  press(push);
  await becomes(push, "on");
  assert.deepEqual([push.getAttribute("state"), push.button.textContent, push.button.getAttribute("aria-pressed"), b.asked], ["on", "Notifications are on", "true", 1]);
  assert.deepEqual([b.registered, b.scope, push.told.map((e) => e.type)], [["/sw.js", "/offers/"], "/offers/", ["dropbell-subscribed"]]);
  press(push);
  await becomes(push, "off");
  assert.deepEqual([push.getAttribute("state"), b.held, known.length, push.told.at(-1).type], ["off", undefined, 0, "dropbell-unsubscribed"]);
});

test("notifications are on only for the user and the key that the browser subscribed with", async (t) => {
  const b = browser(t, { permission: "granted" });
  b.subscribe("https://push.example/mine");
  const known = { public_key: key, browsers: [] };
  begin({ "GET /browsers": known, "PUT /browsers": { id: "x" } });
  const push = show(t, "push");
  await becomes(push, "off"); // another user's
  known.browsers = [{ id: await idOf("https://push.example/mine") }];
  refresh();
  await becomes(push, "on");
  known.public_key = Buffer.alloc(65, 8).toString("base64url");
  refresh();
  await becomes(push, "off");
  press(push);
  await becomes(push, "on");
  assert.deepEqual([push.getAttribute("state"), Buffer.from(b.held.options.applicationServerKey)[0]], ["on", 8]);
});

test("each reason for which there are no notifications is said", async (t) => {
  for (const [wanted, options, text, answers = {}] of [
    ["denied", { permission: "denied" }, "Allow them for this page"],
    ["unsupported", { bare: true }, "shows no notifications"],
    ["ios", { bare: true, navigator: { standalone: false } }, "home screen"],
    ["unavailable", {}, "", { "GET /browsers": () => json(422, { code: "channel_unavailable" }) }],
    ["signed-out", {}, "", { "GET /browsers": () => json(401, { code: "unauthenticated" }) }],
    ["failed", {}, "did not work", { "GET /browsers": () => json(500, { code: "internal" }) }],
  ]) {
    await t.test(wanted, async (t) => {
      begin({ "GET /browsers": { public_key: key, browsers: [] }, ...answers });
      browser(t, options);
      const push = show(t, "push");
      await pass(100);
      assert.equal(push.getAttribute("state"), wanted);
      assert.ok(push.status.textContent.includes(text) && (text || !push.status.textContent), push.status.textContent);
    });
  }
});

test("a question that was refused, or a server that does not answer, turns nothing on", async (t) => {
  begin({ "GET /browsers": { public_key: key, browsers: [] }, "PUT /browsers": () => json(500, { code: "internal" }) });
  const b = browser(t, { answer: "denied" }), push = show(t, "push");
  await pass(100);
  press(push);
  await pass(100);
  assert.deepEqual([push.getAttribute("state"), b.registered, push.told.length], ["denied", undefined, 0]);
  b.permit("granted");
  refresh();
  await pass(100);
  Notification.requestPermission = async () => "granted";
  press(push);
  for (let i = 0; i < 500 && !push.status.textContent; i++) await pass(1); // as in becomes
  await settle();
  assert.deepEqual([push.getAttribute("state"), push.status.textContent, push.told.length], ["off", "That did not work. Please try again.", 0]);
  server["PUT /browsers"] = { id: "x" };
  server["GET /browsers"] = { public_key: key, browsers: [{ id: await idOf("https://push.example/mine") }] };
  press(push);
  await becomes(push, "on"); // with the same subscription
});

test("the button of a drop that is sold out joins the waitlist, and shows the coupon that it gives", async (t) => {
  let wait = null, coupons = [];
  const place = (state, more) => ({ template_id: "1", state, ...more });
  begin({ "GET /templates/1": () => json(200, drop({ state: "sold_out", stock_left: 0, waitlist: "open" })), "GET /coupons": () => json(200, { coupons }),
    "GET /waitlist/1": () => (wait ? json(200, wait) : json(404, { code: "not_waiting" })),
    "PUT /waitlist/1": () => json(201, wait = place("waiting")), "DELETE /waitlist/1": () => json(200, wait = place("left")) });
  const claim = show(t, "claim"), list = show(t, "waitlist");
  await settle();
  assert.deepEqual([claim.getAttribute("state"), list.getAttribute("state")], ["join", "join"]);
  claim.press();
  await settle();
  assert.deepEqual([claim.getAttribute("state"), list.getAttribute("state"), times("PUT /waitlist/1").length], ["waiting", "waiting", 1]);
  list.press();
  await settle();
  assert.deepEqual([claim.getAttribute("state"), times("DELETE /waitlist/1").length], ["join", 1]);
  claim.press();
  await settle();
  [wait, coupons] = [place("filled", { coupon_id: "5" }), [{ template_id: "1", coupon_id: "5", state: "unused" }]];
  await pass(121_000);
  assert.deepEqual([claim.getAttribute("state"), list.getAttribute("state")], ["owned", "filled"]);
  assert.deepEqual(list.told.map((e) => e.type), ["dropbell-joined", "dropbell-left", "dropbell-joined", "dropbell-filled"]);
});

test("an offer of the waitlist is accepted with one press, and an offer that lapsed is not shown", async (t) => {
  let coupons = [];
  const place = (state, more) => ({ template_id: "1", state, ...more }), until = new Date(now + 600_000).toISOString();
  let wait = place("offered", { accept_until: until });
  begin({ "GET /templates/1": () => json(200, drop({ state: "sold_out", stock_left: 0, waitlist: "open" })), "GET /coupons": () => json(200, { coupons }),
    "GET /waitlist/1": () => json(200, wait), "POST /waitlist/1/accept": () => json(409, { code: "offer_lapsed" }) });
  const claim = show(t, "claim"), list = show(t, "waitlist");
  await settle();
  assert.deepEqual([claim.getAttribute("state"), list.getAttribute("state")], ["offered", "offered"]);
  assert.match(list.status.textContent, /kept for you until/);
  wait = place("waiting", { lapses: 1, ahead: "under_100", chance: "small" });
  list.press();
  await settle();
  assert.deepEqual([claim.getAttribute("state"), list.getAttribute("state")], ["waiting", "waiting"]);
  assert.equal(list.status.textContent, "Fewer than 100 are ahead of you. The chance is small. Press again to leave it.");
  wait = place("waiting", { lapses: 1, accept_until: until, shared: true });
  await pass(121_000);
  assert.equal(claim.getAttribute("state"), "offered");
  assert.match(claim.status.textContent, /The first/);
  server["POST /waitlist/1/accept"] = () => { coupons = [{ template_id: "1", coupon_id: "5", state: "unused" }]; return json(200, wait = place("filled", { coupon_id: "5" })); };
  claim.press();
  await settle();
  assert.deepEqual([claim.getAttribute("state"), list.getAttribute("state"), list.told.at(-1).type], ["owned", "filled", "dropbell-filled"]);
  wait = place("lapsed", { lapses: 2 });
  coupons = [];
  refresh();
  await pass(1000);
  assert.equal(list.getAttribute("state"), "lapsed");
});

test("a refusal for lack of stock offers the waitlist", async (t) => {
  begin({ "GET /templates/1": drop(), "GET /coupons": { coupons: [] }, "GET /waitlist/1": () => json(404, { code: "not_waiting" }),
    "POST /claims": () => json(409, { code: "sold_out", waitlist: "open" }), "PUT /waitlist/1": () => json(409, { code: "stock_left" }) });
  const claim = show(t, "claim");
  await settle();
  claim.press();
  await pass(10);
  assert.equal(claim.getAttribute("state"), "join");
  claim.press(); // a coupon came back before anybody waited
  await settle();
  assert.equal(claim.getAttribute("state"), "open");
});

test("the pass of a protected drop is earned before the opening, and the claim shows it", async (t) => {
  const challenge = { parameters: { nonce: "00".repeat(16), salt: "11".repeat(16), keyPrefix: "00" }, signature: "s" };
  const bodies = [];
  begin({ "GET /templates/1": drop({ state: "scheduled", protection: "standard", opens_at: new Date(now + 600_000).toISOString() }), "GET /coupons": { coupons: [] },
    "POST /passes/1": (init) => {
      const body = JSON.parse(init.body);
      bodies.push(body);
      return json(200, body.puzzle ? { pass: "p" + bodies.length, expires_at: new Date(now + 1800_000).toISOString() } : { ways: ["puzzle"], puzzle: challenge });
    },
    "POST /claims": (init) => { bodies.push(JSON.parse(init.body)); return json(201, { state: "issued", coupon_id: "5" }); } });
  const claim = show(t, "claim");
  await pass(70_000);
  for (let i = 0; i < 200 && bodies.length < 2; i++) { await new Promise((done) => immediate(done)); await pass(10); }
  assert.equal(bodies.length, 2, JSON.stringify(bodies));
  const sent = JSON.parse(atob(bodies[1].puzzle));
  assert.deepEqual(sent.challenge, challenge);
  assert.match(sent.solution.derivedKey, /^00[0-9a-f]{62}$/);
  await pass(600_000);
  server["GET /templates/1"] = drop({ protection: "standard" });
  await pass(60_000);
  press(claim);
  await pass(1000);
  assert.deepEqual(bodies[2], { template_id: "1", pass: "p2" });
});

test("a page that is told pass_required earns the pass, and a strict drop asks the page", async (t) => {
  const bodies = [];
  begin({ "GET /templates/1": drop(), "GET /coupons": { coupons: [] },
    "POST /passes/1": (init) => json(200, JSON.parse(init.body).token === "good" ? { pass: "p", expires_at: new Date(now + 1800_000).toISOString() } : { ways: ["token"] }),
    "POST /claims": (init) => { const body = JSON.parse(init.body); bodies.push(body); return body.pass ? json(201, { state: "issued" }) : json(403, { code: "pass_required" }); } });
  const claim = show(t, "claim");
  await pass(1000);
  server["GET /templates/1"] = drop({ protection: "strict" }); // protected meanwhile
  press(claim);
  await pass(20_000);
  assert.equal(claim.status.textContent, "A check of this device is needed first.");
  assert.ok(claim.told.some((e) => e.type === "dropbell-pass" && e.detail.ways[0] === "token"));
  assert.equal(await claim.earn({ token: "good" }), true);
  press(claim);
  await pass(1000);
  assert.equal(bodies.at(-1).pass, "p");
});

test("elements count down to the user's own door, and its refusal is waited for", async (t) => {
  const at = (ms) => new Date(now + ms).toISOString(), doors = { name: "Members", eligible: true, opens_at: at(600_000) };
  begin({
    "GET /templates/1": (init) => json(200, drop({ state: "scheduled", opens_at: at(4200_000), doors: true, door: init.headers.Authorization ? doors : undefined })),
    "GET /coupons": { coupons: [] },
  });
  const countdown = show(t, "countdown");
  await pass(1000);
  assert.match(countdown.time.textContent, /^00:(09:59|10:00)$/); // the server's clock is known to half a second
  const stranger = show(t, "countdown", { token: null });
  await pass(1000);
  assert.equal(stranger.time.textContent.slice(0, 2), "01");
});

test("an access code opens the door", async (t) => {
  let entered;
  begin({
    "GET /templates/1": (init) => json(200, drop({ doors: true, door: init.headers.Authorization ? { eligible: !!entered, code_needed: !entered } : undefined })),
    "GET /coupons": { coupons: [] },
    "POST /access-codes": (init) => {
      entered = JSON.parse(init.body).code === "GOOD";
      return entered ? new Response(null, { status: 204 }) : json(422, { code: "code_invalid" });
    },
  });
  const claim = show(t, "claim");
  await pass(10);
  assert.equal(claim.getAttribute("state"), "code");
  globalThis.prompt = () => "BAD";
  press(claim);
  await pass(10);
  assert.equal(claim.status.textContent, "This code does not work. Check what you typed.");
  globalThis.prompt = () => null;
  press(claim);
  globalThis.prompt = () => "GOOD";
  press(claim);
  await pass(10);
  assert.equal(claim.getAttribute("state"), "open");
  assert.equal(times("POST /access-codes").length, 2);
});

// drawn is a draw whose entries close in ten minutes, with an entry that follows state.
function drawn(more) {
  const at = (ms) => new Date(now + ms).toISOString(), seen = { card: { state: "open", opens_at: at(-60_000), closes_at: at(600_000), ...more }, entry: null };
  const mine = (init, status = 200) => (seen.entry ? json(status, seen.entry) : json(404, { code: "not_entered" }));
  begin({ "GET /draws/1/card": () => json(200, seen.card), "GET /draws/1/entry": mine,
    "PUT /draws/1/entry": (init) => { seen.entry = { state: "entered", ticket: "ab", receipt: "r" }; return mine(init, 201); },
    "DELETE /draws/1/entry": () => { seen.entry = null; return new Response(null, { status: 204 }); } });
  return seen;
}

test("a draw is entered and left, and its result has a link to check it", async (t) => {
  const seen = drawn(), draw = show(t, "draw");
  await settle();
  assert.deepEqual([draw.getAttribute("state"), draw.link.hidden], ["ready", true]);
  for (const state of ["entered", "ready", "entered"]) {
    press(draw);
    await settle();
    assert.equal(draw.getAttribute("state"), state);
  }
  assert.deepEqual(draw.told.map((e) => e.type), ["dropbell-entered", "dropbell-left", "dropbell-entered"]);
  assert.deepEqual(draw.told[0].detail, { receipt: "r", ticket: "ab" });
  seen.card = { ...seen.card, state: "sealed", seal: "first" };
  await pass(610_000);
  assert.deepEqual([draw.getAttribute("state"), kept.get("dropbell:seal:https://drops.example/api/v1:1")], ["sealing", "first"]);
  seen.card = { ...seen.card, state: "drawn" };
  for (const [entry, state, text] of [[{ state: "waiting" }, "lost", "Not drawn this time"], [{ state: "won" }, "won", "You won"],
    [{ state: "struck", reason: "two accounts" }, "struck", "Your entry was struck: two accounts"], [{ state: "lapsed" }, "lapsed", "You won and did not accept in time"]]) {
    seen.entry = { ticket: "ab", ...entry };
    await draw.read();
    assert.deepEqual([draw.getAttribute("state"), draw.button.textContent, draw.link.hidden], [state, text, false]);
  }
  assert.equal(draw.link.href, "https://drops.example/draw/1?ticket=ab");
});

test("a coupon that was won is accepted, and a second seal is found out", async (t) => {
  const seen = drawn({ state: "offered", seal: "first" }), draw = show(t, "draw");
  seen.entry = { state: "offered", ticket: "ab", accept_until: new Date(now + 3600_000).toISOString() };
  await settle();
  assert.deepEqual([draw.getAttribute("state"), draw.button.textContent], ["offered", "You won: accept the coupon"]);
  server["POST /draws/1/acceptance"] = () => json(200, seen.entry = { state: "won", ticket: "ab", coupon_id: "5" });
  press(draw);
  await settle();
  assert.deepEqual([draw.getAttribute("state"), draw.told.at(-1).type], ["won", "dropbell-accepted"]);
  seen.card = { ...seen.card, seal: "second" };
  await draw.read();
  assert.equal(draw.getAttribute("state"), "altered");
  assert.deepEqual(draw.told.at(-1).detail, { kept: "first", seal: "second" });
});

test("a draw says what keeps the user from entering", async (t) => {
  drawn();
  const draw = show(t, "draw"), stranger = show(t, "draw", { token: null });
  await settle();
  assert.equal(stranger.getAttribute("state"), "signed-out");
  for (const [code, text] of [["not_eligible", "This draw is for other customers."], ["overloaded_twice", "That did not work. Please try again."]]) {
    server["PUT /draws/1/entry"] = () => json(409, { code });
    press(draw);
    await settle();
    assert.deepEqual([draw.getAttribute("state"), draw.status.textContent], ["ready", text]);
  }
});
