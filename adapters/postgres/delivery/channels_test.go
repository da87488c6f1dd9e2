package delivery_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

func TestChannelSettings(t *testing.T) {
	w := newFixture(t)
	channels := deliverydb.NewChannels(w.DB)
	all, err := channels.Settings(t.Context())
	w.Must(err)
	for i, s := range all {
		if int(s.Channel) != i || s.Paused || s.RatePerSecond != 0 || s.PausedReason != "" {
			t.Errorf("channel %d at first: %+v", i, s)
		}
	}
	entry := staff.Entry{Actor: pgtest.Operator, Action: "channel.change", ObjectKind: "channel", ObjectID: "sms", Before: all[delivery.SMS]}
	w.Must(channels.SaveSetting(t.Context(), all[delivery.SMS], delivery.Setting{Channel: delivery.SMS, Paused: true, PausedReason: "provider is down", RatePerSecond: 50}, entry))
	next, err := channels.Settings(t.Context())
	w.Must(err)
	for i, s := range next {
		if i == int(delivery.SMS) {
			if !s.Paused || s.PausedReason != "provider is down" || s.RatePerSecond != 50 || !s.UpdatedAt.After(all[i].UpdatedAt) {
				t.Errorf("%+v", s)
			}
		} else if s != all[i] {
			t.Errorf("channel %d changed as well: %+v", i, s)
		}
	}
	if n := w.Number(`select count(*) from audit where action = 'channel.change' and object_id = 'sms' and before is not null`); n != 1 {
		t.Errorf("%d entries", n)
	}
}

func TestARefusedSettingLeavesNoEntry(t *testing.T) {
	w := newFixture(t)
	channels := deliverydb.NewChannels(w.DB)
	all, err := channels.Settings(t.Context())
	w.Must(err)
	if err := channels.SaveSetting(t.Context(), all[delivery.SMS], delivery.Setting{Channel: delivery.SMS, RatePerSecond: -1}, staff.Entry{}); err == nil {
		t.Error("a rate below zero was stored")
	}
	if err := channels.SaveSetting(t.Context(), all[delivery.SMS], delivery.Setting{Channel: delivery.SMS, Paused: true}, staff.Entry{After: func() {}}); err == nil {
		t.Error("a change without its entry was stored")
	}
	all, err = channels.Settings(t.Context())
	if err != nil || all[delivery.SMS].Paused || w.Number(`select count(*) from audit`) != 0 {
		t.Errorf("%+v %v", all[delivery.SMS], err)
	}
}

