package task

import (
	"strconv"
	"time"
)

// TellLiveActivities is the task that does what is due about broadcast channels.
const TellLiveActivities = "live.tell.v1"

// TellLive returns the task that does what is due about broadcast channels. At names the
// second, so that what becomes due while an earlier task ends is not left.
func TellLive(at time.Time) Task {
	return Task{Name: TellLiveActivities, Key: strconv.FormatInt(at.Unix(), 10), Queue: TimerQueue, Payload: struct{}{}, Timeout: 5 * time.Minute}
}
