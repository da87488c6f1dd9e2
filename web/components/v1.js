// The web components of Dropbell for pages of shops: <dropbell-countdown>, <dropbell-reserve>,
// <dropbell-claim>, <dropbell-waitlist>, <dropbell-draw>, <dropbell-push> and <dropbell-inbox>. Attributes, parts,
// properties and events are in docs/shop.md. No dependencies, no build.

const texts = {
  en: {
    loading: "Loading …", opensIn: "Opens in", entriesClose: "Entries close in", opensAt: "Opens {at}", open: "Open now", sold_out: "Sold out", paused: "Paused for a moment",
    closed: "This has ended", cancelled: "This was cancelled", days: "{n} d",
    hour: "less than an hour", minutes: "less than ten minutes", minute: "less than a minute", seconds: "ten seconds",
    remind: "Remind me {n} minutes before", reminded: "You will be reminded {n} minutes before", stop: "Press again to cancel the reminder.",
    sent: "You were reminded", late: "Too late for this reminder", noReminder: "No reminder here",
    claim: "Get the coupon", arm: "Get it when it opens", armed: "You will get in line as it opens", disarm: "Press again if you changed your mind.",
    claiming: "Getting your coupon …", waiting: "No answer yet. Trying again …", owned: "The coupon is yours", used: "You have used the coupon",
    locked: "The coupon is in your order", expired: "Your coupon has expired", refused: "This is not possible right now.",
    enter: "Enter the draw", entersAt: "Entries open {at}", entered: "You are in the draw", leaveDraw: "Drawn after {at}. Press again to leave.",
    sealing: "Entries are closed. The draw follows in a moment.", won: "You won", lost: "Not drawn this time", struck: "Your entry was struck: {reason}",
    acceptWon: "You won: accept the coupon", acceptBy: "Until {at}", lapsedWon: "You won and did not accept in time", notYours: "This draw is for other customers.",
    check: "Check the draw", altered: "The sealed list was changed afterwards. Keep this page as evidence.",
    code: "Enter your access code", codeWrong: "This code does not work. Check what you typed.",
    suspended: "Your coupon is being checked", passNeeded: "A check of this device is needed first.",
    limit_reached: "You have had yours", household: "Your household has had its share.", signIn: "Sign in first",
    join: "Join the waitlist", joined: "You are on the waitlist", leave: "Press again to leave it.", comesBack: "If coupons come back, they go to those who wait.",
    accept: "Take your coupon", keptUntil: "It is kept for you until {at}.", sharedUntil: "The first to take one get it, until {at}.", lapsed: "You let two offers pass",
    under_10: "Fewer than 10 are ahead of you.", under_100: "Fewer than 100 are ahead of you.", under_1000: "Fewer than 1,000 are ahead of you.", more: "1,000 or more are ahead of you.",
    good: "The chances are good.", some: "There is some chance.", small: "The chance is small.", noWait: "No waitlist now", skipped: "No coupon came back for you", failed: "That did not work. Please try again.",
    inbox: "Messages", none: "No messages yet.", unread: "{n} unread", read: "Mark all as read", older: "Older messages", fresh: "New message: {text}", go: "Go to the offer",
    push: "Notify me in this browser", pushed: "Notifications are on", unpush: "Press again to turn them off.",
    denied: "Notifications are blocked", allow: "Allow them for this page in the browser’s settings.", noPush: "No notifications here",
    unsupported: "This browser shows no notifications of this page.", ios: "Put this page on your home screen first: press Share, then “Add to Home Screen”, and open it from there.",
  },
  zh: {
    loading: "加载中…", opensIn: "距开抢还有", entriesClose: "距报名截止还有", opensAt: "{at} 开抢", open: "正在开抢", sold_out: "已抢光", paused: "抢券暂停中",
    closed: "抢券已结束", cancelled: "抢券已取消", days: "{n} 天",
    hour: "不到一小时", minutes: "不到十分钟", minute: "不到一分钟", seconds: "十秒",
    remind: "提前 {n} 分钟提醒我", reminded: "将提前 {n} 分钟提醒您", stop: "再次点击可取消提醒。",
    sent: "已提醒您", late: "已来不及提醒", noReminder: "暂不支持此提醒",
    claim: "领取优惠券", arm: "开抢时自动领取", armed: "开抢后将自动为您领取", disarm: "再次点击可取消。",
    claiming: "正在领取…", waiting: "暂未收到结果，正在重试…", owned: "优惠券已到手", used: "优惠券已使用",
    locked: "优惠券已锁定在您的订单中", expired: "优惠券已过期", refused: "暂时无法领取，请稍后再试。",
    enter: "参加抽签", entersAt: "{at} 开始报名", entered: "您已报名", leaveDraw: "{at} 后抽签。再次点击可退出。",
    sealing: "报名已截止，即将抽签。", won: "您已中签", lost: "本次未中签", struck: "您的报名被剔除：{reason}",
    acceptWon: "已中签：接受优惠券", acceptBy: "截止 {at}", lapsedWon: "已中签，但逾期未接受", notYours: "本次抽签面向其他客户。",
    check: "验证抽签", altered: "封存的名单事后被改动。请保留此页面作为凭据。",
    code: "填写入场码", codeWrong: "此入场码无效，请核对。",
    suspended: "您的优惠券正在核查中", passNeeded: "请先完成安全验证。",
    limit_reached: "您已领过", household: "您的家庭已领完名额。", signIn: "请先登录",
    join: "加入候补", joined: "您已在候补名单中", leave: "再次点击可退出。", comesBack: "若有优惠券退回，将发放给候补客户。",
    accept: "领取优惠券", keptUntil: "为您保留至 {at}。", sharedUntil: "先领先得，{at} 截止。", lapsed: "您已两次未领取",
    under_10: "您前面不到 10 人。", under_100: "您前面不到 100 人。", under_1000: "您前面不到 1,000 人。", more: "您前面有 1,000 人或更多。",
    good: "候补机会较大。", some: "有一定机会。", small: "机会较小。", noWait: "暂不可候补", skipped: "没有为您补到优惠券", failed: "操作未成功，请重试。",
    inbox: "消息", none: "暂无消息。", unread: "{n} 条未读", read: "全部标为已读", older: "更早的消息", fresh: "新消息：{text}", go: "查看优惠",
    push: "在此浏览器中提醒我", pushed: "通知已开启", unpush: "再次点击可关闭。",
    denied: "通知已被阻止", allow: "请在浏览器设置中允许本页面的通知。", noPush: "此处无法接收通知",
    unsupported: "此浏览器无法显示本页面的通知。", ios: "请先将本页添加到主屏幕：点击“分享”，选择“添加到主屏幕”，再从主屏幕打开。",
  },
};

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const some = (ms) => ms / 2 + Math.random() * ms / 2;
// Storage may be forbidden; then a reload in the middle of a claim forgets its key.
const storage = (name, area = "localStorage") => ({
  get: () => { try { return window[area].getItem(name); } catch { return null; } },
  set: (v) => { try { v === null ? window[area].removeItem(name) : window[area].setItem(name, v); } catch { /* see above */ } },
});

let settings = {};
/** Sets properties without an attribute: server, and token, a function that returns a token of the user, or null without a user. */
export function configure(more) {
  settings = { ...settings, ...more };
  for (const known of clients.values()) for (const client of known.values()) client.ended = true;
  clients.clear();
  for (const element of connected) element.restart();
}

