package consoletest

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/job"
	"dropbell/domain/queue"
	"dropbell/domain/staff"
)

// StartJob starts a job of that title; shop 0 = of no shop.
func (g *Fixture) StartJob(by staff.Actor, title string, shop int64) job.Job {
	g.Helper()
	j, err := g.Jobs.Start(g.Context(), by, job.New{Kind: "test", Title: title, ShopNumber: shop, Total: 40}, staff.ManageTemplates)
	g.Must(err)
	return j
}

// Work saves a step of the job as a worker would.
func (g *Fixture) Work(id int64, p job.Progress) {
	g.Helper()
	jobs := g.Stores.Jobs
	g.Exec(`update jobs set lease_until = null, lease_token = null where id = $1`, id)
	l, err := jobs.LeaseJob(g.Context(), id, []string{"test"}, time.Minute)
	g.Must(err)
	_, err = jobs.SaveJob(g.Context(), l, p, time.Minute)
	g.Must(err)
}

// NextPage returns the address of the page's link to the next page, or "".
func NextPage(a Answer) string {
	_, tail, ok := strings.Cut(a.Body, `<nav class="pager"`)
	if !ok || !strings.Contains(tail, "Next page") {
		return ""
	}
	links := strings.Split(tail[:strings.Index(tail, "Next page")], `href="`)
	url, _, _ := strings.Cut(links[len(links)-1], `"`)
	return strings.ReplaceAll(url, "&amp;", "&")
}

// stillQueues are empty queues without Redis; tests of the queues bring their own.
type stillQueues struct{}

func (stillQueues) Queues(_ context.Context, days int) ([]queue.Queue, error) {
	return []queue.Queue{{Name: "timers", Days: make([]queue.Day, days)}}, nil
}

func (stillQueues) Tasks(context.Context, string, queue.State, int, int) ([]queue.Task, error) {
	return nil, nil
}

func (stillQueues) Task(context.Context, string, string) (queue.Task, error) {
	return queue.Task{}, queue.ErrNoTask
}

func (stillQueues) Pause(context.Context, string, bool) error { return nil }

func (stillQueues) Do(context.Context, string, string, queue.Step) error { return queue.ErrNoTask }
