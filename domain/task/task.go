// Package task holds the payloads of queued tasks and nothing else. A task is
// one piece of work for one worker at a time, executed at least once. Payloads
// contain keys only: the worker that runs the task reads the current state.
package task

import (
	"fmt"
	"strconv"
	"time"
)

// Names of tasks. The version stands last because handlers match by prefix.
const (
	FireSlot   = "reminder.fire.v1"
	Announcing = "reminder.announce.v1"
	Watch      = "reminder.watch.v1"
	WatchMany  = "reminder.watch.v2"
	Test       = "channel.test.v1"
	SendCode   = "phone.code.v1"
	Deliver    = "delivery.run.v1"
	CleanUp    = "housekeeping.clean.v1"
	Recount    = "housekeeping.recount.v1"
	WorkJob    = "job.run.v1"
	SendHooks  = "hook.send.v1"
)

// Queues other than the queues of the channels.
const (
	TimerQueue = "timers"
	HouseQueue = "housekeeping"
	JobQueue   = "jobs"
	HookQueue  = "webhooks"
	CodeQueue  = "phone-codes"
)

// ChannelQueue returns the queue of a channel's batches.
func ChannelQueue(channel string) string { return "deliver-" + channel }

// A Task is one entry for the queue. Two tasks with one Name and Key are the
// same task: queueing it again while it waits changes nothing.
type Task struct {
	Name    string
	Key     string
	Queue   string
	Payload any
	// At is the earliest instant to run; the zero time means now. Queues may
	// round it up to a whole second.
	At time.Time
	// Timeout bounds one execution; at least one second.
	Timeout time.Duration
}

// ID returns the task's id in the queue; a queue holds each id once.
func (t Task) ID() string { return t.Name + ":" + t.Key }

// SlotPayload is the payload of [FireSlot] and [Watch].
type SlotPayload struct {
	SlotID int64 `json:"slot_id,string"`
}

// SlotsPayload is the payload of [WatchMany].
type SlotsPayload struct {
	SlotIDs []string `json:"slot_ids"`
}

// AnnouncementPayload is the payload of [Announcing].
type AnnouncementPayload struct {
	AnnouncementID int64 `json:"announcement_id,string"`
}

// TestPayload is the payload of [Test].
type TestPayload struct {
	TestID int64 `json:"test_id,string"`
}

// CodePayload is the payload of [SendCode].
type CodePayload struct {
	VerificationID int64 `json:"verification_id,string"`
}

// BatchPayload is the payload of [Deliver]: the batch whose readiness caused the
// task. The worker takes the most urgent ready batch of the channel, which may be
// another batch.
type BatchPayload struct {
	BatchID int64  `json:"batch_id,string"`
	Channel string `json:"channel"`
}

// ahead is how much earlier than its instant a timer wakes. Queues look for due
// tasks only at intervals. The woken timer waits for the database's clock and is on
// time to the millisecond.
const ahead = 1500 * time.Millisecond

// JobPayload is the payload of [WorkJob].
type JobPayload struct {
	JobID int64 `json:"job_id,string"`
}

// Fire returns the timer of a slot that is due at dueAt. Its key changes with the
// slot's row, so that a moved opening gets new timers.
func Fire(slotID int64, dueAt time.Time) Task {
	if !dueAt.IsZero() {
		dueAt = dueAt.Add(-ahead)
	}
	return Task{Name: FireSlot, Key: fmt.Sprint(slotID), Queue: TimerQueue,
		Payload: SlotPayload{slotID}, At: dueAt, Timeout: 10 * time.Minute}
}

// Announce returns the task that cuts an announcement into batches.
func Announce(announcementID int64) Task {
	return Task{Name: Announcing, Key: fmt.Sprint(announcementID), Queue: TimerQueue,
		Payload: AnnouncementPayload{announcementID}, Timeout: 10 * time.Minute}
}

// SendPhoneCode returns the task that sends the code of a verification. It has a queue of
// its own: in the channel's queue it would wait for batches, and in the queue of the
// timers it would block timers while it waits for the provider.
func SendPhoneCode(verificationID int64) Task {
	return Task{Name: SendCode, Key: fmt.Sprint(verificationID), Queue: CodeQueue, Payload: CodePayload{verificationID}, Timeout: time.Minute}
}

// TestChannel returns the task that sends a test message. It has a queue of its
// own: in the channel's queue it would wait behind a drop.
func TestChannel(testID int64) Task {
	return Task{Name: Test, Key: fmt.Sprint(testID), Queue: TimerQueue, Payload: TestPayload{testID}, Timeout: time.Minute}
}

// WatchSlot returns the watchdog's next look at a slot.
func WatchSlot(slotID int64, at time.Time) Task {
	return Task{Name: Watch, Key: fmt.Sprintf("%d:%d", slotID, at.Unix()), Queue: TimerQueue,
		Payload: SlotPayload{slotID}, At: at, Timeout: time.Minute}
}

// WatchSlots returns the watchdog's next look at slots that were fired together.
// slotIDs is not empty.
func WatchSlots(slotIDs []int64, at time.Time) Task {
	ids := make([]string, len(slotIDs))
	for i, id := range slotIDs {
		ids[i] = strconv.FormatInt(id, 10)
	}
	return Task{Name: WatchMany, Key: fmt.Sprintf("%d:%d", slotIDs[0], at.Unix()), Queue: TimerQueue,
		Payload: SlotsPayload{ids}, At: at, Timeout: time.Minute}
}

// Run returns the task that makes a worker of the channel look for a ready
// batch; run numbers the times at which the batch became ready.
func Run(batchID int64, channel string, run int, at time.Time) Task {
	return Task{Name: Deliver, Key: fmt.Sprintf("%d:%d", batchID, run), Queue: ChannelQueue(channel),
		Payload: BatchPayload{batchID, channel}, At: at, Timeout: 10 * time.Minute}
}

// RunJob returns the task that works on a job in the background for a turn.
func RunJob(jobID int64) Task {
	return Task{Name: WorkJob, Key: fmt.Sprint(jobID), Queue: JobQueue, Payload: JobPayload{jobID}, Timeout: 10 * time.Minute}
}

// HookPayload is the payload of [SendHooks].
type HookPayload struct {
	EndpointID int64 `json:"endpoint_id,string"`
}

// SendHook returns the task that sends the due deliveries of an endpoint. At
// contains the second: deliveries that become due while an earlier task ends get a
// task of their own.
func SendHook(endpointID int64, at time.Time) Task {
	return Task{Name: SendHooks, Key: fmt.Sprintf("%d:%d", endpointID, at.Unix()), Queue: HookQueue,
		Payload: HookPayload{endpointID}, Timeout: 5 * time.Minute}
}

// House returns a periodic housekeeping task; bucket names the period, so
// that several schedulers queue it once.
func House(name, bucket string) Task {
	return Task{Name: name, Key: bucket, Queue: HouseQueue, Payload: struct{}{}, Timeout: 15 * time.Minute}
}

// Again returns t under another key, for when the first may be stuck.
func (t Task) Again(suffix string) Task {
	t.Key += ":" + suffix
	return t
}

// Wake returns a task that makes a worker of the channel look for ready batches
// although no batch enqueued one; i and bucket make the keys of such tasks
// differ.
func Wake(channel string, i int, bucket string) Task {
	return Task{Name: Deliver, Key: fmt.Sprintf("wake:%d:%s", i, bucket), Queue: ChannelQueue(channel),
		Payload: BatchPayload{Channel: channel}, Timeout: 10 * time.Minute}
}
