package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/adapters/postgres"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// morgue is a fixture in which the webhook refuses users with a cause.
type morgue struct {
	*newsroom
	letters *delivery.DeadLetters
	store   postgres.DeadLetters
	cause   func(user.ID) string // "" = delivered
}

func newMorgue(t *testing.T) *morgue {
	m := &morgue{newsroom: newNewsroom(t), cause: func(user.ID) string { return "" }}
	m.store = postgres.NewDeadLetters(m.DB)
	m.letters = &delivery.DeadLetters{Store: m.store}
	m.daemon.Policy.MaxAttempts = 1
	m.hook.Answer = func(msg delivery.Message, _ int) delivery.Result {
		if cause := m.cause(msg.To.ID); cause != "" {
			return delivery.Result{Status: delivery.Transient, Detail: cause}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	return m
}

// bury delivers slot 1 of a new template to users from–to, each in a batch of
// at most size, and finishes the slot.
func (m *morgue) bury(from, to, size int) (template.Template, reminder.Slot) {
	m.Helper()
	tpl := m.Published(2 * time.Hour)
	m.reserveAll(tpl, users(from, to), pgtest.Reminders(delivery.Webhook, 5)...)
	sl := m.CutSlot(tpl, 1, size)
	m.drain()
	m.finish(tpl)
	return tpl, sl
}

func (m *morgue) finish(tpl template.Template) map[delivery.Channel]delivery.Counts {
	m.Helper()
	_, err := m.Slots.FinishSlots(m.Context())
	m.Must(err)
	return m.Balanced(tpl)
}

// work runs a job to its end and returns it.
func (m *morgue) work(a delivery.DeadLetterAction, f delivery.DeadLetterFilter, rate int) delivery.DeadLetterJob {
	m.Helper()
	j, err := m.letters.Start(m.Context(), staff.System(), delivery.DeadLetterOrder{Action: a, Filter: f, Rate: rate})
	m.Must(err)
	m.Must(m.letters.Step(m.Context()))
	return m.job(j.ID)
}

func (m *morgue) job(id int64) delivery.DeadLetterJob {
	m.Helper()
	jobs, err := m.letters.Jobs(m.Context(), staff.System(), 100)
	m.Must(err)
	i := slices.IndexFunc(jobs, func(j delivery.DeadLetterJob) bool { return j.ID == id })
	if i < 0 {
		m.Fatalf("job %d is not listed", id)
	}
	return jobs[i]
}

func (n *newsroom) slotState(id int64) (state string) {
	n.Helper()
	n.Must(n.SQL.QueryRow(n.Context(), `select state from slots where id = $1`, id).Scan(&state))
	return state
}

// countersAgree fails unless the groups' counters are what the rows say.
func (m *morgue) countersAgree(when string) {
	m.Helper()
	if off := m.Number(`select count(*) from dead_letter_groups g full join (
			select channel, fingerprint, count(*) as n from exceptions where outcome = 'dead' group by 1, 2) c using (channel, fingerprint)
		where coalesce(g.dead, 0) <> coalesce(c.n, 0)`); off != 0 {
		m.Errorf("%s: %d groups are counted wrongly", when, off)
	}
}

// markSent gives a dead user a sent mark, as if two workers had both been at it.
func (m *morgue) markSent(tpl template.Template, id user.ID) {
	m.Helper()
	var raw []byte
	m.Must(m.SQL.QueryRow(m.Context(), `select sent from batches where template_id = $1 and $2 between from_user and to_user`, tpl.ID, id).Scan(&raw))
	set := roaring64.New()
	if len(raw) > 0 {
		m.Must(set.UnmarshalBinary(raw))
	}
	set.Add(uint64(id))
	raw, err := set.ToBytes()
	m.Must(err)
	m.Exec(`update batches set sent = $3, sent_count = sent_count + 1 where template_id = $1 and $2 between from_user and to_user`, tpl.ID, id, raw)
}

// times returns how often the webhook was asked to reach the user about tpl.
func (m *morgue) times(tpl template.Template, id user.ID) int {
	m.hook.Mu.Lock()
	defer m.hook.Mu.Unlock()
	sum := 0
	for key, n := range m.hook.Got {
		var template, slot, due int64
		var to user.ID
		if _, err := fmt.Sscanf(key, "reminder-%d-%d-%d-webhook-%d", &template, &slot, &due, &to); err != nil {
			m.Fatalf("%s: %v", key, err)
		}
		if template == tpl.ID && to == id {
			sum += n
		}
	}
	return sum
}
