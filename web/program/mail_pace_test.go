package program

import (
	"log/slog"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// TestThePaceOfMails: the page shows the workers' counts from Redis and the database. Without Redis
// only the limits are known. Forecasts have the same limits.
func TestThePaceOfMails(t *testing.T) {
	server := localstack.RedisServer(t)
	pgtest.WithinOneDay()
	now := app.Clock().UTC()
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": server.URL(), "MAIL_DOMAIN_RATES": "qq.com=50", "MAIL_WARMUP": now.AddDate(0, 0, -1).Format(time.DateOnly) + ":100x2"}
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = p.Close() })
	pacer := redis.NewDomainPacer(p.Redis, cfg.Mail.DomainRates, app.Clock, redis.NewAlone(redis.AloneConfig{Now: app.Clock}))
	pacer.Admit(t.Context(), "qq.com", redis.Mails{All: 80, Until: now.Add(time.Hour)})
	if _, err := p.Stores.WarmUps.Take(t.Context(), now, 70, 200); err != nil {
		t.Fatal(err)
	}
	pace, err := p.mailPace(t.Context())
	if err != nil || pace.Unknown || len(pace.Domains) != 1 || pace.Domains[0] != (delivery.DomainPace{Domain: "qq.com", PerSecond: 50, Today: 50, Waiting: 30}) {
		t.Errorf("%+v, %v", pace.Domains, err)
	}
	if d := pace.Plan; len(d) < 3 || d[0].Most != 100 || d[0].Sent != 0 || !d[1].Today || d[1].Most != 200 || d[1].Sent != 70 {
		t.Errorf("%+v", d)
	}
	f := p.Forecaster().Mails
	sent, err := f.Sent(t.Context(), now)
	if err != nil || sent != 70 || f.PerSecond["qq.com"] != 50 || f.WarmUp != cfg.Mail.WarmUp || f.Shares == nil {
		t.Errorf("%d sent, %v, %+v", sent, err, f)
	}
	server.Kill()
	pace, err = p.mailPace(t.Context())
	if err != nil || !pace.Unknown || len(pace.Domains) != 1 || pace.Domains[0] != (delivery.DomainPace{Domain: "qq.com", PerSecond: 50}) || len(pace.Plan) < 3 {
		t.Errorf("without Redis %+v, %v", pace, err)
	}
}
