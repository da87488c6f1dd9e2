// A small shop in Node.js: a page with the web components, tokens for it, coupons at
// payment, and webhooks. README.md says how to run it.
import { createServer } from "node:http";
import { Dropbell, Problem } from "@dropbell/sdk";
import { SignatureError, userToken, verify } from "@dropbell/sdk/webhooks";

const { ADDR = "127.0.0.1:4001", DROPBELL_URL: server, DROPBELL_KEY: credential, DROPBELL_USER_SECRET: secret, DROPBELL_WEBHOOK_SECRET: hookSecret } = process.env;
const client = new Dropbell({ server, credential }); // the key has the scope payment

const page = (drop) => `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>A Node shop</title>
<script type="module" src="${server}/components/v1.js"></script>
<h1>Tea</h1>
<dropbell-countdown template="${drop}" token-url="/dropbell-token"></dropbell-countdown>
<dropbell-reserve template="${drop}" token-url="/dropbell-token"></dropbell-reserve>
<dropbell-claim template="${drop}" token-url="/dropbell-token"></dropbell-claim>
<dropbell-push token-url="/dropbell-token"></dropbell-push>
<dropbell-inbox token-url="/dropbell-token"></dropbell-inbox>`;

// The id of the signed-in user. A real shop has its own sessions.
const userOf = (request) => /(?:^|; )user=(\d+)/.exec(request.headers.cookie ?? "")?.[1];

// The amount of the user's order, in minor units of the currency. The page does not send the
// amount. A real shop would look the order up and refuse orders of other users. Here every
// order is the same tea.
const amountOf = (user, order) => 6000;

// The coupon is locked before the money is taken, used after the money is taken, and released
// if the payment fails. Each step may be repeated. With user_id, Dropbell refuses coupons of
// other users.
async function pay(user, { order_id, coupon_id }) {
  const path = { id: coupon_id }, amount = amountOf(user, order_id);
  const { data } = await client.post("/coupons/{id}/lock", { path, body: { order_id, order_amount: amount, user_id: user } });
  const paid = amount - (data.discount ?? 0);
  try {
    await charge(order_id, paid);
  } catch (error) {
    await client.post("/coupons/{id}/release", { path, body: { order_id } });
    throw error;
  }
  await client.post("/coupons/{id}/confirm", { path, body: { order_id } });
  return { order_id, paid };
}

// Takes the money. Here it does not.
async function charge(order, amount) {}

const routes = {
  "GET /": (request) => [200, page(new URL(request.url, "http://shop").searchParams.get("drop")?.match(/^\d+$/)?.[0] ?? "1")],
  // The service worker of <dropbell-push>, which must come from the shop's own origin.
  "GET /dropbell-push.js": () => [200, `self.dropbell = { title: "A Node shop", url: "/" };\nimportScripts(${JSON.stringify(server + "/components/v1-push.js")});`, "text/javascript"],
  "GET /dropbell-token": (request) => {
    const user = userOf(request);
    return user ? [200, { token: userToken({ secret }, user) }] : [401, { code: "signed_out" }];
  },
  "POST /pay": async (request, body) => {
    const user = userOf(request);
    return user ? [200, await pay(user, JSON.parse(body))] : [401, { code: "signed_out" }];
  },
  "POST /hooks": (request, body) => {
    const event = verify(hookSecret, request.headers, body);
    console.log(event.id, event.type, event.subject); // a shop stores it first, under a unique key: events may come twice
    return [204];
  },
};

async function handle(request, response) {
  let status, answer, type;
  try {
    const parts = [];
    for await (const part of request) parts.push(part);
    const route = routes[`${request.method} ${request.url.split("?")[0]}`];
    [status, answer, type] = route ? await route(request, Buffer.concat(parts)) : [404, { code: "not_found" }];
  } catch (error) {
    console.error(error.message);
    if (error instanceof SignatureError) [status, answer] = [401, { code: "signature" }];
    else if (error instanceof SyntaxError) [status, answer] = [400, { code: "not_json" }];
    else if (error instanceof Problem) [status, answer] = [error.code === "coupon_not_usable" ? 409 : 502, { code: error.code }];
    else [status, answer] = [500, { code: "internal" }];
  }
  const text = typeof answer === "string";
  response.writeHead(status, { "Content-Type": text ? `${type ?? "text/html"}; charset=utf-8` : "application/json", "Cache-Control": "no-store" });
  response.end(text ? answer : answer && JSON.stringify(answer));
}

const [host, port] = ADDR.split(":");
createServer(handle).listen(Number(port), host, () => console.log(`listening on http://${ADDR}`));