/** Reads everything anew: to be called after the user has signed in or out without a reload. */
export function refresh() { configure(); }

class Refusal extends Error {
  constructor(status, code, after, waitlist) { super(code); this.status = status; this.code = code; this.after = after; this.waitlist = waitlist; }
}

// limited returns a signal that aborts when other aborts, or ms after the last touch.
function limited(ms, other) {
  const own = new AbortController(), stop = () => own.abort();
  let timer;
  const touch = () => { clearTimeout(timer); timer = setTimeout(stop, ms); };
  touch();
  if (other?.aborted) stop();
  other?.addEventListener("abort", stop, { signal: own.signal });
  return { signal: own.signal, touch };
}
const answerWithin = 15_000, silence = 50_000; // ms; a stream is written to every 20 s

// Client calls one server for one user.
class Client {
  low = -Infinity; high = Infinity; // the server's clock is ahead by so many ms
  drops = new Map();
  constructor(server, source) { this.base = server.replace(/\/+$/, "") + "/api/v1"; this.source = source; }

  now() { return Date.now() + (this.low > -Infinity ? (this.low + this.high) / 2 : 0); }

  observe(sent, date) {
    const at = Date.parse(date ?? "");
    if (Number.isNaN(at)) return;
    let low = at - Date.now(), high = at + 1000 - sent;
    if (Math.max(low, this.low) <= Math.min(high, this.high)) { low = Math.max(low, this.low); high = Math.min(high, this.high); }
    this.low = low; this.high = high;
  }

  // token returns the user's token; null = no user is signed in. After refresh a new
  // token may belong to another user, so an ended client gets no new token.
  async token(fresh) {
    if (fresh && this.ended) return null;
    if (fresh || !this.known) {
      const known = this.known = (async () => (await this.source()) || null)();
      const forget = (token) => { if (!token && this.known === known) this.known = undefined; };
      known.then(forget, () => forget());
    }
    return this.known;
  }

  // user is the id in the token.
  async user() {
    try { return JSON.parse(atob((await this.token()).split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).sub; } catch { return ""; }
  }

  // once sends a request without repeating it and returns an answer with status 2xx.
  async once(method, path, { body, key, open, headers = {}, signal = limited(answerWithin).signal } = {}) {
    for (const fresh of [false, true]) {
      const all = { ...headers };
      const token = open ? null : await this.token(fresh);
      if (!open && !token) throw new Refusal(401, "unauthenticated", 0);
      if (token) all.Authorization = "Bearer " + token;
      if (key) all["Idempotency-Key"] = key;
      if (body) all["Content-Type"] = "application/json";
      const sent = Date.now();
      const answer = await fetch(this.base + path, { method, headers: all, body: body && JSON.stringify(body), signal, credentials: "omit", cache: "no-store" });
      if (!answer.headers.get("Age")) this.observe(sent, answer.headers.get("Date"));
      if (answer.ok) return answer;
      const problem = await answer.json().catch(() => ({}));
      if (answer.status === 401 && !open && !fresh) continue;
      throw new Refusal(answer.status, problem.code ?? "", 1000 * (Number(answer.headers.get("Retry-After")) || 0), problem.waitlist);
    }
  }

  // call repeats a request until it is answered, up to four times.
  async call(method, path, options = {}) {
    for (let attempt = 0; ; attempt++) {
      try {
        const { signal } = limited(answerWithin, options.signal);
        const answer = await this.once(method, path, { ...options, signal });
        return answer.status === 204 ? undefined : await answer.json();
      } catch (error) {
        if (!passing(error) || attempt >= 4 || options.signal?.aborted) throw error;
        await sleep(pause(error, attempt));
      }
    }
  }

  drop(id) {
    if (!this.drops.has(id)) this.drops.set(id, new Drop(this, id));
    return this.drops.get(id);
  }
}

// passFor asks for the pass of a protected drop with the evidence, or without evidence by solving a puzzle.
async function passFor(client, id, evidence) {
  const ask = (body) => client.call("POST", `/passes/${id}`, { body, key: crypto.randomUUID() });
  const answer = await ask(evidence ?? {});
  return !answer.pass && answer.puzzle ? ask({ puzzle: await solve(answer.puzzle) }) : answer;
}

// passing reports whether the same request may succeed a moment later.
const passing = (error) => !(error instanceof Refusal) || [429, 502, 503, 504].includes(error.status) || error.code === "idempotency_in_progress";
const pause = (error, attempt) => Math.max(error.after ?? 0, 200) + some(Math.min(250 * 2 ** attempt, 10_000));

// search solves a puzzle of ALTCHA: the first counter for which SHA-256(salt ‖ nonce ‖ counter)
// begins with the prefix. It hashes 64 counters at a time.
async function search({ nonce, salt, keyPrefix }) {
  const bytes = (hex) => Uint8Array.from(hex.match(/../g), (b) => parseInt(b, 16)), head = bytes(salt + nonce), wanted = bytes(keyPrefix);
  for (let from = 0; ; from += 64) {
    const sums = await Promise.all(Array.from({ length: 64 }, (_, i) => {
      const text = new Uint8Array(head.length + 4);
      text.set(head);
      new DataView(text.buffer).setUint32(head.length, from + i);
      return crypto.subtle.digest("SHA-256", text);
    }));
    for (const [i, sum] of sums.entries()) {
      const found = new Uint8Array(sum);
      if (wanted.every((b, k) => found[k] === b)) return { counter: from + i, derivedKey: Array.from(found, (b) => b.toString(16).padStart(2, "0")).join("") };
    }
  }
}

// solve returns the solution of a puzzle as ALTCHA's own widget sends it. It runs in a worker, or in
// the page if the page's policy forbids a worker.
async function solve(challenge) {
  const source = `${search}; onmessage = async (e) => postMessage(await search(e.data));`;
  let worker;
  const solution = await new Promise((done, fail) => {
    worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    worker.onmessage = (e) => done(e.data);
    worker.onerror = fail;
    worker.postMessage(challenge.parameters);
  }).catch(() => search(challenge.parameters)).finally(() => worker?.terminate());
  return btoa(JSON.stringify({ challenge, solution }));
}

// coming are the states of reminders without an outcome.
const coming = ["waiting", "due", "in_flight", "failed"];

// Drop is the known state of a drop and the user's part in it; elements of one page share it.
class Drop {
  template; // undefined = not known yet
  reservation; // null = none
  coupons; // of this drop; undefined = not known yet
  wait; // the user's place on the waitlist; null = none, undefined = not known yet
  claim = ""; // "", claiming, waiting, failed (the outcome is not known), or the code of a refusal
  armed = false;
  pass; // of a protected drop: { text, until }; undefined = none
  failures = 0; // in a row
  elements = new Set();

  constructor(client, id) {
    this.client = client;
    this.id = id;
    this.shown = () => { if (!document.hidden) this.refresh(true); };
  }

  add(element) {
    this.elements.add(element);
    if (this.elements.size === 1) {
      document.addEventListener("visibilitychange", this.shown);
      this.tick();
    }
    // The elements of a page are added one after the other, and read the drop once.
    this.reading ??= Promise.resolve().then(() => { this.reading = undefined; return this.refresh(true); });
  }

