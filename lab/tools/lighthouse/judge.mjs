// Judges pages as Lighthouse does for a phone, and prints a JSON line for each:
// its marks of 0 to 100 and the audits that cost points.
//
// node judge.mjs NODE_MODULES CHROMIUM COOKIE URL...
//
// The network is simulated, so that the figures depend on the pages and on the
// number of bytes. The processor is not slowed down any further: how fast it is
// differs between machines, and marks would differ with it.
import { pathToFileURL } from "node:url";
import path from "node:path";

const [modules, chromePath, cookie, ...urls] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(modules, name)).href);
const { default: lighthouse } = await load("lighthouse/core/index.js");
const { launch } = await load("chrome-launcher/dist/index.js");

const chrome = await launch({ chromePath, chromeFlags: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], logLevel: "silent" });
try {
  for (const url of urls) {
    const { lhr } = await lighthouse(url, { port: chrome.port, logLevel: "error", output: "json", extraHeaders: cookie ? { Cookie: cookie } : {} }, {
      extends: "lighthouse:default",
      settings: {
        formFactor: "mobile",
        throttlingMethod: "simulate",
        throttling: { rttMs: 150, throughputKbps: 1638.4, requestLatencyMs: 562.5, downloadThroughputKbps: 1474.56, uploadThroughputKbps: 675, cpuSlowdownMultiplier: 1 },
        onlyCategories: ["performance", "accessibility", "best-practices", "seo"],
        // A page whose live connection stays open would never count as loaded. The
        // tests in the browser fail on every complaint of the browser's console, of
        // which the blocked connection is one.
        blockedUrlPatterns: ["*/live?*", "*/cockpit/live*"],
        // Pages of the console are for staff, and ask robots to stay away.
        skipAudits: ["is-crawlable", "errors-in-console", "full-page-screenshot", "screenshot-thumbnails", "final-screenshot"],
        maxWaitForLoad: 45000,
      },
    });
    const marks = {}, lost = [];
    for (const [name, category] of Object.entries(lhr.categories)) {
      marks[name] = category.score === null ? null : Math.round(category.score * 100);
      for (const ref of category.auditRefs) {
        const audit = lhr.audits[ref.id];
        if (ref.weight > 0 && audit.score !== null && audit.score < 0.9) lost.push(`${ref.id}: ${audit.displayValue ?? audit.title}`);
      }
    }
    console.log(JSON.stringify({ url, marks, lost, error: lhr.runtimeError?.message ?? "" }));
  }
} finally {
  await chrome.kill();
}
