// The client of Dropbell, for Node.js and for browsers. It has no dependencies.
// A retry sends the same Idempotency-Key as the first request.
// An answer other than 2xx is thrown as a Problem.

const firstPause = 200, longestPause = 10_000; // milliseconds

/** An answer other than 2xx (RFC 9457). Decide by its code. */
export class Problem extends Error {
  constructor(status, body, retryAfter) {
    super(body?.detail ?? `HTTP ${status}`);
    this.name = "Problem";
    this.status = status;
    this.code = body?.code ?? "";
    this.title = body?.title ?? "";
    this.type = body?.type ?? "";
    this.instance = body?.instance ?? "";
    this.errors = body?.errors ?? [];
    this.retryAfter = retryAfter;
  }
}

/**
 * Measures how far the server's clock is ahead of this machine's clock. Each answer has the
 * server's time in whole seconds and limits the difference from above and below. A few
 * answers narrow the difference down to less than a second.
 */
export class Clock {
  #low = 0;
  #high = 0;
  known = false;

  /** The difference in milliseconds. */
  get offset() {
    return (this.#low + this.#high) / 2;
  }

  /** The server's time in milliseconds since 1970. */
  now() {
    return Date.now() + this.offset;
  }

  /** Narrows the difference by the Date header of an answer; sent and received are times of this machine. */
  observe(sent, received, date) {
    const at = Date.parse(date ?? "");
    if (Number.isNaN(at)) return;
    let low = at - received, high = at + 1000 - sent;
    if (this.known && Math.max(low, this.#low) <= Math.min(high, this.#high)) {
      low = Math.max(low, this.#low);
      high = Math.min(high, this.#high);
    } // else one of the clocks was set: the former bounds hold no longer
    this.#low = low;
    this.#high = high;
    this.known = true;
  }
}

export class Dropbell {
  constructor({ server, credential, user, tries = 5, longestWait = 30_000, timeout = 30_000, fetch: send = globalThis.fetch, pause = wait }) {
    this.base = server.replace(/\/+$/, "") + "/api/v1";
    this.credential = credential;
    this.user = user;
    this.tries = tries;
    this.longestWait = longestWait;
    this.timeout = timeout;
    this.send = (url, init) => send(url, init); // the browser's refuses to be a method of another object
    this.pause = pause;
    this.clock = new Clock();
  }

  get(path, options) { return this.request("GET", path, options); }
  post(path, options) { return this.request("POST", path, options); }
  put(path, options) { return this.request("PUT", path, options); }
  patch(path, options) { return this.request("PATCH", path, options); }
  delete(path, options) { return this.request("DELETE", path, options); }

  async request(method, path, { path: parts = {}, query, body, headers = {}, signal } = {}) {
    const url = this.base + path.replace(/\{(\w+)\}/g, (_, name) => {
      if (parts[name] === undefined) throw new TypeError(`the path needs ${name}`);
      return encodeURIComponent(parts[name]);
    }) + queryOf(query);
    const all = new Headers(headers);
    if (method === "POST" && !all.has("Idempotency-Key")) all.set("Idempotency-Key", crypto.randomUUID());
    if (this.user && !all.has("X-User-ID")) all.set("X-User-ID", this.user);
    if (body !== undefined && !all.has("Content-Type")) all.set("Content-Type", "application/json");
    const content = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(method, url, all, content, signal);
      } catch (error) {
        const after = again(method, error, signal);
        if (after === undefined || attempt >= this.tries || after > this.longestWait) throw error;
        await this.pause(Math.max(after, backoff(attempt)), signal);
      }
    }
  }

  async #once(method, url, headers, body, signal) {
    const credential = typeof this.credential === "function" ? await this.credential() : this.credential;
    if (credential) headers.set("Authorization", `Bearer ${credential}`);
    const limit = AbortSignal.timeout(this.timeout);
    const sent = Date.now();
    const answer = await this.send(url, { method, headers, body, signal: signal ? AbortSignal.any([signal, limit]) : limit });
    if (!answer.headers.get("Age")) this.clock.observe(sent, Date.now(), answer.headers.get("Date"));
    const json = /json/.test(answer.headers.get("Content-Type") ?? "");
    if (!answer.ok) {
      throw new Problem(answer.status, json ? await answer.json().catch(() => undefined) : undefined, retryAfter(answer.headers.get("Retry-After")));
    }
    const text = await answer.text();
    const data = json && text ? JSON.parse(text) : text || undefined;
    return { data, status: answer.status, headers: answer.headers };
  }
}

// again returns the pause that the server asks for before a retry, or undefined if the
// request must not be sent again. A request without an answer may have had its effect. It may
// be sent again if it has an Idempotency-Key or if its repetition changes nothing.
function again(method, error, signal) {
  if (signal?.aborted || error instanceof SyntaxError) return undefined;
  const repeatable = method !== "PATCH";
  if (!(error instanceof Problem)) return repeatable ? 0 : undefined;
  if (error.status === 429 || error.code === "idempotency_in_progress") return error.retryAfter;
  return repeatable && [502, 503, 504].includes(error.status) ? error.retryAfter : undefined;
}

function backoff(attempt) {
  const most = Math.min(firstPause * 2 ** (attempt - 1), longestPause);
  return most / 2 + (Math.random() * most) / 2;
}

function retryAfter(value) {
  if (!value) return 0;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? 0 : Math.max(ms, 0);
}

function queryOf(query = {}) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) q.set(name, String(value)); // lists are separated by commas
  }
  const text = q.toString();
  return text && "?" + text;
}

function wait(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms);
    function done() {
      signal?.removeEventListener("abort", stop);
      resolve();
    }
    function stop() {
      clearTimeout(timer);
      reject(signal.reason);
    }
    signal?.addEventListener("abort", stop, { once: true });
  });
}
