// Against a real server, which a Go test runs: see web/api/sdk_test.go.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Dropbell, Problem } from "../index.js";
import { userToken } from "../webhooks.js";

const { SERVER: server, OPEN: open, COMING: coming, PAYMENT_KEY, ACT_AS_USER_KEY, AUTH_JWT_SECRET: secret } = process.env;
const refused = (code) => (e) => e instanceof Problem && e.code === code;

test("reserve, claim, pay", async () => {
  const user = new Dropbell({ server, credential: () => userToken({ secret }, "1001") });
  const payment = new Dropbell({ server, credential: PAYMENT_KEY });
  const reserved = await user.post("/reservations", { body: { template_id: coming, shop_number: "10", reminders: [{ channel: "app", minutes: 10 }] } });
  assert.deepEqual([reserved.status, reserved.data.reminders.length], [201, 1]);
  const service = new Dropbell({ server, credential: ACT_AS_USER_KEY, user: "1001" });
  assert.equal((await service.get("/reservations/{template_id}", { path: { template_id: coming } })).data.reminders.length, 1);
  const left = await user.delete("/reservations/{template_id}", { path: { template_id: coming }, query: { channel: "app", minutes: 10 } });
  assert.equal(left.data.reminders.length, 0);
  await assert.rejects(user.post("/claims", { body: { template_id: coming } }), refused("not_started"));

  const claim = () => user.post("/claims", { headers: { "Idempotency-Key": "one" }, body: { template_id: open } });
  const coupon = (await claim()).data.coupon_id, again = await claim();
  assert.ok(coupon);
  assert.deepEqual([again.data.coupon_id, again.headers.get("Idempotency-Replayed")], [coupon, "true"]);
  await assert.rejects(user.post("/claims", { body: { template_id: open } }), refused("limit_reached"));
  const order = { order_id: "A-1", order_amount: 6000 }, path = { id: coupon };
  assert.equal((await payment.post("/coupons/{id}/lock", { path, body: order })).data.discount, 2000);
  assert.equal((await payment.post("/coupons/{id}/confirm", { path, body: { order_id: "A-1" } })).data.state, "used");
  await assert.rejects(payment.post("/coupons/{id}/lock", { path, body: { ...order, order_id: "A-2" } }), refused("coupon_not_usable"));
  assert.equal((await user.get("/coupons", { query: { state: "used" } })).data.coupons.length, 1);
  assert.ok(user.clock.known && Math.abs(user.clock.offset) < 2000);
});