func TestBacklogs(t *testing.T) {
	w := newFixture(t)
	channels := deliverydb.NewChannels(w.DB)
	if list, err := channels.Backlogs(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("nothing waits: %v %v", list, err)
	}
	w.Insert("batches",
		pgtest.Row{"owner_id": 1, "channel": delivery.Email, "due_at": pgtest.SQL("now() - interval '1 minute'"), "due_count": 100,
			"sent_count": 10, "skipped_count": 1, "expired_count": 2, "dead_count": 3, "failed_count": 40},
		pgtest.Row{"owner_id": 2, "channel": delivery.Email, "due_at": pgtest.SQL("now() - interval '10 seconds'"), "due_count": 50, "state": "running"},
		pgtest.Row{"owner_id": 3, "channel": delivery.Email, "due_at": pgtest.SQL("now() - interval '1 day'"), "due_count": 70, "state": "done", "sent_count": 70},
		pgtest.Row{"owner_id": 4, "channel": delivery.Webhook, "due_at": pgtest.SQL("now() + interval '1 hour'"), "due_count": 5})
	list, err := channels.Backlogs(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	email, hook := list[0], list[1]
	if email.Channel != delivery.Email || email.Batches != 2 || email.People != 84+50 || email.Oldest < time.Minute || email.Oldest > 2*time.Minute {
		t.Errorf("%+v", email)
	}
	want := hook
	want.Channel, want.Batches, want.People, want.Oldest = delivery.Webhook, 1, 5, 0
	if diff := cmp.Diff(want, hook); diff != "" {
		t.Errorf("backlog of the webhook (-want +got):\n%s", diff)
	}
}

// TestBacklogsKnowEveryKind: a campaign's backlog has the age of its batch,
// unless the campaign is paused or its recipients are in quiet hours. The age of
// reminders and notices, which have a due time, is separate.
func TestBacklogsKnowEveryKind(t *testing.T) {
	w := newFixture(t)
	w.Insert("batches",
		pgtest.Row{"channel": delivery.WebPush, "due_at": pgtest.SQL("now() - interval '17 seconds'")},
		pgtest.Row{"kind": "campaign", "owner_id": 2, "channel": delivery.WebPush, "due_at": pgtest.SQL("now() - interval '2 minutes'"), "due_count": 10,
			"next_run_at": pgtest.SQL("now() + interval '30 seconds'")},
		pgtest.Row{"kind": "campaign", "owner_id": 3, "channel": delivery.WebPush, "due_at": pgtest.SQL("now() - interval '1 hour'"), "due_count": 100, "held": true},
		pgtest.Row{"kind": "campaign", "owner_id": 4, "channel": delivery.WebPush, "due_at": pgtest.SQL("now() - interval '2 hours'"), "due_count": 1000,
			"next_run_at": pgtest.SQL("now() + interval '6 hours'")},
		pgtest.Row{"kind": "campaign", "owner_id": 5, "channel": delivery.SMS, "due_at": pgtest.SQL("now() - interval '5 minutes'"), "due_count": 7, "state": "running"},
		pgtest.Row{"kind": "campaign", "owner_id": 6, "channel": delivery.Email, "due_at": pgtest.SQL("now() - interval '5 minutes'"), "due_count": 7, "held": true})
	list, err := deliverydb.NewChannels(w.DB).Backlogs(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	for i, want := range []delivery.Backlog{
		{Channel: delivery.SMS, Batches: 1, People: 7, Oldest: 5 * time.Minute},
		{Channel: delivery.WebPush, Batches: 2, People: 11, Oldest: 2 * time.Minute, OldestTimed: 17 * time.Second},
	} {
		got := list[i]
		late := func(d, want time.Duration) bool { return d < want || d > want+15*time.Second }
		if got.Channel != want.Channel || got.Batches != want.Batches || got.People != want.People ||
			late(got.Oldest, want.Oldest) || late(got.OldestTimed, want.OldestTimed) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestDecisionsAtOnce: operators change different settings at the same time, and
// both changes are kept.
func TestDecisionsAtOnce(t *testing.T) {
	w := newFixture(t)
	control := &delivery.Control{Store: deliverydb.NewChannels(w.DB), Now: pgtest.Clock}
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := control.Pause(context.Background(), pgtest.Operator, delivery.SMS, " provider is down "); err != nil {
			t.Error(err)
		}
	})
	all.Go(func() {
		if _, err := control.SetRate(context.Background(), pgtest.Operator, delivery.SMS, nil, 50, ""); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	got, err := control.Store.Settings(t.Context())
	w.Must(err)
	s := got[delivery.SMS]
	if s.PausedAt.IsZero() {
		t.Errorf("%+v", s)
	}
	want := s
	want.Paused, want.PausedReason, want.PausedBy, want.RatePerSecond = true, "provider is down", pgtest.Operator.Name, 50
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("paused (-want +got):\n%s", diff)
	}
	_, err = control.Resume(t.Context(), pgtest.Operator, delivery.SMS, "")
	w.Must(err)
	again, err := control.Resume(t.Context(), pgtest.Operator, delivery.SMS, "")
	w.Must(err)
	if !again.PausedAt.IsZero() {
		t.Errorf("%+v", again)
	}
	resumed := again
	resumed.Paused, resumed.PausedReason, resumed.RatePerSecond = false, "", 50
	if diff := cmp.Diff(resumed, again); diff != "" {
		t.Errorf("resumed (-want +got):\n%s", diff)
	}
	if n := w.Number(`select count(*) from audit where object_id = 'sms'`); n != 3 {
		t.Errorf("%d entries for three decisions", n)
	}
}

func TestDecisionsAreChecked(t *testing.T) {
	w := newFixture(t)
	control := &delivery.Control{Store: deliverydb.NewChannels(w.DB), Now: pgtest.Clock}
	for what, try := range map[string]func(by staff.Actor) error{
		"pause":  func(by staff.Actor) error { _, err := control.Pause(t.Context(), by, delivery.SMS, "why"); return err },
		"resume": func(by staff.Actor) error { _, err := control.Resume(t.Context(), by, delivery.SMS, ""); return err },
		"rate": func(by staff.Actor) error {
			_, err := control.SetRate(t.Context(), by, delivery.SMS, nil, 1, "")
			return err
		},
	} {
		if err := try(staff.Actor{Label: "staff:2", Role: staff.Marketer}); !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("a marketer may %s: %v", what, err)
		}
	}
	for _, reason := range []string{"", " \t ", strings.Repeat("x", delivery.MaxReason+1)} {
		if _, err := control.Pause(t.Context(), pgtest.Operator, delivery.SMS, reason); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("paused for %.10q: %v", reason, err)
		}
	}
	for _, rate := range []int{-1, delivery.MaxRate + 1} {
		if _, err := control.SetRate(t.Context(), pgtest.Operator, delivery.SMS, nil, rate, ""); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("rate %d: %v", rate, err)
		}
	}
	if _, err := control.Resume(t.Context(), pgtest.Operator, 77, ""); !errors.Is(err, delivery.ErrChannelUnavailable) {
		t.Errorf("an unknown channel: %v", err)
	}
	if n := w.Number(`select count(*) from audit`); n != 0 {
		t.Errorf("%d entries of refused decisions", n)
	}
}

