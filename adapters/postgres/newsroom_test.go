package postgres_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// newsroom is a fixture that delivers reminders and announcements to sinks.
type newsroom struct {
	*pgtest.World
	staff  *reminder.Announcements
	worker *reminder.Announcer
	store  postgres.Announcements
	queue  *pgtest.MemoryQueue
	app    *pgtest.Sink
	hook   *pgtest.Sink
	daemon *delivery.Service
}

func newNewsroom(t *testing.T) *newsroom {
	w := pgtest.New(t)
	n := &newsroom{World: w, store: postgres.NewAnnouncements(w.DB), queue: &pgtest.MemoryQueue{},
		app: pgtest.NewSink(delivery.App, 1000), hook: pgtest.NewSink(delivery.Webhook, 100)}
	n.staff = &reminder.Announcements{Store: n.store, Now: pgtest.Clock}
	n.worker = &reminder.Announcer{Store: n.store, Queue: n.queue, Now: pgtest.Clock, LeaseFor: 10 * time.Second}
	n.daemon = w.Deliverer(n.queue, n.app, n.hook)
	return n
}

// drain works off whatever is ready on the two channels.
func (n *newsroom) drain() {
	n.Helper()
	n.Must(n.daemon.Drain(n.Context(), delivery.App))
	n.Must(n.daemon.Drain(n.Context(), delivery.Webhook))
}

// remind fires the present slot k and delivers it.
func (n *newsroom) remind(t template.Template, k template.Slot) reminder.Slot {
	n.Helper()
	sl := n.DueNow(t, k)
	n.Must(n.World.Timers(n.queue).Fire(n.Context(), sl.ID))
	n.drain()
	_, err := n.Slots.FinishSlots(n.Context())
	n.Must(err)
	return sl
}

func (n *newsroom) moveBy(t template.Template, by time.Duration) template.Template {
	n.Helper()
	now, err := n.Templates.Template(n.Context(), t.ID)
	n.Must(err)
	return n.Move(t, now.OpensAt.Add(by))
}

// send creates, cuts, delivers and finishes an announcement.
func (n *newsroom) send(t template.Template, kind delivery.Kind) reminder.Announcement {
	n.Helper()
	a, err := n.staff.Send(n.Context(), staff.System(), t.ID, reminder.Order{Kind: kind})
	n.Must(err)
	n.Must(n.worker.Cut(n.Context(), a.ID))
	n.drain()
	_, err = n.store.FinishAnnouncements(n.Context())
	n.Must(err)
	return a
}

func (n *newsroom) status(t template.Template, id int64) reminder.AnnouncementStatus {
	n.Helper()
	list, err := n.staff.List(n.Context(), staff.System(), t.ID)
	n.Must(err)
	for _, s := range list {
		if s.ID == id {
			return s
		}
	}
	n.Fatalf("announcement %d is not listed", id)
	return reminder.AnnouncementStatus{}
}

// reached returns the users a sink got messages of the kind for, and fails if
// one of them got the same message twice.
func reached(t *testing.T, s *pgtest.Sink, kind delivery.Kind) []user.ID {
	t.Helper()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var ids []user.ID
	for key, times := range s.Got {
		if !strings.HasPrefix(key, string(kind)+"-") {
			continue
		}
		if times != 1 {
			t.Errorf("%s was sent %d times", key, times)
		}
		id, err := user.ParseID(key[strings.LastIndex(key, "-")+1:])
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func users(from, to int) []user.ID {
	var ids []user.ID
	for i := from; i <= to; i++ {
		ids = append(ids, user.ID(i))
	}
	return ids
}

func (n *newsroom) reserveAll(t template.Template, ids []user.ID, rs ...reminder.Reminder) {
	n.Helper()
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			if v := n.Reserve(t, id, rs...); !v.Applied {
				n.Errorf("user %d: %+v", id, v)
			}
		})
	}
	all.Wait()
}
