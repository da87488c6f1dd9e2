package work

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"dropbell/domain/queue"
	"dropbell/domain/staff"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Queues are all queues.
type Queues struct{ List []queue.Queue }

// QueueTasks is one queue with a page of its tasks in one state.
type QueueTasks struct {
	queue.Queue
	State queue.State
	List  []queue.Task
	parts.Paged
}

// QueueDashboard is asynqmon, a separate program, inside the console's frame.
type QueueDashboard struct {
	// Inside is the dashboard's address.
	Inside string
}

// QueuesURL is where the queues are.
const QueuesURL = "/queues"

// QueueURL is where a queue is.
func QueueURL(name string) string { return QueuesURL + "/" + url.PathEscape(name) }

// StateURL is where the tasks of a queue in a state are.
func StateURL(name string, s queue.State) string { return QueueURL(name) + "?state=" + string(s) }

// TaskURL is where a step of a task is confirmed.
func TaskURL(t queue.Task, s queue.Step) string {
	return fmt.Sprintf("%s/tasks/%s?id=%s", QueueURL(t.Queue), s, url.QueryEscape(t.ID))
}

// QueueName describes the purpose of a queue.
func QueueName(ctx context.Context, name string) string {
	if channel, ok := strings.CutPrefix(name, "deliver-"); ok {
		return ui.T(ctx, "queues.deliver", ui.T(ctx, "channel."+channel))
	}
	if key := "queues.of." + name; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return name // a queue of a newer worker
}

// taskTitle describes a task in words, if it is known.
func taskTitle(ctx context.Context, name string) string {
	key := "queues.task." + strings.TrimSuffix(strings.TrimSuffix(name, ".v1"), ".v2")
	if ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return name
}

func mayChangeQueues(ctx context.Context) bool { return ui.MayEverywhere(ctx, staff.Operate) }

// waiting says how long the first pending task has waited.
func waiting(ctx context.Context, q queue.Queue) string {
	if q.Sizes[queue.Pending] == 0 {
		return "–"
	}
	return ui.From(ctx).Locale.Duration(q.Latency)
}

// The chart of a queue's days: a column each, in units of its view box.
const (
	dayWidth  = 12
	dayHeight = 36
)

type column struct {
	x            int
	y, height    float64
	failed, from float64
}

func columns(q queue.Queue) []column {
	var most int64 = 1
	for _, d := range q.Days {
		most = max(most, d.Processed)
	}
	list := make([]column, len(q.Days))
	for i, d := range q.Days {
		high := func(n int64) float64 {
			if n <= 0 {
				return 0
			}
			return max(1.5, dayHeight*float64(n)/float64(most))
		}
		list[i] = column{x: i * dayWidth, height: high(d.Processed), failed: high(d.Failed)}
		list[i].y, list[i].from = dayHeight-list[i].height, dayHeight-list[i].failed
	}
	return list
}

func daysText(ctx context.Context, q queue.Queue) string {
	l := ui.From(ctx).Locale
	words := make([]string, len(q.Days))
	for i, d := range q.Days {
		words[i] = l.T("queues.day", d.Date.Format("01-02"), d.Processed, d.Failed)
	}
	return strings.Join(words, l.T("ui.list_join"))
}

func decimal(f float64) string { return fmt.Sprintf("%.1f", f) }

// stepIcon is the icon of a step.
func stepIcon(s queue.Step) string {
	return map[queue.Step]string{queue.Run: "bolt", queue.Archive: "archive", queue.Delete: "trash"}[s]
}
