// The page of a draw: the button that recomputes the draw in this browser. The steps are those of
// docs/fair.md. Signatures of notes are verified by WebCrypto, rounds by @noble/curves, unmodified.
// They are loaded when the button is pressed.
let bls12_381, sha256;

const QUICKNET = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a";
const ROW = 49, CHUNK = 65536;
const utf8 = new TextEncoder();
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const unbase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const sha = (...parts) => { const h = sha256.create(); for (const p of parts) h.update(p); return h.digest(); };
const u64 = (n) => { const b = new Uint8Array(8); new DataView(b.buffer).setBigUint64(0, BigInt(n)); return b; };
const breathe = () => new Promise((done) => setTimeout(done)); // lets the page draw
const less = (a, b) => { for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i] < b[i]; return false; };
// kept returns the hash of the first seal of the draw that this browser saw. An operator who shows another seal later is found out by it.
const kept = (base, seal) => { try { const name = `dropbell:seal:${base}`; if (!localStorage.getItem(name)) localStorage.setItem(name, seal); return localStorage.getItem(name); } catch { return seal; } };
function must(ok, why) { if (!ok) throw new Error(why); }

// open verifies a signed text and returns its fields.
async function open(signed, kind, key) {
  const at = signed.lastIndexOf("\n\n") + 1, text = signed.slice(0, at);
  const signature = unbase64(signed.slice(at).trim().split(" ").pop()).slice(4);
  must(await crypto.subtle.verify("Ed25519", key, signature, utf8.encode(text)), kind);
  must(text.startsWith(`dropbell-draw/1 ${kind}\n`), kind);
  const fields = { hash: hex(sha(utf8.encode(text))), struck: [] };
  for (const line of text.trim().split("\n").slice(1)) {
    const space = line.indexOf(" "), name = line.slice(0, space), value = line.slice(space + 1);
    if (name === "struck") fields.struck.push(value.split(" ")[0]); else fields[name] = value;
  }
  return fields;
}

async function load(address, as) {
  const answer = await fetch(address);
  must(answer.ok, `${address}: ${answer.status}`);
  return answer[as]();
}

// download returns all rows of the list.
async function download(base, entries, progress) {
  const rows = new Uint8Array(entries * ROW);
  for (let i = 0, at = 0; at < rows.length; i++) {
    const chunk = new Uint8Array(await load(`${base}/list?chunk=${i}`, "arrayBuffer"));
    must(chunk.length > 0 && at + chunk.length <= rows.length, `chunk ${i}`);
    rows.set(chunk, at);
    at += chunk.length;
    progress(at / rows.length);
  }
  return rows;
}

// root is the Merkle tree hash of RFC 6962.
async function root(rows, drop, progress) {
  let n = rows.length / ROW;
  if (n === 0) return sha(new Uint8Array(0));
  const level = new Uint8Array(n * 32), leaf = new Uint8Array(9 + ROW);
  leaf.set(u64(drop), 1);
  for (let i = 0; i < n; i++) {
    const row = rows.subarray(i * ROW, (i + 1) * ROW);
    must(i === 0 || less(rows.subarray((i - 1) * ROW, (i - 1) * ROW + 16), row.subarray(0, 16)), `row ${i}`);
    leaf.set(row, 9);
    level.set(sha256(leaf), i * 32);
    if (i % 20000 === 0) { progress(i / n); await breathe(); }
  }
  const node = new Uint8Array(65);
  node[0] = 1;
  for (; n > 1; n = Math.ceil(n / 2)) {
    for (let i = 0; i < n; i += 2) {
      let above = level.slice(i * 32, (i + 1) * 32); // the last one of an odd number stays
      if (i + 1 < n) { node.set(level.subarray(i * 32, (i + 2) * 32), 1); above = sha256(node); }
      level.set(above, i * 16);
    }
    await breathe();
  }
  return level.slice(0, 32);
}

function score(seed, ticket, weight) {
  const input = new Uint8Array(49);
  input.set(seed);
  input.set(ticket, 32);
  let least;
  for (let k = 0; k < weight; k++) { input[48] = k; const h = sha256(input); if (!least || less(h, least)) least = h; }
  return least;
}