  remove(element) {
    this.elements.delete(element);
    if (this.elements.size > 0) return;
    document.removeEventListener("visibilitychange", this.shown);
    clearTimeout(this.ticking);
    clearTimeout(this.polling);
  }

  changed() { for (const e of this.elements) e.render(); }

  // left is how many ms are left until the opening; negative afterwards.
  left() { return this.template ? Date.parse(this.template.opens_at) - this.client.now() : 0; }

  // state returns the drop's state by the server's clock: the state last read may be outdated.
  state() {
    const { state, closes_at } = this.template;
    if (state === "scheduled" && this.left() <= 0) return "open";
    if (state === "open" && this.left() > 0) return "scheduled";
    if (state === "open" && this.client.now() >= Date.parse(closes_at)) return "closed";
    return state;
  }

  // unread reports whether reading the user's part has failed.
  unread() { return !this.signedOut && (this.wants("reservation") && this.reservation === undefined || this.wants("coupons") && this.coupons === undefined); }

  wants(part) { return [...this.elements].some((e) => e.constructor.needs === part); }

  // refresh reads the drop, and with user the user's part in it. It plans the next refresh
  // at a random time, so that pages do not refresh together.
  async refresh(user) {
    clearTimeout(this.polling);
    const tasks = [this.client.call("GET", `/templates/${this.id}`, { open: true }).then((t) => (t.doors ? this.own(t) : t)).then((t) => {
      this.template = this.claim === "sold_out" ? { ...t, waitlist: t.waitlist ?? this.template?.waitlist } : t; // t may be older than the refusal
      // Coupons came back to the stock. For 5 s after the refusal, t may be older than the refusal.
      if (this.claim === "sold_out" && t.state === "open" && t.stock_left > 0 && Date.now() - this.decided > 5000) this.claim = "";
    }, (e) => { this.missing = e.code === "template_not_found"; })];
    const due = this.reservation?.reminders.some((r) => coming.includes(r.state) && Date.parse(r.due_at) <= this.client.now());
    if ((user || due) && this.wants("reservation")) tasks.push(this.readReservation());
    if (user && this.wants("coupons")) tasks.push(this.readCoupons().then(() => this.resume()));
    await Promise.allSettled(tasks);
    if (this.waits() && (user || this.inLine())) await this.readWait();
    this.changed();
    if (this.elements.size === 0) return;
    this.failures = !this.template || this.unread() ? this.failures + 1 : 0;
    clearTimeout(this.polling); // another reading may have ended meanwhile
    this.polling = setTimeout(() => (document.hidden ? 0 : this.refresh(this.failures > 0)), this.pollIn());
  }

  // pollIn returns the delay in ms until the drop is read again. The drop is not read in the
  // minute before the opening, and at a random time after it, so that pages do not ask together.
  pollIn() {
    if (this.failures) return some(Math.min(15_000 * 2 ** (this.failures - 1), 480_000));
    const left = this.left(), state = this.state();
    if (state === "scheduled") {
      const next = some(Math.min(Math.max(left / 4, 60_000), 480_000));
      return left - next > 60_000 ? next : left + 1000 + 30_000 * Math.random();
    }
    return some(state === "open" && !this.coupons?.length ? 30_000 : state === "open" || state === "sold_out" || state === "paused" ? 120_000 : 480_000);
  }

  // own puts the opening of the user's own door in the place of the drop's.
  async own(t) {
    try { this.door = (await this.client.call("GET", `/templates/${this.id}`)).door; } catch { this.door = undefined; }
    return this.door?.opens_at ? { ...t, opens_at: this.door.opens_at } : t;
  }

  // unlock enters an access code, which opens a door to the user.
  async unlock(code) {
    try { await this.client.call("POST", "/access-codes", { body: { template_id: this.id, code }, key: crypto.randomUUID() }); this.claim = ""; } catch { this.claim = "codeWrong"; }
    return this.refresh(true);
  }

  async readReservation() {
    try { this.reservation = await this.client.call("GET", `/reservations/${this.id}`); this.signedOut = false; } catch (e) {
      if (e.code === "not_reserved") { this.reservation = null; this.signedOut = false; }
      if (e.code === "unauthenticated") this.signedOut = true;
    }
  }

  // waits reports whether an element shows the drop's waitlist, and there is one.
  waits() { return !this.signedOut && (this.wants("coupons") || this.wants("wait")) && (this.template?.waitlist === "open" || this.inLine()); }

  // inLine reports whether the user waits, or is offered a coupon.
  inLine() { return this.wait?.state === "waiting" || this.wait?.state === "offered"; }

  // offered reports whether the user can accept a coupon now.
  offered() { return !!this.wait?.accept_until && this.client.now() < Date.parse(this.wait.accept_until); }

  async readWait() {
    const before = this.wait?.state;
    try { this.wait = await this.client.call("GET", `/waitlist/${this.id}`); this.signedOut = false; } catch (e) {
      if (e.code === "not_waiting") this.wait = null;
      if (e.code === "unauthenticated") this.signedOut = true;
    }
    if (before !== "offered" && this.offered()) this.tell("offered", { accept_until: this.wait.accept_until });
    if ((before === "waiting" || before === "offered") && this.wait?.state === "filled") {
      if (this.wants("coupons")) await this.readCoupons(true);
      this.tell("filled", { coupon_id: this.wait.coupon_id });
    }
  }

  tell(name, detail) { for (const e of this.elements) if (["coupons", "wait"].includes(e.constructor.needs)) e.tell(name, detail); }

  // join puts the user on the waitlist, or with on = false takes the user off it.
  async join(on) {
    if (this.joining) return;
    this.joining = true;
    this.waitError = "";
    this.changed();
    try {
      this.wait = await this.client.call(on ? "PUT" : "DELETE", `/waitlist/${this.id}`);
      this.tell(on ? "joined" : "left");
    } catch (e) {
      if (e.code === "unauthenticated") this.signedOut = true;
      this.waitError = ["stock_left", "ended", "no_waitlist", "template_not_open", "limit_reached", "not_eligible", "too_many_waits"].includes(e.code) ? "noWait" : "failed";
      if (e.code === "stock_left") { this.claim = ""; await this.refresh(true); }
    }
    this.joining = false;
    this.changed();
  }

  // accept takes the coupon that the waitlist offers.
  async accept() {
    if (this.joining) return;
    this.joining = true;
    this.waitError = "";
    this.changed();
    try {
      this.wait = await this.client.call("POST", `/waitlist/${this.id}/accept`);
      if (this.wants("coupons")) await this.readCoupons(true);
      this.tell("filled", { coupon_id: this.wait.coupon_id });
    } catch (e) {
      if (e.code === "unauthenticated") this.signedOut = true;
      if (!["no_offer", "offer_lapsed", "offer_taken", "ended", "template_not_open", "limit_reached"].includes(e.code)) this.waitError = "failed";
      else await this.readWait();
    }
    this.joining = false;
    this.changed();
  }

  // readCoupons reads the user's coupons. If that fails, anew also drops the known coupons.
  async readCoupons(anew) {
    try {
      let before = "", found = [];
      do {
        const page = await this.client.call("GET", "/coupons?limit=100" + (before && "&before=" + before));
        found.push(...page.coupons.filter((c) => c.template_id === this.id && c.state !== "revoked"));
        before = page.next ?? "";
      } while (before && found.length === 0);
      this.coupons = found;
      this.signedOut = false;
    } catch (e) {
      if (e.code === "unauthenticated") this.signedOut = true;
      else if (anew) this.coupons = undefined;
    }
  }

