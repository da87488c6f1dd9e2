package api_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	accessdb "dropbell/adapters/postgres/access"
	"dropbell/domain/staff"
	"dropbell/web/api"
	"dropbell/web/security"
)

// recorded is one entry about security.
type recorded struct {
	actor, action, address, request, detail string
	count                                   int64
}

// Refused keys, denied requests and changes by keys in the name of users are in the audit log,
// added up, with address and request id. A user's own requests are not in the audit log.
func TestSecurityEvents(t *testing.T) {
	var events *security.Log
	var r *fixture
	r = newFixture(t, func(d *api.Deps) {
		events = security.New(lateAudit{func() accessdb.Audit { return accessdb.NewAudit(r.db) }}, slog.New(slog.DiscardHandler), time.Now, prometheus.NewRegistry())
		d.Security = events
	})
	id := r.drop(2 * time.Hour)
	for range 5 {
		r.want(r.call(as("dbk_nobodyhasthiskeyatall0000"), "GET", "/reservations", nil), 401, "unauthenticated")
	}
	r.want(r.call(as("a.b.c"), "GET", "/reservations", nil), 401, "unauthenticated")
	r.want(r.call(as(r.keys[staff.ScopePayment], "X-User-ID", "7", "X-Request-Id", "denied-1"), "GET", "/reservations", nil), 403, "forbidden")
	r.want(r.call(as(token(1)), "GET", "/admin/shops", nil), 403, "forbidden")
	r.want(r.call(as(token(7)), "POST", "/reservations", reserve(id, "app", 20)), 201, "")
	for minutes, status := range map[int]int{5: 200, 10: 200, 15: 200} {
		r.want(r.call(as(r.keys[staff.ScopeActAsUser], "X-User-ID", "7"), "POST", "/reservations", reserve(id, "app", minutes)), status, "")
	}
	r.want(r.call(as(r.keys[staff.ScopeActAsUser], "X-User-ID", "7"), "GET", "/reservations", nil), 200, "")
	r.want(r.call(as(token(8)), "POST", "/reservations", reserve(id, "app", 5)), 201, "")
	r.must(events.Flush(t.Context()))

	rows, err := r.sql.Query(t.Context(), `select split_part(actor, ':', 1), action, coalesce(address, ''), coalesce(request_id, ''), coalesce(after->>'detail', ''), (after->>'count')::bigint
		from audit where action like 'security.%' order by action, actor`)
	r.must(err)
	var got []recorded
	for rows.Next() {
		var x recorded
		r.must(rows.Scan(&x.actor, &x.action, &x.address, &x.request, &x.detail, &x.count))
		if x.address == "" || x.request == "" {
			t.Errorf("%+v has no origin", x)
		}
		if x.detail != "GET /reservations" || x.request != "denied-1" {
			x.request = ""
		}
		x.address = ""
		got = append(got, x)
	}
	want := []recorded{
		{"key", "security.access_denied", "", "denied-1", "GET /reservations", 1},
		{"unknown", "security.access_denied", "", "", "GET /admin/shops", 1},
		{"key", "security.acted_as_user", "", "", "POST /reservations", 3},
		{"unknown", "security.key_refused", "", "", "", 5},
	}
	if len(got) != len(want) {
		t.Fatalf("recorded %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("recorded %+v, want %+v", got[i], want[i])
		}
	}
}

// A change by a staff key keeps where it came from.
func TestChangesKeepTheirOrigin(t *testing.T) {
	r := newFixture(t, nil)
	r.drop(2 * time.Hour)
	r.want(r.call(as(r.keys[staff.ScopeAdmin], "X-Request-Id", "shop-1"), "PUT", "/admin/shops/44", map[string]any{"name": "x", "timezone": "Europe/Berlin"}), 200, "")
	var n int
	r.must(r.sql.QueryRow(t.Context(), `select count(*) from audit where request_id = 'shop-1' and address is not null`).Scan(&n))
	if n == 0 {
		t.Error("no entry has the request's id")
	}
}

// lateAudit is the audit log of a database that is opened later.
type lateAudit struct{ of func() accessdb.Audit }

func (l lateAudit) RecordAll(ctx context.Context, entries []staff.Entry, from []*staff.Origin) error {
	return l.of().RecordAll(ctx, entries, from)
}