func TestProviderCalls(t *testing.T) {
	w := newFixture(t)
	channels := deliverydb.NewChannels(w.DB)
	w.Must(channels.RecordCalls(t.Context(), "a", nil))
	for worker, failed := range map[string]int64{"a": 0, "b": 20} {
		w.Must(channels.RecordCalls(t.Context(), worker, []deliverydb.ProviderCalls{{Channel: delivery.SMS, Calls: 2, Messages: 100, Failed: failed,
			Total: 300 * time.Millisecond, Slowest: 250 * time.Millisecond, Error: map[bool]string{true: "status 503"}[failed > 0]}}))
	}
	got, err := channels.Providers(t.Context())
	w.Must(err)
	if want := (delivery.ProviderHealth{Calls: 4, Messages: 200, Failed: 20, Mean: 150 * time.Millisecond, Slowest: 250 * time.Millisecond, Error: "status 503"}); got[delivery.SMS] != want {
		t.Errorf("%+v, want %+v", got[delivery.SMS], want)
	}
	if got[delivery.Email] != (delivery.ProviderHealth{}) {
		t.Errorf("a channel without calls: %+v", got[delivery.Email])
	}
	w.Exec(`update provider_calls set at = at - interval '2 minutes' where worker = 'a'; update provider_calls set at = at - interval '1 hour' where worker = 'b'`)
	if got, err = channels.Providers(t.Context()); err != nil || got[delivery.SMS].Calls != 0 {
		t.Errorf("later: %+v %v", got[delivery.SMS], err)
	}
	w.Must(channels.RecordCalls(t.Context(), "a", []deliverydb.ProviderCalls{{Channel: delivery.Email, Calls: 1}}))
	if n := w.Number(`select count(*) from provider_calls`); n != 2 {
		t.Errorf("%d rows are kept, want 2", n)
	}
}
