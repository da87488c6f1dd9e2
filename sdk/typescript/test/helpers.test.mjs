import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { Clock, Dropbell, Problem } from "../index.js";
import { SignatureError, userToken, verify } from "../webhooks.js";

// Answers are given in turn; an Error breaks the connection instead.
function client(answers, settings = {}) {
  const requests = [], pauses = [];
  const c = new Dropbell({
    server: "https://drops.example/", credential: "dbk_x",
    fetch: async function (url, init) {
      assert.equal(this, undefined); // as the fetch of browsers wants it
      requests.push({ url, method: init.method, key: init.headers.get("Idempotency-Key"), authorization: init.headers.get("Authorization"), body: init.body });
      const next = answers.shift();
      if (next instanceof Error) throw next;
      const [status, body, headers = {}] = next;
      return new Response(body && JSON.stringify(body), { status, headers: { "Content-Type": "application/json", ...headers } });
    },
    pause: async (ms) => { pauses.push(ms); },
    ...settings,
  });
  return { c, requests, pauses };
}

test("a request is sent again with its key until it is answered", async () => {
  const { c, requests, pauses } = client([
    new TypeError("the connection broke"), [409, { code: "idempotency_in_progress" }, { "Retry-After": "1" }],
    [429, { code: "rate_limited" }, { "Retry-After": "2" }], [503, { code: "overloaded" }], [201, { coupon_id: "17" }],
  ]);
  const { data, status } = await c.post("/claims", { body: { template_id: "1" } });
  assert.deepEqual([data.coupon_id, status, requests.length], ["17", 201, 5]);
  assert.equal(new Set(requests.map((r) => r.key)).size, 1);
  assert.ok(requests[0].key);
  assert.ok(requests.every((r) => r.body === '{"template_id":"1"}' && r.authorization === "Bearer dbk_x" && r.url === "https://drops.example/api/v1/claims"));
  assert.ok(pauses[1] >= 1000 && pauses[2] >= 2000 && pauses.every((p) => p >= 100), String(pauses));
});

test("refusals are thrown at once, with their code", async () => {
  for (const [status, code] of [[409, "sold_out"], [422, "invalid_request"], [500, "internal"]]) {
    const { c, requests } = client([[status, { code, detail: "no", errors: [] }]]);
    await assert.rejects(c.post("/claims", { body: {} }), (e) => e instanceof Problem && e.code === code && e.status === status && e.message === "no");
    assert.equal(requests.length, 1);
  }
});

test("retries end: by number, by a longer pause than allowed, and for changes that may have happened", async () => {
  let t = client([[503, {}], [503, {}]], { tries: 2 });
  await assert.rejects(t.c.get("/coupons"), Problem);
  assert.equal(t.requests.length, 2);
  t = client([[429, {}, { "Retry-After": "3600" }]]);
  await assert.rejects(t.c.get("/coupons"), (e) => e.retryAfter === 3_600_000);
  assert.equal(t.requests.length, 1);
  t = client([new TypeError("the connection broke")]);
  await assert.rejects(t.c.patch("/admin/templates/{id}", { path: { id: "1" }, body: {} }), TypeError);
  assert.equal(t.requests.length, 1);
});

test("an answer that is no problem is one without a code", async () => {
  const { c } = client([[404, undefined, { "Content-Type": "text/html" }]]);
  await assert.rejects(c.get("/coupons"), (e) => e instanceof Problem && e.code === "" && e.status === 404);
});

test("path, query and user", async () => {
  const { c, requests } = client([[200, {}], [204]], { user: "1001" });
  await c.get("/coupons/{id}", { path: { id: "a/b" }, query: { states: ["x", "y"], limit: 2, before: undefined } });
  assert.equal(requests[0].url, "https://drops.example/api/v1/coupons/a%2Fb?states=x%2Cy&limit=2");
  assert.equal((await c.delete("/reservations/{template_id}", { path: { template_id: "1" } })).data, undefined);
  await assert.rejects(c.get("/coupons/{id}"), /the path needs id/);
});

test("the clock is narrowed down by answers, and begins anew when one was set", () => {
  const clock = new Clock();
  const http = (ms) => new Date(ms).toUTCString();
  const base = Date.parse("2026-11-20T12:00:00Z"), ahead = 90_300;
  for (const at of [0, 250, 500, 650, 800]) {
    clock.observe(base + at, base + at + 20, http(Math.floor((base + at + ahead) / 1000) * 1000));
  }
  assert.ok(Math.abs(clock.offset - ahead) < 150, String(clock.offset));
  clock.observe(base, base + 20, http(base - 5000));
  assert.ok(Math.abs(clock.offset + 5000) <= 1000);
  clock.observe(base, base, null);
  clock.observe(base, base, "nonsense");
  assert.ok(Math.abs(clock.offset + 5000) <= 1000);
});

const secret = "whsec_" + Buffer.from("0123456789abcdef").toString("base64");

test("webhooks", () => {
  const now = Date.parse("2026-11-20T12:00:00Z"), stamp = String(now / 1000), body = '{"type":"coupon.used","sequence":1}';
  const sign = (s) => "v1," + createHmac("sha256", Buffer.from(s.slice(6), "base64")).update(`msg_1.${stamp}.${body}`).digest("base64");
  const other = "whsec_" + Buffer.from("another").toString("base64");
  const headers = { "webhook-id": "msg_1", "webhook-timestamp": stamp, "webhook-signature": `v2,x ${sign(other)} ${sign(secret)}` };
  assert.deepEqual(verify(secret, headers, body, now), { id: "msg_1", type: "coupon.used", sequence: 1 });
  assert.equal(verify(["whsec_AAAA", other], new Headers(headers), Buffer.from(body), now).id, "msg_1");
  assert.equal(verify(secret, headers, new Uint8Array(Buffer.from(body)), now).sequence, 1);
  for (const bad of [{ "webhook-id": "msg_2" }, { "webhook-timestamp": "1" }, { "webhook-timestamp": "x" }, { "webhook-signature": "v1,AAAA" }, { "webhook-signature": undefined }]) {
    assert.throws(() => verify(secret, { ...headers, ...bad }, body, now), SignatureError);
  }
  assert.throws(() => verify(secret, headers, body + " ", now), SignatureError);
  assert.throws(() => verify(secret, headers, body, now + 301_000), SignatureError);
  assert.throws(() => verify("whsec_", headers, body, now), TypeError);
});

test("a user's token", () => {
  const [head, payload, signature] = userToken({ secret: "s", audience: "a" }, "7", 60, 5_000).split(".");
  assert.deepEqual(JSON.parse(Buffer.from(payload, "base64url")), { sub: "7", iat: 5, exp: 65, aud: "a" });
  assert.equal(signature, createHmac("sha256", "s").update(`${head}.${payload}`).digest("base64url"));
});
