package user_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// recordingStore records what the service stores.
type recordingStore struct {
	users   map[user.ID]user.Change
	entries []staff.Entry
	err     error
	erased  map[user.ID]bool
}

func (k *recordingStore) User(context.Context, user.ID) (user.User, error) {
	return user.User{}, user.ErrNotFound
}

func (k *recordingStore) Upsert(_ context.Context, changes []user.Change, e staff.Entry) error {
	if k.err != nil {
		return k.err
	}
	for _, c := range changes {
		if _, twice := k.users[c.ID]; twice {
			return errors.New("a user twice in one batch")
		}
		k.users[c.ID] = c
	}
	k.entries = append(k.entries, e)
	return nil
}

func (k *recordingStore) SetOptOuts(_ context.Context, _ user.ID, _, off uint8, _ staff.Entry) (uint8, error) {
	return off, k.err
}

func (k *recordingStore) PutDevice(_ context.Context, _ user.ID, d user.Device, _ string) (user.Device, error) {
	return d, k.err
}

func (k *recordingStore) RemoveDevice(context.Context, user.ID, string) error { return k.err }

func (k *recordingStore) PutBrowser(context.Context, user.ID, user.PushSubscription) error {
	return k.err
}

func (k *recordingStore) RemoveBrowser(context.Context, user.ID, string) error { return k.err }

func (k *recordingStore) Erased(context.Context, []user.ID) (map[user.ID]bool, error) {
	return k.erased, nil
}

func (k *recordingStore) HouseholdSize(context.Context, string) (int64, error)    { return 0, nil }
func (k *recordingStore) Erasure(context.Context, user.ID) (*user.Erasure, error) { return nil, nil }

func (k *recordingStore) LiftErasure(context.Context, user.ID, staff.Entry) error { return k.err }

func (k *recordingStore) Everything(context.Context, user.ID, staff.Entry) (json.RawMessage, error) {
	return nil, k.err
}

func (k *recordingStore) Erase(_ context.Context, _ user.ID, e staff.Entry) error {
	k.entries = append(k.entries, e)
	return k.err
}

func TestUpsert(t *testing.T) {
	store := &recordingStore{users: map[user.ID]user.Change{}}
	s := &user.Service{Store: store}
	batch := []user.Change{
		{ID: 5, Name: new("Ann"), Email: new("ann@example.com")},
		{ID: 6, Email: new("nonsense"), Name: new("not stored either")},
		{ID: 5, Name: new("Anna"), Phone: new("")},
		{ID: 0},
		{ID: 3},
	}
	n, refused, err := s.Upsert(t.Context(), staff.System(), batch)
	if err != nil || n != 3 || len(refused) != 2 {
		t.Fatalf("%d stored, refused %v, %v", n, refused, err)
	}
	if !errors.Is(refused[1], fault.ErrInvalid) || !strings.HasPrefix(refused[1].Error(), "email: ") || refused[3] == nil {
		t.Fatalf("refused %v", refused)
	}
	got := store.users[5]
	if *got.Name != "Anna" || *got.Email != "ann@example.com" || *got.Phone != "" || len(store.users) != 2 {
		t.Fatalf("stored %+v", store.users)
	}
	e := store.entries[0]
	if e.Action != "user.import" || e.ObjectID != "3" {
		t.Fatalf("recorded %+v", e)
	}
	if _, _, err := s.Upsert(t.Context(), staff.Actor{Role: staff.Viewer}, batch); !errors.Is(err, staff.ErrForbidden) {
		t.Fatalf("a viewer gets %v", err)
	}
	store.err = errors.New("away")
	if n, _, err := s.Upsert(t.Context(), staff.System(), batch); n != 0 || err == nil {
		t.Fatalf("%d stored by a store that is away, %v", n, err)
	}
	if n, refused, err := s.Upsert(t.Context(), staff.System(), batch[3:4]); n != 0 || len(refused) != 1 || err != nil {
		t.Fatalf("nothing to store: %d %v %v", n, refused, err)
	}
}

func TestPreferencesOfUnknownUser(t *testing.T) {
	s := &user.Service{Store: &recordingStore{}}
	if u, err := s.Preferences(t.Context(), 7); err != nil || u.ID != 7 {
		t.Fatalf("%+v %v", u, err)
	}
}

