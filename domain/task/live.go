package task

import (
	"strconv"
	"time"
)

// TellLiveActivities is the task that does the due work on broadcast channels.
const TellLiveActivities = "live.tell.v1"

// TellLive returns the task that does the due work on broadcast channels. At contains
// the second: work that becomes due while an earlier task ends gets a task of its own.
func TellLive(at time.Time) Task {
	return Task{Name: TellLiveActivities, Key: strconv.FormatInt(at.Unix(), 10), Queue: TimerQueue, Payload: struct{}{}, Timeout: 5 * time.Minute}
}
