package consoletest

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Fails returns a sender's answer: the given result for users in causes, success for all others.
func Fails(causes map[user.ID]delivery.Result) func(delivery.Message) delivery.Result {
	return func(m delivery.Message) delivery.Result {
		if r, ok := causes[m.To.ID]; ok {
			return r
		}
		return Takes(m)
	}
}

// DeadLettered is a fixture with three reminders, of which two are dead.
func DeadLettered(t *testing.T) *Fixture {
	g := New(t)
	d := g.Published(10, 2*time.Hour)
	for id := user.ID(1001); id <= 1003; id++ {
		g.Book(d, id, delivery.App, 5)
	}
	g.Fire(d, 1, Fails(map[user.ID]delivery.Result{1001: {Detail: "HTTP 503"}, 1002: {Status: delivery.Permanent}}))
	return g
}

// Fired stores batches of slot 1 of the template with users from 1 on, of which every tenth was
// skipped, like firing and delivering do.
func (g *Fixture) Fired(t template.Template, batches, each int) {
	g.Helper()
	for b := range batches {
		due, sent := roaring64.New(), roaring64.New()
		skipped := 0
		for i := range each {
			id := uint64(b*each + i + 1)
			due.Add(id)
			if id%10 == 0 {
				skipped++
				continue
			}
			sent.Add(id)
		}
		dueRaw, err := due.ToBytes()
		g.Must(err)
		sentRaw, err := sent.ToBytes()
		g.Must(err)
		g.Exec(`with b as (insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, sent, due_count, sent_count, skipped_count)
				select 'reminder', id, template_id, 0, $2, $3, 'done', due_at, opens_at, $4, $5, $6::int, $6::int - $7::int, $7::int from slots where template_id = $1 and slot = 1 returning id)
			insert into exceptions (batch_id, user_id, channel, outcome, reason) select id, u, 0, 'skipped', 'opted_out' from b, generate_series($2::bigint, $3::bigint) u where u % 10 = 0`,
			t.ID, b*each+1, (b+1)*each, dueRaw, sentRaw, each, skipped)
	}
}

// RowsOf reads the rows of an exported file.
func RowsOf(a Answer) [][]string {
	a.Helper()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(a.Body, "\uFEFF"))).ReadAll()
	if err != nil {
		a.Fatal(err)
	}
	return rows
}
