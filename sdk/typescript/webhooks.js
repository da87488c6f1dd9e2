// For the servers of shops (Node.js): webhooks are verified, tokens of end users signed.
import { createHmac, timingSafeEqual } from "node:crypto";

const tolerance = 5 * 60; // seconds

/** Thrown for a webhook that was not signed with one of the secrets, or too long ago. */
export class SignatureError extends Error {
  constructor() {
    super("the webhook's signature or timestamp is wrong");
    this.name = "SignatureError";
  }
}

/** Returns the event in a request with these headers and this body, as it came, byte for byte. */
export function verify(secrets, headers, body, now = Date.now()) {
  const header = (name) => (typeof headers.get === "function" ? headers.get(name) : headers[name]) ?? "";
  const id = header("webhook-id"), stamp = header("webhook-timestamp");
  if (!id || !/^\d+$/.test(stamp) || Math.abs(now / 1000 - Number(stamp)) > tolerance) throw new SignatureError();
  const given = header("webhook-signature").split(" ").filter((s) => s.startsWith("v1,")).map((s) => Buffer.from(s.slice(3), "base64"));
  for (const secret of [secrets].flat()) {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    if (key.length === 0) throw new TypeError("a secret is whsec_ followed by base64");
    const want = createHmac("sha256", key).update(`${id}.${stamp}.`).update(body).digest();
    if (given.some((g) => g.length === want.length && timingSafeEqual(g, want))) return { ...JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body)), id };
  }
  throw new SignatureError();
}

/** Returns a token of the user that is valid for so many seconds (JWT, HS256; the server has AUTH_JWT_SECRET). */
export function userToken({ secret, issuer, audience }, user, seconds = 3600, now = Date.now()) {
  const at = Math.floor(now / 1000);
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = encode({ alg: "HS256", typ: "JWT" }) + "." + encode({ sub: user, iat: at, exp: at + seconds, iss: issuer, aud: audience });
  return signed + "." + createHmac("sha256", secret).update(signed).digest("base64url");
}
