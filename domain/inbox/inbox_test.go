package inbox_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// arrivals is a store with one batch, which reached users 2 and 3.
type arrivals struct {
	inbox.Store
	err error
}

func (a arrivals) Arrival(_ context.Context, _ delivery.Kind, batch int64, connected inbox.Connected) (inbox.Arrival, bool, error) {
	reached := ids{2: {Title: "two"}, 3: {Title: "three"}}
	list := connected(1, 9, reached)
	maps.DeleteFunc(reached, func(id user.ID, _ inbox.Message) bool { return !slices.Contains(list, id) })
	return inbox.ArrivalOf(reached), len(reached) > 0, a.err
}

// ids are users and their messages.
type ids map[user.ID]inbox.Message

func (m ids) Len() int                 { return len(m) }
func (m ids) All() iter.Seq[user.ID]   { return maps.Keys(m) }
func (m ids) Contains(id user.ID) bool { _, ok := m[id]; return ok }

// clients are connected users and the messages sent to them.
type clients struct {
	users []user.ID
	shown map[user.ID]string
}

func (c *clients) Between(from, to user.ID) bool {
	return slices.ContainsFunc(c.users, func(id user.ID) bool { return from <= id && id <= to })
}

func (c *clients) Connected(from, to user.ID, reached inbox.Users) (list []user.ID) {
	for _, id := range c.users {
		if from <= id && id <= to && reached.Contains(id) {
			list = append(list, id)
		}
	}
	return list
}

func (c *clients) Notify(users []user.ID, message func(user.ID) inbox.Message) {
	for _, id := range users {
		c.shown[id] = message(id).Title
	}
}

func TestPush(t *testing.T) {
	broken := errors.New("database is away")
	for name, c := range map[string]struct {
		channel   delivery.Channel
		kind      delivery.Kind
		connected []user.ID
		err       error
		shown     map[user.ID]string
	}{
		"shows those who were reached and are connected": {delivery.App, delivery.KindReminder, []user.ID{1, 2}, nil, map[user.ID]string{2: "two"}},
		"everybody in words of their own":                {delivery.App, delivery.KindCampaign, []user.ID{2, 3}, nil, map[user.ID]string{2: "two", 3: "three"}},
		"nobody is connected":                            {delivery.App, delivery.KindReminder, nil, nil, nil},
		"nobody of the batch is connected":               {delivery.App, delivery.KindReminder, []user.ID{7}, nil, nil},
		"another channel":                                {delivery.Email, delivery.KindReminder, []user.ID{2}, nil, nil},
		"a kind without a place in the inbox":            {delivery.App, delivery.Kind("other"), []user.ID{2}, nil, nil},
		"an error shows nothing":                         {delivery.App, delivery.KindReminder, []user.ID{2}, broken, nil},
	} {
		t.Run(name, func(t *testing.T) {
			to := &clients{users: c.connected, shown: map[user.ID]string{}}
			err := (&inbox.Service{Store: arrivals{err: c.err}}).Push(t.Context(), inbox.Finished{BatchID: 5, Channel: c.channel, Kind: c.kind, From: 1, To: 9}, to)
			if !errors.Is(err, c.err) || !maps.Equal(to.shown, c.shown) {
				t.Errorf("shown %v, error %v; want %v, %v", to.shown, err, c.shown, c.err)
			}
		})
	}
}

func TestMessageIDsDifferByKind(t *testing.T) {
	due := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for _, k := range []delivery.Kind{delivery.KindReminder, delivery.KindCorrection, delivery.KindCampaign, delivery.KindNotice, delivery.KindTest} {
		id := inbox.MessageID(k, 17, due)
		if seen[id] || strings.Trim(id, "0123456789") != "" || len(id) > 19 {
			t.Errorf("%s: id %q", k, id)
		}
		seen[id] = true
	}
	if a, b := inbox.MessageID(delivery.KindTest, 17, due), inbox.MessageID(delivery.KindTest, 17, due.Add(time.Minute)); a == b {
		t.Errorf("two tests of a campaign have the id %s", a)
	}
}