  // tick redraws at each whole second before the opening, and starts an armed claim.
  tick() {
    clearTimeout(this.ticking);
    if (this.elements.size === 0) return;
    const left = this.template ? this.left() : 1000;
    if (this.template) this.changed();
    if (this.template && this.armed && this.state() === "open") this.start();
    if (this.template) this.planPass();
    this.ticking = setTimeout(() => this.tick(), left > 0 ? Math.min(left % 1000 + 5, 1005) : 1000);
  }

  // guarded reports whether a claim needs a pass that is not there.
  guarded() {
    if ((this.template.protection ?? "off") === "off") return false;
    return !this.pass || this.pass.until <= Math.max(this.client.now(), Date.parse(this.template.opens_at)) + 30_000;
  }

  // planPass earns the pass in the last quarter of an hour before the opening, at a random time, so
  // that pages do not ask together. After the opening it is earned within two seconds.
  planPass() {
    if (this.earnAt || this.signedOut || this.coupons?.length !== 0 || !this.wants("coupons") || !this.guarded() || this.left() > 900_000) return;
    if (!["scheduled", "open"].includes(this.state())) return;
    this.earnAt = setTimeout(() => this.earn().catch(() => {}), this.left() > 0 ? Math.min(60_000, this.left() / 2) * Math.random() : 2000 * Math.random());
  }

  // earn gets a pass for the evidence, or without evidence by solving a puzzle. Elements tell the
  // page with dropbell-pass if the drop accepts no puzzle.
  async earn(evidence) {
    try {
      const answer = await passFor(this.client, this.id, evidence);
      if (answer.pass) this.pass = { text: answer.pass, until: Date.parse(answer.expires_at) };
      else if (answer.ways) for (const e of this.elements) if (e.constructor.needs === "coupons") e.tell("pass", { ways: answer.ways });
    } finally {
      clearTimeout(this.earnAt);
      this.earnAt = this.pass ? undefined : setTimeout(() => { this.earnAt = undefined; }, some(30_000));
    }
    return !!this.pass;
  }

  async keys() {
    const name = `dropbell:${this.client.base}:${this.id}:${await this.client.user()}`;
    return { key: storage(name), arm: storage(name, "sessionStorage") };
  }

  async arm(on) {
    this.armed = on;
    this.changed();
    (await this.keys()).arm.set(on ? "armed" : null);
  }

  // resume continues a claim that a reload interrupted. A claim without an answer is repeated
  // with its key and gets the issued coupon; an armed claim waits for the opening again.
  async resume() {
    if (this.claim || this.signedOut) return;
    const { key, arm } = await this.keys();
    if (key.get()) this.start(0);
    else if (arm.get() && this.coupons?.length === 0) { this.armed = true; this.changed(); }
  }

  // start claims a coupon and repeats the request until it is decided. An armed claim waits
  // a random time up to 1.5 s, so that the claims of all pages do not arrive at once.
  async start(jitter = this.armed ? 1500 * Math.random() : 0) {
    if (this.claim === "claiming" || this.claim === "waiting") return;
    this.claim = "claiming";
    this.armed = false;
    this.changed();
    const { key: stored, arm } = await this.keys();
    arm.set(null);
    const key = stored.get() ?? crypto.randomUUID();
    stored.set(key);
    await sleep(jitter);
    let outcome, coupon_id, unknown = false;
    for (let attempt = 0; outcome === undefined; attempt++) {
      try {
        if (this.guarded()) await this.earn();
        const answer = await (await this.client.once("POST", "/claims", { body: { template_id: this.id, pass: this.pass?.text }, key })).json();
        if (answer.state === "issued") [outcome, coupon_id] = ["", answer.coupon_id];
        else if (answer.state === "failed") outcome = answer.reason || "refused";
        else await sleep(some(1000));
      } catch (e) {
        if (["not_started", "door_not_open"].includes(e.code) && attempt < 8) {
          if (attempt > 1) await this.refresh(); // it may have been moved
          if (this.left() > 3000) outcome = e.code;
          else await sleep(Math.max(this.left(), 0) + some(500));
        }
        else if (e.code === "pass_required" && attempt < 2) {
          this.pass = undefined;
          if (!this.guarded()) await this.refresh(); // the drop was not protected before
        }
        else if (passing(e)) {
          if (attempt > 1) { this.claim = "waiting"; this.changed(); }
          await sleep(pause(e, attempt));
        } else {
          outcome = e.code || "refused";
          if (e.waitlist && this.template) this.template = { ...this.template, waitlist: e.waitlist };
          unknown = e.status === 401 || e.status >= 500; // an attempt before may have got a coupon
        }
      }
    }
    if (!unknown) stored.set(null); // else the next claim repeats this one
    if (outcome === "" || outcome === "limit_reached") await this.readCoupons(true);
    if (outcome === "sold_out" && this.waits()) await this.readWait();
    if (outcome === "unauthenticated") this.signedOut = true;
    this.claim = ["not_started", "door_not_open", "unauthenticated"].includes(outcome) ? "" : unknown ? "failed" : outcome; // a drop that has not started was moved
    this.decided = Date.now();
    this.changed();
    for (const e of this.elements) {
      if (e.constructor.needs === "coupons") e.tell(outcome === "" ? "claimed" : "refused", outcome === "" ? { coupon: this.coupons?.[0] ?? { coupon_id } } : { code: outcome });
    }
    this.refresh(this.unread());
  }
}

const nobody = () => null;
// clients maps a source of tokens and then a server to its client.
const clients = new Map(), connected = new Set();
const sheet = new CSSStyleSheet();
sheet.replaceSync(`
:host{display:inline-block;font:var(--dropbell-font,inherit);color:var(--dropbell-color,inherit)}
:host([hidden]){display:none}
button{font:inherit;font-weight:600;min-height:2.75rem;padding:.5em 1.25em;border:2px solid transparent;border-radius:var(--dropbell-radius,.6em);
 background:var(--dropbell-accent,#0a58ca);color:var(--dropbell-on-accent,#fff);cursor:pointer;max-width:100%}
button.quiet,button[aria-pressed=true]{background:transparent;color:inherit;border-color:currentColor}
button[aria-disabled=true]{background:var(--dropbell-muted,#6c757d33);color:inherit;cursor:default}
button:focus-visible,a:focus-visible{outline:3px solid var(--dropbell-focus,currentColor);outline-offset:2px}
[part=status]{margin:0;font-size:.875em}
[part=status]:not(:empty){margin-top:.4em}
.away{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
[part=time]{font-variant-numeric:tabular-nums;font-weight:700;font-size:1.5em}
ul{list-style:none;margin:.5em 0;padding:0}
li{border-top:1px solid color-mix(in srgb,currentColor 20%,transparent);padding:.75em 0;overflow-wrap:anywhere}
li p{margin:0;white-space:pre-line}
li [part=title]{font-weight:600}
li[part~=unread] [part=title]::before{content:"● ";color:var(--dropbell-accent,currentColor)}
[part=head]{display:flex;flex-wrap:wrap;gap:.5em 1em;align-items:center;justify-content:space-between}
h2{font-size:1.1em;margin:0}
a{color:inherit}
@media (prefers-reduced-motion:no-preference){button{transition:background .15s}}`);

const make = (tag, part, more = {}) => Object.assign(document.createElement(tag), more, part && { part });
const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

class Base extends HTMLElement {
  static observedAttributes = ["template", "shop", "server", "token-url", "channel", "minutes", "lang", "limit", "worker", "scope"];
  #token;

