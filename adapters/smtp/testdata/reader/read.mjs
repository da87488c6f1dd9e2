// Reads mails with libraries of others: `node read.mjs NODE_MODULES`. Standard input is JSON,
// {"record": the TXT record of the key or "", "mails": [base64, …]}; standard output is what the
// mails say and whether their signature holds.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";

const require = createRequire(pathToFileURL(path.join(process.argv[2], "x.js")));
const PostalMime = require("postal-mime").default ?? require("postal-mime");
const { dkimVerify } = require("mailauth/lib/dkim/verify");

const { record, mails } = JSON.parse(await text(process.stdin));
const read = [];
for (const mail of mails) {
  const raw = Buffer.from(mail, "base64");
  const { subject, from, replyTo, to, text: plain, html, attachments } = await PostalMime.parse(raw);
  let signature = "";
  if (record) {
    const { results } = await dkimVerify(raw, { resolver: async () => [[record]] });
    signature = results.map((r) => r.status.result + (r.status.comment ? ` (${r.status.comment})` : "")).join();
  }
  read.push({ subject, from: from.address, sender: from.name, reply: replyTo?.[0]?.address ?? "", name: to[0].name, to: to[0].address, text: plain ?? "", html: html ?? "", attachments: attachments.length, signature });
}
process.stdout.write(JSON.stringify(read));
