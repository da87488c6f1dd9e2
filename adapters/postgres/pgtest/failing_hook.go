package pgtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// FailingHook is a fixture in which the webhook refuses users with a cause.
type FailingHook struct {
	*Notifier
	Letters *delivery.DeadLetters
	Store   deliverydb.DeadLetters
	Cause   func(user.ID) string // "" = delivered
}

// NewFailingHook returns the fixture, in which nothing fails yet.
func NewFailingHook(t *testing.T) *FailingHook {
	m := &FailingHook{Notifier: NewNotifier(t), Cause: func(user.ID) string { return "" }}
	m.Store = deliverydb.NewDeadLetters(m.DB)
	m.Letters = &delivery.DeadLetters{Store: m.Store}
	m.Daemon.Policy.MaxAttempts = 1
	m.Hook.Answer = func(msg delivery.Message, _ int) delivery.Result {
		if cause := m.Cause(msg.To.ID); cause != "" {
			return delivery.Result{Status: delivery.Transient, Detail: cause}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	return m
}

// Bury delivers slot 1 of a new template to users from–to, each in a batch of
// at most size, and finishes the slot.
func (m *FailingHook) Bury(from, to, size int) (template.Template, reminder.Slot) {
	m.Helper()
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, Users(from, to), Reminders(delivery.Webhook, 5)...)
	sl := m.CutSlot(tpl, 1, size)
	m.Drain()
	m.Finish(tpl)
	return tpl, sl
}

// Finish finishes slots and returns the balanced sums of the template.
func (m *FailingHook) Finish(tpl template.Template) map[delivery.Channel]delivery.Counts {
	m.Helper()
	_, err := m.Slots.FinishSlots(m.Context())
	m.Must(err)
	return m.Balanced(tpl)
}

// Work runs a job to its end and returns it.
func (m *FailingHook) Work(a delivery.DeadLetterAction, f delivery.DeadLetterFilter, rate int) delivery.DeadLetterJob {
	m.Helper()
	j, err := m.Letters.Start(m.Context(), staff.System(), delivery.DeadLetterOrder{Action: a, Filter: f, Rate: rate})
	m.Must(err)
	m.Must(m.Letters.Step(m.Context()))
	return m.Job(j.ID)
}

// Job returns the job as the list shows it.
func (m *FailingHook) Job(id int64) delivery.DeadLetterJob {
	m.Helper()
	jobs, err := m.Letters.Jobs(m.Context(), staff.System(), 100)
	m.Must(err)
	i := slices.IndexFunc(jobs, func(j delivery.DeadLetterJob) bool { return j.ID == id })
	if i < 0 {
		m.Fatalf("job %d is not listed", id)
	}
	return jobs[i]
}

// SlotState returns the stored state of a slot.
func (n *Notifier) SlotState(id int64) (state string) {
	n.Helper()
	n.Must(n.SQL.QueryRow(n.Context(), `select state from slots where id = $1`, id).Scan(&state))
	return state
}

// CountersAgree fails the test unless the groups' counters agree with the rows.
func (m *FailingHook) CountersAgree(when string) {
	m.Helper()
	if off := m.Number(`select count(*) from dead_letter_groups g full join (
			select channel, fingerprint, count(*) as n from exceptions where outcome = 'dead' group by 1, 2) c using (channel, fingerprint)
		where coalesce(g.dead, 0) <> coalesce(c.n, 0)`); off != 0 {
		m.Errorf("%s: %d groups are counted wrongly", when, off)
	}
}

// MarkSent gives a dead user a sent mark, as if two workers had both been at it.
func (m *FailingHook) MarkSent(tpl template.Template, id user.ID) {
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

// Times returns how often the webhook was asked to reach the user about tpl.
func (m *FailingHook) Times(tpl template.Template, id user.ID) int {
	m.Hook.Mu.Lock()
	defer m.Hook.Mu.Unlock()
	sum := 0
	for key, n := range m.Hook.Got {
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
