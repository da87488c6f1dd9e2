package pgtest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Notifier is a fixture that delivers reminders and announcements to sinks.
type Notifier struct {
	*Fixture
	Staff  *reminder.Announcements
	Worker *reminder.Announcer
	Store  dropsdb.Announcements
	Queue  *MemoryQueue
	App    *Sink
	Hook   *Sink
	Daemon *delivery.Service
}

// NewNotifier returns the fixture.
func NewNotifier(t *testing.T) *Notifier {
	w := New(t)
	n := &Notifier{Fixture: w, Store: dropsdb.NewAnnouncements(w.DB), Queue: &MemoryQueue{},
		App: NewSink(delivery.App, 1000), Hook: NewSink(delivery.Webhook, 100)}
	n.Store.Doors = w.Slots.Doors
	n.Staff = &reminder.Announcements{Store: n.Store, Now: Clock}
	n.Worker = &reminder.Announcer{Store: n.Store, Queue: n.Queue, Now: Clock, LeaseFor: 10 * time.Second}
	n.Daemon = w.Deliverer(n.Queue, n.App, n.Hook)
	return n
}

// Drain works off all batches that are ready on the two channels.
func (n *Notifier) Drain() {
	n.Helper()
	n.Must(n.Daemon.Drain(n.Context(), delivery.App))
	n.Must(n.Daemon.Drain(n.Context(), delivery.Webhook))
}

// Remind fires the present slot k and delivers it.
func (n *Notifier) Remind(t template.Template, k template.Slot) reminder.Slot {
	n.Helper()
	sl := n.DueNow(t, k)
	n.Must(n.Fixture.Timers(n.Queue).Fire(n.Context(), sl.ID))
	n.Drain()
	_, err := n.Slots.FinishSlots(n.Context())
	n.Must(err)
	return sl
}

// MoveBy moves the opening of the template.
func (n *Notifier) MoveBy(t template.Template, by time.Duration) template.Template {
	n.Helper()
	now, err := n.Templates.Template(n.Context(), t.ID)
	n.Must(err)
	return n.Move(t, now.OpensAt.Add(by))
}

// Send creates, cuts, delivers and finishes an announcement.
func (n *Notifier) Send(t template.Template, kind delivery.Kind) reminder.Announcement {
	n.Helper()
	a, err := n.Staff.Send(n.Context(), staff.System(), t.ID, reminder.Order{Kind: kind})
	n.Must(err)
	n.Must(n.Worker.Cut(n.Context(), a.ID))
	n.Drain()
	_, err = n.Store.FinishAnnouncements(n.Context())
	n.Must(err)
	return a
}

// Status returns an announcement as the list shows it.
func (n *Notifier) Status(t template.Template, id int64) reminder.AnnouncementStatus {
	n.Helper()
	list, err := n.Staff.List(n.Context(), staff.System(), t.ID)
	n.Must(err)
	for _, s := range list {
		if s.ID == id {
			return s
		}
	}
	n.Fatalf("announcement %d is not listed", id)
	return reminder.AnnouncementStatus{}
}

// Reached returns the users for whom a sink got messages of the kind. It fails the test if a
// user got the same message twice.
func Reached(t *testing.T, s *Sink, kind delivery.Kind) []user.ID {
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

// Users are the ids from the first to the last.
func Users(from, to int) []user.ID {
	var ids []user.ID
	for i := from; i <= to; i++ {
		ids = append(ids, user.ID(i))
	}
	return ids
}

// ReserveAll adds reminders of the users, all at once.
func (n *Notifier) ReserveAll(t template.Template, ids []user.ID, rs ...reminder.Reminder) {
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
