package program

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/adapters/push/pushtest"
	"dropbell/domain/live"
	"dropbell/musttest"
)

// TestLiveActivitiesFollowADrop: two workers give a drop one channel and broadcast each change
// of the drop. They continue after a failed broadcast, after Redis was emptied, and after the
// channel was removed by hand. One hour after the end of the drop the channel is gone.
func TestLiveActivitiesFollowADrop(t *testing.T) {
	server, url := localstack.RedisServer(t), localstack.Database(t)
	sql, err := pgxpool.New(t.Context(), url)
	musttest.OK(t, err)
	t.Cleanup(sql.Close)
	exec := func(statement string) {
		t.Helper()
		if _, err := sql.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	apple, err := pushtest.NewAPNs()
	musttest.OK(t, err)
	t.Cleanup(apple.Close)
	channels := apple.Channels()
	rows.Drop{Name: "Half price", OpensAt: time.Now().Add(2 * time.Hour)}.Add(t, sql)

	env := map[string]string{"DATABASE_URL": url, "REDIS_URL": server.URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0", "APNS_KEY": base64.StdEncoding.EncodeToString(apple.Key),
		"APNS_KEY_ID": apple.KeyID, "APNS_TEAM_ID": apple.TeamID, "APNS_TOPIC": apple.Topic, "APNS_URL": apple.URL, "APNS_LIVE": "on"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	}
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	// shows waits until so many broadcasts were made, and the last one shows this.
	shows := func(state string, minutes, left, broadcasts int) {
		t.Helper()
		poll(t, state, func() error {
			sent := channels.Broadcasts()
			if len(sent) != broadcasts {
				return fmt.Errorf("%d of %d broadcasts", len(sent), broadcasts)
			}
			var in struct {
				APS struct {
					State live.Content `json:"content-state"`
				} `json:"aps"`
			}
			if err := json.Unmarshal(sent[broadcasts-1].Body, &in); err != nil {
				return err
			}
			if got := in.APS.State; got.State != state || got.Minutes != minutes || got.Left != left {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})
	}
	changed := `; insert into outbox (topic, payload) select 'template.changed.v1', jsonb_build_object('template_id', id::text, 'version', version, 'opens_at', opens_at, 'at', now()) from templates, generate_series(1, 3)`
	shows("scheduled", 0, 100, 1)
	exec(`update templates set opens_at = date_trunc('second', now()) + interval '29 minutes 50 seconds'` + changed)
	shows("scheduled", 30, 100, 2)

	// Apple fails twice and the task is lost with all of Redis: the present is broadcast.
	channels.Fail(pushtest.Fault{Status: 503, Reason: "ServiceUnavailable"}, pushtest.Fault{Status: 500})
	options, err := goredis.ParseURL(server.URL())
	musttest.OK(t, err)
	client := goredis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute', issued = 2`)
	exec(`update live_channels set next_at = now()`) // as by an event whose task is lost
	musttest.OK(t, client.FlushAll(t.Context()).Err())
	shows("open", 0, 80, 3)

	channels.Drop()
	exec(`update templates set issued = 10` + changed)
	shows("sold_out", 0, 0, 4)
	if open, made := channels.Count(); open != 1 || made != 2 {
		t.Errorf("%d of %d channels", open, made)
	}
	exec(`update templates set state = 'closed', ended_at = now()` + changed)
	shows("closed", 0, 0, 5)
	exec(`update templates set ended_at = now() - interval '61 minutes'` + changed)
	poll(t, "the channel is removed", func() error {
		var rows int
		if err := sql.QueryRow(t.Context(), `select count(*) from live_channels`).Scan(&rows); err != nil {
			return err
		}
		if open, _ := channels.Count(); open+rows > 0 {
			return fmt.Errorf("%d channels, %d rows", open, rows)
		}
		return nil
	})
}
