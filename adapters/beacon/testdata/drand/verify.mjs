// Judges rounds with npm's drand-client: each argument is a public key, a round and a signature, separated by colons. For each it prints
// the random value, or why the client refuses the round.
import { fetchBeacon } from "drand-client";

for (const argument of process.argv.slice(2)) {
  const [publicKey, round, signature] = argument.split(":");
  const info = { public_key: publicKey, period: 3, genesis_time: 1692803367, hash: "", groupHash: "", schemeID: "bls-unchained-g1-rfc9380", metadata: { beaconID: "quicknet" } };
  const digest = await crypto.subtle.digest("SHA-256", Buffer.from(signature, "hex"));
  const beacon = { round: Number(round), signature, randomness: Buffer.from(digest).toString("hex") };
  const client = { options: { disableBeaconVerification: false, noCache: true }, chain: () => ({ info: async () => info }), get: async () => beacon, latest: async () => beacon };
  console.log(await fetchBeacon(client, beacon.round).then((b) => b.randomness, (wrong) => `refused: ${wrong.message}`));
}
