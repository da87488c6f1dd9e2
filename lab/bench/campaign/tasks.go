package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"dropbell/lab/bench/stack"
)

const (
	// A server fetches one task per round trip, so several servers share the queue. More than
	// four servers only compete for the two processors.
	taskServers     = 4
	taskConcurrency = 16
	taskEnqueuers   = 64
)

// oneTaskEach queues a task for each of n users that stores a message for the user. took is the
// time from reading the audience until the last row is committed. Two things favour this design:
// Redis syncs once a second meanwhile, and no data of the recipient is read.
func oneTaskEach(ctx context.Context, s *stack.Stack, n int) (took time.Duration, err error) {
	if _, err := s.SQL.Exec(ctx, `drop table if exists peer_inbox; create table peer_inbox (campaign_id bigint, user_id bigint, title text, body text,
		sent_at timestamptz not null default now(), primary key (campaign_id, user_id))`); err != nil {
		return 0, err
	}
	client, err := s.RedisClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.ConfigSet(ctx, "appendfsync", "everysec").Err(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.ConfigSet(ctx, "appendfsync", "always").Err()) }()
	opt, err := asynq.ParseRedisURI(s.RedisURL)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	p := &peer{stack: s, n: int64(n), done: make(chan struct{})}
	stop, err := p.serve(opt)
	if err != nil {
		return 0, err
	}
	defer stop()
	if err := p.enqueue(ctx, opt); err != nil {
		return 0, err
	}
	limit := time.NewTimer(time.Minute + time.Duration(n)*5*time.Millisecond)
	defer limit.Stop()
	select {
	case <-p.done:
		return time.Since(start), nil
	case <-limit.C:
		return 0, errors.New(strconv.FormatInt(p.handled.Load(), 10) + " of " + strconv.Itoa(n) + " tasks were handled")
	}
}

// A peer is a plain implementation.
type peer struct {
	stack   *stack.Stack
	n       int64
	handled atomic.Int64
	done    chan struct{}
}

// peerTask is the payload of a task.
type peerTask struct {
	CampaignID int64  `json:"campaign_id"`
	UserID     int64  `json:"user_id"`
	Title      string `json:"title"`
	Body       string `json:"body"`
}

// enqueue reads the audience and queues a task for each user, many at a time.
func (p *peer) enqueue(ctx context.Context, opt asynq.RedisConnOpt) error {
	queue := asynq.NewClient(opt)
	defer queue.Close()
	rows, err := p.stack.SQL.Query(ctx, `select id from users order by id limit $1`, p.n)
	if err != nil {
		return err
	}
	defer rows.Close()
	ids := make(chan int64, 1000)
	errs := make(chan error, taskEnqueuers)
	var all sync.WaitGroup
	for range taskEnqueuers {
		all.Go(func() {
			for id := range ids {
				payload, err := json.Marshal(peerTask{1, id, "Spring", "Everything must go"})
				if err == nil {
					_, err = queue.EnqueueContext(ctx, asynq.NewTask("deliver", payload), asynq.Queue("peer"), asynq.TaskID("1:"+strconv.FormatInt(id, 10)))
				}
				if err != nil {
					errs <- err
					break
				}
			}
			for range ids { // so that no sender waits for a reader that gave up
			}
		})
	}
	var id int64
	for rows.Next() && rows.Scan(&id) == nil {
		ids <- id
	}
	close(ids)
	all.Wait()
	close(errs)
	return errors.Join(<-errs, rows.Err())
}

// serve handles tasks until stop is called.
func (p *peer) serve(opt asynq.RedisConnOpt) (stop func(), err error) {
	var servers []*asynq.Server
	stop = func() {
		for _, s := range servers {
			s.Shutdown()
		}
	}
	for range taskServers {
		s := asynq.NewServer(opt, asynq.Config{Concurrency: taskConcurrency, Queues: map[string]int{"peer": 1}, TaskCheckInterval: 20 * time.Millisecond,
			LogLevel: asynq.ErrorLevel})
		if err := s.Start(asynq.HandlerFunc(p.handle)); err != nil {
			stop()
			return nil, err
		}
		servers = append(servers, s)
	}
	return stop, nil
}

// handle puts one message into one user's inbox, only once even if the task is repeated.
func (p *peer) handle(ctx context.Context, t *asynq.Task) error {
	var m peerTask
	if err := json.Unmarshal(t.Payload(), &m); err != nil {
		return err
	}
	tag, err := p.stack.SQL.Exec(ctx, `insert into peer_inbox (campaign_id, user_id, title, body) values ($1, $2, $3, $4) on conflict do nothing`,
		m.CampaignID, m.UserID, m.Title, m.Body)
	if err == nil && tag.RowsAffected() == 1 && p.handled.Add(1) == p.n {
		close(p.done)
	}
	return err
}
