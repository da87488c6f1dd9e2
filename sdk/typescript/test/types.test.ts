// Compiled by tests, never run: uses that must compile, and mistakes that must not.
import { Dropbell, Problem, type Schemas } from "../index.js";
import { userToken, verify } from "../webhooks.js";

export async function uses(client: Dropbell) {
  const drop = await client.get("/templates/{id}", { path: { id: "1" } });
  const opens: string = drop.data.opens_at;
  const claim = await client.post("/claims", { body: { template_id: "1" }, headers: { "Idempotency-Key": "one" } });
  const coupon: string | undefined = claim.data.coupon_id;
  const locked = await client.post("/coupons/{id}/lock", { path: { id: coupon! }, body: { order_id: "A-1", order_amount: 6000 } });
  const owned: Schemas["CouponList"] = (await client.get("/coupons", { query: { state: "unused" } })).data;
  await client.get("/coupons");
  await client.delete("/reservations/{template_id}", { path: { template_id: "1" }, query: { channel: "app", minutes: 10 } });
  try {
    await client.post("/coupons/{id}/confirm", { path: { id: locked.data.coupon_id }, body: { order_id: "A-1" } });
  } catch (error) {
    if (error instanceof Problem && error.code === "coupon_not_usable") return error.retryAfter;
  }
  const event = verify(["whsec_AAAA"], new Headers(), "{}");
  userToken({ secret: "s" }, "1001");
  return [opens, owned.coupons.length, event.subject];
}

export async function mistakes(client: Dropbell) {
  // @ts-expect-error: no such address
  await client.get("/template/{id}", { path: { id: "1" } });
  // @ts-expect-error: the address takes no POST
  await client.post("/templates/{id}", { path: { id: "1" } });
  // @ts-expect-error: the path is missing
  await client.get("/templates/{id}");
  // @ts-expect-error: the body lacks order_amount
  await client.post("/coupons/{id}/lock", { path: { id: "1" }, body: { order_id: "A-1" } });
  // @ts-expect-error: no such state
  await client.get("/coupons", { query: { state: "new" } });
  try {
    await client.get("/coupons");
  } catch (error) {
    // @ts-expect-error: no such code
    return error instanceof Problem && error.code === "sold";
  }
}
