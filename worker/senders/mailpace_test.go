package senders

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/redis"
	"dropbell/adapters/smtp"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/musttest"
	"dropbell/worker/workertest"
)

// Mails that no server took are returned to the day from which they were taken, also after
// midnight. While the day's count cannot be read, its mails wait for a short time, with a reason
// that is not "the mails of the day are sent".
func TestMailsOfTheDay(t *testing.T) {
	w := pgtest.New(t)
	client, err := redis.Open("redis://127.0.0.1:1") // nothing answers there
	musttest.OK(t, err)
	defer client.Close()
	evening := time.Date(2026, 12, 1, 23, 59, 59, 0, time.UTC)
	now := evening
	p := &MailPace{redis.NewDomainPacer(client, nil, time.Now, workertest.AloneFor(1)), app.NewStores(w.DB).WarmUps,
		delivery.WarmUp{Start: evening.Truncate(24 * time.Hour), First: 100, Factor: 2}, func() time.Time { return now }, slog.New(slog.DiscardHandler)}
	spent := func(day time.Time) int64 {
		b, err := p.days.Budget(t.Context(), p.plan, day)
		w.Must(err)
		return b.Spent
	}
	permits, giveBack := p.Admit(t.Context(), map[string]smtp.Mails{"gmail.com": {All: 60}, "qq.com": {All: 60}})
	if b := permits["qq.com"]; len(permits) != 1 || b.Now != 40 || b.Reason != delivery.ReasonWarmUp || b.Wait != time.Second || b.Detail == "" {
		t.Errorf("%+v", permits)
	}
	now = evening.Add(time.Minute)
	if next, _ := p.Admit(t.Context(), map[string]smtp.Mails{"gmail.com": {All: 60}}); len(next) != 0 {
		t.Errorf("the next day: %+v", next)
	}
	giveBack(t.Context(), map[string]int{"gmail.com": 20, "qq.com": 10})
	if before, after := spent(evening), spent(now); before != 70 || after != 60 {
		t.Errorf("%d are spent of the day and %d of the next one", before, after)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	permits, _ = p.Admit(ended, map[string]smtp.Mails{"gmail.com": {All: 10}})
	if a := permits["gmail.com"]; a.Now != 0 || a.Reason != "" || a.Wait > time.Minute || a.Detail != "not sent: the mails of the day could not be counted" {
		t.Errorf("not counted: %+v", a)
	}
	p.plan = delivery.WarmUp{}
	if permits, _ := p.Admit(t.Context(), map[string]smtp.Mails{"gmail.com": {All: 10}}); len(permits) != 0 {
		t.Errorf("without a plan: %+v", permits)
	}
}

// A mail to a limited domain counts once per day, even if it was admitted earlier and not sent:
// because the plan's mails of the day were used up, or because no server took it.
func TestAMailCountsOnceForItsDomain(t *testing.T) {
	w := pgtest.New(t)
	client, err := redis.Open(localstack.RedisServer(t).URL())
	musttest.OK(t, err)
	defer client.Close()
	now := time.Now()
	p := &MailPace{redis.NewDomainPacer(client, map[string]int{"qq.com": 1000}, time.Now, workertest.AloneFor(1)), app.NewStores(w.DB).WarmUps,
		delivery.WarmUp{Start: now.UTC().Truncate(24 * time.Hour), First: 50, Factor: 2}, func() time.Time { return now }, slog.New(slog.DiscardHandler)}
	expect := func(about string, want int64) {
		t.Helper()
		states, err := p.domains.States(t.Context())
		if err != nil || len(states) != 1 || states[0].Today != want {
			t.Errorf("%s: %+v, %v", about, states, err)
		}
	}
	_, giveBack := p.Admit(t.Context(), map[string]smtp.Mails{"qq.com": {All: 60}})
	expect("ten are more than the plan has", 50)
	giveBack(t.Context(), map[string]int{"qq.com": 20})
	expect("no server took twenty", 30)
	p.plan = delivery.WarmUp{}
	_, giveBack = p.Admit(t.Context(), map[string]smtp.Mails{"qq.com": {All: 20, Waited: 20}})
	giveBack(t.Context(), map[string]int{"qq.com": 5})
	expect("without a plan", 45)
}
