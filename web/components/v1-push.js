// The service worker of <dropbell-push>: shows push messages of Dropbell, and opens the link of
// a message that is clicked. A shop serves it from its own origin, or imports it into a worker
// of its own: importScripts("https://drops.example.com/components/v1-push.js"). It handles no
// requests of pages. self.dropbell may name icon, badge, title and url before it is imported.
"use strict";

// Browsers show a notice of their own for a push that shows none.
self.addEventListener("push", (e) => {
  const shop = self.dropbell ?? {};
  let note = {};
  try { note = e.data?.json() ?? {}; } catch { /* not from Dropbell */ }
  const shown = { body: note.body ?? "", icon: shop.icon, badge: shop.badge, data: { dropbell: note.url ?? shop.url ?? "/" } };
  if (note.tag) Object.assign(shown, { tag: note.tag, renotify: true });
  e.waitUntil(self.registration.showNotification(note.title || shop.title || self.location.hostname, shown));
});

// The link is the reader's own: the server counts that it was opened, and leads to the drop.
self.addEventListener("notificationclick", (e) => {
  const link = e.notification.data?.dropbell;
  if (link === undefined) return; // a notification of the shop's own
  e.notification.close();
  const url = new URL(link, self.location.origin);
  if (!/^https?:$/.test(url.protocol)) return;
  e.waitUntil((async () => {
    for (const page of await self.clients.matchAll({ type: "window", includeUncontrolled: true })) {
      if (page.url === url.href) return page.focus();
    }
    return self.clients.openWindow(url.href);
  })());
});
