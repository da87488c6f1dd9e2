package program

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/asynq"
	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/app"
	"dropbell/domain/task"
	"dropbell/worker/shell"
	"dropbell/worker/work"
)

func TestQueuesOfRoles(t *testing.T) {
	for _, c := range []struct {
		roles, channels []string
		want            []string
	}{
		{nil, nil, []string{task.TimerQueue, task.HouseQueue, work.JobQueue().Name, task.HookQueue, task.CodeQueue, task.ChannelQueue("app"), task.ChannelQueue("email"), task.ChannelQueue("sms"), task.ChannelQueue("webpush"), task.ChannelQueue("webhook")}},
		{[]string{"delivery"}, []string{"sms", "email"}, []string{task.CodeQueue, task.ChannelQueue("email"), task.ChannelQueue("sms")}},
		{[]string{"delivery"}, []string{"email"}, []string{task.ChannelQueue("email")}},
		{[]string{"timers", "house"}, []string{"sms"}, []string{task.TimerQueue, task.HouseQueue}},
		{[]string{"gate", "events"}, nil, []string{task.HookQueue}},
	} {
		p := &program{App: &app.App{Config: config.Config{WorkerRoles: c.roles, WorkerChannels: c.channels, WorkerBatches: map[string]int{"sms": 3}}}}
		var got []string
		for _, q := range p.queues() {
			got = append(got, q.Name)
			if q.Name == task.ChannelQueue("sms") && q.Concurrency != 3 {
				t.Errorf("%d batches of SMS at a time, WORKER_BATCHES says 3", q.Concurrency)
			}
		}
		// Tasks that wait for a provider do not occupy the places of timers.
		if known := asynq.QueueNames(); task.SendPhoneCode(1).Queue != task.CodeQueue || slices.ContainsFunc(got, func(name string) bool { return !slices.Contains(known, name) }) {
			t.Errorf("%v are not all among %v", got, known)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v %v: takes from %v, want %v", c.roles, c.channels, got, c.want)
		}
		// Test messages and alerts go through providers, too.
		if want := !slices.Equal(c.roles, []string{"gate", "events"}); p.sends() != want {
			t.Errorf("%v: it keeps up with what staff change of providers: %v, want %v", c.roles, !want, want)
		}
	}
}

// Workers with one role each do together the work of one worker with all roles: a slot fires and
// the reminder in the app is delivered.
func TestRolesTogetherDoEverything(t *testing.T) {
	server := localstack.RedisServer(t)
	url := localstack.Database(t)
	sql, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sql.Close)
	rows.Drop{OpensAt: time.Now().Add(5*time.Minute + 2*time.Second)}.Add(t, sql)
	for _, statement := range []string{
		`insert into slots (template_id, slot, opens_at, due_at, state) select 1, 1, t.opens_at, t.opens_at - interval '5 minutes', 'waiting' from templates t`,
		`insert into users (id, name) values (7, 'x')`,
		`insert into reservations (template_id, user_id, slots) values (1, 7, 1)`,
	} {
		if _, err := sql.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, r := range []shell.Role{shell.Timers, shell.Delivery, shell.Events, shell.Jobs, shell.Gate, shell.House} {
		env := map[string]string{"DATABASE_URL": url, "REDIS_URL": server.URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0", "WORKER_ROLES": string(r)}
		all.Go(func() {
			if err := run(ctx, func(name string) string { return env[name] }, io.Discard); err != nil {
				t.Errorf("%s: %v", r, err)
			}
		})
	}
	poll(t, "the reminder is delivered", func() error {
		var state string
		var sent int
		err := sql.QueryRow(t.Context(), `select s.state, coalesce(sum(b.sent_count), 0) from slots s left join batches b on b.owner_id = s.id and b.kind = 'reminder' group by s.id`).Scan(&state, &sent)
		if err == nil && (state != "finished" || sent != 1) {
			err = fmt.Errorf("the slot is %s, %d sent", state, sent)
		}
		return err
	})
	stop()
	all.Wait()
}
