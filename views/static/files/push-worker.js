// The service worker of the console: shows pushed notifications, and opens the page
// of a notification. It handles no requests of pages.
"use strict";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (e) => e.waitUntil(self.clients.claim()));

// A browser shows a notice of its own for a push that shows none.
self.addEventListener("push", (e) => {
  let note = {};
  try { note = e.data?.json() ?? {}; } catch { /* not ours */ }
  const shown = { body: note.body ?? "", data: { url: note.url ?? "/alerts" } };
  if (note.tag) Object.assign(shown, { tag: note.tag, renotify: true });
  e.waitUntil(self.registration.showNotification(note.title || "Dropbell", shown));
});

self.addEventListener("notificationclick", (e) => {
  e.notification.close();
  const url = new URL(e.notification.data?.url ?? "/alerts", self.location.origin);
  if (url.origin !== self.location.origin) return; // only the console's own pages
  e.waitUntil((async () => {
    for (const page of await self.clients.matchAll({ type: "window", includeUncontrolled: true })) {
      if (page.url === url.href) return page.focus();
    }
    return self.clients.openWindow(url.href);
  })());
});
