package consoletest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/backgroundservice"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// Allow answers the browser's permission prompt, such as for "notifications", for all pages of the
// tab.
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

// pushMessages is the browser's name of its records about push messages.
const pushMessages backgroundservice.ServiceName = "pushMessaging"

// Workers follows the service workers that pages of the tab register.
type Workers struct {
	b     *Tab
	mu    sync.Mutex
	known map[string]serviceworker.RegistrationID // by scope
	// active are the registrations with an active worker. The browser drops a message for any other
	// registration.
	active map[serviceworker.RegistrationID]bool
	// completed counts the messages that the workers have handled to their end.
	completed int
}

// Workers begins to track the tab's service workers.
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
		case *backgroundservice.EventBackgroundServiceEventReceived:
			if e.BackgroundServiceEvent.EventName == "Push event completed" {
				w.completed++
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		if _, err := chromedp.Call(ctx, serviceworker.Enable, cdp.Empty{}); err != nil {
			return chromedp.Void{}, err
		}
		if _, err := chromedp.Call(ctx, backgroundservice.SetRecording, backgroundservice.SetRecordingParams{ShouldRecord: true, Service: pushMessages}); err != nil {
			return chromedp.Void{}, err
		}
		_, err := chromedp.Call(ctx, backgroundservice.StartObserving, backgroundservice.StartObservingParams{Service: pushMessages})
		return chromedp.Void{}, err
	})
	return w
}

// Push delivers a message to the service worker of the scope like the browser does for its push
// service, and returns after the worker has handled it. A page that lists notifications while a
// notification is being shown makes the browser lose it.
func (w *Workers) Push(origin, scope, data string) {
	w.b.Helper()
	var id serviceworker.RegistrationID
	before := 0
	Within(w.b.T, "an active service worker", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		id, before = w.known[origin+scope], w.completed
		return w.active[id]
	})
	w.b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: origin, RegistrationID: id, Data: data})
		return chromedp.Void{}, err
	})
	Within(w.b.T, "the end of the push event", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.completed > before
	})
}

// click has the worker handle a click on the newest notification that it shows. The browser lets
// only clicks of people open a window and be waited for, so that the event's waitUntil, the window
// that the worker asks for, and the open window that it chooses are recorded.
const click = `(async () => {
	const shown = (await self.registration.getNotifications()).at(-1);
	if (!shown) return "no notification is shown";
	const waits = [], wanted = [];
	Clients.prototype.openWindow = async (url) => { wanted.push("open " + url); return null; };
	WindowClient.prototype.focus = async function () { wanted.push("focus " + this.url); return this; };
	const event = new NotificationEvent("notificationclick", { notification: shown });
	Object.defineProperty(event, "waitUntil", { value: (wait) => waits.push(wait) });
	self.dispatchEvent(event);
	await Promise.all(waits);
	if ((await self.registration.getNotifications()).some((n) => n.tag === shown.tag && n.timestamp === shown.timestamp)) wanted.push("still shown");
	return wanted.join(", ");
})()`

// Click has the service worker of the scope handle a click on the newest notification that it shows,
// and returns the window that the worker asks the browser for: "open" or "focus" and an address.
func (w *Workers) Click(origin, scope string) string {
	w.b.Helper()
	ctx, cancel := w.b.patient()
	defer cancel()
	// The browser stops workers without events.
	if _, err := chromedp.Run(ctx, func(ctx context.Context, _ *chromedp.Target) (cdp.Empty, error) {
		return chromedp.Call(ctx, serviceworker.StartWorker, serviceworker.StartWorkerParams{ScopeURL: origin + scope})
	}); err != nil {
		w.b.Fatal(err)
	}
	var worker target.ID
	Within(w.b.T, "the service worker", func() bool {
		targets, err := chromedp.Targets(ctx)
		i := slices.IndexFunc(targets, func(t *target.Info) bool {
			return t.Type == "service_worker" && strings.HasPrefix(t.URL, origin) && t.BrowserContextID == chromedp.FromContext(w.b.ctx).BrowserContextID
		})
		if err == nil && i >= 0 {
			worker = targets[i].TargetID
		}
		return worker != ""
	})
	inside, leave := chromedp.NewContext(ctx, chromedp.WithTargetID(worker), chromedp.WithDetachOnCancel())
	defer leave()
	wanted, err := chromedp.Run(inside, chromedp.Evaluate[string](click, chromedp.EvalAwaitPromise))
	if err != nil {
		w.b.Fatal(err)
	}
	return wanted
}