// randomness returns the random value that the evidence proves.
function randomness(card, seal, result) {
  const [kind, detail] = [card.source.split(" ")[0], card.source.slice(card.source.indexOf(" ") + 1)];
  if (kind === "commit") {
    const secret = unhex(result.evidence);
    must(hex(sha(secret)) === detail, kind);
    return secret;
  }
  if (kind === "public") return sha(utf8.encode(result.evidence));
  const bls = bls12_381.shortSignatures;
  const message = bls.hash(sha(u64(seal.round)), "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_");
  must(result.evidence.length === 96 && bls.verify(unhex(result.evidence), message, unhex(kind === "drand" ? QUICKNET : detail)), `round ${seal.round}`);
  return sha(unhex(result.evidence));
}

// check recomputes the draw. say is called with each finding, by its name.
async function check(base, ticket, say, progress) {
  [{ bls12_381 }, { sha256 }] = await Promise.all([import("@noble/curves/bls12-381.js"), import("@noble/hashes/sha2.js")])
    .catch(() => { throw new Error("WebCrypto"); }); // the browser has no modules, or lost the network
  const proof = await load(`${base}/proof`, "json");
  const key = await crypto.subtle.importKey("raw", unbase64(proof.key.split("+").slice(2).join("+")).slice(1), "Ed25519", false, ["verify"]);
  const [card, seal, result] = [await open(proof.cards.at(-1), "card", key), await open(proof.seal, "seal", key), await open(proof.result, "result", key)];
  must(kept(base, seal.hash) === seal.hash, "seal");
  say("signed");
  must(seal.card === card.hash && result.seal === seal.hash && card.drop === seal.drop && card.version === String(proof.cards.length), "card");
  say("chain");
  const rows = await download(base, Number(seal.entries), (part) => progress(part / 3));
  must(hex(await root(rows, card.drop, (part) => progress((1 + part) / 3))) === seal.root, "root");
  say("list");
  const random = randomness(card, seal, result);
  must(hex(random) === result.randomness, "randomness");
  say("random");
  const seed = sha(utf8.encode("dropbell-draw/1"), unhex(seal.root), random);
  must(hex(seed) === result.seed, "seed");
  say("seed");
  let won = 0, last = "0".repeat(64), mine = null, taking = 0;
  for (let i = 0, n = rows.length / ROW; i < n; i++) {
    const row = rows.subarray(i * ROW, (i + 1) * ROW), name = hex(row.subarray(0, 16));
    const s = hex(score(seed, row.subarray(0, 16), row[48])), out = result.struck.includes(name);
    if (!out) taking++;
    if (!out && s <= result.cutoff) { won++; if (s > last) last = s; }
    if (name === ticket) mine = { won: !out && s <= result.cutoff, score: s };
    if (i % 20000 === 0) { progress((2 + i / n) / 3); await breathe(); }
  }
  must(won === Number(result.won) && last === result.cutoff && won === Math.min(Number(card.stock), taking), "cutoff");
  say("winners");
  if (ticket) say(mine ? (mine.won ? "won" : "lost") : "missing");
}

const section = document.querySelector("[data-draw]");
if (section?.dataset.seal) kept(section.dataset.draw, section.dataset.seal);
const button = section?.querySelector("[data-check]");
if (button) {
  const bar = section.querySelector("progress"), list = section.querySelector("[data-findings]");
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    bar.hidden = list.hidden = false;
    for (const item of list.children) item.hidden = true;
    const show = (name) => { list.querySelector(`[data-finding="${name}"]`).hidden = false; };
    try {
      must(globalThis.crypto?.subtle, "WebCrypto");
      await check(section.dataset.draw, (section.querySelector("[name=ticket]")?.value ?? "").trim().toLowerCase(), show, (part) => { bar.value = part; });
      show("sound");
    } catch (wrong) {
      show(wrong instanceof DOMException || wrong.message === "WebCrypto" ? "unable" : "wrong");
      list.querySelector("[data-why]").textContent = wrong.message;
    }
    bar.hidden = true;
    button.disabled = false;
  });
  if (location.hash === "#check") button.click();
}