  /** token is a function that returns a token of the user; see configure. */
  get token() { return this.#token; }
  set token(source) { this.#token = source; this.restart(); }

  connectedCallback() {
    if (Object.hasOwn(this, "token")) { // set before the script was there
      const source = this.token;
      delete this.token;
      this.token = source;
    }
    connected.add(this);
    if (!this.shadowRoot) {
      this.attachShadow({ mode: "open" }).adoptedStyleSheets = [sheet];
      this.build(this.shadowRoot);
    }
    this.restart();
  }

  disconnectedCallback() { connected.delete(this); this.stop(); }

  attributeChangedCallback(_, before, after) { if (before !== after) this.restart(); }

  restart() {
    if (!connected.has(this)) return;
    this.stop();
    const tag = (this.closest("[lang]")?.lang || navigator.language).toLowerCase();
    this.locale = tag.startsWith("zh") ? "zh-CN" : tag.startsWith("en") ? tag : "en";
    this.words = tag.startsWith("zh") ? texts.zh : texts.en;
    this.shadowRoot.firstElementChild.lang = this.locale;
    const server = this.getAttribute("server") ?? settings.server ?? new URL(import.meta.url).origin;
    const address = this.getAttribute("token-url");
    const source = this.#token ?? (address || (settings.token ?? nobody));
    if (!clients.has(source)) clients.set(source, new Map());
    const known = clients.get(source);
    if (!known.has(server)) known.set(server, new Client(server, typeof source === "string" ? () => fromAddress(source) : source));
    this.client = known.get(server);
    this.begin();
  }

  begin() {
    const id = this.getAttribute("template");
    this.drop = id ? this.client.drop(id) : undefined;
    this.render();
    this.drop?.add(this);
  }

  stop() { this.drop?.remove(this); this.drop = undefined; }

  t(name, values = {}) { return (this.words[name] ?? this.words.refused).replace(/\{(\w+)\}/g, (_, v) => values[v]); }

  at(instant) { return new Intl.DateTimeFormat(this.locale, { dateStyle: "medium", timeStyle: "short" }).format(new Date(instant)); }

  tell(name, detail) { this.dispatchEvent(new CustomEvent("dropbell-" + name, { bubbles: true, composed: true, detail })); }
}

// fromAddress reads a token from the shop's own server: {"token":"…"}; 401 = no user is signed in.
async function fromAddress(address) {
  const answer = await fetch(address, { credentials: "same-origin", cache: "no-store", signal: limited(answerWithin).signal });
  if (answer.status === 401) return null;
  if (!answer.ok) throw new Error("no token");
  return (await answer.json()).token;
}

class Countdown extends Base {
  build(root) {
    const box = make("div", "countdown");
    this.label = make("span", "label");
    this.time = make("span", "time");
    this.spoken = make("span", "", { className: "away" });
    this.spoken.setAttribute("role", "status");
    box.append(this.label, " ", this.time, this.spoken);
    root.append(box);
  }

  render() {
    const d = this.drop;
    if (!d?.template) {
      write(this.label, this.t(d?.missing ? "closed" : "loading"));
      return write(this.time, "");
    }
    const state = d.state();
    this.setAttribute("state", state);
    if (state !== "scheduled") {
      write(this.label, this.t(state));
      write(this.time, "");
      if (this.was === "scheduled") {
        write(this.spoken, this.t(state));
        if (state === "open") this.tell(state);
      }
      this.was = state;
      return;
    }
    this.was = state;
    const left = Math.max(Math.ceil(d.left() / 1000), 0), two = (n) => String(n).padStart(2, "0");
    const days = Math.floor(left / 86400), clock = [Math.floor(left % 86400 / 3600), Math.floor(left % 3600 / 60), left % 60].map(two).join(":");
    const label = this.t(["shuffled", "draw"].includes(d.template.opening_mode) ? "entriesClose" : "opensIn"); // customers enter until the opening
    write(this.label, label);
    write(this.time, (days ? this.t("days", { n: days }) + " " : "") + clock);
    this.time.title = this.at(d.template.opens_at);
    const near = [[10, "seconds"], [60, "minute"], [600, "minutes"], [3600, "hour"]].find(([s]) => left <= s);
    if (near) write(this.spoken, label + " " + this.t(near[1]));
  }
}

// Pressed is an element with one button and a line below it.
class Pressed extends Base {
  build(root) {
    const box = make("div", "box");
    this.button = make("button", "button", { type: "button" });
    this.status = make("p", "status");
    this.status.setAttribute("role", "status");
    this.spoken = make("span", "", { className: "away" });
    this.spoken.setAttribute("role", "status");
    this.button.addEventListener("click", () => { if (this.button.getAttribute("aria-disabled") !== "true") this.press(); });
    box.append(this.button, this.status, this.spoken);
    root.append(box);
  }

  // show draws the button. A button that is not enabled keeps the focus.
  show(state, text, { enabled = false, pressed, status = "", busy = false } = {}) {
    // Screen readers do not read a button's change, so it is announced; the first state is not.
    const before = this.getAttribute("state") ?? "loading";
    if (before !== state) write(this.spoken, before === "loading" ? "" : text);
    this.setAttribute("state", state);
    write(this.button, text);
    write(this.status, status);
    this.button.setAttribute("aria-disabled", String(!enabled));
    this.button.setAttribute("aria-busy", String(busy));
    pressed === undefined ? this.button.removeAttribute("aria-pressed") : this.button.setAttribute("aria-pressed", String(pressed));
  }
}

class Reserve extends Pressed {
  static needs = "reservation";

  render() {
    const d = this.drop, n = Number(this.getAttribute("minutes") ?? 10), channel = this.getAttribute("channel") ?? "app";
    if (d?.missing) return this.show("closed", this.t("closed"));
    if (d?.signedOut) return this.show("signed-out", this.t("signIn"), { enabled: true });
    if (!d?.template || d.reservation === undefined) return this.show("loading", this.t("loading"), { busy: true });
    const mine = d.reservation?.reminders.find((r) => r.channel === channel && r.minutes === n && r.state !== "cancelled");
    const status = this.error ? this.t(this.error) : "", busy = !!this.busy, late = d.left() <= n * 60_000;
    if (mine && !late) return this.show("reserved", this.t("reminded", { n }), { enabled: !busy, pressed: true, busy, status: status || this.t("stop") });
    if (mine) return this.show("sent", this.t(mine.state === "sent" ? "sent" : coming.includes(mine.state) ? "reminded" : "late", { n }), { status });
    const state = d.state();
    if (state !== "scheduled") return this.show(state, this.t(state));
    if (late) return this.show("late", this.t("late"), { status });
    this.show("ready", this.t("remind", { n }), { enabled: !busy, pressed: false, busy, status });
  }

  async press() {
    const d = this.drop, reserved = this.getAttribute("state") === "reserved";
    if (d.signedOut) return this.tell("signin");
    const reminder = { channel: this.getAttribute("channel") ?? "app", minutes: Number(this.getAttribute("minutes") ?? 10) };
    this.busy = true;
    this.error = "";
    this.render();
    try {
      d.reservation = reserved
        ? await d.client.call("DELETE", `/reservations/${d.id}?` + new URLSearchParams(reminder))
        : await d.client.call("POST", "/reservations", { key: crypto.randomUUID(), body: { template_id: d.id, shop_number: d.template.shop_number, reminders: [reminder] } });
      this.tell(reserved ? "cancelled" : "reserved", reminder);
    } catch (e) {
      if (["already_due", "drop_opened"].includes(e.code)) this.error = "late";
      else if (e.code === "channel_unavailable") this.error = "noReminder";
      else if (!["already_reserved", "not_reserved"].includes(e.code)) this.error = "failed";
      await d.readReservation();
    }
    this.busy = false;
    d.changed();
  }
}

// waiting draws the button of the waitlist; false if the drop has none that the user can join.
function waiting(element, d) {
  const busy = !!d.joining, status = d.waitError ? element.t(d.waitError) : "";
  if (d.offered()) {
    const at = element.at(d.wait.accept_until);
    element.show("offered", element.t("accept"), { enabled: !busy, busy, status: status || element.t(d.wait.shared ? "sharedUntil" : "keptUntil", { at }) });
  } else if (d.inLine()) {
    const words = [d.wait.ahead, d.wait.chance, "leave"].filter(Boolean).map((w) => element.t(w));
    element.show("waiting", element.t("joined"), { enabled: !busy, pressed: true, busy, status: status || words.join(" ") });
  } else if (d.template.waitlist !== "open" || d.wait?.state === "filled") return false;
  else if (d.wait?.state === "lapsed") element.show("lapsed", element.t("lapsed"));
  else if (d.wait?.state === "skipped") element.show("skipped", element.t("skipped"));
  else element.show("join", element.t("join"), { enabled: !busy, pressed: false, busy, status: status || element.t("comesBack") });
  return true;
}

class Waitlist extends Pressed {
  static needs = "wait";

  render() {
    const d = this.drop;
    if (d?.missing) return this.show("closed", this.t("closed"));
    if (d?.signedOut) return this.show("signed-out", this.t("signIn"), { enabled: true });
    if (!d?.template || d.wait === undefined && d.waits()) return this.show("loading", this.t("loading"), { busy: true });
    if (d.wait?.state === "filled") return this.show("filled", this.t("owned"));
    if (!waiting(this, d)) this.show("none", this.t("noWait"));
  }

  press() {
    const d = this.drop;
    if (d.signedOut) return this.tell("signin");
    if (d.offered()) return d.accept();
    d.join(!d.inLine());
  }
}

class Claim extends Pressed {
  static needs = "coupons";

  /** earn gets the pass of a protected drop for { token } or { phone_code }, after dropbell-pass. It returns whether there is a pass. */
  earn(evidence) { return this.drop.earn(evidence); }

  render() {
    const d = this.drop;
    if (d?.missing) return this.show("closed", this.t("closed"));
    if (d?.claim === "claiming" || d?.claim === "waiting") {
      return this.show("claiming", this.t("claiming"), { busy: true, status: d.claim === "waiting" ? this.t("waiting") : "" });
    }
    if (d?.signedOut) return this.show("signed-out", this.t("signIn"), { enabled: true });
    if (!d?.template || d.coupons === undefined) return this.show("loading", this.t("loading"), { busy: true });
    const state = d.state(), coupon = d.coupons[0];
    if (coupon && d.coupons.length >= d.template.per_user_limit) {
      return this.show("owned", this.t({ used: "used", locked: "locked", expired: "expired", suspended: "suspended" }[coupon.state] ?? "owned"));
    }
    if (d.door?.code_needed && ["scheduled", "open"].includes(state)) return this.show("code", this.t("code"), { enabled: true, status: d.claim === "codeWrong" ? this.t("codeWrong") : "" });
    if (state === "scheduled") {
      if (d.armed) return this.show("armed", this.t("armed"), { enabled: true, pressed: true, status: this.t("disarm") });
      if (d.left() <= 60_000) return this.show("arm", this.t("arm"), { enabled: true, pressed: false });
      return this.show("scheduled", this.t("opensAt", { at: this.at(d.template.opens_at) }));
    }
    if ((state === "sold_out" || d.claim === "sold_out") && d.wait !== undefined && waiting(this, d)) return;
    if (state !== "open") return this.show(state, this.t(state));
    if (d.claim === "limit_reached") return this.show("owned", this.t("limit_reached"));
    if (d.claim === "sold_out") return this.show("sold_out", this.t("sold_out"));
    this.show("open", this.t("claim"), { enabled: true, status: d.claim ? this.t({ failed: "failed", pass_required: "passNeeded", household_limit: "household" }[d.claim] ?? "refused") : coupon ? this.t("owned") : "" });
  }

  press() {
    const d = this.drop;
    if (d.signedOut) return this.tell("signin");
    const code = this.getAttribute("state") === "code" && prompt(this.t("code"));
    if (code) return d.unlock(code);
    if (this.getAttribute("state") === "code") return;
    if (this.getAttribute("state") === "offered") return d.accept();
    if (["join", "waiting"].includes(this.getAttribute("state"))) return d.join(!d.inLine());
    if (d.state() === "scheduled") return d.arm(!d.armed);
    d.start();
  }
}

// Draw enters a draw and leaves it, and shows what became of the entry. It keeps the first seal that it sees:
// a seal that is published later and differs is found out.
class Draw extends Pressed {
  build(root) {
    super.build(root);
    this.link = make("a", "link", { target: "_blank", rel: "noopener" });
    this.status.after(this.link);
  }

  begin() {
    this.id = this.getAttribute("template");
    this.card = this.entry = undefined;
    this.missing = this.out = this.busy = this.altered = false;
    this.error = "";
    this.render();
    if (this.id) this.read();
  }

  stop() { clearTimeout(this.polling); this.id = undefined; }

  async read() {
    const { id, client } = this;
    clearTimeout(this.polling);
    let failed = false;
    const card = await client.call("GET", `/draws/${id}/card`, { open: true }).catch((e) => { this.missing = e.code === "draw_not_found"; failed = true; });
    const entry = await client.call("GET", `/draws/${id}/entry`).catch((e) => {
      this.out = e.code === "unauthenticated";
      return e.code === "not_entered" ? null : undefined;
    });
    if (this.id !== id || this.client !== client) return; // it shows another draw by now
    this.card = card ?? this.card;
    if (card) this.missing = false; // the card is published a moment after the draw
    if (entry !== undefined) { this.entry = entry; this.out = false; }
    this.keep();
    this.render();
    if (!failed && (["done", "cancelled"].includes(card.state) || this.entry && card.state !== "offered" && ["waiting", "struck"].includes(this.entry.state))) return;
    const next = failed ? undefined : [card.opens_at, card.closes_at, card.round_at].map((at) => Date.parse(at) - client.now()).find((ms) => ms > 0);
    this.polling = setTimeout(() => this.read(), Math.min(next === undefined ? 3000 + some(7000) : next + 1000 + some(4000), 480_000));
  }

  keep() {
    if (!this.card?.seal) return;
    const kept = storage(`dropbell:seal:${this.client.base}:${this.id}`);
    if (!kept.get()) kept.set(this.card.seal);
    this.altered = (kept.get() ?? this.card.seal) !== this.card.seal;
    if (this.altered) this.tell("altered", { kept: kept.get(), seal: this.card.seal });
  }

  render() {
    const { card: c, entry: e } = this, drawn = c && ["drawn", "offered", "done"].includes(c.state);
    this.link.hidden = !drawn;
    if (drawn) {
      this.link.href = this.client.base.replace(/\/api\/v1$/, "") + `/draw/${this.id}` + (e ? "?ticket=" + e.ticket : "");
      write(this.link, this.t("check"));
    }
    if (this.altered) return this.show("altered", this.t("altered"));
    if (this.missing) return this.show("closed", this.t("closed"));
    if (!c) return this.show("loading", this.t("loading"), { busy: true });
    if (c.state === "cancelled") return this.show("cancelled", this.t("cancelled"));
    if (this.out) return this.show("signed-out", this.t("signIn"), { enabled: true });
    if (e === undefined) return this.show("loading", this.t("loading"), { busy: true });
    const status = this.error ? this.t(this.error) : "", now = this.client.now(), open = c.state === "open" && now < Date.parse(c.closes_at);
    if (e?.state === "struck") return this.show("struck", this.t("struck", { reason: e.reason ?? "" }));
    if (e?.state === "offered") return this.show("offered", this.t("acceptWon"), { enabled: !this.busy, busy: this.busy, status: status || this.t("acceptBy", { at: this.at(e.accept_until) }) });
    if (e?.state === "lapsed") return this.show("lapsed", this.t("lapsedWon"));
    if (e?.state === "won") return this.show("won", this.t("won"));
    if (e?.state === "waiting") return this.show("lost", this.t("lost"));
    if (open && e) return this.show("entered", this.t("entered"), { enabled: !this.busy, pressed: true, busy: this.busy, status: status || this.t("leaveDraw", { at: this.at(c.closes_at) }) });
    if (!open) return this.show(e && !drawn ? "sealing" : "closed", this.t(e && !drawn ? "sealing" : "closed"));
    if (now < Date.parse(c.opens_at)) return this.show("scheduled", this.t("entersAt", { at: this.at(c.opens_at) }));
    this.show("ready", this.t("enter"), { enabled: !this.busy, pressed: false, busy: this.busy, status });
  }

  async press() {
    if (this.out) return this.tell("signin");
    const state = this.getAttribute("state"), leaving = state === "entered";
    this.busy = true;
    this.error = "";
    this.render();
    try {
      const answer = state === "offered" ? await this.client.call("POST", `/draws/${this.id}/acceptance`)
        : leaving ? await this.client.call("DELETE", `/draws/${this.id}/entry`) : await this.enter();
      this.entry = leaving ? null : answer;
      if (answer || leaving) this.tell(leaving ? "left" : state === "offered" ? "accepted" : "entered", leaving ? {} : { receipt: answer.receipt, ticket: answer.ticket });
    } catch (e) {
      this.error = { unauthenticated: "", not_eligible: "notYours", pass_required: "passNeeded" }[e.code] ?? "failed";
    }
    this.busy = false;
    await this.read();
  }

  // enter enters the draw, with a pass if the drop is protected.
  async enter() {
    const put = (body) => this.client.call("PUT", `/draws/${this.id}/entry`, body && { body });
    try {
      return await put(this.pass && { pass: this.pass });
    } catch (e) {
      if (e.code !== "pass_required" || !await this.earn()) throw e;
      return put({ pass: this.pass });
    }
  }

  /** earn gets the pass of a protected draw for { token } or { phone_code }, after dropbell-pass. It returns whether there is a pass. */
  async earn(evidence) {
    const answer = await passFor(this.client, this.id, evidence);
    this.pass = answer.pass;
    if (!answer.pass && answer.ways) this.tell("pass", { ways: answer.ways });
    return !!answer.pass;
  }
}

const bytesOf = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
// browserId is the name that the server gives a browser.
const browserId = async (endpoint) => Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint))).slice(0, 16), (b) => b.toString(16).padStart(2, "0")).join("");

