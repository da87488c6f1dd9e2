package work_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"dropbell/adapters/asynq"
	"dropbell/adapters/localstack"
	"dropbell/adapters/redisclient"
	"dropbell/domain/queue"
	"dropbell/domain/staff"
	"dropbell/domain/task"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// queues is a console on queues in a Redis of its own, which no worker serves.
type queues struct {
	*consoletest.Fixture
	redis *localstack.Redis
	*asynq.Queue
}

func newQueues(t *testing.T) *queues {
	t.Helper()
	q := &queues{redis: localstack.RedisServer(t)}
	client, err := redisclient.New(q.redis.URL(), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // nothing is lost by then
	if q.Queue, err = asynq.NewQueue(q.redis.URL(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Queue.Close() })
	q.Fixture = consoletest.New(t, func(d *console.Deps) {
		d.Work.Queues = &queue.Service{Store: asynq.NewInspector(client), Audit: d.Work.Audit}
	})
	return q
}

func (q *queues) put(n int, at time.Time) {
	q.Helper()
	var list []task.Task
	for i := range n {
		list = append(list, task.Task{Name: task.FireSlot, Key: fmt.Sprint(i), Queue: task.TimerQueue, Payload: task.SlotPayload{SlotID: int64(i)}, At: at, Timeout: time.Minute})
	}
	q.Must(q.Enqueue(q.Context(), list...))
}

// Staff see the queues and their tasks page by page. Operators pause queues and take steps with
// tasks; each step is in the audit log.
func TestQueuePages(t *testing.T) {
	g := newQueues(t)
	g.put(2*shell.PageSize+1, g.Now().Add(time.Hour))
	viewer, op := g.As(staff.Viewer), g.As(staff.Operator)
	viewer.Get("/queues").Is(200).Has("Timers", "Deliveries: E-mail", fmt.Sprintf(">%d<", 2*shell.PageSize+1), "0 processed")
	first := viewer.Get("/queues/timers").Is(200).Has(`state=scheduled" aria-current`, "Send the reminders of one time", "&#34;slot_id&#34;").HasNot("/tasks/run")
	seen, next := 1, consoletest.NextPage(first)
	for ; next != ""; seen++ {
		next = consoletest.NextPage(viewer.Get(next).Is(200))
	}
	if seen != 3 {
		t.Errorf("%d pages", seen)
	}
	viewer.Get("/queues/timers?page=999999999999").Is(200).Has("No tasks")
	viewer.Get("/queues/timers?state=nonsense&page=-4").Is(200).Has("Send the reminders of one time")
	viewer.Get("/queues/nothing").Is(404)
	viewer.Get("/queues/timers/pause").Is(403)
	viewer.Post("/queues/timers/tasks/run?id=reminder.fire.v1:3", nil).Is(403)

	op.Get("/queues/timers/pause").Is(200).Has("Pause the queue")
	for range 2 { // pressing the button twice is no mistake
		op.Post("/queues/timers/pause", nil).To("/queues/timers")
	}
	op.Get("/queues").Is(200).Has(`is-warn">Paused`)
	op.Post("/queues/timers/resume", nil).To("/queues/timers")
	op.Get("/queues").Is(200).HasNot(`is-warn">Paused`)

	at := func(step, id string) string { return "/queues/timers/tasks/" + step + "?id=" + url.QueryEscape(id) }
	op.Get(at("run", "reminder.fire.v1:3")).Is(200).Has("Run this task now?", "reminder.fire.v1:3")
	op.Post(at("run", "reminder.fire.v1:3"), nil).To("/queues/timers")
	op.Post(at("archive", "reminder.fire.v1:3"), nil).To("/queues/timers")
	op.Get("/queues/timers?state=archived").Is(200).Has("reminder.fire.v1:3", "/tasks/run", "/tasks/delete").HasNot("/tasks/archive")
	op.Post(at("archive", "reminder.fire.v1:3"), nil).To("/queues/timers") // by another operator meanwhile
	op.Get("/queues/timers").Has("does not allow this")
	op.Post(at("delete", "reminder.fire.v1:3"), nil).To("/queues/timers")
	op.Post(at("delete", "reminder.fire.v1:3"), nil).To("/queues/timers")
	op.Get("/queues/timers").Has("not in the queue any more")
	op.Get(at("delete", "reminder.fire.v1:3")).Is(404)
	if n := g.Number(`select count(*) from audit where object_kind = 'queue' and object_id = 'timers' and action = 'queue.change'`); n != 3 {
		t.Errorf("%d steps are in the audit log", n)
	}
	g.As(staff.Admin).Get("/audit?kind=queue").Is(200).Has("paused", "resumed", "changed")
}

// While Redis does not answer the pages say so, and no change is made without a record.
func TestQueuesWithoutRedis(t *testing.T) {
	g := newQueues(t)
	op := g.As(staff.Operator)
	g.redis.Kill()
	for _, path := range []string{"/queues", "/queues/timers", "/queues/timers/pause", "/queues/timers/tasks/run?id=a"} {
		op.Get(path).Is(http.StatusServiceUnavailable).Has("Redis, which holds the queues, does not answer")
	}
	op.Post("/queues/timers/pause", nil).Is(http.StatusServiceUnavailable)
	op.Post("/queues/timers/tasks/delete?id=a", nil).Is(http.StatusServiceUnavailable)
	if n := g.Number(`select count(*) from audit where object_kind = 'queue'`); n != 0 {
		t.Errorf("%d changes were recorded, none was made", n)
	}
}
