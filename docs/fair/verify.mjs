// Checks a draw of dropbell-draw/1 without any code of Dropbell: node verify.mjs draw.json
// It needs npm's @noble/curves (npm ci). The steps are those of docs/fair.md.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { ed25519 } from '@noble/curves/ed25519.js'

const QUICKNET = '83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a'
const sha = (...parts) => parts.reduce((h, p) => h.update(p), createHash('sha256')).digest()
const hex = (text) => Buffer.from(text, 'hex')
const u64 = (n) => { const b = Buffer.alloc(8); b.writeBigUInt64BE(BigInt(n)); return b }
const must = (ok, what) => { if (!ok) { console.error('WRONG ' + what); process.exit(1) } console.log('ok    ' + what) }

const draw = JSON.parse(readFileSync(process.argv[2]))
const publicKey = Buffer.from(draw.key.split('+').slice(2).join('+'), 'base64').subarray(1)

function open(note, kind) {
  const at = note.lastIndexOf('\n\n') + 1, text = note.slice(0, at)
  const signature = Buffer.from(note.slice(at).trim().split(' ').pop(), 'base64').subarray(4)
  must(ed25519.verify(signature, Buffer.from(text), publicKey) && text.startsWith(`dropbell-draw/1 ${kind}\n`), `the ${kind} is signed`)
  const fields = { text, struck: [], doors: [] }
  for (const line of text.trim().split('\n').slice(1)) {
    const [key, value] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]
    key === 'struck' || key === 'door' ? fields[key === 'door' ? 'doors' : key].push(value.split(' ')[0]) : (fields[key] = value)
  }
  return fields
}
function root(leaves) {
  if (leaves.length < 2) return leaves[0] ?? sha('')
  let half = 1; while (half * 2 < leaves.length) half *= 2
  return sha(Buffer.of(1), root(leaves.slice(0, half)), root(leaves.slice(half)))
}
const card = open(draw.cards.at(-1), 'card'), seal = open(draw.seal, 'seal'), result = open(draw.result, 'result')
must(seal.card === sha(card.text).toString('hex') && result.seal === sha(seal.text).toString('hex'), 'the seal names the card, and the result the seal')

const list = Buffer.concat((draw.list ?? []).map((chunk) => Buffer.from(chunk, 'base64')))
const rows = Array.from({ length: list.length / 49 }, (_, i) => list.subarray(i * 49, i * 49 + 49))
must(rows.every((r) => card.doors.length ? card.doors.includes(String(r[48])) : r[48] >= 1 && r[48] <= Number(card['max-weight'])), 'the weights are those of the card')
must(rows.every((r, i) => i === 0 || Buffer.compare(rows[i - 1].subarray(0, 16), r.subarray(0, 16)) < 0), 'the tickets rise')
must(rows.length === Number(seal.entries) && root(rows.map((r) => sha(Buffer.of(0), u64(card.drop), r))).toString('hex') === seal.root, `the root of ${rows.length} tickets is the sealed root`)

const row = draw.inclusion && Buffer.concat([hex(draw.inclusion.ticket), hex(draw.inclusion.commitment), Buffer.of(draw.inclusion.weight)])
const climb = ({ position: at, path }, size, hash) => path.reduce((h, other) => { // RFC 6962: at and size are of the level above
  const left = at % 2 === 1 || at + 1 === size
  if (left) while (at % 2 === 0 && at > 0) { at /= 2; size = Math.ceil(size / 2) }
  at >>= 1; size = Math.ceil(size / 2)
  return left ? sha(Buffer.of(1), hex(other), h) : sha(Buffer.of(1), h, hex(other))
}, hash)
if (row) must(climb(draw.inclusion, rows.length, sha(Buffer.of(0), u64(card.drop), row)).toString('hex') === seal.root, `the path of the ticket ${draw.inclusion.ticket} leads to the sealed root`)

const [kind, detail] = card.source.split(' ')
const bls = bls12_381.shortSignatures
const message = bls.hash(sha(u64(seal.round)), 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_')
must(bls.verify(hex(result.evidence), message, hex(kind === 'drand' ? QUICKNET : detail)), `the signature of round ${seal.round} of ${kind} verifies`)
must(sha(hex(result.evidence)).toString('hex') === result.randomness, 'the random value is the hash of the signature')
must(sha('dropbell-draw/1', hex(seal.root), hex(result.randomness)).toString('hex') === result.seed, 'the seed follows')

const score = (r) => Array.from({ length: r[48] }, (_, k) => sha(hex(result.seed), r.subarray(0, 16), Buffer.of(k)).toString('hex')).sort()[0]
const scores = rows.filter((r) => !result.struck.includes(r.toString('hex', 0, 16))).map(score).sort().slice(0, Number(card.stock))
must(scores.length === Number(result.won) && (scores.at(-1) ?? '0'.repeat(64)) === result.cutoff, `${result.won} tickets win, with the cutoff ${result.cutoff}`)
