package work_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	"dropbell/web/console/consoletest"
)

// The bell counts the member's unread notifications. The list shows them and marks them as read.
// Muted kinds are not shown.
func TestNotificationsOfAMember(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	g.Shop(11)
	raise := func(list ...alert.Condition) {
		t.Helper()
		g.Must(g.Stores.Alerts.Reconcile(t.Context(), alert.Kinds(), list, alert.Quiet, alert.Deadline))
	}
	b, other := g.As(staff.Viewer), g.As(staff.Marketer, 11)
	b.Get("/alerts").Is(200).Has("No notifications")
	raise(alert.Condition{Kind: alert.SoldOut, Object: "1", Shop: 10, Name: "<b>Moon", Count: 5, Path: "/templates/1"}, alert.Condition{Kind: alert.Channel, Object: "sms", Name: "sms", Path: "/channels"})
	b.Get("/").Is(200).Has(`aria-label="Notifications, 2 not read"`)
	other.Get("/").Is(200).HasNot("not read")
	b.Get("/alerts").Is(200).Has("“&lt;b&gt;Moon” is sold out: 5 coupons.", "SMS is failing", "New:").HasNot("<b>Moon</a>")
	b.Get("/alerts").Is(200).HasNot("New:", "not read")
	raise()
	b.Get("/alerts?before=x").Is(200).Has("over")
	b.Post("/alerts/settings", url.Values{"kind": {"channel", "nonsense"}}).To("/alerts/settings")
	b.Get("/alerts").Is(200).Has("SMS is failing").HasNot("sold out")
	b.Get("/alerts/settings").Is(200).HasNot("Add a group")
}

// Chat groups are added, tested and removed by members who manage their shop. An address and a
// secret are never shown, and a mistake in one field loses no other field.
func TestChatGroups(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	g.Shop(11)
	b, ten, eleven := g.As(staff.Marketer), g.As(staff.Marketer, 10), g.As(staff.Marketer, 11)
	form := url.Values{"name": {"Night shift"}, "form": {"feishu"}, "url": {"https://open.feishu.cn/open-apis/bot/v2/hook/k3y-0123456789"}, "secret": {"s3cret"}, "shop": {"10"}, "language": {"zh-CN"}, "kinds": {"late", "sold_out"}}
	wrong := url.Values{"name": {" "}, "form": {"fax"}, "url": {"javascript:alert(1)"}, "secret": {"s3cret"}, "shop": {"10"}, "language": {"xx"}}
	b.Post("/alerts/destinations", wrong).Is(http.StatusUnprocessableEntity).Has("5 things need your attention", "javascript:alert(1)").HasNot("s3cret")
	b.Post("/alerts/destinations", url.Values{"shop": {"x"}}).Is(http.StatusBadRequest)
	eleven.Post("/alerts/destinations", form).Is(http.StatusForbidden)
	g.As(staff.Viewer).Post("/alerts/destinations", form).Is(http.StatusForbidden)
	ten.Post("/alerts/destinations", form).To("/alerts/settings")
	everywhere := url.Values{"name": {"All"}, "form": {"slack"}, "url": {"https://hooks.slack.com/services/T/B/k3y-76543210"}, "shop": {"0"}, "language": {"en"}, "kinds": {"channel"}}
	ten.Post("/alerts/destinations", everywhere).Is(http.StatusForbidden)
	b.Post("/alerts/destinations", everywhere).To("/alerts/settings")
	b.Get("/alerts/settings").Is(200).Has("Night shift", "All shops", "open.feishu.cn/…6789", "Late reminders").HasNot("k3y", "s3cret")
	eleven.Get("/alerts/settings").Is(200).HasNot("Night shift", "hooks.slack.com")
	ten.Post("/alerts/destinations/1/test", nil).To("/alerts/settings")
	ten.Get("/alerts/settings").Is(200).Has("This is a test", "Waiting")
	eleven.Post("/alerts/destinations/1/test", nil).Is(http.StatusNotFound)
	eleven.Post("/alerts/destinations/1/remove", nil).Is(http.StatusNotFound)
	ten.Post("/alerts/destinations/2/remove", nil).Is(http.StatusNotFound)
	g.Must(g.Stores.Alerts.Reconcile(t.Context(), alert.Kinds(), []alert.Condition{{Kind: alert.Late, Object: "1", Shop: 10, Name: "Moon", Count: 3}}, time.Minute, time.Hour))
	if n := g.Number(`select count(*) from alert_deliveries`); n != 2 {
		t.Errorf("%d deliveries", n)
	}
	ten.Post("/alerts/destinations/1/remove", nil).To("/alerts/settings")
	ten.Get("/alerts/settings").Is(200).Has("Not sent", "Nothing is sent by mail or to a chat group yet")
	ten.Post("/alerts/destinations/1/remove", nil).Is(http.StatusNotFound)
	mail := url.Values{"name": {"Anna"}, "form": {"email"}, "url": {"not an address"}, "shop": {"10"}, "language": {"en"}, "kinds": {"late"}}
	ten.Post("/alerts/destinations", mail).Is(http.StatusUnprocessableEntity).Has("must be an e-mail address")
	mail.Set("url", "anna-k3y@example.com")
	ten.Post("/alerts/destinations", mail).To("/alerts/settings")
	ten.Get("/alerts/settings").Is(200).Has("E-mail · a…@example.com").HasNot("k3y")
	for _, path := range []string{"/audit"} {
		if page := g.As(staff.Admin).Get(path).Is(200).Body; strings.Contains(page, "k3y") || strings.Contains(page, "s3cret") {
			t.Errorf("%s shows an address or a secret", path)
		}
	}
}
