package consoletest

import (
	"math/rand/v2"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
)

// Notices plans the notices of all coupons, makes batches of the due notices, and settles the
// finished batches.
func (g *Fixture) Notices() {
	g.Helper()
	a := &coupon.Announcer{Store: g.Stores.Notices, Queue: idle{}}
	Within(g.T, "the notices of every coupon are planned", func() bool { // transactions of other databases of the server delay that
		g.Must(a.Sweep(g.Context()))
		return g.Number(`select count(*) from notice_cursor where planned_to >= (select coalesce(max(id), 0) from coupons)`) == 1
	})
}

// SendNotices makes the drop's notices of the day due and has them delivered.
func (g *Fixture) SendNotices(t template.Template, day time.Time, answer func(delivery.Message) delivery.Result) {
	g.Helper()
	g.Exec(`update notices set due_at = clock_timestamp() - interval '1 second' where template_id = $1 and day = $2`, t.ID, day)
	g.Notices()
	d := &delivery.Service{Store: g.Stores.Batches, Queue: idle{}, Admission: idle{}, Policy: delivery.Policy{MaxAttempts: 1, Base: time.Second, Max: time.Second},
		LeaseFor: 10 * time.Second, Random: rand.Float64, Now: g.Now, Guards: map[delivery.Kind]delivery.Guard{delivery.KindNotice: coupon.Guard{Store: g.Stores.Notices}},
		Senders: map[delivery.Channel]delivery.Sender{delivery.Email: Provider{delivery.Email, answer}}}
	g.Must(d.Drain(g.Context(), delivery.Email))
	g.Notices()
}