// Push turns push messages to this browser on and off for the user. They are on if the
// browser has a subscription with the server's key, and the server knows it as this user's.
class Push extends Pressed {
  begin() {
    this.reading = {};
    this.error = "";
    this.state = "loading";
    this.render();
    this.read();
    this.shown = () => { if (!document.hidden && !this.busy) this.read(); }; // the permission may have been changed in the settings
    document.addEventListener("visibilitychange", this.shown);
  }

  stop() {
    this.reading = undefined;
    if (this.shown) document.removeEventListener("visibilitychange", this.shown);
  }

  get worker() { return this.getAttribute("worker") ?? "/dropbell-push.js"; }
  get scope() { return this.getAttribute("scope") ?? "/dropbell-push/"; }

  // held is the browser's subscription; undefined = none.
  async held() { return await (await navigator.serviceWorker.getRegistration(this.scope))?.pushManager.getSubscription() ?? undefined; }

  async read() {
    const mine = this.reading;
    let state;
    try { state = await this.find(); } catch (e) {
      state = { unauthenticated: "signed-out", channel_unavailable: "unavailable" }[e.code] ?? "failed";
    }
    if (mine !== this.reading) return; // the element was restarted meanwhile
    this.state = state;
    this.render();
  }

  async find() {
    if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) return navigator.standalone === false ? "ios" : "unsupported";
    const known = await this.client.call("GET", "/browsers");
    this.key = known.public_key;
    if (Notification.permission === "denied") return "denied";
    const held = await this.held();
    if (!held || Notification.permission !== "granted" || this.stale(held)) return "off";
    const id = await browserId(held.endpoint);
    return known.browsers.some((b) => b.id === id) ? "on" : "off";
  }

  // stale reports whether the subscription was made with another key than the server has now.
  stale(held) { const key = held.options?.applicationServerKey; return !!key && base64(key) !== this.key; }

  render() {
    const busy = !!this.busy, status = this.error ? this.t(this.error) : "";
    switch (this.state) {
      case "on": return this.show("on", this.t("pushed"), { enabled: !busy, pressed: true, busy, status: status || this.t("unpush") });
      case "off": return this.show("off", this.t("push"), { enabled: !busy, pressed: false, busy, status });
      case "signed-out": return this.show("signed-out", this.t("signIn"), { enabled: true });
      case "failed": return this.show("failed", this.t("push"), { enabled: !busy, busy, status: this.t("failed") });
      case "denied": return this.show("denied", this.t("denied"), { status: this.t("allow") });
      case "ios": case "unsupported": return this.show(this.state, this.t("noPush"), { status: this.t(this.state) });
      case "unavailable": return this.show("unavailable", this.t("noPush"));
    }
    this.show("loading", this.t("loading"), { busy: true });
  }

  async press() {
    if (this.state === "signed-out") return this.tell("signin");
    this.busy = true;
    this.error = "";
    this.render();
    const done = { on: "unsubscribed", off: "subscribed" }[this.state];
    try {
      if (this.state === "on") await this.turnOff();
      else if (this.state === "off") await this.turnOn();
    } catch { this.error = "failed"; }
    this.busy = false;
    const before = this.state;
    await this.read();
    if (done && !this.error && this.state !== before && this.state !== "denied") this.tell(done);
  }

  // turnOn asks first: browsers show their question only right after a press.
  async turnOn() {
    if (await Notification.requestPermission() !== "granted") return;
    await navigator.serviceWorker.register(this.worker, { scope: this.scope });
    const { pushManager } = await activated(await navigator.serviceWorker.getRegistration(this.scope));
    const held = await pushManager.getSubscription();
    if (held && this.stale(held)) await held.unsubscribe();
    const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(this.key) });
    await this.client.call("PUT", "/browsers", { body: { endpoint: made.endpoint, p256dh: base64(made.getKey("p256dh")), auth: base64(made.getKey("auth")) } });
  }

  // turnOff tells the server first: a subscription that only the browser knows gets nothing.
  async turnOff() {
    const held = await this.held();
    if (!held) return;
    await this.client.call("DELETE", "/browsers/" + await browserId(held.endpoint));
    await held.unsubscribe();
  }
}

