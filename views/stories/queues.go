package stories

import (
	"time"

	"dropbell/domain/queue"
	"dropbell/domain/staff"
	workpages "dropbell/views/pages/work"
)

// queues are the queues at rest, at work and in trouble.
func queues() []Story {
	days := func(today, failed int64) (list []queue.Day) {
		for i, n := range []int64{8_200, 9_100, 7_400, 12_300, 30_100, 28_700, today} {
			list = append(list, queue.Day{Date: Now().AddDate(0, 0, i-6), Processed: n})
		}
		list[6].Failed = failed
		return list
	}
	sizes := func(pending, active, scheduled, retry, archived int64) map[queue.State]int64 {
		return map[queue.State]int64{queue.Pending: pending, queue.Active: active, queue.Scheduled: scheduled, queue.Retry: retry, queue.Archived: archived}
	}
	list := []queue.Queue{
		{Name: "timers", Sizes: sizes(0, 2, 1_248, 0, 0), Days: days(14_002, 0)},
		{Name: "deliver-app", Sizes: sizes(12, 8, 0, 0, 0), Latency: 240 * time.Millisecond, Days: days(21_440, 3)},
		{Name: "deliver-email", Paused: true, Sizes: sizes(4_310, 0, 0, 18, 2), Latency: 12 * time.Minute, Days: days(5_120, 1_200)},
		{Name: "jobs", Sizes: sizes(0, 0, 0, 0, 0), Days: make([]queue.Day, 7)},
		{Name: "housekeeping", Sizes: sizes(0, 0, 1, 0, 0), Days: days(96, 0)},
	}
	tasks := []queue.Task{
		{ID: "delivery.run.v1:email-0", Name: "delivery.run.v1", Queue: "deliver-email", State: queue.Retry, Payload: `{"channel":"email"}`, Retried: 2, MaxRetry: 5,
			LastError: "421 4.7.0 try again later", FailedAt: Now().Add(-time.Minute), Next: Now().Add(time.Minute)},
		{ID: "reminder.fire.v1:184", Name: "reminder.fire.v1", Queue: "deliver-email", State: queue.Retry, Payload: `{"slot_id":"184"}`, MaxRetry: 5, Next: Now().Add(time.Hour)},
		{ID: "unknown.v9:1", Name: "unknown.v9", Queue: "deliver-email", State: queue.Retry, Payload: "?", MaxRetry: 5},
	}
	one := workpages.QueueTasks{Queue: list[2], State: queue.Retry, List: tasks}
	one.Next = "#"
	return []Story{
		{Name: "queues/list", Page: workpages.Queues{List: list}.Page()},
		{Name: "queues/tasks", Page: one.Page(), Role: staff.Operator},
		{Name: "queues/none", Page: workpages.QueueTasks{Queue: list[3], State: queue.Pending}.Page(), Role: staff.Viewer},
		{Name: "queues/dashboard", Page: workpages.QueueDashboard{}.Page()},
	}
}