func TestRules(t *testing.T) {
	s := &user.Service{Store: &recordingStore{users: map[user.ID]user.Change{}}}
	for name, c := range map[string]struct {
		change user.Change
		ok     bool
	}{
		"plus address":       {user.Change{Email: new("a+b@mail.example.co.uk")}, true},
		"no domain":          {user.Change{Email: new("ann@")}, false},
		"two addresses":      {user.Change{Email: new("a@b.c,d@e.f")}, false},
		"comment":            {user.Change{Email: new("ann(x)@example.com")}, false},
		"255 bytes":          {user.Change{Email: new(strings.Repeat("a", 243) + "@example.com")}, false},
		"quotes":             {user.Change{Email: new(`"a b"@example.com`)}, false},
		"E.164":              {user.Change{Phone: new("+4915112345678")}, true},
		"too long a number":  {user.Change{Phone: new("+4915112345678901")}, false},
		"letters":            {user.Change{Phone: new("+49abc12345")}, false},
		"zh-Hans-CN":         {user.Change{Locale: new("zh-Hans-CN")}, true},
		"x":                  {user.Change{Locale: new("x")}, false},
		"UTC":                {user.Change{Timezone: new("UTC")}, true},
		"offset":             {user.Change{Timezone: new("+08:00")}, false},
		"quiet hours beyond": {user.Change{Quiet: &user.QuietHours{From: 0, To: 1440}}, false},
		"infinity":           {user.Change{Attributes: &map[string]any{"a": math.Inf(1)}}, false},
		"attribute name":     {user.Change{Attributes: &map[string]any{"a b": "x"}}, false},
		"nested attribute":   {user.Change{Attributes: &map[string]any{"a": []any{}}}, false},
		"all kinds":          {user.Change{Attributes: &map[string]any{"a": "x", "b": 1.5, "c": true, "d": nil}}, true},
		"long attribute":     {user.Change{Attributes: &map[string]any{"a": strings.Repeat("x", 501)}}, false},
		"long name":          {user.Change{Name: new(strings.Repeat("名", 201))}, false},
		"just short enough":  {user.Change{Name: new(strings.Repeat("名", 200))}, true},
		"line break":         {user.Change{Name: new("a\nb")}, false},
		"turned around":      {user.Change{Name: new("Ann\u202e")}, false},
		"isolated":           {user.Change{Name: new("\u2067Ann")}, false},
		"right to left":      {user.Change{Name: new("دانا\u200f")}, true},
		"cleared":            {user.Change{Name: new(""), Email: new(""), Phone: new(""), Locale: new(""), Timezone: new("")}, true},
	} {
		c.change.ID = 1
		_, refused, err := s.Upsert(t.Context(), staff.System(), []user.Change{c.change})
		if err != nil && c.ok || (len(refused) == 0) != c.ok {
			t.Errorf("%s: refused %v, %v", name, refused, err)
		}
		s.Store.(*recordingStore).users = map[user.ID]user.Change{}
	}
}

func TestQuietHours(t *testing.T) {
	for _, bad := range [][2]string{{"24:00", "08:00"}, {"8:00", "09:00"}, {"08:60", "09:00"}, {"", ""}, {"08:00", ""}, {"08:00:00", "09:00"}} {
		if q, ok := user.ParseQuietHours(bad[0], bad[1]); ok {
			t.Errorf("%v became %v", bad, q)
		}
	}
	q, ok := user.ParseQuietHours("22:05", "00:59")
	if from, to := q.Clock(); !ok || q != (user.QuietHours{From: 1325, To: 59}) || from != "22:05" || to != "00:59" {
		t.Fatalf("%v, back %s %s", q, from, to)
	}
}

func TestLocalPush(t *testing.T) {
	sub := []user.PushSubscription{{Endpoint: "http://127.0.0.1:9/x", P256dh: strings.Repeat("A", 87), Auth: strings.Repeat("A", 22)}}
	s := &user.Service{Store: &recordingStore{users: map[user.ID]user.Change{}}}
	if _, err := s.SetPreferences(t.Context(), user.Change{ID: 1, Push: &sub}); !errors.Is(err, fault.ErrInvalid) {
		t.Fatalf("an address inside the network: %v", err)
	}
	s.AllowLocalPush = true
	if _, err := s.SetPreferences(t.Context(), user.Change{ID: 1, Push: &sub}); !errors.Is(err, user.ErrNotFound) {
		t.Fatalf("in development: %v", err) // stored; the fake does not read back
	}
}
