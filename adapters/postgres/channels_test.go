package postgres_test

import (
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

func TestChannelSettings(t *testing.T) {
	w := newWorld(t)
	channels := postgres.NewChannels(w.db)
	all, err := channels.Settings(t.Context())
	w.must(err)
	for i, s := range all {
		if int(s.Channel) != i || s.Paused || s.RatePerSecond != 0 || s.PausedReason != "" {
			t.Errorf("channel %d at first: %+v", i, s)
		}
	}
	entry := staff.Entry{Actor: operator, Action: "channel.change", ObjectKind: "channel", ObjectID: "sms", Before: all[delivery.SMS]}
	w.must(channels.SaveSetting(t.Context(), delivery.Setting{Channel: delivery.SMS, Paused: true, PausedReason: "provider is down", RatePerSecond: 50}, entry))
	next, err := channels.Settings(t.Context())
	w.must(err)
	for i, s := range next {
		if i == int(delivery.SMS) {
			if !s.Paused || s.PausedReason != "provider is down" || s.RatePerSecond != 50 || !s.UpdatedAt.After(all[i].UpdatedAt) {
				t.Errorf("%+v", s)
			}
		} else if s != all[i] {
			t.Errorf("channel %d changed as well: %+v", i, s)
		}
	}
	if n := w.number(`select count(*) from audit where action = 'channel.change' and object_id = 'sms' and before is not null`); n != 1 {
		t.Errorf("%d entries", n)
	}
}

func TestARefusedSettingLeavesNoEntry(t *testing.T) {
	w := newWorld(t)
	channels := postgres.NewChannels(w.db)
	if err := channels.SaveSetting(t.Context(), delivery.Setting{Channel: delivery.SMS, RatePerSecond: -1}, staff.Entry{}); err == nil {
		t.Error("a rate below zero was stored")
	}
	if err := channels.SaveSetting(t.Context(), delivery.Setting{Channel: delivery.SMS, Paused: true}, staff.Entry{After: func() {}}); err == nil {
		t.Error("a change without its entry was stored")
	}
	all, err := channels.Settings(t.Context())
	if err != nil || all[delivery.SMS].Paused || w.number(`select count(*) from audit`) != 0 {
		t.Errorf("%+v %v", all[delivery.SMS], err)
	}
}

func TestBacklogs(t *testing.T) {
	w := newWorld(t)
	channels := postgres.NewChannels(w.db)
	if list, err := channels.Backlogs(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("nothing waits: %v %v", list, err)
	}
	w.exec(`insert into batches (kind, owner_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count, sent_count, skipped_count, expired_count, dead_count, failed_count)
		values ('reminder', 1, 1, 1, 9, 'ready', now() - interval '1 minute', now(), '', 100, 10, 1, 2, 3, 40),
			('reminder', 2, 1, 1, 9, 'running', now() - interval '10 seconds', now(), '', 50, 0, 0, 0, 0, 0),
			('reminder', 3, 1, 1, 9, 'done', now() - interval '1 day', now(), '', 70, 70, 0, 0, 0, 0),
			('reminder', 4, 4, 1, 9, 'ready', now() + interval '1 hour', now(), '', 5, 0, 0, 0, 0, 0)`)
	list, err := channels.Backlogs(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	email, hook := list[0], list[1]
	if email.Channel != delivery.Email || email.Batches != 2 || email.People != 84+50 || email.Oldest < time.Minute || email.Oldest > 2*time.Minute {
		t.Errorf("%+v", email)
	}
	if hook.Channel != delivery.Webhook || hook.Batches != 1 || hook.People != 5 || hook.Oldest != 0 {
		t.Errorf("%+v", hook)
	}
}