// activated waits until the registration's worker can take a subscription. Pages are outside
// its scope, so navigator.serviceWorker.ready may never resolve.
async function activated(registration) {
  const worker = registration.installing ?? registration.waiting;
  if (!registration.active && worker) {
    await new Promise((done, fail) => worker.addEventListener("statechange", () => {
      if (worker.state === "activated") done();
      if (worker.state === "redundant") fail(new Error("the service worker was not installed"));
    }));
  }
  return registration;
}

class Inbox extends Base {
  messages = [];
  items = new Map(); // elements by id of the message

  build(root) {
    const box = make("section", "inbox"), head = make("div", "head");
    this.heading = make("h2", "heading");
    this.count = make("span", "count");
    this.readAll = make("button", "button", { type: "button", className: "quiet" });
    this.list = make("ul", "list");
    this.more = make("button", "button", { type: "button", className: "quiet", hidden: true });
    this.status = make("p", "status");
    this.status.setAttribute("role", "status");
    this.heading.id = "title";
    box.setAttribute("aria-labelledby", "title");
    this.readAll.addEventListener("click", () => this.markRead());
    this.more.addEventListener("click", () => this.load(this.next));
    head.append(this.heading, this.count, this.readAll);
    box.append(head, this.list, this.more, this.status);
    root.append(box);
  }

