package consoletest

import (
	"context"
	"sync"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"
)

// Allow answers the browser's question about a permission, such as "notifications",
// for all pages of the tab.
func (b *Tab) Allow(permission string, setting browser.PermissionSetting) {
	b.Helper()
	b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: permission},
			Setting: setting, BrowserContextID: chromedp.FromContext(ctx).BrowserContextID})
		return chromedp.Void{}, err
	})
}

// Before has every page execute the script before its own.
func (b *Tab) Before(script string) {
	b.Helper()
	b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	})
}

// Workers follows the service workers that pages of the tab register.
type Workers struct {
	b     *Tab
	mu    sync.Mutex
	known map[string]serviceworker.RegistrationID // by scope
	// active are the registrations with an active worker; the browser drops a message for
	// any other.
	active map[serviceworker.RegistrationID]bool
}

// Workers begins to follow them.
func (b *Tab) Workers() *Workers {
	b.Helper()
	w := &Workers{b: b, known: map[string]serviceworker.RegistrationID{}, active: map[serviceworker.RegistrationID]bool{}}
	if err := chromedp.Listen(b.ctx, func(event any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch e := event.(type) {
		case *serviceworker.EventWorkerRegistrationUpdated:
			for _, r := range e.Registrations {
				w.known[r.ScopeURL] = r.RegistrationID
			}
		case *serviceworker.EventWorkerVersionUpdated:
			for _, v := range e.Versions {
				w.active[v.RegistrationID] = w.active[v.RegistrationID] || v.Status == serviceworker.VersionStatusActivated
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, serviceworker.Enable, cdp.Empty{})
		return chromedp.Void{}, err
	})
	return w
}

// Push delivers a message to the service worker of the scope as the browser does when
// its push service has one.
func (w *Workers) Push(origin, scope, data string) {
	w.b.Helper()
	var id serviceworker.RegistrationID
	Within(w.b.T, "an active service worker", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		id = w.known[origin+scope]
		return w.active[id]
	})
	w.b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: origin, RegistrationID: id, Data: data})
		return chromedp.Void{}, err
	})
}
