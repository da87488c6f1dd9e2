/** The event of a webhook; docs/webhooks.md has the types and the fields of data. */
export interface Event {
  /** The same whenever the event is sent; skip ids that were processed before. */
  id: string;
  type: string;
  timestamp: string;
  /** The thing that changed, such as coupon/17. */
  subject: string;
  /** Of two events of one subject the later has the greater number. */
  sequence: number;
  data: Record<string, unknown>;
}

/** Thrown for a webhook that was not signed with one of the secrets, or too long ago: answer 401. */
export class SignatureError extends Error {}

type HeaderValues = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

/** Returns the event of a request. The body must be as it came, byte for byte. Two secrets are valid while one is rotated. */
export function verify(secrets: string | string[], headers: HeaderValues, body: string | Uint8Array, now?: number): Event;

/** Returns a token of an end user for the shop's pages. */
export function userToken(issuer: { secret: string; issuer?: string; audience?: string }, user: string, seconds?: number, now?: number): string;