  begin() {
    this.stopping = new AbortController();
    this.messages = [];
    this.items.clear();
    this.loaded = false;
    this.render();
    // The inbox is read after the stream has begun, so that no message falls in between, but
    // after 2 s at the latest: a proxy may hold back the stream.
    this.soon = setTimeout(() => this.load(), 2000);
    this.follow(this.stopping.signal);
  }

  stop() {
    clearTimeout(this.soon);
    this.stopping?.abort();
  }

  async load(before) {
    const { signal } = this.stopping;
    try {
      const page = await this.client.call("GET", `/inbox?limit=${Number(this.getAttribute("limit")) || 20}` + (before ? "&before=" + encodeURIComponent(before) : ""), { signal });
      if (signal.aborted) return;
      this.unread = page.unread;
      if (before || !this.loaded) this.next = page.next;
      this.loaded = true;
      this.add(page.items);
      write(this.status, "");
    } catch (e) {
      if (signal.aborted) return;
      write(this.status, this.t(e.code === "unauthenticated" ? "signIn" : "failed"));
      if (e.code !== "unauthenticated") setTimeout(() => { if (!signal.aborted) this.load(before); }, some(20_000));
    }
  }

  add(items) {
    for (const m of items) {
      const at = this.messages.findIndex((x) => x.id === m.id);
      at < 0 ? this.messages.push(m) : this.messages[at] = m;
    }
    this.messages.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
    this.render();
  }

  async markRead() {
    const through = this.messages[0]?.at;
    if (!through) return;
    try {
      await this.client.call("POST", "/inbox/read", { body: { through }, key: crypto.randomUUID() });
      for (const m of this.messages) m.read = true;
      await this.load();
      this.render();
    } catch { write(this.status, this.t("failed")); }
  }

  // follow receives messages as they are delivered, and after a reconnection the messages
  // in between. The server tells each client its reconnection delay: when a server process
  // ends, all its clients reconnect.
  async follow(signal) {
    let last = "", retry = 0;
    for (let attempt = 0; !signal.aborted; attempt++) {
      let asked = 0;
      const limit = limited(silence, signal);
      try {
        const answer = await this.client.once("GET", "/inbox/stream", { signal: limit.signal, headers: last ? { "Last-Event-ID": last } : {} });
        const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (let part; !(part = await lines.read()).done;) {
          limit.touch();
          rest += part.value;
          for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
            const event = {};
            for (const line of rest.slice(0, end).split("\n")) {
              const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
              if (name) event[name] = (event[name] ? event[name] + "\n" : "") + value;
            }
            if (event.id) last = event.id;
            if (event.retry) retry = Number(event.retry) || 0;
            attempt = 0;
            if (event.event === "ready") this.begun();
            if (event.event === "message") this.arrived(JSON.parse(event.data));
          }
        }
      } catch (e) {
        if (signal.aborted) return;
        if (attempt === 0 && !this.loaded) this.begun();
        if (e.code === "unauthenticated") return;
        asked = e.after ?? 0;
      }
      await sleep(Math.max(retry, asked + some(Math.min(1000 * 2 ** attempt, 30_000))));
    }
  }

  begun() {
    clearTimeout(this.soon);
    this.load();
  }

  arrived(message) {
    if (this.messages.some((m) => m.id === message.id)) return;
    if (!message.read) this.unread = (this.unread ?? 0) + 1;
    this.add([message]);
    write(this.status, this.t("fresh", { text: message.title ?? "" }));
    this.tell("message", message);
  }

  render() {
    write(this.heading, this.t("inbox"));
    write(this.count, this.unread ? this.t("unread", { n: this.unread >= 100 ? "99+" : this.unread }) : "");
    write(this.readAll, this.t("read"));
    write(this.more, this.t("older"));
    this.readAll.hidden = !this.unread;
    this.more.hidden = !this.next;
    this.setAttribute("unread", this.unread ?? 0);
    if (this.loaded && this.messages.length === 0) return this.list.replaceChildren(make("li", "empty", { textContent: this.t("none") }));
    const items = this.messages.map((m) => {
      const known = this.items.get(m.id), look = m.read + this.locale;
      if (known?.look === look) return known.item;
      const item = make("li", m.read ? "message" : "message unread"), time = make("time", "at", { textContent: this.at(m.at), dateTime: m.at });
      item.append(make("p", "title", { textContent: m.title ?? m.template_name ?? "" }), make("p", "text", { textContent: m.text ?? "" }), time);
      if (/^https?:/.test(m.claim_url ?? "")) item.append(" ", make("a", "link", { href: m.claim_url, textContent: this.t("go") }));
      this.items.set(m.id, { item, look });
      return item;
    });
    // Elements that stay in their place keep the focus.
    items.forEach((item, i) => { if (this.list.children[i] !== item) this.list.insertBefore(item, this.list.children[i] ?? null); });
    while (this.list.children.length > items.length) this.list.lastElementChild.remove();
  }
}

for (const [name, element] of [["countdown", Countdown], ["reserve", Reserve], ["claim", Claim], ["waitlist", Waitlist], ["draw", Draw], ["push", Push], ["inbox", Inbox]]) {
  if (!customElements.get("dropbell-" + name)) customElements.define("dropbell-" + name, element);
}
